/*
 * One redis_command per request, from a pool: a request's memory belongs to the caller, the bytes sent belong
 * to us. The clock is read along with requests, so that an idle daemon sends nothing.
 */
#include "ledger/store_redis.h"

#include "base/alloc.h"
#include "base/embedded.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/timer.h"
#include "ledger/codec.h"
#include "ledger/redis.h"
#include "ledger/session_parts.h"

#include <stdio.h>
#include <stdlib.h>

#define SPARE_MAX           256u  /* pending requests kept for the next */
#define SPARE_BYTES_MAX     4096u /* and of these the buffers up to this size */
#define CLOCK_EVERY_US      1000000
#define CALLID_KEY          "tg2:callid_key"
#define CALLID_KEY_AGAIN_MS 200u

enum { SCRIPT_COMMIT, SCRIPT_RATE, SCRIPTS };

/* One request under way. */
struct pending {
    struct redis_command command; /* first: it is what the cluster hands back */
    struct store_redis *store;
    void *request;
    bool loads;
    LIST_ENTRY(pending) next; /* under way, or spare */
};

struct store_redis {
    struct session_store store; /* first: it is what callers have */
    struct redis_options options;
    struct redis_scripts scripts;
    struct buf library; /* their text */
    const struct redis_hooks *hooks;
    void *owner;
    struct redis_cluster *cluster;
    LIST_HEAD(, pending) under_way, spare;
    size_t spare_count;
    struct redis_command time; /* the TIME under way, or the last one */
    bool asks_time;
    int64_t time_asked_us; /* by redis_clock_local_us */
    int64_t time_sent_us;  /* monotonic */
    struct redis_clock clock;
    struct redis_command key_set, key_get; /* likewise of the key */
    bool sets_key, gets_key, has_key, is_up;
    struct timer key_again;
    unsigned char key[STORE_REDIS_KEY_BYTES];
    struct buf details; /* of the reply that is being reported */
};

/* ---- keys ---- */

#define KEY_BYTES 29u /* "tg2:{", 22 characters, "}", a letter */

static const char part_letters[PART_COUNT] = {
    [PART_CORE] = 's', [PART_JOURNAL] = 'j', [PART_IDS] = 'i', [PART_DETAILS] = 'd'};

static void write_key(char key[KEY_BYTES], struct hash128 id, char letter)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char *at = key + 5;
    memcpy(key, "tg2:{", 5);
    for (int shift = 58; shift >= 4; shift -= 6)
        *at++ = digits[id.high >> shift & 63];
    *at++ = digits[(id.high << 2 | id.low >> 62) & 63];
    for (int shift = 56; shift >= 2; shift -= 6)
        *at++ = digits[id.low >> shift & 63];
    *at++ = digits[id.low << 4 & 63];
    *at++ = '}';
    *at = letter;
}

void store_redis_stem(struct hash128 id, char out[STORE_REDIS_STEM_BYTES])
{
    write_key(out, id, '\0');
}

/* ---- the pool ---- */

static struct pending *pending_new(struct store_redis *s, void *request)
{
    struct pending *p = LIST_FIRST(&s->spare);
    if (p) {
        LIST_REMOVE(p, next);
        s->spare_count--;
    } else {
        p = alloc_zeroed(sizeof(*p));
    }
    p->store = s;
    p->request = request;
    LIST_INSERT_HEAD(&s->under_way, p, next);
    return p;
}

static void pending_free(struct pending *p)
{
    struct store_redis *s = p->store;
    LIST_REMOVE(p, next);
    if (s->spare_count == SPARE_MAX || p->command.bytes.cap > SPARE_BYTES_MAX) {
        buf_clear(&p->command.bytes);
        free(p);
        return;
    }
    LIST_INSERT_HEAD(&s->spare, p, next);
    s->spare_count++;
}

/* ---- the clock ---- */

static void on_time(struct redis_command *command, enum redis_ended how, const struct redis_value *value,
                    const char *why)
{
    struct store_redis *s = (struct store_redis *)((char *)command - offsetof(struct store_redis, time));
    struct redis_clock clock;
    (void)why;
    s->asks_time = false;
    if (how == REDIS_ANSWERED && redis_clock_read(&clock, value, s->time_asked_us))
        redis_clock_update(&s->clock, &clock);
}

