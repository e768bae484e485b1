/* What is said first on a connection, in two pipelines: the second needs the answer of INFO. */
#include "ledger/redis.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define OLDEST_VERSION 6   /* SET … KEEPTTL */
#define PROBE_TTL_S    10u /* of the keys of the trials */

/* A plain write, a run of the probe, which returns 1, or the command that failed and its error; a deletion.
 */
enum { TRIAL_WRITE, TRIAL_SCRIPT, TRIAL_DELETE, TRIALS };

/* What a reply belongs to. */
enum step {
    STEP_SENTINEL_AUTH,
    STEP_MASTER,
    STEP_COURTESY, /* for others, or mostly needless: without the right to it the handshake goes on */
    STEP_AUTH,
    STEP_SELECT,
    STEP_ID,
    STEP_INFO,
    STEP_TIME,
    STEP_NODES,
    STEP_LIBRARY,
    STEP_SCRIPT,
    STEP_TRIAL
};

_Static_assert(9 + REDIS_SCRIPTS + TRIALS <= REDIS_STEPS_MAX, "there is room for every reply of a handshake");

static void expect(struct redis_connection *n, enum step step)
{
    n->steps[n->step_count++] = (uint8_t)step;
}

/* Asks something, in the words of redisCommand. */
static void ask(struct redis_connection *n, enum step step, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisvAppendCommand(n->context, format, args);
    va_end(args);
    expect(n, step);
}

static void ask_auth(struct redis_connection *n, enum step step, struct str user, struct str password)
{
    if (password.len && user.len)
        ask(n, step, "AUTH %b %b", user.at, user.len, password.at, password.len);
    else if (password.len)
        ask(n, step, "AUTH %b", password.at, password.len);
}

/* A server's error of our AUTH, without our password, which may be empty. Redis repeats the arguments of a
 * command that it does not know, cut at 128 bytes: they are dropped as a whole, since half a password would
 * not be recognised. Elsewhere it is masked. */
static void redact(const char *said, struct str password, char *out, size_t size)
{
    static const char mask[] = "***";
    const char *cut = strstr(said, ", with args beginning with"), *end = cut ? cut : said + strlen(said);
    size_t len = 0;
    for (const char *at = said; at < end && len + sizeof(mask) < size;) {
        if (password.len && (size_t)(end - at) >= password.len &&
            memcmp(at, password.at, password.len) == 0) {
            memcpy(out + len, mask, sizeof(mask) - 1);
            len += sizeof(mask) - 1;
            at += password.len;
        } else {
            out[len++] = *at++;
        }
    }
    out[len] = '\0';
}

static void fail(struct redis_connection *n, const char *doing, const char *why)
{
    char said[400];
    redact(why, n->password, said, sizeof(said));
    redis_connection_give_up(n, "%s: %s", doing, said);
}

/* ---- what the server is ---- */

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

static bool info_is_one(const char *info, const char *name)
{
    char text[24];
    return info_line(info, name, text, sizeof(text)) && atoi(text) == 1;
}

static void read_info(const char *info, uint32_t db, struct redis_facts *facts)
{
    char text[64], version[24];
    info_line(info, "redis_version", version, sizeof(version));
    facts->version = atoi(version);
    bool is_valkey = info_line(info, "valkey_version", text, sizeof(version));
    snprintf(facts->server, sizeof(facts->server), "%s %.20s", is_valkey ? "valkey" : "redis",
             is_valkey ? text : version);
    info_line(info, "run_id", facts->run_id, sizeof(facts->run_id));
    info_line(info, "role", facts->role, sizeof(facts->role));
    facts->loading = info_is_one(info, "loading");
    facts->cluster = info_is_one(info, "cluster_enabled");
    facts->aof = info_is_one(info, "aof_enabled");
    bool bounded = info_line(info, "maxmemory", text, sizeof(text)) && strtoull(text, NULL, 10) > 0;
    info_line(info, "maxmemory_policy", facts->evicts, sizeof(facts->evicts));
    if (!bounded || strcmp(facts->evicts, "noeviction") == 0)
        facts->evicts[0] = '\0';
    char name[16]; /* "db0:keys=12,expires=12,avg_ttl=0"; an empty database has no line */
    snprintf(name, sizeof(name), "db%u", db);
    bool has_keys = info_line(info, name, text, sizeof(text)) && strncmp(text, "keys=", 5) == 0;
    facts->keys = has_keys ? strtoll(text + 5, NULL, 10) : 0;
}

