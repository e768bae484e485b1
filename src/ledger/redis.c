/*
 * One server, or the nodes of a cluster as they are met: a session's keys
 * share a slot, and who holds a slot is learned from whoever says MOVED.
 * What a server answers instead of a result is looked up in one table.
 */
#include "ledger/redis.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "ledger/redis_diagnostics.h"
#include "ledger/redis_connection.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS             16384u
#define MEDIAN_OF_ANSWERS 128u
#define TOOK_MAX_US       3600000000u /* no deadline is as long */
#define WHY_BYTES         512u

struct redis {
    struct redis_connection_common common;
    struct redis_options options;
    const struct redis_hooks *hooks;
    void *owner;
    struct redis_connection *nodes[REDIS_NODES_MAX]; /* the first is the one that is configured */
    struct arena *met;                               /* addresses of the others */
    struct str shown;                                /* where it is, for people */
    uint32_t node_count;
    uint8_t *slots; /* whom to ask for a slot; NULL: it is no cluster, as far as we know */
    bool settled;
    uint64_t connects, failures, answers;
    uint32_t took_us[MEDIAN_OF_ANSWERS]; /* the last answers */
    int64_t worst_us, away_since_ms;
    char why_away[WHY_BYTES], server[32];
    struct redis_diagnostics diagnostics;
    struct redis_facts known; /* of the last connection */
};

/* ---- commands ------------------------------------------------------------------ */

static void put_bulk(struct buf *out, struct str s)
{
    buf_byte(out, '$');
    buf_int(out, (int64_t)s.len);
    buf_text(out, "\r\n");
    buf_str(out, s);
    buf_text(out, "\r\n");
}