static int64_t now_ms(struct session_store *store)
{
    return redis_clock_now_ms(&((struct store_redis *)store)->clock);
}

/* ---- sending ---- */

/* False: nobody is there to take it. */
static bool send(struct store_redis *s, struct pending *p)
{
    if (!redis_cluster_send(s->cluster, &p->command)) {
        pending_free(p);
        return false;
    }
    if (p->command.began_us - s->time_sent_us >= CLOCK_EVERY_US && !s->asks_time) {
        s->time.ended = on_time;
        s->time_sent_us = p->command.began_us;
        s->time_asked_us = redis_clock_local_us();
        redis_command_begin(&s->time, 1);
        redis_command_word(&s->time, STR_LIT("TIME"));
        s->asks_time = redis_cluster_send_first(s->cluster, &s->time);
    }
    return true;
}

static bool undone(struct store_redis *s, struct store_request *request)
{
    const char *why = redis_cluster_why_away(s->cluster);
    request->result = STORE_UNDONE;
    request->why = why[0] ? why : "it takes no more now";
    return true;
}

/* ---- replies ---- */

static const char no_such_answer[] = "the answer is none that the ledger's function gives";

static enum store_result result_of(enum redis_ended how)
{
    return how == REDIS_REFUSED ? STORE_REFUSED : how == REDIS_LOST ? STORE_LOST : STORE_UNDONE;
}

/* What was found at each key; the core alone was read by GET. */
static bool read_stored(struct store_redis *s, const struct redis_value *value, struct store_request *request,
                        bool loads)
{
    bool by_get = loads && !request->with;
    size_t at = 0;
    if (!by_get &&
        (value->kind != REDIS_VALUE_ARRAY || value->count != 1 + (size_t)__builtin_popcount(request->with)))
        return false;
    for (enum session_part part = PART_CORE; part < PART_COUNT; part++) {
        if (part && !(request->with & PART_BIT(part)))
            continue;
        struct redis_value item = by_get ? *value : redis_value_at(value, at++);
        bool is_hash = part == PART_DETAILS;
        if (is_hash ? item.kind != REDIS_VALUE_ARRAY
                    : item.kind != REDIS_VALUE_STRING && item.kind != REDIS_VALUE_NIL)
            return false;
        s->details.len = 0;
        for (size_t i = 0; is_hash && i + 1 < item.count && i < 2 * SESSION_FIELDS_MAX; i += 2) {
            struct redis_value name = redis_value_at(&item, i), text = redis_value_at(&item, i + 1);
            if (name.kind != REDIS_VALUE_STRING || text.kind != REDIS_VALUE_STRING)
                return false;
            detail_add(&s->details, name.string, text.string);
        }
        request->stored[part] = part == PART_DETAILS              ? buf_view(&s->details)
                                : item.kind == REDIS_VALUE_STRING ? item.string
                                                                  : STR_NONE;
    }
    return true;
}

static void on_ended(struct redis_command *command, enum redis_ended how, const struct redis_value *value,
                     const char *why)
{
    struct pending *p = (struct pending *)command;
    struct store_request *request = p->request;
    bool loads = p->loads;
    memset(request->stored, 0, sizeof(request->stored));
    request->result =
        loads && how == REDIS_LOST ? STORE_UNDONE : result_of(how); /* reading changes nothing */
    request->why = why;
    if (how == REDIS_ANSWERED && !loads && value->kind == REDIS_VALUE_INTEGER) {
        request->result = STORE_DONE;
    } else if (how == REDIS_ANSWERED && read_stored(p->store, value, request, loads)) {
        request->result = loads ? STORE_DONE : STORE_CONFLICT;
    } else if (how == REDIS_ANSWERED) {
        request->result = STORE_REFUSED;
        request->why = no_such_answer;
    }
    pending_free(p);
    request->ended(request);
}

