/* Two pipelines: the second needs what INFO says. A callback of a connection that was given up finds no
 * owner. */
#include "ledger/redis.h"

#include "base/clock.h"
#include "base/hash.h"

#include <hiredis/async.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(struct redis_handshake *g, const char *doing, const char *why)
{
    char said[400], text[512];
    if (g->failed)
        return;
    g->failed = true;
    redis_redact(why, g->password, said, sizeof(said));
    snprintf(text, sizeof(text), "%s: %s", doing, said);
    g->over(g->owner, text);
}

/* Done for others, or mostly needless: without the right to, we go on. */
static void on_courtesy(redisAsyncContext *context, void *answer, void *of)
{
    (void)context, (void)answer, (void)of;
}

/* NULL where nobody wants to know any more, or it was an error that ends the handshake. */
static const redisReply *good(redisAsyncContext *context, void *answer, const struct redis_handshake *g)
{
    return context->data && !g->failed ? answer : NULL;
}

static bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

/* ---- what the server is ------------------------------------------------------ */

/* The value of "name:value\r\n". */
static bool info_line(const char *info, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);
    for (const char *at = info; (at = strstr(at, name)); at += len)
        if ((at == info || at[-1] == '\n') && at[len] == ':') {
            snprintf(out, size, "%.*s", (int)strcspn(at + len + 1, "\r\n"), at + len + 1);
            return true;
        }
    out[0] = '\0';
    return false;
}

static void read_info(const char *info, uint32_t db, struct redis_facts *facts)
{
    char text[64], version[24];
    info_line(info, "redis_version", version, sizeof(version));
    facts->version = atoi(version);
    const char *kind = "redis";
    if (info_line(info, "valkey_version", text, sizeof(version))) {
        kind = "valkey";
        snprintf(version, sizeof(version), "%.20s", text);
    }
    snprintf(facts->server, sizeof(facts->server), "%s %.20s", kind, version);
    info_line(info, "run_id", facts->run_id, sizeof(facts->run_id));
    info_line(info, "role", facts->role, sizeof(facts->role));
    facts->loading = info_line(info, "loading", text, sizeof(text)) && atoi(text) == 1;
    facts->cluster = info_line(info, "cluster_enabled", text, sizeof(text)) && atoi(text) == 1;
    facts->aof = info_line(info, "aof_enabled", text, sizeof(text)) && atoi(text) == 1;
    bool bounded = info_line(info, "maxmemory", text, sizeof(text)) && strtoull(text, NULL, 10) > 0;
    info_line(info, "maxmemory_policy", facts->evicts, sizeof(facts->evicts));
    char name[16]; /* "db0:keys=12,expires=12,avg_ttl=0"; an empty database has no line */
    snprintf(name, sizeof(name), "db%u", db);
    bool has_keys = info_line(info, name, text, sizeof(text)) && strncmp(text, "keys=", 5) == 0;
    facts->keys = has_keys ? strtoll(text + 5, NULL, 10) : 0;
    if (!bounded || strcmp(facts->evicts, "noeviction") == 0)
        facts->evicts[0] = '\0';
}

/* ---- the second half ---------------------------------------------------------- */

static void on_trial(redisAsyncContext *context, void *answer, void *of)
{
    struct redis_handshake *g = of;
    const redisReply *reply = good(context, answer, g);
    if (!reply || g->is_over)
        return;
    size_t at = g->tried++;
    if (at == 0)
        g->facts.write_us = clock_mono_us() - g->write_began_us;
    /* Of a cluster another node may hold the key that is tried: it is well, or it would have said so. */
    bool is_elsewhere =
        is_error(reply) && (strncmp(reply->str, "MOVED ", 6) == 0 || strncmp(reply->str, "ASK ", 4) == 0 ||
                            strncmp(reply->str, "TRYAGAIN ", 9) == 0);
    if (is_error(reply) && !is_elsewhere) {
        fail(g, g->trying[at], reply->str);
        return;
    }
    struct redis_value value = redis_value_of(reply);
    if (!is_error(reply) && !g->scripts->is_expected(at, &value)) {
        fail(g, g->trying[at], "the answer is none that it gives");
        return;
    }
    if (g->tried < g->trials)
        return;
    g->before = g->facts;
    g->is_over = true;
    g->over(g->owner, NULL);
}

/* When all scripts are there, so that the first write's time is the way's and the server's. A user without
 * the right to run scripts, or to what they do, would else be found out by the first call, and by each that
 * follows. */
