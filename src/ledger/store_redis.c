/* The clock is read along with requests, so that an idle daemon sends nothing. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/embedded.h"
#include "base/hash.h"
#include "base/log.h"
#include "ledger/ledger_internal.h"
#include "ledger/redis.h"

#include <endian.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLOCK_EVERY_US      1000000
#define CALLID_KEY          "tg2:callid_key"
#define CALLID_KEY_AGAIN_MS 200u

struct store_redis {
    struct session_store store; /* first: it is what callers have */
    struct redis_options options;
    struct redis_scripts scripts;
    struct buf library; /* their text */
    struct ledger *ledger;
    struct arena *arena; /* of the address */
    struct redis_cluster cluster;
    struct redis_command time; /* the TIME under way, or the last one */
    bool asks_time;
    int64_t time_asked_us; /* by redis_clock_local_us */
    int64_t time_sent_us;  /* monotonic */
    struct redis_clock clock;
    struct redis_command key_command; /* the same for the key */
    bool asks_key, has_key, is_up;
    bool key_refused; /* logged */
    struct timer key_again;
    unsigned char key[STORE_REDIS_KEY_BYTES], offered[STORE_REDIS_KEY_BYTES];
    struct buf details; /* of the reply that is being reported */
};

/* ---- keys ---- */

#define KEY_BYTES 29u /* "tg2:{", 22 characters, "}", a letter */

static const char part_letters[PART_COUNT] = {
    [PART_CORE] = 's', [PART_JOURNAL] = 'j', [PART_IDS] = 'i', [PART_DETAILS] = 'd'};

static void write_key(char key[KEY_BYTES], struct hash128 id, char letter)
{
    uint64_t bytes[] = {htobe64(id.high), htobe64(id.low)};
    memcpy(key, "tg2:{", 5);
    base64url_write(bytes, sizeof(bytes), key + 5);
    key[KEY_BYTES - 2] = '}';
    key[KEY_BYTES - 1] = letter;
}

void store_redis_stem(struct hash128 id, char out[STORE_REDIS_STEM_BYTES])
{
    write_key(out, id, '\0');
}

/* The core's, and those of the parts that exist or are written. */
static size_t key_count(const struct store_request *request)
{
    return 1 + (size_t)__builtin_popcount(request->with);
}

/* ---- sending ---- */

static void on_time(struct redis_command *command, enum store_result how, const redisReply *reply,
                    const char *why)
{
    struct store_redis *s = command->store;
    struct redis_clock clock;
    (void)why;
    s->asks_time = false;
    if (how == STORE_DONE && redis_clock_read(&clock, reply, s->time_asked_us))
        redis_clock_update(&s->clock, &clock);
}

static int64_t now_ms(struct session_store *store)
{
    return redis_clock_now_ms(&((struct store_redis *)store)->clock);
}

/* NULL: it is on its way; else why it is not. */
static const char *send(struct store_redis *s, struct redis_command *command)
{
    command->store = s;
    if (!redis_cluster_send(&s->cluster, command)) {
        buf_clear(&command->bytes);
        return s->cluster.why_away[0] ? s->cluster.why_away : "it takes no more now";
    }
    if (command->began_us - s->time_sent_us >= CLOCK_EVERY_US && !s->asks_time) {
        s->time_sent_us = command->began_us;
        s->time_asked_us = redis_clock_local_us();
        redis_command_begin(&s->time);
        redis_command_word(&s->time, STR_LIT("TIME"));
        s->asks_time = redis_cluster_send(&s->cluster, &s->time);
    }
    return NULL;
}

/* ---- replies ---- */

static const char no_such_answer[] = "the answer is none that the ledger's function gives";

/* What was found at each key; the core alone was read by GET. */
static bool read_stored(struct store_redis *s, const redisReply *reply, struct store_request *request)
{
    bool by_get = store_request_loads(request) && !request->with;
    size_t at = 0;
    if (!by_get && (reply->type != REDIS_REPLY_ARRAY || reply->elements != key_count(request)))
        return false;
    for (enum session_part part = PART_CORE; part < PART_COUNT; part++) {
        if (part && !(request->with & PART_BIT(part)))
            continue;
        const redisReply *item = by_get ? reply : reply->element[at++];
        if (part != PART_DETAILS) {
            request->stored[part] = redis_reply_text(item);
            if (!request->stored[part].at && item->type != REDIS_REPLY_NIL)
                return false;
            continue;
        }
        if (item->type != REDIS_REPLY_ARRAY)
            return false;
        s->details.len = 0;
        for (size_t i = 0; i + 1 < item->elements && i < 2 * SESSION_FIELDS_MAX; i += 2) {
            struct str name = redis_reply_text(item->element[i]),
                       text = redis_reply_text(item->element[i + 1]);
            if (!name.at || !text.at)
                return false;
            detail_add(&s->details, name, text);
        }
        request->stored[part] = buf_view(&s->details);
    }
    return true;
}