static void on_rated(struct redis_command *command, enum redis_ended how, const struct redis_value *value,
                     const char *why)
{
    struct pending *p = (struct pending *)command;
    struct store_rate_request *request = p->request;
    request->result = result_of(how);
    request->why = why;
    request->wait_ms = 0;
    if (how == REDIS_ANSWERED && value->kind == REDIS_VALUE_INTEGER) {
        request->result = STORE_DONE;
        request->wait_ms = value->integer < UINT32_MAX ? (uint32_t)value->integer : UINT32_MAX;
    } else if (how == REDIS_ANSWERED) {
        request->result = STORE_REFUSED;
        request->why = no_such_answer;
    }
    pending_free(p);
    request->ended(request);
}

/* ---- requests ---- */

static void write_keys(struct redis_command *command, struct hash128 id, unsigned with)
{
    char key[KEY_BYTES];
    write_key(key, id, 0);
    for (enum session_part part = PART_CORE; part < PART_COUNT; part++)
        if (part == PART_CORE || with & PART_BIT(part)) {
            key[KEY_BYTES - 1] = part_letters[part];
            redis_command_key(command, (struct str){key, KEY_BYTES});
        }
}

static bool load(struct session_store *store, struct store_request *request)
{
    struct store_redis *s = (struct store_redis *)store;
    struct pending *p = pending_new(s, request);
    p->command.ended = on_ended;
    p->loads = true;
    if (request->with) {
        redis_command_begin_script(&p->command, SCRIPT_COMMIT, 1 + (size_t)__builtin_popcount(request->with),
                                   1);
        write_keys(&p->command, request->id, request->with);
        redis_command_word(&p->command, STR_LIT("-"));
    } else {
        redis_command_begin(&p->command, 2);
        redis_command_word(&p->command, STR_LIT("GET"));
        write_keys(&p->command, request->id, 0);
    }
    return !send(s, p) && undone(s, request);
}

/* A command, the number of its key and two arguments. HDEL deletes the same field twice: all calls have the
 * same form. */
static void put_write(struct redis_command *command, unsigned with, const struct store_write *write)
{
    static const struct str verbs[] = {
        [WRITE_SET] = STR("SET"),
        [WRITE_AT] = STR("SETRANGE"),
        [WRITE_FIELD] = STR("HSET"),
        [WRITE_NO_FIELD] = STR("HDEL"),
    };
    redis_command_word(command, verbs[write->kind]);
    redis_command_number(command, 1 + (size_t)__builtin_popcount((with | 1) & (PART_BIT(write->part) - 1)));
    if (write->kind == WRITE_AT)
        redis_command_number(command, write->at);
    else
        redis_command_word(command, write->kind == WRITE_SET ? write->value : write->name);
    redis_command_word(command, write->kind == WRITE_SET        ? STR_LIT("KEEPTTL")
                                : write->kind == WRITE_NO_FIELD ? write->name
                                                                : write->value);
}

static void write_commit(struct redis_command *command, const struct store_request *request)
{
    struct str core = request->parts[PART_CORE];
    redis_command_begin_script(command, SCRIPT_COMMIT, 1 + (size_t)__builtin_popcount(request->with),
                               2 + 4 * (request->write_count + (core.at != NULL)));
    write_keys(command, request->id, request->with);
    redis_command_word(command, request->guard);
    redis_command_number(command, request->renew_ttl_s);
    if (core.at)
        put_write(command, request->with,
                  &(struct store_write){.kind = WRITE_SET, .part = PART_CORE, .value = core});
    for (size_t i = 0; i < request->write_count; i++)
        put_write(command, request->with, &request->writes[i]);
}

/* Whatever is stored there, also what is no session. */
static void write_forget(struct redis_command *command, struct hash128 id)
{
    redis_command_begin(command, 1 + PART_COUNT);
    redis_command_word(command, STR_LIT("DEL"));
    write_keys(command, id, ~0u);
}

static bool commit(struct session_store *store, struct store_request *request)
{
    struct store_redis *s = (struct store_redis *)store;
    struct pending *p = pending_new(s, request);
    p->command.ended = on_ended;
    p->loads = false;
    if (request->forget)
        write_forget(&p->command, request->id);
    else
        write_commit(&p->command, request);
    return !send(s, p) && undone(s, request);
}