/* ---- the second pipeline ---- */

/* Each script is tried when all are loaded, so that the time of the first write is that of the way and the
 * server. A user without the right to run scripts, or to what they do, would else be found by the first call,
 * and by each that follows. */
static void begin_trials(struct redis_connection *n)
{
    const struct redis_scripts *scripts = n->cluster->scripts;
    const char *keys = scripts->probe;
    n->write_began_us = clock_mono_us();
    n->tried_trials = 0;
    /* it gives the core a time to live, also if the user may not call EXPIRE */
    ask(n, STEP_TRIAL, "SET %ss %s EX %u", keys, "", PROBE_TTL_S);
    ask(n, STEP_TRIAL, n->has_functions ? "FCALL %b 2 %ss %sd %u" : "EVALSHA %b 2 %ss %sd %u",
        (n->has_functions ? scripts->functions : scripts->shas)[REDIS_SCRIPT_PROBE],
        (size_t)REDIS_SCRIPT_NAME_BYTES, keys, keys, PROBE_TTL_S);
    ask(n, STEP_TRIAL, "DEL %ss %sd", keys, keys);
}

uint8_t redis_handshake_load_scripts(struct redis_connection *n)
{
    const struct redis_scripts *scripts = n->cluster->scripts;
    if (n->has_functions)
        redisAppendCommand(n->context, "FUNCTION LOAD %b", scripts->library.at, scripts->library.len);
    for (size_t i = 0; !n->has_functions && i < REDIS_SCRIPTS; i++)
        redisAppendCommand(n->context, "SCRIPT LOAD %b", scripts->texts[i].at, scripts->texts[i].len);
    return n->has_functions ? 1 : REDIS_SCRIPTS;
}

static void begin_to_load(struct redis_connection *n, bool as_functions)
{
    n->has_functions = as_functions;
    n->loaded = 0;
    for (uint8_t left = redis_handshake_load_scripts(n); left > 0; left--)
        expect(n, as_functions ? STEP_LIBRARY : STEP_SCRIPT);
}

/* Why a server is of no use, before a write is tried; NULL: it may be. Without the right to INFO, the write
 * finds out what matters. */
static const char *read_facts(struct redis_connection *n, const redisReply *reply)
{
    const struct redis_facts *facts = &n->facts;
    enum redis_address_kind kind = n->options->address.kind;
    if (reply->type == REDIS_REPLY_ERROR)
        return strncmp(reply->str, "NOPERM", 6) == 0 ? NULL : reply->str;
    if (reply->type != REDIS_REPLY_STRING)
        return "what answers there is no Redis: it tells nothing of itself";
    read_info(reply->str, n->options->address.db, &n->facts);
    if (facts->version && facts->version < OLDEST_VERSION)
        return "it is older than Redis 6, which the ledger's scripts need";
    if (facts->loading)
        return "LOADING: it is still reading its data";
    if (!facts->cluster && strcmp(facts->role, "slave") == 0)
        return "it is a replica, which takes no writes: name its master, or the sentinels";
    if (!facts->cluster &&
        kind == REDIS_ADDRESS_CLUSTER) /* several such would each have a ledger of its own */
        return "it is no node of a cluster: name it as redis://";
    return NULL;
}