static void begin_trial(struct redis_handshake *g, redisAsyncContext *context)
{
    struct redis_command command = {.hops = 0};
    if (!g->probe_name[0])
        snprintf(g->probe_name, sizeof(g->probe_name), "%.64s:%08x", g->name, (unsigned)hash_random());
    g->write_began_us = clock_mono_us();
    g->trials = g->tried = 0;
    while (g->trials < REDIS_TRIALS_MAX &&
           (g->trying[g->trials] = g->scripts->write_trial(&command, g->trials, g->probe_name))) {
        const char *name = NULL;
        if (command.script != REDIS_PLAIN_COMMAND)
            name = g->functions ? g->scripts->functions[command.script] : g->scripts->shas[command.script];
        struct str bytes = redis_command_finish(&command, g->functions, name);
        redisAsyncFormattedCommand(context, on_trial, g, bytes.at, bytes.len);
        g->trials++;
    }
    buf_clear(&command.bytes);
}

static void on_script(redisAsyncContext *context, void *answer, void *of)
{
    struct redis_handshake *g = of;
    const redisReply *reply = good(context, answer, g);
    if (!reply)
        return;
    if (is_error(reply) || reply->len != REDIS_SCRIPT_NAME_BYTES) {
        fail(g, "SCRIPT LOAD", is_error(reply) ? reply->str : "an answer that is no SHA1");
        return;
    }
    memcpy(g->scripts->shas[g->loaded++ % g->scripts->count], reply->str, REDIS_SCRIPT_NAME_BYTES);
    if (g->loaded == g->scripts->count && !g->is_over)
        begin_trial(g, context);
}

static void load_texts(struct redis_handshake *g, redisAsyncContext *context)
{
    g->loaded = 0;
    for (size_t i = 0; i < g->scripts->count; i++)
        redisAsyncCommand(context, on_script, g, "SCRIPT LOAD %b", g->scripts->texts[i].at,
                          g->scripts->texts[i].len);
}

static void load_library(redisCallbackFn *then, struct redis_handshake *g, redisAsyncContext *context)
{
    struct str text = g->scripts->library;
    redisAsyncCommand(context, then, g, "FUNCTION LOAD %b", text.at, text.len);
}

void redis_handshake_load_scripts(struct redis_handshake *g, redisAsyncContext *context)
{
    if (g->functions)
        load_library(on_courtesy, g, context); /* the command behind it tells */
    else if (g->loaded >= g->scripts->count)
        load_texts(g, context);
}

/* Another daemon may have brought it. Without the right to bring one there are still scripts. */
static void on_library(redisAsyncContext *context, void *answer, void *of)
{
    struct redis_handshake *g = of;
    const redisReply *reply = good(context, answer, g);
    if (!reply)
        return;
    g->functions = !is_error(reply) || strstr(reply->str, "already exists");
    if (g->functions)
        begin_trial(g, context);
    else
        load_texts(g, context);
}

static void must(redisAsyncContext *context, void *answer, struct redis_handshake *g, const char *doing)
{
    const redisReply *reply = good(context, answer, g);
    if (reply && is_error(reply))
        fail(g, doing, reply->str);
}

/* The server's clock lies between both ends of the round trip. */
static void on_time(redisAsyncContext *context, void *answer, void *of)
{
    struct redis_handshake *g = of;
    const redisReply *reply = good(context, answer, g);
    must(context, answer, g, "TIME");
    if (!reply || is_error(reply))
        return;
    struct redis_value value = redis_value_of(reply);
    if (!redis_clock_read(&g->facts.clock, &value, g->time_asked_us))
        fail(g, "TIME", "the answer is none that it gives");
}

/* ---- the first half ----------------------------------------------------------- */

static void on_auth(redisAsyncContext *context, void *answer, void *of)
{
    must(context, answer, of, "AUTH");
}

static void on_select(redisAsyncContext *context, void *answer, void *of)
{
    must(context, answer, of, "SELECT");
}

static void on_id(redisAsyncContext *context, void *answer, void *of)
{
    struct redis_handshake *g = of;
    const redisReply *reply = good(context, answer, g);
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        g->facts.client_id = reply->integer;
}