static void write_rate(struct redis_command *command, const struct store_rate_request *request)
{
    char key[KEY_BYTES], admission[8];
    write_key(key, request->bucket, 'r');
    for (int i = 0; i < 8; i++)
        admission[i] = (char)(request->admission >> (8 * i));
    redis_command_begin_script(command, SCRIPT_RATE, 1, 2 + 2 * request->rate_count);
    redis_command_key(command, (struct str){key, KEY_BYTES});
    redis_command_word(command, (struct str){admission, sizeof(admission)});
    redis_command_number(command, STORE_RATE_ADMISSIONS);
    for (uint32_t i = 0; i < request->rate_count; i++) {
        redis_command_number(command, request->rates[i].count);
        redis_command_number(command, request->rates[i].window_s);
    }
}

static bool rate(struct session_store *store, struct store_rate_request *request)
{
    struct store_redis *s = (struct store_redis *)store;
    struct pending *p = pending_new(s, request);
    p->command.ended = on_rated;
    write_rate(&p->command, request);
    if (send(s, p))
        return false;
    request->result = STORE_UNDONE;
    request->why = redis_cluster_why_away(s->cluster);
    return true;
}

/* ---- the key for call ids ---- */

static void ask_key(void *owner);

static void set_up(struct store_redis *s)
{
    if (s->is_up || !redis_cluster_is_up(s->cluster))
        return;
    s->is_up = true;
    s->hooks->up(s->owner);
}

/* Where the reply was lost, it is asked again before the ledger is up: ids that this daemon signed alone
 * would be unknown to all others. Where Redis refuses the key, there is none to wait for. */
static void on_key(struct redis_command *command, enum redis_ended how, const struct redis_value *value,
                   const char *why)
{
    struct store_redis *s = (struct store_redis *)((char *)command - offsetof(struct store_redis, key_get));
    s->gets_key = false;
    if (how == REDIS_ANSWERED && value->kind == REDIS_VALUE_STRING && value->string.len) {
        struct str text = value->string; /* any that an operator puts there will do */
        struct hash128 hash = hash_stable(text);
        uint64_t halves[2] = {hash.high, hash.low};
        memcpy(s->key, text.len == sizeof(s->key) ? (const void *)text.at : halves, sizeof(s->key));
        s->has_key = true;
    } else {
        timer_set(&s->key_again, s->options.loop, CALLID_KEY_AGAIN_MS, ask_key, s);
        if (how != REDIS_REFUSED && how != REDIS_ANSWERED)
            return;
        log_event(LOG_WARN, "redis_callid_key_unknown", LOG_TEXT("why", why ? why : "it was not kept"));
    }
    set_up(s);
}

/* Whether it was set, the GET behind it tells. */
static void on_key_set(struct redis_command *command, enum redis_ended how, const struct redis_value *value,
                       const char *why)
{
    (void)how, (void)value, (void)why;
    ((struct store_redis *)((char *)command - offsetof(struct store_redis, key_set)))->sets_key = false;
}

/* Where Redis lost its data, the key that we know is the one that the fleet goes on with. */
static void ask_key(void *owner)
{
    struct store_redis *s = owner;
    uint64_t made[2] = {hash_random(), hash_random()};
    struct str key = {s->has_key ? (const char *)s->key : (const char *)made, STORE_REDIS_KEY_BYTES};
    if (s->sets_key || s->gets_key)
        return;
    s->key_set.ended = on_key_set;
    redis_command_begin(&s->key_set, 4);
    redis_command_word(&s->key_set, STR_LIT("SET"));
    redis_command_key(&s->key_set, STR_LIT(CALLID_KEY));
    redis_command_word(&s->key_set, key);
    redis_command_word(&s->key_set, STR_LIT("NX"));
    s->key_get.ended = on_key;
    redis_command_begin(&s->key_get, 2);
    redis_command_word(&s->key_get, STR_LIT("GET"));
    redis_command_key(&s->key_get, STR_LIT(CALLID_KEY));
    s->sets_key = redis_cluster_send(s->cluster, &s->key_set);
    s->gets_key = s->sets_key && redis_cluster_send(s->cluster, &s->key_get);
}

/* ---- Redis comes and goes ---- */

static void on_up(void *owner)
{
    struct store_redis *s = owner;
    s->clock = redis_cluster_facts(s->cluster)->clock;
    s->time_sent_us = 0;
    timer_clear(&s->key_again);
    ask_key(s);
    if (s->has_key)
        set_up(s);
}

