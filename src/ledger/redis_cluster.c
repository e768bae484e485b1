/*
 * The nodes of a Redis: one, or those of a cluster. A session's keys share a slot, and the node that holds a
 * slot is learned when another says MOVED. The first node answers for all slots that are not known yet; when
 * it is lost, the next node takes its place, beginning with those that are connected. So the nodes that an
 * address names, and those that the cluster itself has named, are candidates alike, and an outage begins when
 * none of them is up. What a server says instead of a result is looked up in one table.
 */
#include "ledger/redis.h"

#include "base/alloc.h"
#include "base/log.h"
#include "ledger/ledger.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define REDIS_SLOTS 16384u
#define HOPS_MAX    5u        /* redirections of one command */
#define SLOW_PART   4u        /* a write that takes this part of timeout_ms is slow */
#define UNKNOWN     UINT8_MAX /* the node of a slot */

/* ---- commands. Words are written by hand rather than by printf: each commit writes a dozen ---- */

void redis_command_begin(struct redis_command *c)
{
    c->bytes.len = 0;
    c->key_at = c->key_len = 0;
    c->words = 0;
    c->script = REDIS_PLAIN_COMMAND;
}

void redis_command_begin_script(struct redis_command *c, unsigned script, size_t key_count)
{
    redis_command_begin(c);
    c->script = (uint8_t)script;
    c->words = 2; /* its head's */
    redis_command_number(c, key_count);
}

void redis_command_word(struct redis_command *c, struct str word)
{
    c->words++;
    buf_byte(&c->bytes, '$');
    buf_int(&c->bytes, (int64_t)word.len);
    buf_add(&c->bytes, "\r\n", 2);
    buf_str(&c->bytes, word);
    buf_add(&c->bytes, "\r\n", 2);
}

void redis_command_number(struct redis_command *c, uint64_t number)
{
    char digits[DIGITS_MAX_BYTES];
    redis_command_word(c, (struct str){digits, (size_t)(digits_put(digits, number) - digits)});
}

void redis_command_key(struct redis_command *c, struct str key)
{
    redis_command_word(c, key);
    if (c->key_len)
        return;
    c->key_at = (uint32_t)(c->bytes.len - 2 - key.len);
    c->key_len = (uint32_t)key.len;
}

