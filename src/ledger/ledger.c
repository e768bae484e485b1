/* The ledger as a whole: new, free, status, sessions, call ids. */
#include "ledger/ledger.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/file.h"
#include "ledger/ledger_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const struct ledger_limits ledger_default_limits = {
    .repair = 2,
    .same_call = 3,
    .transient = 3,
    .repeats = 3,
    .halt = 5,
    .across_turns = 5,
    .poll_max = 20,
    .same_failure = LEDGER_SAME_FAILURE_DEFAULT,
};

#define LAPSED_EVERY_MS                                                                                      \
    60000u /* sessions with open chains are looked at so often, or as often as they may end */

/* ---- repair chains in the log ---- */

static const struct {
    struct str outcome;
    enum log_level level;
} chain_levels[] = {
    {STR("no_retry"), LOG_DEBUG}, {STR("success"), LOG_INFO},     {STR("redundant"), LOG_WARN},
    {STR("exhausted"), LOG_WARN}, {STR("llm_gave_up"), LOG_INFO}, {STR("fabricated_id_on_retry"), LOG_WARN},
};

void ledger_log_chain(struct str tool, struct str ext, struct str outcome, uint32_t retries)
{
    for (size_t i = 0; i < sizeof(chain_levels) / sizeof(*chain_levels); i++)
        if (str_eq(outcome, chain_levels[i].outcome))
            log_event(chain_levels[i].level, "validation_retry_outcome", LOG_STR("tool", tool),
                      LOG_STR("ext", ext.len ? ext : STR_LIT("-")), LOG_STR("outcome", outcome),
                      LOG_NUM("retry_count", retries));
}

void ledger_on_gave_up(struct ledger *ledger, ledger_gave_up *hook, void *owner)
{
    ledger->on_gave_up = hook;
    ledger->gave_up_owner = owner;
}

void log_gave_up(const struct ledger *l, const struct session_chain *chain)
{
    struct str tool = {chain->name, chain->name_len};
    ledger_log_chain(tool, (struct str){chain->ext, chain->ext_len}, STR_LIT("llm_gave_up"),
                     session_chain_retries(chain));
    if (l->on_gave_up)
        l->on_gave_up(l->gave_up_owner, tool);
}

void log_all_gave_up(const struct ledger *l, const struct session *session)
{
    for (unsigned i = 0; i < session->chain_count; i++)
        if (!session->chains[i].ended)
            log_gave_up(l, &session->chains[i]);
}

/* Once: it goes on as long as there are more sessions than room. */
static void log_evicted(struct ledger *l)
{
    struct store_memory_usage here;
    l->has_evicted = true;
    store_memory_usage(l->memory, &here);
    log_event(LOG_WARN, "ledger_evicted", LOG_NUM("sessions", (int64_t)here.sessions),
              LOG_NUM("bytes", (int64_t)here.bytes), LOG_NUM("uid", here.largest_user),
              LOG_NUM("bytes_of_uid", (int64_t)here.largest_bytes),
              LOG_TEXT("why", "its memory is full: of the user whose sessions take most, those that were "
                              "silent for longest are forgotten, and their budgets and loops begin anew; "
                              "raise ledger.memory, or lower ledger.ttl_s"));
}

/* A session has ended with its time to live, or for want of memory: chains that were open are given up. */
static void on_session_gone(void *owner, struct hash128 id, struct str core, bool evicted)
{
    struct ledger *l = owner;
    struct session session;
    (void)id;
    if (evicted && !l->has_evicted)
        log_evicted(l);
    if (codec_decode(core, &session) == CODEC_OK)
        log_all_gave_up(l, &session);
}

static void watch_lapsed(struct ledger *l);

/* In Redis no daemon sees a session end: the daemons that remember one with open chains ask for it once its
 * time is over. Each that remembers it logs its end. */
static void check_lapsed(void *owner)
{
    struct ledger *l = owner;
    struct lru_node *node, *next;
    int64_t now_s = ledger_now_ms(l) / 1000;
    for (node = l->entries.oldest; node; node = next) {
        struct ledger_entry *e = (struct ledger_entry *)node;
        const struct session *s = &e->session;
        const struct session_request request = {.kind = LEDGER_LAPSED, .id = node->id};
        unsigned open = 0;
        next = node->newer;
        for (unsigned i = 0; e->loaded && i < s->chain_count; i++)
            open += !s->chains[i].ended;
        if (open && e->stored && !e->local && !e->busy && !e->paused && now_s - s->renewed_s > l->ttl_s)
            transaction_add(l, request_copy(&request));
    }
    watch_lapsed(l);
}