static void on_away(void *owner, const char *why)
{
    struct store_redis *s = owner;
    s->is_up = false;
    s->hooks->away(s->owner, why);
}

static const struct redis_hooks cluster_hooks = {on_up, on_away};

/* ---- the trial at the handshake ---- */

static const char probe_core[] = "123456789 a core";
#define PROBE_TTL_S 10u

/* The keys of the trial are tg2:{probe-…}: the 36 bits that base64url writes as "probe-", and 92 of a hash.
 */
static struct hash128 probe_id(const char *name)
{
    static const unsigned char digits[] = {41, 43, 40, 27, 30, 62};
    struct hash128 id = hash_stable(str_of(name));
    uint64_t begin = 0;
    for (size_t i = 0; i < sizeof(digits); i++)
        begin = begin << 6 | digits[i];
    id.high = begin << 28 | (id.high & 0xfffffff);
    return id;
}

/* Each command that commits use is tried by itself: Redis 7.0 does not name the one that a user may not use.
 */
static const struct {
    const char *doing;
    bool is_new, conflicts;
    struct str core;
    struct store_write write;
} trial_commits[] = {
    {"commit (FCALL or EVALSHA, GETRANGE, SET, EXPIRE)", true, false, STR(probe_core), {.kind = WRITE_SET}},
    {"commit (SETRANGE)",
     false,
     false,
     {NULL, 0},
     {.kind = WRITE_AT, .part = PART_CORE, .at = 10, .value = STR("A")}},
    {"commit (HSET)",
     false,
     false,
     {NULL, 0},
     {.kind = WRITE_FIELD, .part = PART_DETAILS, .name = STR("goal"), .value = STR("none")}},
    {"commit (HDEL)",
     false,
     false,
     {NULL, 0},
     {.kind = WRITE_NO_FIELD, .part = PART_DETAILS, .name = STR("goal")}},
    {"commit (GET, HGETALL)", true, true, STR("!"), {.kind = WRITE_SET}},
};
#define TRIAL_COMMITS (sizeof(trial_commits) / sizeof(*trial_commits))
enum { TRIAL_RATE = TRIAL_COMMITS, TRIAL_FORGET, TRIALS }; /* behind the first write */
_Static_assert(TRIALS < REDIS_TRIALS_MAX, "the handshake has room for all trials");

static const char *write_trial(struct redis_command *command, size_t i, const char *name)
{
    struct store_request request = {.id = probe_id(name), .guard = {probe_core, CODEC_GUARD_BYTES}};
    if (i == 0) { /* an empty core, which commits take for none: it gives the trial's core a time to live,
                   * also where the user may not call EXPIRE */
        redis_command_begin(command, 5);
        redis_command_word(command, STR_LIT("SET"));
        write_keys(command, request.id, 0);
        redis_command_word(command, STR_NONE);
        redis_command_word(command, STR_LIT("EX"));
        redis_command_number(command, PROBE_TTL_S);
        return "a write";
    }
    i--;
    if (i < TRIAL_COMMITS) {
        request.guard = trial_commits[i].is_new ? STR_NONE : request.guard;
        request.parts[PART_CORE] = trial_commits[i].core;
        request.writes = &trial_commits[i].write;
        request.write_count = trial_commits[i].write.kind != WRITE_SET;
        request.with = PART_BIT(PART_DETAILS);
        request.renew_ttl_s = PROBE_TTL_S;
        write_commit(command, &request);
        return trial_commits[i].doing;
    }
    if (i == TRIAL_RATE) {
        struct store_rate_request rated = {.bucket = request.id, .rate_count = 0};
        write_rate(command, &rated);
        return "rate (HGET, TIME, HSET, PEXPIRE)";
    }
    if (i == TRIAL_FORGET) {
        write_forget(command, request.id);
        return "commit (DEL)";
    }
    return NULL;
}

static bool is_expected(size_t i, const struct redis_value *value)
{
    if (i == 0)
        return true;
    if (--i >= TRIAL_COMMITS || !trial_commits[i].conflicts)
        return value->kind == REDIS_VALUE_INTEGER;
    struct redis_value core = {.kind = REDIS_VALUE_NIL};
    if (value->kind == REDIS_VALUE_ARRAY && value->count == 2)
        core = redis_value_at(value, PART_CORE);
    return core.kind == REDIS_VALUE_STRING && str_is(core.string, "123456789 A core");
}