/* CRC16 (XMODEM) of the hash tag, or of the whole key if it has none. */
static uint16_t slot_of(const struct redis_command *c)
{
    const char *key = c->bytes.at + c->key_at, *end = key + c->key_len;
    const char *open = memchr(key, '{', c->key_len);
    const char *close = open ? memchr(open + 1, '}', (size_t)(end - open - 1)) : NULL;
    bool tagged = close && close > open + 1;
    uint16_t crc = 0;
    for (const char *at = tagged ? open + 1 : key; at < (tagged ? close : end); at++) {
        crc ^= (uint16_t)((unsigned char)*at << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc % REDIS_SLOTS;
}

struct str redis_reply_text(const struct redisReply *reply)
{
    bool is_text = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
    return is_text ? (struct str){reply->str, (size_t)reply->len} : (struct str){NULL, 0};
}

/* ---- warnings about a Redis that works: checked at each connect, logged when new ---- */

__attribute__((format(printf, 5, 6))) static void warn(struct redis_cluster *r, unsigned which, bool applies,
                                                       const char *event, const char *format, ...)
{
    char *said = r->warnings[which];
    bool is_new = !said[0];
    va_list args;
    said[0] = '\0';
    if (!applies)
        return;
    va_start(args, format);
    vsnprintf(said, REDIS_WARNING_BYTES, format, args);
    va_end(args);
    if (is_new)
        log_event(LOG_WARN, event, LOG_TEXT("why", said));
}

static void check(struct redis_cluster *r, const struct redis_facts *facts)
{
    uint32_t timeout_ms = r->options->timeout_ms;
    warn(r, 0, facts->evicts[0], "redis_eviction_enabled",
         "its maxmemory-policy is %s: short of memory, it drops budgets and loops of sessions that go on; "
         "CONFIG SET maxmemory-policy noeviction",
         facts->evicts);
    /* INFO does not show snapshots, and they would keep no more than what was counted before the last. */
    warn(r, 1, facts->version && !facts->aof, "redis_no_persistence",
         "it writes no append-only file: what was counted since its last snapshot is lost when it ends; "
         "CONFIG SET appendonly yes");
    warn(r, 2, facts->version && facts->version < REDIS_FUNCTIONS_SINCE, "redis_unsupported_version",
         "it is %s, which makes the ledger's scripts anew for every call; from version %d on they are a "
         "library, in a third of the time",
         facts->server, REDIS_FUNCTIONS_SINCE);
    warn(r, 3, facts->write_us >= (int64_t)timeout_ms * 1000 / SLOW_PART, "redis_slow",
         "a write took it %.1f ms, and an answer that takes %u ms counts as an outage: look at its load "
         "and the way there, or raise ledger.timeout_ms",
         (double)facts->write_us / 1000, timeout_ms);
}

/* ---- nodes ---- */

static uint8_t number_of(const struct redis_cluster *r, const struct redis_connection *node)
{
    uint8_t i = 0;
    while (r->nodes[i] != node)
        i++;
    return i;
}

void redis_cluster_on_lost(struct redis_connection *node, const char *why)
{
    struct redis_cluster *r = node->cluster;
    uint8_t number = number_of(r, node);
    for (size_t i = 0; r->slots && i < REDIS_SLOTS; i++)
        if (r->slots[i] == number)
            r->slots[i] = UNKNOWN;
    uint32_t ahead = 1; /* to the next that is connected, else to the next */
    while (ahead < r->node_count && r->nodes[(number + ahead) % r->node_count]->state != REDIS_UP)
        ahead++;
    struct redis_connection *next = r->nodes[(number + (ahead < r->node_count ? ahead : 1)) % r->node_count];
    bool is_first = node == r->first, was_up = r->is_up;
    uint64_t suppressed;
    if (is_first)
        r->first = next;
    if (!is_first || next->state == REDIS_UP) { /* only its own slots are affected */
        if (node->failures == 1 && rate_limit_allow(&r->lost_nodes, 1, &suppressed))
            log_event(LOG_WARN, "redis_node_down", LOG_STR("node", node->hosts[node->host].name),
                      LOG_NUM("port", node->hosts[node->host].port), LOG_TEXT("why", why),
                      LOG_NUM("not_logged", suppressed));
        return;
    }
    r->is_up = false;
    snprintf(r->why_away, sizeof(r->why_away), "%s", why);
    if (was_up || ++r->failed >= r->node_count) {
        r->is_settled = true;
        if (!r->away_since_ms)
            r->away_since_ms = clock_wall_ms();
        store_redis_on_away(r->store, why);
    }
    redis_connection_wake(r->first);
}

void redis_cluster_on_up(struct redis_connection *node)
{
    struct redis_cluster *r = node->cluster;
    const struct redis_facts *facts = &node->facts;
    if (node != r->first && r->is_up)
        return;
    r->first = node; /* also one that comes up while the first is still awaited */
    r->is_up = r->is_settled = true;
    r->failed = 0;
    r->connects++;
    r->away_since_ms = 0;
    r->worst_us = 0;
    r->why_away[0] = '\0';
    /* One that is connected to again and again is logged once. */
    bool is_same = r->connects > 1 && strcmp(facts->run_id, r->known.run_id) == 0;
    log_event(is_same ? LOG_DEBUG : LOG_INFO, "redis_connected", LOG_STR("address", r->shown),
              LOG_TEXT("server", facts->server), LOG_TEXT("role", facts->role),
              LOG_TEXT("cluster", facts->cluster ? "yes" : "no"), LOG_TEXT("aof", facts->aof ? "yes" : "no"));
    if (r->answers && facts->run_id[0] && !is_same && facts->keys == 0 && !facts->cluster)
        log_event(LOG_WARN, "redis_data_lost",
                  LOG_TEXT("why", "it was started anew and is empty: budgets and loops of all sessions begin "
                                  "anew; an append-only file would have kept them"));
    r->known = *facts;
    check(r, facts);
    store_redis_on_up(r->store);
}

struct redis_connection *redis_cluster_node(struct redis_connection *from, struct str host,
                                            unsigned long port)
{
    struct redis_cluster *r = from->cluster;
    struct redis_connection *node = NULL;
    if (!host.len && from->port)
        host = str_of(from->address);
    if (!port || port > UINT16_MAX || !host.len || host.len > REDIS_ADDRESS_HOST_MAX_BYTES)
        return NULL;
    for (uint32_t i = 0; i < r->node_count; i++) {
        struct redis_connection *n = r->nodes[i];
        bool is_it = (n->hosts[n->host].port == port && str_eq(n->hosts[n->host].name, host)) ||
                     (n->port == port && str_is(host, n->address));
        if (is_it && r->options->address.kind != REDIS_ADDRESS_SENTINEL)
            return n;
        if (i >= r->named_count && n->state == REDIS_OFF && n->failures && n != r->first)
            node = n; /* perhaps one that the cluster no longer has */
    }
    if (r->node_count < REDIS_NODES_MAX)
        node = r->nodes[r->node_count++] = redis_connection_new(r, NULL, 1);
    if (!node)
        return NULL;
    redis_connection_name(node, host, (uint16_t)port);
    node->hosts = &node->own;
    node->address[0] = '\0';
    node->port = 0;
    node->failures = 0;
    return node;
}

/* ---- what a server says instead of a result ---- */

enum reply_action {
    ACTION_RELOAD, /* its scripts are lost: they are sent again, and the command */
    ACTION_MOVED,  /* another node has the slot from now on */
    ACTION_ASK,    /* another node has it for this command */
    ACTION_WAIT,   /* a slot on its way between two nodes, and not every key of the session is there */
    ACTION_LEAVE,  /* it can't serve now: the connection is given up */
    ACTION_REFUSE  /* any other error: the command is at fault */
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

void redis_cluster_on_error(struct redis_connection *from, struct redis_command *command, const char *text)
{
    struct redis_cluster *r = from->cluster;
    struct redis_connection *to = from;
    /* Before version 7 a command's error stands within a script's: "ERR Error running script (…): -OOM …". */
    const char *inner = strstr(text, ": -");
    const char *word = strncmp(text, "ERR ", 4) == 0 && inner ? inner + 3 : text;
    enum reply_action action = ACTION_REFUSE;
    for (size_t i = 0; action == ACTION_REFUSE && i < sizeof(words) / sizeof(*words); i++) {
        size_t len = strlen(words[i].word);
        if (strncmp(word, words[i].word, len) == 0 && (word[len] == ' ' || word[len] == '\0'))
            action = words[i].action;
    }
    if (action == ACTION_MOVED || action == ACTION_ASK) { /* "MOVED 3999 127.0.0.1:6381" */
        const char *host = strchr(word, ' ') ? strchr(strchr(word, ' ') + 1, ' ') : NULL;
        const char *port = host ? strrchr(host, ':') : NULL;
        to = port ? redis_cluster_node(from, (struct str){host + 1, (size_t)(port - host - 1)},
                                       strtoul(port + 1, NULL, 10))
                  : NULL;
    }
    if (action == ACTION_LEAVE && from->state == REDIS_UP) {
        from->state = REDIS_LEAVING;
        snprintf(from->problem, sizeof(from->problem), "%s", word);
    }
    if (action == ACTION_MOVED && to) {
        if (!r->slots)
            r->slots = memset(alloc_zeroed(REDIS_SLOTS), UNKNOWN, REDIS_SLOTS);
        r->slots[slot_of(command)] = number_of(r, to);
    }
    command->reloads = action == ACTION_RELOAD;
    command->asking = action == ACTION_ASK;
    bool goes = to && action <= ACTION_ASK && command->hops++ < HOPS_MAX;
    if (goes)
        redis_connection_wake(to);
    if (!goes || !redis_connection_send(to, command, true))
        command->ended(command, action == ACTION_REFUSE ? STORE_REFUSED : STORE_UNDONE, NULL,
                       action == ACTION_REFUSE ? text : word);
}

/* ---- from outside ---- */

void redis_cluster_init(struct redis_cluster *r, const struct redis_options *options,
                        struct redis_scripts *scripts, struct store_redis *store, struct str shown)
{
    const struct redis_address *a = &options->address;
    bool is_cluster = a->kind == REDIS_ADDRESS_CLUSTER;
    r->options = options;
    r->scripts = scripts;
    r->store = store;
    r->shown = shown;
    r->named_count = is_cluster ? (uint32_t)a->host_count : 1;
    for (; r->node_count < r->named_count; r->node_count++)
        r->nodes[r->node_count] =
            redis_connection_new(r, &a->hosts[r->node_count], is_cluster ? 1 : a->host_count);
    r->first = r->nodes[0];
    redis_connection_wake(r->first);
}

void redis_cluster_clear(struct redis_cluster *r)
{
    for (uint32_t i = 0; i < r->node_count; i++)
        redis_connection_free(r->nodes[i]);
    free(r->slots);
}

bool redis_cluster_send(struct redis_cluster *r, struct redis_command *command)
{
    uint8_t at = r->slots && command->key_len ? r->slots[slot_of(command)] : UNKNOWN;
    bool is_there = at != UNKNOWN && r->nodes[at]->state == REDIS_UP;
    command->began_us = clock_mono_us();
    command->hops = 0;
    command->asking = command->reloads = false;
    return redis_connection_send(is_there ? r->nodes[at] : r->first, command, false);
}