static void begin_second(struct redis_connection *n)
{
    const struct redis_facts *facts = &n->facts, *old = &n->before;
    n->time_asked_us = redis_clock_local_us();
    ask(n, STEP_TIME, "TIME");
    if (facts->cluster)
        ask(n, STEP_NODES, "CLUSTER SLOTS");
    if (old->client_id && old->run_id[0] && strcmp(old->run_id, facts->run_id) == 0)
        ask(n, STEP_COURTESY, "CLIENT KILL ID %lld", old->client_id);
    begin_to_load(n, facts->version >= REDIS_FUNCTIONS_SINCE);
}

/* CLUSTER SLOTS: [first slot, last slot, [host, port, …] of the master, those of its replicas …], … */
static void read_nodes(struct redis_connection *n, const redisReply *reply)
{
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const redisReply *range = reply->element[i];
        const redisReply *master =
            range->type == REDIS_REPLY_ARRAY && range->elements > 2 ? range->element[2] : NULL;
        if (master && master->type == REDIS_REPLY_ARRAY && master->elements > 1 &&
            master->element[1]->type == REDIS_REPLY_INTEGER)
            redis_cluster_node(n, redis_reply_text(master->element[0]),
                               (unsigned long)master->element[1]->integer);
    }
}

static void read_trial(struct redis_connection *n, const redisReply *reply)
{
    static const char *const doing[TRIALS] = {"a write", "FCALL or EVALSHA", "DEL"};
    static const char *const elsewhere[] = {"MOVED ", "ASK ", "TRYAGAIN "};
    size_t at = n->tried_trials++;
    bool is_script = at == TRIAL_SCRIPT, is_elsewhere = false;
    if (at == TRIAL_WRITE)
        n->facts.write_us = clock_mono_us() - n->write_began_us;
    /* Another node of a cluster may have the trial's key: this one is well, or it would have said so. */
    for (size_t i = 0; reply->type == REDIS_REPLY_ERROR && i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
        is_elsewhere |= strncmp(reply->str, elsewhere[i], strlen(elsewhere[i])) == 0;
    if (reply->type == REDIS_REPLY_ERROR && !is_elsewhere)
        fail(n, doing[at], reply->str);
    else if (is_script && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
             reply->element[0]->str && reply->element[1]->str)
        fail(n, reply->element[0]->str, reply->element[1]->str);
    else if (is_script && !is_elsewhere && reply->type != REDIS_REPLY_INTEGER)
        fail(n, doing[at], "the answer is none that it gives");
    else if (at + 1 == TRIALS) {
        n->before = n->facts;
        redis_connection_is_up(n);
    }
}

static void read_master(struct redis_connection *n, const redisReply *reply)
{
    const struct redis_address *a = &n->options->address;
    bool names = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                 reply->element[0]->type == REDIS_REPLY_STRING &&
                 reply->element[1]->type == REDIS_REPLY_STRING && reply->element[0]->len > 0 &&
                 reply->element[0]->len <= REDIS_ADDRESS_HOST_MAX_BYTES;
    unsigned long port = names ? strtoul(reply->element[1]->str, NULL, 10) : 0;
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    if (port > 0 && port <= UINT16_MAX) {
        redis_connection_to_master(n, redis_reply_text(reply->element[0]), (uint16_t)port);
        return;
    }
    if (is_error && n->problem[0]) /* one that wants no password answers all the same, and is believed */
        redis_connection_host_failed(n, "turns down what stands behind ?sentinels= in the address: %.200s",
                                     n->problem);
    else if (is_error && !a->sentinel_password.len && strncmp(reply->str, "NOAUTH", 6) == 0)
        redis_connection_host_failed(
            n, "wants a password of its own: put ?sentinels=user:password behind the address");
    else if (is_error)
        redis_connection_host_failed(n, "says: %.200s", reply->str);
    else
        redis_connection_host_failed(n, "knows no master '" STR_FMT "'", STR_ARG(a->master));
}

void redis_handshake_on_reply(struct redis_connection *n, uint8_t step, const redisReply *reply)
{
    struct redis_scripts *scripts = n->cluster->scripts;
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    const char *useless;
    switch ((enum step)step) {
    case STEP_SENTINEL_AUTH:
        if (is_error)
            redact(reply->str, n->options->address.sentinel_password, n->problem, sizeof(n->problem));
        break;
    case STEP_MASTER:
        read_master(n, reply);
        break;
    case STEP_COURTESY: /* a server that takes no more clients says so in place of the first answer */
        if (is_error && strncmp(reply->str, "NOPERM", 6) != 0)
            snprintf(n->problem, sizeof(n->problem), "%s", reply->str);
        break;
    case STEP_AUTH:
    case STEP_SELECT:
        if (is_error)
            fail(n, step == STEP_AUTH ? "AUTH" : "SELECT", reply->str);
        break;
    case STEP_ID:
        n->facts.client_id = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
        break;
    case STEP_INFO:
        useless = read_facts(n, reply);
        if (useless)
            fail(n, "INFO", useless);
        else
            begin_second(n);
        break;
    case STEP_TIME:
        if (is_error || !redis_clock_read(&n->facts.clock, reply, n->time_asked_us))
            fail(n, "TIME", is_error ? reply->str : "the answer is none that it gives");
        break;
    case STEP_NODES:
        read_nodes(n, reply);
        break;
    case STEP_LIBRARY: /* another daemon may have loaded it; without the right to load one, scripts do */
        if (is_error && !strstr(reply->str, "already exists"))
            begin_to_load(n, false);
        else
            begin_trials(n);
        break;
    case STEP_SCRIPT:
        if (is_error || reply->len != REDIS_SCRIPT_NAME_BYTES) {
            fail(n, "SCRIPT LOAD", is_error ? reply->str : "an answer that is no SHA1");
            break;
        }
        memcpy(scripts->shas[n->loaded++], reply->str, REDIS_SCRIPT_NAME_BYTES);
        if (n->loaded == REDIS_SCRIPTS)
            begin_trials(n);
        break;
    case STEP_TRIAL:
        read_trial(n, reply);
        break;
    }
}

void redis_handshake_ask_sentinel(struct redis_connection *n)
{
    const struct redis_address *a = &n->options->address;
    n->problem[0] = '\0';
    ask_auth(n, STEP_SENTINEL_AUTH, a->sentinel_user, a->sentinel_password);
    ask(n, STEP_MASTER, "SENTINEL get-master-addr-by-name %s", a->master.at);
}

void redis_handshake_begin(struct redis_connection *n)
{
    n->facts = (struct redis_facts){.server = "", .keys = -1};
    n->problem[0] = '\0';
    ask_auth(n, STEP_AUTH, n->options->address.user, n->password);
    if (n->options->address.db)
        ask(n, STEP_SELECT, "SELECT %u", n->options->address.db);
    ask(n, STEP_COURTESY, "CLIENT SETNAME %s", n->options->name);
    ask(n, STEP_ID, "CLIENT ID");
    ask(n, STEP_INFO, "INFO");
}

/* ---- the clock ---- */

/* A reading is as exact as its round trip is short. A busy server answers late now and then: such a reading
 * is dropped as long as the last good one is fresh enough for clocks that drift apart by DRIFT_PPM. */
#define DRIFT_PPM 200
#define EXACT_US  1000 /* the ledger counts in milliseconds */

bool redis_clock_read(struct redis_clock *clock, const redisReply *time, int64_t asked_us)
{
    int64_t now_us = redis_clock_local_us(), seconds, micros;
    if (time->type != REDIS_REPLY_ARRAY || time->elements != 2 ||
        !redis_number(redis_reply_text(time->element[0]), 253402300799, &seconds) ||
        !redis_number(redis_reply_text(time->element[1]), 999999, &micros))
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