/* Without the right to ask, what matters is still found out by the write. */
static void on_info(redisAsyncContext *context, void *answer, void *of)
{
    struct redis_handshake *g = of;
    const redisReply *reply = good(context, answer, g);
    if (!reply)
        return;
    if (is_error(reply) && strncmp(reply->str, "NOPERM", 6) != 0) {
        fail(g, "INFO", reply->str);
        return;
    }
    if (reply->type == REDIS_REPLY_STRING)
        read_info(reply->str, g->db, &g->facts);
    const struct redis_facts *facts = &g->facts;
    const char *useless = NULL; /* before the write is tried */
    if (!is_error(reply) && reply->type != REDIS_REPLY_STRING)
        useless = "what answers there is no Redis: it tells nothing of itself";
    else if (facts->version && facts->version < REDIS_OLDEST_VERSION)
        useless = "it is older than Redis 6, which the ledger's scripts need";
    else if (facts->loading)
        useless = "LOADING: it is still reading its data";
    else if (!facts->cluster && strcmp(facts->role, "slave") == 0)
        useless = "it is a replica, which takes no writes: name its master, or the sentinels";
    if (useless) {
        fail(g, "INFO", useless);
        return;
    }
    const struct redis_facts *old = &g->before;
    g->functions = false;
    g->time_asked_us = redis_clock_local_us();
    redisAsyncCommand(context, on_time, g, "TIME");
    if (old->client_id && old->run_id[0] && strcmp(old->run_id, g->facts.run_id) == 0)
        redisAsyncCommand(context, on_courtesy, g, "CLIENT KILL ID %lld", old->client_id);
    if (g->facts.version >= REDIS_FUNCTIONS_SINCE)
        load_library(on_library, g, context);
    else
        load_texts(g, context);
}

void redis_handshake_begin(struct redis_handshake *g, redisAsyncContext *context)
{
    g->failed = g->is_over = false;
    g->facts = (struct redis_facts){.server = "", .keys = -1};
    if (g->password.len && g->user.len)
        redisAsyncCommand(context, on_auth, g, "AUTH %b %b", g->user.at, g->user.len, g->password.at,
                          g->password.len);
    else if (g->password.len)
        redisAsyncCommand(context, on_auth, g, "AUTH %b", g->password.at, g->password.len);
    if (g->db)
        redisAsyncCommand(context, on_select, g, "SELECT %u", g->db);
    redisAsyncCommand(context, on_courtesy, g, "CLIENT SETNAME %s", g->name);
    redisAsyncCommand(context, on_id, g, "CLIENT ID");
    redisAsyncCommand(context, on_info, g, "INFO");
}

/* ---- the clock ---- */

/* A reading is as exact as its round trip is short. A busy server answers late now and then: such a reading
 * is dropped as long as the last good one is fresh enough for clocks that drift apart by DRIFT_PPM. */
#define DRIFT_PPM 200
#define EXACT_US  1000 /* the ledger counts in milliseconds */

/* Digits only, as a server writes them. */
static bool read_number(const struct redis_value *value, int64_t most, int64_t *out)
{
    *out = 0;
    if (value->kind != REDIS_VALUE_STRING || value->string.len == 0 || value->string.len > 15)
        return false;
    for (size_t i = 0; i < value->string.len; i++) {
        if (!ascii_is_digit(value->string.at[i]))
            return false;
        *out = *out * 10 + (value->string.at[i] - '0');
    }
    return *out <= most;
}

bool redis_clock_read(struct redis_clock *clock, const struct redis_value *time, int64_t asked_us)
{
    int64_t now_us = redis_clock_local_us(), seconds, micros;
    if (time->kind != REDIS_VALUE_ARRAY || time->count != 2)
        return false;
    struct redis_value first = redis_value_at(time, 0), second = redis_value_at(time, 1);
    if (!read_number(&first, 253402300799, &seconds) || !read_number(&second, 999999, &micros))
        return false;
    clock->ahead_us = seconds * 1000000 + micros - (asked_us + now_us) / 2;
    clock->error_us = (now_us - asked_us) / 2;
    clock->read_us = now_us;
    return true;
}

void redis_clock_update(struct redis_clock *clock, const struct redis_clock *newer)
{
    int64_t age_us = newer->read_us - clock->read_us;
    int64_t error_us = clock->error_us + age_us / 1000000 * DRIFT_PPM;
    bool agree = llabs(newer->ahead_us - clock->ahead_us) <= newer->error_us + error_us;
    if (!clock->read_us || !agree || newer->error_us <= error_us || newer->error_us <= EXACT_US)
        *clock = *newer;
}

int64_t redis_clock_now_ms(const struct redis_clock *clock)
{
    return clock->read_us ? (redis_clock_local_us() + clock->ahead_us) / 1000 : clock_wall_ms();
}