/* A year in milliseconds is more than 32 bits. */
static void watch_lapsed(struct ledger *l)
{
    uint32_t every_ms = l->ttl_s < LAPSED_EVERY_MS / 1000 ? l->ttl_s * 1000 : LAPSED_EVERY_MS;
    timer_set(&l->lapsed, l->loop, every_ms, check_lapsed, l);
}

/* ---- new, free ---- */

/* Without a file, ids given before are unknown after a start. */
static void load_own_key(struct ledger *l, const char *file)
{
    uint64_t random[] = {hash_random(), hash_random()};
    bool replaced;
    struct why why;
    memcpy(l->own_key.bytes, random, sizeof(random));
    if (!file)
        return;
    if (key_file_load(file, l->own_key.bytes, sizeof(l->own_key.bytes), &replaced, &why) != OK)
        log_event(LOG_WARN, "call_id_key_not_kept", LOG_TEXT("why", why.text));
    else if (replaced)
        log_event(
            LOG_WARN, "call_id_key_replaced", LOG_TEXT("file", file),
            LOG_TEXT("why", "it holds no key, or others may read it; call ids given before are unknown now"));
}

static struct ledger *new_ledger(const struct ledger_options *options)
{
    struct ledger *l = alloc_zeroed(sizeof(*l));
    struct store_memory_options memory = {.memory_bytes = options->memory_bytes,
                                          .now_ms = options->now_ms,
                                          .gone = on_session_gone,
                                          .owner = l};
    lru_init(&l->entries);
    lru_init(&l->kept);
    l->memory = store_memory_new(&memory);
    l->on_outage = options->on_outage;
    l->ttl_s = options->ttl_s ? options->ttl_s : LEDGER_TTL_S_DEFAULT;
    l->history = options->history ? options->history : LEDGER_HISTORY_DEFAULT;
    l->settles_unheard = options->settles_unheard;
    load_own_key(l, options->key_file);
    l->daemon = (uint32_t)hash_random() | 1;
    return l;
}

struct ledger *ledger_new_local(const struct ledger_options *options)
{
    struct ledger *l = new_ledger(options);
    lax_fleet_init(&l->lax, l->memory);
    return l;
}

enum err ledger_new_redis(const struct ledger_options *options, struct ledger **out, struct why *why)
{
    struct ledger *l = new_ledger(options);
    *out = NULL;
    enum err err = store_redis_new(options, l, &l->redis, why);
    if (err != OK) {
        ledger_free(l);
        return err;
    }
    l->loop = options->loop;
    l->kept_bytes_max = options->memory_bytes ? options->memory_bytes : LEDGER_MEMORY_BYTES;
    lax_fleet_init(&l->lax, l->redis);
    fleet_init(&l->fleet, l->loop, l->redis);
    watch_lapsed(l);
    *out = l;
    return OK;
}

void ledger_free(struct ledger *l)
{
    if (!l)
        return;
    timer_clear(&l->replay);
    timer_clear(&l->lapsed);
    if (l->kept.count)
        log_event(
            LOG_WARN, "ledger_sessions_lost", LOG_NUM("sessions", (int64_t)l->kept.count),
            LOG_NUM("requests", (int64_t)l->kept_requests),
            LOG_TEXT("why", "the daemon ends before Redis is back: Redis does not learn what it counted"));
    if (l->redis)
        l->redis->kind->free(l->redis);
    transaction_drop_rates(l);
    entries_clear(l);
    outage_drop(l);
    l->memory->kind->free(l->memory);
    lax_fleet_clear(&l->lax);
    if (l->redis)
        fleet_clear(&l->fleet);
    free(l);
}

bool ledger_is_settled(const struct ledger *l)
{
    return !l->redis || (store_redis_is_settled(l->redis) && !l->lax.record.busy && !l->fleet.record.busy);
}

void ledger_tell_policies(struct ledger *l, uint64_t hash)
{
    if (l->redis)
        fleet_tell(&l->fleet, hash | 1);
}

struct str ledger_address(const struct ledger *l, struct arena *arena)
{
    return l->redis ? arena_dup(arena, store_redis_address(l->redis)) : STR_NONE;
}

/* ---- status ---- */

