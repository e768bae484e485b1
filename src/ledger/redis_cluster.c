/*
 * A session's keys share a slot, and who holds a slot is learned from whoever says MOVED. What a server
 * answers instead of a result is looked up in one table.
 */
#include "ledger/redis_cluster.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/log.h"
#include "ledger/redis_diagnostics.h"
#include "ledger/redis_discovery.h"

#include <stdio.h>
#include <stdlib.h>

#define MEDIAN_OF_ANSWERS 128u
#define TOOK_MAX_US       3600000000u /* no deadline is as long */
#define WHY_BYTES         512u

struct redis_cluster {
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
    struct histogram times;
    char why_away[WHY_BYTES], server[32];
    struct redis_diagnostics diagnostics;
    struct redis_facts known; /* of the last connection */
};

static void end(struct redis_command *command, enum redis_ended how, const char *why)
{
    command->ended(command, how, NULL, why);
}

/* ---- nodes ---------------------------------------------------------------------- */

static void on_away(void *owner, struct redis_connection *node, const char *why)
{
    struct redis_cluster *r = owner;
    for (size_t i = 0; r->slots && i < REDIS_SLOTS; i++)
        if (node == r->nodes[0] || r->nodes[r->slots[i]] == node)
            r->slots[i] = 0;
    if (node != r->nodes[0])
        return;
    r->settled = true;
    r->failures++;
    if (!r->away_since_ms)
        r->away_since_ms = clock_wall_ms();
    snprintf(r->why_away, sizeof(r->why_away), "%s", why);
    r->hooks->away(r->owner, why);
}

/* One that is connected to again and again is told of once. */
static void say_what_it_is(struct redis_cluster *r, const struct redis_facts *facts)
{
    const struct redis_facts *last = &r->known;
    bool known = r->connects > 1 && strcmp(facts->run_id, last->run_id) == 0 &&
                 strcmp(facts->server, last->server) == 0 && strcmp(facts->role, last->role) == 0 &&
                 facts->aof == last->aof && facts->cluster == last->cluster;
    bool anew = r->answers && facts->run_id[0] && strcmp(facts->run_id, last->run_id) != 0;
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
    struct redis_cluster *r = owner;
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
static struct redis_connection *node_at(struct redis_cluster *r, struct str host, uint16_t port,
                                        uint8_t *number)
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

/* ---- what a server says instead of a result ---------------------------------------- */

/* "MOVED 3999 127.0.0.1:6381"; without a host the same one is meant. */
static struct redis_connection *named_node(struct redis_cluster *r, const struct redis_connection *from,
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

enum reply_action {
    ACTION_RELOAD, /* its scripts are lost: they are sent again, and the command */
    ACTION_MOVED,  /* another node has the slot from now on */
    ACTION_ASK,    /* another node has it for this command */
    ACTION_WAIT,   /* a slot on its way between two nodes, and not every key of the session is there */
    ACTION_LEAVE   /* it can't serve now: the connection is given up */
};

static const struct {
    const char *word;
    enum reply_action action;
} words[] = {
    {"NOSCRIPT", ACTION_RELOAD},
    {"ERR Function not found", ACTION_RELOAD},
    {"MOVED", ACTION_MOVED},
    {"ASK", ACTION_ASK},
    {"TRYAGAIN", ACTION_WAIT},
    {"READONLY", ACTION_LEAVE},
    {"LOADING", ACTION_LEAVE},
    {"BUSY", ACTION_LEAVE},
    {"OOM", ACTION_LEAVE},
    {"MISCONF", ACTION_LEAVE},
    {"NOREPLICAS", ACTION_LEAVE},
    {"CLUSTERDOWN", ACTION_LEAVE},
    {"MASTERDOWN", ACTION_LEAVE},
    {"NOAUTH", ACTION_LEAVE},
    {"NOPERM", ACTION_LEAVE},
    {"UNBLOCKED", ACTION_LEAVE},
    {"ERR The user executing the script can't run this command", ACTION_LEAVE}, /* NOPERM of version 7.0 */
    {"ERR ACL failure in", ACTION_LEAVE}, /* NOPERM, as later ones and Valkey have it */
};

static void act(struct redis_cluster *r, struct redis_connection *from, struct redis_command *command,
                enum reply_action action, const char *text)
{
    struct redis_connection *to = from;
    uint8_t number = 0;
    if (action == ACTION_MOVED || action == ACTION_ASK)
        to = named_node(r, from, text, &number);
    if (action == ACTION_RELOAD)
        redis_connection_reload(from);
    if (action == ACTION_LEAVE)
        redis_connection_leave(from, text);
    if (action == ACTION_MOVED && to) {
        if (!r->slots && !(r->slots = calloc(REDIS_SLOTS, 1)))
            abort();
        r->slots[redis_command_slot(command)] = number;
    }
    command->asking = command->asking || action == ACTION_ASK;
    bool goes = to && action != ACTION_LEAVE && action != ACTION_WAIT && command->hops++ < REDIS_HOPS_MAX;
    if (goes)
        redis_connection_wake(to);
    if (!goes || !redis_connection_send(to, command, true))
        end(command, REDIS_UNDONE, text);
}

/* Before version 7 a command's error stands within a script's: "ERR Error running script (…): -OOM …". */
static void on_error(struct redis_cluster *r, struct redis_connection *from, struct redis_command *command,
                     const char *text)
{
    const char *inner = strstr(text, ": -");
    const char *word = strncmp(text, "ERR ", 4) == 0 && inner ? inner + 3 : text;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t len = strlen(words[i].word);
        if (strncmp(word, words[i].word, len) == 0 && (word[len] == ' ' || word[len] == '\0')) {
            act(r, from, command, words[i].action, word);
            return;
        }
    }
    end(command, REDIS_REFUSED, text);
}

/* ---- answers ----------------------------------------------------------------------- */

static void take_time(struct redis_cluster *r, const struct redis_command *command)
{
    int64_t took = clock_mono_us() - command->began_us;
    r->took_us[r->answers++ % MEDIAN_OF_ANSWERS] = took < TOOK_MAX_US ? (uint32_t)took : TOOK_MAX_US;
    histogram_add(&r->times, &histogram_fine_bounds, took * 1000);
    if (took > r->worst_us)
        r->worst_us = took;
}

static void on_answered(void *owner, struct redis_connection *node, struct redis_command *command,
                        const struct redis_value *value)
{
    (void)node;
    take_time(owner, command);
    command->ended(command, REDIS_ANSWERED, value, NULL);
}

static void on_failed(void *owner, struct redis_connection *node, struct redis_command *command,
                      const char *error)
{
    take_time(owner, command);
    on_error(owner, node, command, error);
}

static void on_lost(void *owner, struct redis_command *command, bool sent)
{
    const struct redis_cluster *r = owner;
    end(command, sent ? REDIS_LOST : REDIS_UNDONE, r->why_away);
}

/* ---- from outside -------------------------------------------------------------------- */

struct redis_cluster *redis_cluster_new(const struct redis_options *options, const struct redis_hooks *hooks,
                                        void *owner)
{
    struct redis_cluster *r = calloc(1, sizeof(*r));
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
                                                 .failed = on_failed,
                                                 .lost = on_lost};
    r->nodes[r->node_count++] = redis_connection_new(&r->common, options->address, true);
    redis_connection_wake(r->nodes[0]);
    return r;
}