/* ---- scripts ---- */

static const struct {
    const char *file, *name;
} script_files[SCRIPTS] = {
    [SCRIPT_COMMIT] = {"ledger/commit.lua", "com"},
    [SCRIPT_RATE] = {"ledger/rate.lua", "rat"},
};

static void write_library(struct buf *out, const struct redis_scripts *scripts)
{
    for (size_t i = 0; i < SCRIPTS; i++)
        buf_printf(out, "redis.register_function('%.*s', function(KEYS, ARGV)\n" STR_FMT "end)\n",
                   (int)REDIS_SCRIPT_NAME_BYTES, scripts->functions[i], STR_ARG(scripts->texts[i]));
}

/* Functions are named after the hash of all texts. */
static void init_scripts(struct store_redis *s)
{
    struct redis_scripts *scripts = &s->scripts;
    struct buf *library = &s->library;
    *scripts =
        (struct redis_scripts){.count = SCRIPTS, .write_trial = write_trial, .is_expected = is_expected};
    for (size_t i = 0; i < SCRIPTS; i++)
        scripts->texts[i] = embedded_text(script_files[i].file);
    write_library(library, scripts);
    struct hash128 hash = hash_stable(buf_view(library));
    for (size_t i = 0; i < SCRIPTS; i++) {
        char name[REDIS_SCRIPT_NAME_BYTES + 1];
        snprintf(name, sizeof(name), "tg2_%016llx%016llx_%s", (unsigned long long)hash.high,
                 (unsigned long long)hash.low, script_files[i].name);
        memcpy(scripts->functions[i], name, REDIS_SCRIPT_NAME_BYTES);
    }
    library->len = 0;
    buf_printf(library, "#!lua name=%.*s\n", (int)REDIS_SCRIPT_NAME_BYTES - 4, scripts->functions[0]);
    write_library(library, scripts);
    scripts->library = buf_view(library);
}

/* ---- from outside ---- */

static void store_free(struct session_store *store)
{
    struct store_redis *s = (struct store_redis *)store;
    redis_cluster_free(s->cluster);
    timer_clear(&s->key_again);
    struct pending *p;
    while ((p = LIST_FIRST(&s->under_way)) || (p = LIST_FIRST(&s->spare))) {
        LIST_REMOVE(p, next);
        buf_clear(&p->command.bytes);
        free(p);
    }
    buf_clear(&s->time.bytes);
    buf_clear(&s->key_set.bytes);
    buf_clear(&s->key_get.bytes);
    explicit_bzero(s->key, sizeof(s->key));
    buf_clear(&s->details);
    buf_clear(&s->library);
    free(s);
}

static const struct session_store_kind redis_kind = {
    .name = "redis", .load = load, .commit = commit, .rate = rate, .now_ms = now_ms, .free = store_free};

struct session_store *store_redis_new(const struct redis_options *options, const struct redis_hooks *hooks,
                                      void *owner)
{
    struct store_redis *s = alloc_zeroed(sizeof(*s));
    s->store.kind = &redis_kind;
    s->hooks = hooks;
    s->owner = owner;
    init_scripts(s);
    s->options = *options;
    s->options.scripts = &s->scripts;
    s->cluster = redis_cluster_new(&s->options, &cluster_hooks, s);
    return &s->store;
}

bool store_redis_is_settled(const struct session_store *store)
{
    const struct store_redis *s = (const struct store_redis *)store;
    return redis_cluster_is_settled(s->cluster) && (s->is_up || !redis_cluster_is_up(s->cluster));
}

bool store_redis_is_up(const struct session_store *store)
{
    return ((const struct store_redis *)store)->is_up;
}

bool store_redis_key(const struct session_store *store, unsigned char out[STORE_REDIS_KEY_BYTES])
{
    const struct store_redis *s = (const struct store_redis *)store;
    if (s->has_key)
        memcpy(out, s->key, sizeof(s->key));
    return s->has_key;
}

void store_redis_status(const struct session_store *store, struct ledger_status *out)
{
    redis_cluster_status(((const struct store_redis *)store)->cluster, out);
    out->connected = store_redis_is_up(store);
}