void ledger_status(const struct ledger *l, struct ledger_status *out)
{
    struct store_memory_usage here;
    store_memory_usage(l->memory, &here);
    *out = l->status;
    out->engine = l->redis ? "redis" : "local";
    out->why_away = "";
    out->sessions = here.sessions;
    out->bytes = here.bytes;
    out->forgotten = here.forgotten;
    if (!l->redis)
        return;
    store_redis_status(l->redis, out);
    if (l->fleet.warning[0] && out->warning_count < LEDGER_WARNINGS_MAX)
        out->warnings[out->warning_count++] = l->fleet.warning;
    out->on_outage = outage_names[l->on_outage];
    out->waiting = l->kept.count + l->replaying;
    out->clock_ahead_ms = ledger_now_ms(l) - clock_wall_ms();
}

/* ---- sessions ---- */

size_t ledger_sessions(const struct ledger *l, struct ledger_session *sessions)
{
    int64_t now_s = ledger_now_ms(l) / 1000;
    size_t count = 0;
    for (const struct lru_node *node = l->entries.newest; node; node = node->older) {
        const struct ledger_entry *e = (const struct ledger_entry *)node;
        bool known = e->loaded && e->begun && e->name_len; /* else its session is not filled in */
        const struct session *s = &e->session;
        if (!known || count == LEDGER_SESSIONS_MAX || now_s - s->renewed_s > (int64_t)l->ttl_s)
            continue;
        struct ledger_session *out = &sessions[count++];
        *out = (struct ledger_session){.name = {e->name, e->name_len},
                                       .last_ms = (int64_t)s->last_ms,
                                       .turn = s->turn,
                                       .calls = s->calls_made,
                                       .calls_in_turn = s->calls_in_turn,
                                       .refusals = e->refusals,
                                       .no_progress = s->idle[0].calls,
                                       .waiting = session_waiting(s),
                                       .cost = s->cost,
                                       .cost_in_turn = s->cost_in_turn};
        struct str looped = {e->looped, e->looped_len};
        struct session_loop loop;
        if (!session_find_loop(s, &loop))
            continue;
        out->loop_times = loop.times;
        out->loop_code = ledger_code_name(loop.code);
        out->halted = loop.halted;
        out->not_enforced = loop.code && e->looped_runs;
        if (session_tool(looped) == loop.tool)
            out->loop_tool = looped;
    }
    return count;
}

/* ---- requests ---- */

struct hash128 ledger_session_id(struct str session)
{
    const char *slash = session.len ? memchr(session.at, '/', session.len) : NULL;
    struct str owner = {session.at, slash ? (size_t)(slash - session.at) : 0};
    return (struct hash128){.high = hash_stable(owner).low, .low = hash_stable(session).low};
}

struct hash128 ledger_place_id(const struct ledger_place *place)
{
    return place->session.len ? ledger_session_id(place->session) : place->session_id;
}

uint32_t ledger_turn_text(struct str text)
{
    return session_tool(text);
}

struct session_store *ledger_store(struct ledger *l)
{
    return l->redis ? l->redis : l->memory;
}

/* ---- call ids ---- */

#define CALL_ID_BYTES      32u
#define GROUP_BYTES        3u /* in four characters */
#define BASE64_BITS        6u /* of base64 */
#define KEY_FILE_MAX_BYTES 4096u
#define KEY_LOCK_TRIES     5000u /* of 1 ms, while another daemon makes the key and waits for its disk */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_write(const void *bytes, size_t len, char *out)
{
    const uint8_t *from = bytes;
    for (; len >= GROUP_BYTES; len -= GROUP_BYTES, from += GROUP_BYTES) {
        uint32_t group = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        *out++ = alphabet[group >> 6 & 63];
        *out++ = alphabet[group & 63];
    }
    uint32_t rest = len ? (uint32_t)from[0] << 16 | (len > 1 ? (uint32_t)from[1] << 8 : 0) : 0;
    for (size_t i = 0; len && i <= len; i++)
        *out++ = alphabet[rest >> (18 - BASE64_BITS * i) & 63];
}

#define MARKS_SHIFT 6u

/* What is written: session (high, low), admission and MAC, little-endian as in memory; the last word has the
 * byte behind them, whose upper two bits are the marks. */
#define CALL_ID_WORDS (CALL_ID_BYTES / sizeof(uint64_t) + 1)

static uint64_t mac(const struct call_id_key *key, const uint64_t words[CALL_ID_WORDS], uint32_t uid)
{
    uint64_t message[] = {words[0], words[1], words[2], words[4] >> MARKS_SHIFT << 32 | uid};
    return siphash(key->bytes, (struct str){(const char *)message, sizeof(message)});
}