/* CRC16 (XMODEM) of the hash tag, as Cluster has it. */
static uint16_t slot_of(struct str key)
{
    const char *from = memchr(key.at, '{', key.len), *to = memchr(key.at, '}', key.len);
    uint16_t crc = 0;
    for (const char *at = from + 1; at < to; at++) {
        crc ^= (uint16_t)((unsigned char)*at << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc % SLOTS;
}

void redis_job_write(struct redis_job *job, const struct script_run *run)
{
    struct buf *out = &job->command;
    out->len = 0;
    memset(buf_reserve(out, REDIS_JOB_HEAD_BYTES + SCRIPT_NAME_BYTES), ' ',
           REDIS_JOB_HEAD_BYTES + SCRIPT_NAME_BYTES);
    out->len = REDIS_JOB_HEAD_BYTES + SCRIPT_NAME_BYTES;
    buf_text(out, "\r\n$1\r\n4\r\n");
    for (size_t i = 0; i < SCRIPT_KEYS; i++)
        put_bulk(out, run->keys[i]);
    for (size_t i = 0; i < run->arg_count; i++)
        put_bulk(out, run->args[i]);
    job->words = (uint8_t)(3 + SCRIPT_KEYS + run->arg_count);
    job->script = run->script;
    job->slot = slot_of(run->keys[0]);
    job->hops = 0;
    job->asking = false;
}

static void end(struct redis_job *job, enum redis_ended how, const char *why)
{
    job->ended(job, how, STR_NONE, why);
}

/* ---- nodes ---------------------------------------------------------------------- */

static void note_away(struct redis *r, const char *why)
{
    r->settled = true;
    r->failures++;
    if (!r->away_since_ms)
        r->away_since_ms = clock_wall_ms();
    snprintf(r->why_away, sizeof(r->why_away), "%s", why);
}

static void forget_slots_of(struct redis *r, const struct redis_connection *node)
{
    for (size_t i = 0; r->slots && i < SLOTS; i++)
        if (node == r->nodes[0] || r->nodes[r->slots[i]] == node)
            r->slots[i] = 0;
}

static void on_away(void *owner, struct redis_connection *node, const char *why)
{
    struct redis *r = owner;
    forget_slots_of(r, node);
    if (node != r->nodes[0])
        return;
    note_away(r, why);
    r->hooks->away(r->owner, why);
}

static bool same_server(const struct redis_facts *a, const struct redis_facts *b)
{
    return strcmp(a->run_id, b->run_id) == 0 && strcmp(a->server, b->server) == 0 &&
           strcmp(a->role, b->role) == 0 && a->aof == b->aof && a->cluster == b->cluster;
}

/* One that is connected to again and again is told of once. */
static void say_what_it_is(struct redis *r, const struct redis_facts *facts)
{
    bool known = r->connects > 1 && same_server(facts, &r->known);
    bool anew = r->answers && facts->run_id[0] && strcmp(facts->run_id, r->known.run_id) != 0;
    log_event(known ? LOG_DEBUG : LOG_INFO, "redis_connected", LOG_STR("address", r->shown),
              LOG_TEXT("server", facts->server), LOG_TEXT("role", facts->role),
              LOG_TEXT("cluster", facts->cluster ? "yes" : "no"), LOG_TEXT("aof", facts->aof ? "yes" : "no"));
    if (anew && facts->keys == 0 && !facts->cluster)
        log_event(LOG_WARN, "redis_data_lost",
                  LOG_TEXT("why", "it was started anew and is empty: budgets and loops of all sessions begin "
                                  "anew; an append-only file would have kept them"));
    r->known = *facts;
}

static void on_up(void *owner, struct redis_connection *node)
{
    struct redis *r = owner;
    if (node != r->nodes[0])
        return;
    r->settled = true;
    r->connects++;
    r->away_since_ms = 0;
    r->worst_us = 0;
    r->why_away[0] = '\0';
    snprintf(r->server, sizeof(r->server), "%s", redis_connection_facts(node)->server);
    say_what_it_is(r, redis_connection_facts(node));
    redis_diagnostics_run(&r->diagnostics, redis_connection_facts(node), r->options.timeout_ms);
    r->hooks->up(r->owner);
}

/* A node of the cluster by its address, met now if need be; NULL: there are too many. */
static struct redis_connection *node_at(struct redis *r, struct str host, uint16_t port, uint8_t *number)
{
    for (uint32_t i = 0; i < r->node_count; i++) {
        const struct redis_address *a = redis_connection_address(r->nodes[i]);
        if (a->kind == REDIS_ADDRESS_TCP && a->hosts[0].port == port && str_eq(a->hosts[0].name, host)) {
            *number = (uint8_t)i;
            return r->nodes[i];
        }
    }
    if (r->node_count == REDIS_NODES_MAX)
        return NULL;
    struct redis_address *a = ARENA_NEW(r->met, struct redis_address);
    a->kind = REDIS_ADDRESS_TCP;
    a->hosts[0] = (struct redis_address_host){arena_dup(r->met, host), port};
    a->host_count = 1;
    *number = (uint8_t)r->node_count;
    return r->nodes[r->node_count++] = redis_connection_new(&r->common, a, false);
}

static struct redis_connection *node_for(const struct redis *r, const struct redis_job *job)
{
    struct redis_connection *node = r->nodes[r->slots ? r->slots[job->slot] : 0];
    return redis_connection_state(node) == CONNECTION_UP ? node : r->nodes[0];
}

/* ---- what a server says instead of a result ---------------------------------------- */

/* "MOVED 3999 127.0.0.1:6381"; without a host the same one is meant. */
static struct redis_connection *named_node(struct redis *r, const struct redis_connection *from,
                                           const char *text, uint8_t *number)
{
    const char *host = strchr(text, ' ') ? strchr(strchr(text, ' ') + 1, ' ') : NULL;
    const char *port = host ? strrchr(host, ':') : NULL;
    const struct redis_address *a = redis_connection_address(from);
    if (!port)
        return NULL;
    struct str name = {host + 1, (size_t)(port - host - 1)};
    if (!name.len && a->kind == REDIS_ADDRESS_TCP)
        name = a->hosts[0].name;
    unsigned long n = strtoul(port + 1, NULL, 10);
    bool fits = name.len && name.len <= REDIS_ADDRESS_HOST_MAX_BYTES && n > 0 && n <= 65535;
    return fits ? node_at(r, name, (uint16_t)n, number) : NULL;
}

static void go_to(struct redis *r, struct redis_connection *node, struct redis_job *job, const char *why)
{
    if (node && job->hops++ < REDIS_HOPS_MAX) {
        redis_connection_wake(node);
        if (redis_connection_send(node, job, true))
            return;
    }
    (void)r;
    end(job, REDIS_UNDONE, why);
}

static void moved(struct redis *r, struct redis_connection *from, struct redis_job *job, const char *text)
{
    uint8_t number = 0;
    struct redis_connection *to = named_node(r, from, text, &number);
    if (to && !r->slots && !(r->slots = calloc(SLOTS, 1)))
        abort();
    if (to)
        r->slots[job->slot] = number;
    go_to(r, to, job, text);
}

static void ask(struct redis *r, struct redis_connection *from, struct redis_job *job, const char *text)
{
    uint8_t number = 0;
    struct redis_connection *to = named_node(r, from, text, &number);
    job->asking = true;
    go_to(r, to, job, text);
}

static void reload(struct redis *r, struct redis_connection *from, struct redis_job *job, const char *text)
{
    redis_connection_reload(from);
    go_to(r, from, job, text);
}

static void leave(struct redis *r, struct redis_connection *from, struct redis_job *job, const char *text)
{
    (void)r;
    redis_connection_leave(from, text);
    end(job, REDIS_UNDONE, text);
}

/* A slot on its way between two nodes: a session of which not every key is there has to wait until it has
 * come over. */
static void unfit(struct redis *r, struct redis_connection *from, struct redis_job *job, const char *text)
{
    (void)r, (void)from;
    end(job, REDIS_UNDONE, text);
}

static const struct {
    const char *word;
    void (*act)(struct redis *r, struct redis_connection *from, struct redis_job *job, const char *text);
} words[] = {
    {"NOSCRIPT", reload},
    {"ERR Function not found", reload},
    {"MOVED", moved},
    {"ASK", ask},
    {"TRYAGAIN", unfit},
    {"READONLY", leave},
    {"LOADING", leave},
    {"BUSY", leave},
    {"OOM", leave},
    {"MISCONF", leave},
    {"NOREPLICAS", leave},
    {"CLUSTERDOWN", leave},
    {"MASTERDOWN", leave},
    {"NOAUTH", leave},
    {"NOPERM", leave},
    {"UNBLOCKED", leave},
    {"ERR The user executing the script can't run this command", leave}, /* NOPERM, as version 7.0 has it */
    {"ERR ACL failure in", leave}, /* NOPERM, as later ones and Valkey have it */
};

/* Before version 7 a command's error stands within a script's: "ERR Error running script (…): -OOM …". */
static const char *word_in(const char *text)
{
    const char *inner = strstr(text, ": -");
    return strncmp(text, "ERR ", 4) == 0 && inner ? inner + 3 : text;
}

static void on_error(struct redis *r, struct redis_connection *from, struct redis_job *job, const char *text)
{
    const char *word = word_in(text);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t len = strlen(words[i].word);
        if (strncmp(word, words[i].word, len) == 0 && (word[len] == ' ' || word[len] == '\0')) {
            words[i].act(r, from, job, word);
            return;
        }
    }
    end(job, REDIS_REFUSED, text);
}

/* ---- answers ----------------------------------------------------------------------- */

static void take_time(struct redis *r, const struct redis_job *job)
{
    int64_t took = clock_mono_us() - job->began_us;
    r->took_us[r->answers++ % MEDIAN_OF_ANSWERS] = took < TOOK_MAX_US ? (uint32_t)took : TOOK_MAX_US;
    if (took > r->worst_us)
        r->worst_us = took;
}

static void on_answered(void *owner, struct redis_connection *node, struct redis_job *job,
                        const redisReply *reply)
{
    struct redis *r = owner;
    take_time(r, job);
    if (reply->type == REDIS_REPLY_ERROR)
        on_error(r, node, job, reply->str);
    else if (reply->type == REDIS_REPLY_STRING)
        job->ended(job, REDIS_ANSWERED, (struct str){reply->str, reply->len}, NULL);
    else
        end(job, REDIS_REFUSED, "the answer is no string");
}

static void on_lost(void *owner, struct redis_job *job, bool sent)
{
    const struct redis *r = owner;
    end(job, sent ? REDIS_LOST : REDIS_UNDONE, r->why_away);
}

/* ---- from outside -------------------------------------------------------------------- */

static void name_functions(struct redis_connection_common *common)
{
    struct arena *arena = arena_new();
    (void)script_library(arena, "", &common->functions);
    arena_free(arena);
}

struct redis *redis_new(const struct redis_options *options, const struct redis_hooks *hooks, void *owner)
{
    struct redis *r = calloc(1, sizeof(*r));
    if (!r)
        abort();
    r->options = *options;
    r->hooks = hooks;
    r->owner = owner;
    r->met = arena_new();
    r->shown = redis_address_shown(r->met, options->address);
    r->common = (struct redis_connection_common){.options = &r->options,
                                                 .owner = r,
                                                 .up = on_up,
                                                 .away = on_away,
                                                 .answered = on_answered,
                                                 .lost = on_lost};
    name_functions(&r->common);
    r->nodes[r->node_count++] = redis_connection_new(&r->common, options->address, true);
    redis_connection_wake(r->nodes[0]);
    return r;
}

void redis_free(struct redis *r)
{
    for (uint32_t i = 0; r && i < r->node_count; i++)
        redis_connection_free(r->nodes[i]);
    if (r) {
        arena_free(r->met);
        free(r->slots);
    }
    free(r);
}

bool redis_is_settled(const struct redis *r)
{
    return r->settled;
}

bool redis_is_up(const struct redis *r)
{
    return redis_connection_state(r->nodes[0]) == CONNECTION_UP;
}

bool redis_send(struct redis *r, struct redis_job *job)
{
    job->began_us = clock_mono_us();
    job->hops = 0;
    job->asking = false;
    return redis_connection_send(node_for(r, job), job, false);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Of the last answers; 0: there was none. */
static int64_t median_us(const struct redis *r)
{
    uint32_t sorted[MEDIAN_OF_ANSWERS];
    size_t count = r->answers < MEDIAN_OF_ANSWERS ? (size_t)r->answers : MEDIAN_OF_ANSWERS;
    memcpy(sorted, r->took_us, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_size);
    return count ? sorted[count / 2] : 0;
}

void redis_stats(const struct redis *r, struct redis_stats *out)
{
    *out = (struct redis_stats){
        .address = r->shown,
        .server = str_of(r->server),
        .connects = r->connects,
        .failures = r->failures,
        .nodes = r->node_count,
        .median_us = median_us(r),
        .keys = r->connects ? r->known.keys : -1,
        .worst_us = r->worst_us,
        .answers = r->answers,
        .why_away = r->why_away,
        .away_since_ms = r->away_since_ms,
        .write_us = redis_connection_facts(r->nodes[0])->write_us,
        .diagnostics = &r->diagnostics,
    };
}