static void on_ended(struct redis_command *command, enum store_result how, const redisReply *reply,
                     const char *why)
{
    struct store_request *request = (struct store_request *)command;
    bool loads = store_request_loads(request);
    memset(request->stored, 0, sizeof(request->stored));
    request->result = loads && how == STORE_LOST ? STORE_UNDONE : how; /* reading changes nothing */
    request->why = why;
    if (how == STORE_DONE && (loads || reply->type != REDIS_REPLY_INTEGER)) {
        bool is_read = read_stored(command->store, reply, request);
        request->result = !is_read ? STORE_REFUSED : loads ? STORE_DONE : STORE_CONFLICT;
        request->why = is_read ? why : no_such_answer;
    }
    buf_clear(&command->bytes);
    request->ended(request);
}

static void on_rated(struct redis_command *command, enum store_result how, const redisReply *reply,
                     const char *why)
{
    struct store_rate_request *request = (struct store_rate_request *)command;
    bool answers = how == STORE_DONE && reply->type == REDIS_REPLY_INTEGER;
    request->result = how == STORE_DONE && !answers ? STORE_REFUSED : how;
    request->why = how == STORE_DONE ? no_such_answer : why;
    request->wait_ms = answers ? (uint32_t)(reply->integer < UINT32_MAX ? reply->integer : UINT32_MAX) : 0;
    buf_clear(&command->bytes);
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

static void write_load(struct redis_command *command, const struct store_request *request)
{
    if (request->with) {
        redis_command_begin_script(command, REDIS_SCRIPT_COMMIT, key_count(request));
        write_keys(command, request->id, request->with);
        redis_command_word(command, STR_LIT("-"));
    } else {
        redis_command_begin(command);
        redis_command_word(command, STR_LIT("GET"));
        write_keys(command, request->id, 0);
    }
}

/* A command, the number of its key and two arguments. */
static void put_write(struct redis_command *command, struct str verb, size_t key, struct str first,
                      struct str second)
{
    redis_command_word(command, verb);
    redis_command_number(command, key);
    redis_command_word(command, first);
    redis_command_word(command, second);
}

static void write_commit(struct redis_command *command, const struct store_request *request)
{
    struct str rest = request->fields;
    struct detail field;
    size_t key = 0;
    redis_command_begin_script(command, REDIS_SCRIPT_COMMIT, key_count(request));
    write_keys(command, request->id, request->with);
    redis_command_word(command, request->guard);
    redis_command_number(command, request->renew_ttl_s);
    for (enum session_part part = PART_CORE; part < PART_DETAILS; part++) {
        uint32_t from = request->changed[part].from, to = request->changed[part].to;
        struct str value = request->parts[part];
        char digits[DIGITS_MAX_BYTES];
        key += part == PART_CORE || request->with & PART_BIT(part);
        if (value.at && to)
            put_write(command, STR_LIT("SETRANGE"), key,
                      (struct str){digits, (size_t)(digits_put(digits, from) - digits)},
                      (struct str){value.at + from, to - from});
        else if (value.at)
            put_write(command, STR_LIT("SET"), key, value, STR_LIT("KEEPTTL"));
    }
    while (detail_next(&rest, &field)) /* HDEL deletes the same field twice: all calls have the same form */
        put_write(command, field.value.len ? STR_LIT("HSET") : STR_LIT("HDEL"), key + 1, field.name,
                  field.value.len ? field.value : field.name);
}

static bool ask(struct session_store *store, struct store_request *request)
{
    struct redis_command *command = &request->command;
    if (request->forget) { /* all that is stored there, also what is no session */
        redis_command_begin(command);
        redis_command_word(command, STR_LIT("DEL"));
        write_keys(command, request->id, ~0u);
    } else if (store_request_loads(request)) {
        write_load(command, request);
    } else {
        write_commit(command, request);
    }
    command->ended = on_ended;
    request->why = send((struct store_redis *)store, command);
    request->result = STORE_UNDONE;
    return request->why;
}

static bool rate(struct session_store *store, struct store_rate_request *request)
{
    struct redis_command *command = &request->command;
    uint64_t admission = htole64(request->admission);
    char key[KEY_BYTES];
    write_key(key, request->bucket, 'r');
    redis_command_begin_script(command, REDIS_SCRIPT_RATE, 1);
    redis_command_key(command, (struct str){key, KEY_BYTES});
    redis_command_word(command, (struct str){(const char *)&admission, sizeof(admission)});
    redis_command_number(command, STORE_RATE_ADMISSIONS);
    redis_command_number(command, request->held_us);
    for (uint32_t i = 0; i < request->rate_count; i++) {
        redis_command_number(command, request->rates[i].count);
        redis_command_number(command, request->rates[i].window_s);
    }
    command->ended = on_rated;
    request->why = send((struct store_redis *)store, command);
    request->result = STORE_UNDONE;
    return request->why;
}

/* ---- the key for call ids ---- */

static void ask_key(void *owner);

static void set_up(struct store_redis *s)
{
    if (s->is_up || s->cluster.first->state != REDIS_UP)
        return;
    s->is_up = true;
    outage_redis_up(s->ledger);
}

static void on_key(struct redis_command *command, enum store_result how, const redisReply *reply,
                   const char *why)
{
    struct store_redis *s = command->store;
    struct str text = STR_NONE;
    s->asks_key = false;
    if (how == STORE_DONE && reply->type == REDIS_REPLY_INTEGER)
        text = (struct str){(const char *)s->offered, sizeof(s->offered)};
    else if (how == STORE_DONE && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1)
        text = redis_reply_text(reply->element[0]);
    if (text.len) { /* any that an operator puts there will do */
        struct hash128 hash = hash_stable(text);
        uint64_t halves[2] = {hash.high, hash.low};
        memcpy(s->key, text.len == sizeof(s->key) ? (const void *)text.at : halves, sizeof(s->key));
        s->has_key = true;
        s->key_refused = false;
    } else {
        timer_set(&s->key_again, s->options.loop, CALLID_KEY_AGAIN_MS, ask_key, s);
        /* If the reply was lost, the ledger is up only after the next attempt: ids that this daemon signed
         * alone would be unknown to all others. If Redis refuses the key, waiting does not help. */
        if (how != STORE_REFUSED && how != STORE_DONE)
            return;
        if (!s->key_refused)
            log_event(LOG_WARN, "redis_callid_key_unknown", LOG_TEXT("why", why ? why : "it was not kept"));
        s->key_refused = true;
    }
    set_up(s);
}

/* Commits a key unless there is one. If Redis lost its data, the fleet goes on with the one that this daemon
 * knows. */
static void ask_key(void *owner)
{
    struct store_redis *s = owner;
    uint64_t made[2] = {hash_random(), hash_random()};
    if (s->asks_key)
        return;
    memcpy(s->offered, s->has_key ? (const void *)s->key : made, sizeof(s->offered));
    redis_command_begin_script(&s->key_command, REDIS_SCRIPT_COMMIT, 1);
    redis_command_key(&s->key_command, STR_LIT(CALLID_KEY));
    redis_command_word(&s->key_command, STR_NONE);
    redis_command_number(&s->key_command, 0);
    put_write(&s->key_command, STR_LIT("SET"), 1, (struct str){(const char *)s->offered, sizeof(s->offered)},
              STR_LIT("KEEPTTL"));
    s->asks_key = redis_cluster_send(&s->cluster, &s->key_command);
}

/* ---- Redis comes and goes ---- */

void store_redis_on_up(struct store_redis *s)
{
    s->clock = s->cluster.known.clock;
    s->time_sent_us = 0;
    timer_clear(&s->key_again);
    ask_key(s);
    if (s->has_key)
        set_up(s);
}

void store_redis_on_away(struct store_redis *s, const char *why)
{
    s->is_up = false;
    outage_redis_down(s->ledger, why);
}

/* ---- scripts ---- */

static const struct {
    const char *file, *name;
} script_files[REDIS_SCRIPTS] = {
    [REDIS_SCRIPT_COMMIT] = {"ledger/commit.lua", "com"},
    [REDIS_SCRIPT_RATE] = {"ledger/rate.lua", "rat"},
    [REDIS_SCRIPT_PROBE] = {"ledger/probe.lua", "pro"},
};

static void write_library(struct buf *out, const struct redis_scripts *scripts)
{
    for (size_t i = 0; i < REDIS_SCRIPTS; i++)
        buf_printf(out, "redis.register_function('%.*s', function(KEYS, ARGV)\n" STR_FMT "end)\n",
                   (int)REDIS_SCRIPT_NAME_BYTES, scripts->functions[i], STR_ARG(scripts->texts[i]));
}

/* Functions are named after the hash of all texts. */
static void init_scripts(struct store_redis *s)
{
    struct redis_scripts *scripts = &s->scripts;
    struct buf *library = &s->library;
    for (size_t i = 0; i < REDIS_SCRIPTS; i++)
        scripts->texts[i] = embedded_text(script_files[i].file);
    write_library(library, scripts);
    struct hash128 hash = hash_stable(buf_view(library));
    for (size_t i = 0; i < REDIS_SCRIPTS; i++) {
        char name[REDIS_SCRIPT_NAME_BYTES + 1];
        snprintf(name, sizeof(name), "tg2_%016llx%016llx_%s", (unsigned long long)hash.high,
                 (unsigned long long)hash.low, script_files[i].name);
        memcpy(scripts->functions[i], name, REDIS_SCRIPT_NAME_BYTES);
    }
    library->len = 0;
    buf_printf(library, "#!lua name=%.*s\n", (int)REDIS_SCRIPT_NAME_BYTES - 4, scripts->functions[0]);
    write_library(library, scripts);
    scripts->library = buf_view(library);
    snprintf(scripts->probe, sizeof(scripts->probe), "tg2:{probe-%s-%08x}", s->options.name,
             (unsigned)hash_random());
}

/* ---- from outside ---- */

static void store_free(struct session_store *store)
{
    struct store_redis *s = (struct store_redis *)store;
    redis_cluster_clear(&s->cluster);
    timer_clear(&s->key_again);
    buf_clear(&s->time.bytes);
    buf_clear(&s->key_command.bytes);
    explicit_bzero(s->key, sizeof(s->key));
    explicit_bzero(s->offered, sizeof(s->offered));
    buf_clear(&s->details);
    buf_clear(&s->library);
    arena_free(s->arena);
    free(s);
}

static const struct session_store_kind redis_kind = {
    .name = "redis", .ask = ask, .rate = rate, .now_ms = now_ms, .free = store_free};

enum err store_redis_new(const struct ledger_options *options, struct ledger *ledger,
                         struct session_store **out, struct why *why)
{
    struct store_redis *s = alloc_zeroed(sizeof(*s));
    struct redis_options *o = &s->options;
    s->store.kind = &redis_kind;
    s->ledger = ledger;
    s->arena = arena_new();
    enum err err = redis_address_parse(s->arena, str_of(options->address), &o->address, why);
    if (err != OK) {
        arena_free(s->arena);
        free(s);
        return err;
    }
    if (options->password_file)
        o->password_file = arena_dup(s->arena, str_of(options->password_file)).at;
    o->loop = options->loop;
    o->timeout_ms = options->timeout_ms ? options->timeout_ms : LEDGER_TIMEOUT_MS;
    snprintf(o->name, sizeof(o->name), "toolgate-%d", (int)getpid());
    s->time.ended = on_time;
    s->key_command.ended = on_key;
    s->time.store = s->key_command.store = s;
    init_scripts(s);
    redis_cluster_init(&s->cluster, o, &s->scripts, s, redis_address_shown(s->arena, &o->address));
    *out = &s->store;
    return OK;
}

struct str store_redis_address(const struct session_store *store)
{
    return ((const struct store_redis *)store)->cluster.shown;
}

bool store_redis_is_settled(const struct session_store *store)
{
    const struct store_redis *s = (const struct store_redis *)store;
    return s->cluster.is_settled && (s->is_up || s->cluster.first->state != REDIS_UP);
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

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void store_redis_status(const struct session_store *store, struct ledger_status *out)
{
    const struct redis_cluster *r = &((const struct store_redis *)store)->cluster;
    uint32_t sorted[REDIS_MEDIAN_OF];
    size_t count = r->answers < REDIS_MEDIAN_OF ? (size_t)r->answers : REDIS_MEDIAN_OF;
    memcpy(sorted, r->took_us, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_size);
    out->connected = store_redis_is_up(store);
    out->server = str_of(r->known.server);
    out->connects = r->connects;
    out->median_us = count ? sorted[count / 2] : 0;
    out->keys = r->connects ? r->known.keys : -1;
    out->worst_us = r->worst_us;
    out->redis_times = &r->times;
    out->why_away = r->why_away;
    out->away_since_ms = r->away_since_ms;
    for (unsigned i = 0; i < LEDGER_WARNINGS_MAX; i++)
        if (r->warnings[i][0])
            out->warnings[out->warning_count++] = r->warnings[i];
    if (r->options->address.kind == REDIS_ADDRESS_SENTINEL && r->first->address_since_ms) {
        out->master_name = r->options->address.master;
        out->master = r->first->address;
        out->master_port = r->first->port;
        out->master_since_ms = r->first->address_since_ms;
    }
}