/* 256 bits in 43 characters of 6: the last one ends in the two bits of the marks. */
static bool read_id(const struct call_id_key *key, struct str text, struct ledger_call_id *id)
{
    uint64_t words[CALL_ID_WORDS] = {0};
    uint8_t *to = (uint8_t *)words;
    if (text.len != LEDGER_CALL_ID_CHARS)
        return false;
    for (size_t i = 0, bit = 0; i < text.len; i++, bit += BASE64_BITS) {
        const char *digit = memchr(alphabet, text.at[i], sizeof(alphabet) - 1);
        if (!digit)
            return false;
        unsigned two = (unsigned)(digit - alphabet) << (16 - BASE64_BITS - bit % 8);
        to[bit / 8] |= (uint8_t)(two >> 8);
        to[bit / 8 + 1] |= (uint8_t)two;
    }
    id->session = (struct hash128){words[0], words[1]};
    id->admission = words[2];
    id->marks = (uint8_t)(words[4] >> MARKS_SHIFT);
    return words[4] >> MARKS_SHIFT << MARKS_SHIFT == words[4] && id->marks <= 3 && id->admission &&
           words[3] == mac(key, words, id->uid);
}

/* Daemons on one folder that start together must find one key. Returns the folder, which is to be closed; -1:
 * the file is not locked. */
static int lock_folder_of(const char *file)
{
    char folder[PATH_MAX];
    const struct timespec pause = {.tv_nsec = 1000000};
    snprintf(folder, sizeof(folder), "%s", file);
    char *slash = strrchr(folder, '/');
    slash[slash == folder] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && i < KEY_LOCK_TRIES; i++)
        nanosleep(&pause, NULL);
    return fd;
}

enum err key_file_load(const char *file, uint8_t *key, size_t len, bool *replaced, struct why *why)
{
    struct arena *arena = arena_new();
    struct str kept = STR_NONE;
    struct stat st;
    int folder = lock_folder_of(file);
    bool exists = stat(file, &st) == 0;
    enum err err = file_check_private(file, why);
    if (!err && exists)
        err = file_read(arena, file, KEY_FILE_MAX_BYTES, &kept, why);
    if (err == ERR_LIMIT)
        err = OK; /* no key is as long */
    bool is_good = kept.at && kept.len == len && !(st.st_mode & (S_IRWXG | S_IRWXO));
    *replaced = !err && exists && !is_good;
    if (!err && is_good)
        memcpy(key, kept.at, len);
    for (size_t i = 0; !err && !is_good && i < len; i++)
        key[i] = (uint8_t)hash_random();
    if (!err && !is_good)
        err = file_replace(file, (struct str){(const char *)key, len}, true, why);
    if (folder >= 0)
        close(folder);
    arena_free(arena);
    return err;
}

/* The key that the fleet shares, if Redis has given it; else this daemon's own. */
static const struct call_id_key *key_of(const struct ledger *l, struct call_id_key *of_fleet)
{
    return l->redis && store_redis_key(l->redis, of_fleet->bytes) ? of_fleet : &l->own_key;
}

void ledger_call_id_write(const struct ledger *l, const struct ledger_call_id *id,
                          char out[LEDGER_CALL_ID_CHARS + 1])
{
    struct call_id_key of_fleet;
    uint64_t words[CALL_ID_WORDS] = {id->session.high, id->session.low, id->admission, 0,
                                     (uint64_t)id->marks << MARKS_SHIFT};
    uint8_t bytes[sizeof(words)];
    words[3] = mac(key_of(l, &of_fleet), words, id->uid);
    memcpy(bytes, words, sizeof(words));
    base64url_write(bytes, CALL_ID_BYTES + 1, out);
    out[LEDGER_CALL_ID_CHARS] = '\0'; /* over what is left of the last byte: zeros */
}

enum err ledger_call_id_read(const struct ledger *l, struct str text, struct ledger_call_id *id)
{
    struct call_id_key of_fleet;
    /* An id given before Redis was first reached has this daemon's own key. */
    if (read_id(key_of(l, &of_fleet), text, id) || read_id(&l->own_key, text, id))
        return OK;
    return l->redis && !store_redis_key(l->redis, of_fleet.bytes) ? ERR_UNAVAILABLE : ERR_NOT_FOUND;
}