void redis_cluster_free(struct redis_cluster *r)
{
    for (uint32_t i = 0; r && i < r->node_count; i++)
        redis_connection_free(r->nodes[i]);
    if (r) {
        arena_free(r->met);
        free(r->slots);
    }
    free(r);
}

bool redis_cluster_is_settled(const struct redis_cluster *r)
{
    return r->settled;
}

bool redis_cluster_is_up(const struct redis_cluster *r)
{
    return redis_connection_state(r->nodes[0]) == CONNECTION_UP;
}

static bool send_to(struct redis_connection *node, struct redis_command *command)
{
    command->began_us = clock_mono_us();
    command->hops = 0;
    command->asking = false;
    return redis_connection_send(node, command, false);
}

bool redis_cluster_send(struct redis_cluster *r, struct redis_command *command)
{
    struct redis_connection *node = r->nodes[r->slots ? r->slots[redis_command_slot(command)] : 0];
    return send_to(redis_connection_state(node) == CONNECTION_UP ? node : r->nodes[0], command);
}

bool redis_cluster_send_first(struct redis_cluster *r, struct redis_command *command)
{
    return send_to(r->nodes[0], command);
}

const struct redis_facts *redis_cluster_facts(const struct redis_cluster *r)
{
    return redis_connection_facts(r->nodes[0]);
}

const char *redis_cluster_why_away(const struct redis_cluster *r)
{
    return r->why_away;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void redis_cluster_stats(const struct redis_cluster *r, struct redis_stats *out)
{
    uint32_t sorted[MEDIAN_OF_ANSWERS];
    size_t count = r->answers < MEDIAN_OF_ANSWERS ? (size_t)r->answers : MEDIAN_OF_ANSWERS;
    memcpy(sorted, r->took_us, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_size);
    *out = (struct redis_stats){
        .address = r->shown,
        .server = str_of(r->server),
        .connects = r->connects,
        .failures = r->failures,
        .nodes = r->node_count,
        .median_us = count ? sorted[count / 2] : 0,
        .keys = r->connects ? r->known.keys : -1,
        .worst_us = r->worst_us,
        .times = &r->times,
        .answers = r->answers,
        .why_away = r->why_away,
        .away_since_ms = r->away_since_ms,
        .write_us = redis_connection_facts(r->nodes[0])->write_us,
        .diagnostics = &r->diagnostics,
    };
    const struct redis_place *master = redis_connection_master(r->nodes[0], &out->master_since_ms);
    out->master = master ? master->host : NULL;
    out->master_port = master ? master->port : 0;
}
