/*
 * One connection is made, kept, given up when it stalls, and made anew after a pause that grows:
 *
 *   off ─▶ discovery ─▶ handshake ─▶ up ─▶ leaving ─▶ off …
 *    ▲________│___________│________│  (lost, silent for too long, useless)
 *
 * Replies come in the order of commands, so what is under way is a queue, and only its head can be the first
 * to be late. hiredis keeps callbacks of its own; once a connection is given up they find none.
 *
 * A session's keys share a slot, and who holds a slot is learned from whoever says MOVED. What a server
 * answers instead of a result is looked up in one table.
 */
#include "ledger/redis.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/histogram.h"
#include "base/log.h"
#include "io/timer.h"
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/sds.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PASSWORD_MAX_BYTES 1024u
#define MEDIAN_OF_ANSWERS  128u
#define TOOK_MAX_US        3600000000u /* no deadline is as long */
#define WHY_BYTES          512u

enum connection_state {
    CONNECTION_OFF,
    CONNECTION_DISCOVERY,
    CONNECTION_HANDSHAKE,
    CONNECTION_UP,
    CONNECTION_LEAVING
};

STAILQ_HEAD(queue, redis_command);

struct redis_connection {
    struct redis_cluster *cluster;
    const struct redis_address *address;
    struct redis_discovery *discovery;
    redisAsyncContext *context; /* NULL: off or discovery */
    enum connection_state state;
    bool keeps; /* connects by itself, and again; else when something is to be sent */
    struct redis_handshake handshake;
    char password[PASSWORD_MAX_BYTES];
    struct queue sent, waiting;
    struct redis_place place; /* where it is connected to */
    int64_t place_since_ms;   /* the first connection there; 0: none yet */
    struct timer deadline;    /* of the oldest command */
    struct timer pause;       /* off: until the next attempt; discovery, handshake: until it is given up */
    uint32_t failures;        /* in a row */
    char leaving_for[WHY_BYTES];
};

struct redis_cluster {
    struct redis_options options;
    const struct redis_hooks *hooks;
    void *owner;
    struct redis_connection *nodes[REDIS_NODES_MAX]; /* the first is the one that is configured */
    struct arena *met;                               /* addresses of the others */
    struct str shown;                                /* where it is, for people */
    uint32_t node_count;
    uint8_t *slots; /* whom to ask for a slot; NULL: it is no cluster, as far as we know */
    bool settled;
    uint64_t connects, answers;
    uint32_t took_us[MEDIAN_OF_ANSWERS]; /* the last answers */
    int64_t worst_us, away_since_ms;
    struct histogram times;
    char why_away[WHY_BYTES], server[32];
    struct redis_diagnostics diagnostics;
    struct redis_facts known; /* of the last connection */
};

static void on_up(struct redis_cluster *r, const struct redis_connection *node);
static void on_away(struct redis_cluster *r, const struct redis_connection *node, const char *why);
static void on_error(struct redis_cluster *r, struct redis_connection *from, struct redis_command *command,
                     const char *text);
static void connection_wake(struct redis_connection *n);

static void end(struct redis_command *command, enum redis_ended how, const char *why)
{
    command->ended(command, how, NULL, why);
}

static void take_time(struct redis_cluster *r, const struct redis_command *command)
{
    int64_t took = clock_mono_us() - command->began_us;
    r->took_us[r->answers++ % MEDIAN_OF_ANSWERS] = took < TOOK_MAX_US ? (uint32_t)took : TOOK_MAX_US;
    histogram_add(&r->times, &histogram_fine_bounds, took * 1000);
    if (took > r->worst_us)
        r->worst_us = took;
}

/* ---- one connection --------------------------------------------------------- */

/* NULL: there is none. */
static struct redis_command *pop(struct queue *queue)
{
    struct redis_command *command = STAILQ_FIRST(queue);
    if (command)
        STAILQ_REMOVE_HEAD(queue, next);
    return command;
}

/* ---- giving up --------------------------------------------------------------- */

static void pause_is_over(void *owner)
{
    struct redis_connection *n = owner;
    if (n->keeps)
        connection_wake(n);
}

/* `freed`: hiredis is about to free the connection itself. */
static void give_up(struct redis_connection *n, const char *why, bool freed)
{
    redisAsyncContext *context = n->context;
    struct queue sent = STAILQ_HEAD_INITIALIZER(sent), waiting = STAILQ_HEAD_INITIALIZER(waiting);
    char text[WHY_BYTES];
    redis_diagnostics_add_hint(why, text, sizeof(text));
    n->context = NULL;
    STAILQ_CONCAT(&sent, &n->sent);
    STAILQ_CONCAT(&waiting, &n->waiting);
    n->state = CONNECTION_OFF;
    n->failures++;
    timer_clear(&n->deadline);
    if (context)
        context->data = NULL;
    if (context && !freed)
        redisAsyncFree(context);
    /* From half the pause to one and a half: a fleet must not come back all at once. */
    uint32_t ms = REDIS_RETRY_FIRST_MS << (n->failures > 8 ? 8 : n->failures - 1);
    if (ms > REDIS_RETRY_LAST_MS)
        ms = REDIS_RETRY_LAST_MS;
    ms = ms / 2 + (uint32_t)(hash_random() % ms);
    log_event(LOG_DEBUG, "redis_reconnect_delayed", LOG_NUM("failures", n->failures), LOG_NUM("ms", ms));
    timer_set(&n->pause, n->cluster->options.loop, ms, pause_is_over, n);
    on_away(n->cluster, n, text);
    struct redis_command *command;
    while ((command = pop(&sent)))
        end(command, REDIS_LOST, n->cluster->why_away);
    while ((command = pop(&waiting)))
        end(command, REDIS_UNDONE, n->cluster->why_away);
}

static void took_too_long(void *owner)
{
    struct redis_connection *n = owner;
    bool connected = n->context && n->context->c.flags & REDIS_CONNECTED;
    char why[WHY_BYTES];
    snprintf(why, sizeof(why),
             connected ? "it takes the connection and did not answer the greeting within %u ms"
                       : "it is not reached within %u ms: does a firewall stand between?",
             REDIS_HANDSHAKE_MS);
    give_up(n, why, false);
}

/* ---- deadlines ---------------------------------------------------------------- */

static const struct redis_command *oldest(const struct redis_connection *n)
{
    return !STAILQ_EMPTY(&n->sent) ? STAILQ_FIRST(&n->sent) : STAILQ_FIRST(&n->waiting);
}

static void watch_deadline(struct redis_connection *n);

static void on_deadline(void *owner)
{
    struct redis_connection *n = owner;
    const struct redis_command *command = oldest(n);
    char why[96];
    if (!command)
        return;
    int64_t waited_ms = (clock_mono_us() - command->began_us) / 1000;
    if (waited_ms < n->cluster->options.timeout_ms) {
        watch_deadline(n);
        return;
    }
    snprintf(why, sizeof(why), "it did not answer within %u ms", n->cluster->options.timeout_ms);
    give_up(n, why, false);
}

/* One timer for all that is under way, set for the oldest. */
static void watch_deadline(struct redis_connection *n)
{
    const struct redis_command *command = oldest(n);
    if (timer_is_set(&n->deadline) || !command)
        return;
    int64_t waited_ms = (clock_mono_us() - command->began_us) / 1000;
    int64_t left_ms = n->cluster->options.timeout_ms - waited_ms;
    timer_set(&n->deadline, n->cluster->options.loop, left_ms > 0 ? (uint32_t)left_ms : 0, on_deadline, n);
}

/* ---- commands ----------------------------------------------------------------- */

static void on_reply(redisAsyncContext *context, void *answer, void *unused)
{
    struct redis_connection *n = context->data;
    (void)unused;
    if (!n || !answer) /* given up, or lost: then on_gone follows */
        return;
    struct redis_command *command = pop(&n->sent);
    const redisReply *reply = answer;
    if (reply->type == REDIS_REPLY_ERROR) {
        take_time(n->cluster, command);
        on_error(n->cluster, n, command, reply->str);
    } else {
        struct redis_value value = redis_value_of(reply);
        n->failures = 0;
        take_time(n->cluster, command);
        command->ended(command, REDIS_ANSWERED, &value, NULL);
    }
    if (n->context == context && n->state == CONNECTION_LEAVING && STAILQ_EMPTY(&n->sent))
        give_up(n, n->leaving_for, false);
}

static void put(struct redis_connection *n, struct redis_command *command)
{
    const struct redis_scripts *scripts = n->cluster->options.scripts;
    const char *name = NULL;
    if (command->script != REDIS_PLAIN_COMMAND)
        name = n->handshake.functions ? scripts->functions[command->script] : scripts->shas[command->script];
    struct str bytes = redis_command_finish(command, name && n->handshake.functions, name);
    if (command->asking)
        redisAsyncCommand(n->context, NULL, NULL, "ASKING"); /* the command behind it tells */
    command->asking = false;
    redisAsyncFormattedCommand(n->context, on_reply, NULL, bytes.at, bytes.len);
    STAILQ_INSERT_TAIL(&n->sent, command, next);
}

static bool connection_send(struct redis_connection *n, struct redis_command *command, bool waits)
{
    bool soon = waits && (n->state == CONNECTION_DISCOVERY || n->state == CONNECTION_HANDSHAKE);
    if (n->state == CONNECTION_UP &&
        sdslen(n->context->c.obuf) + command->bytes.len <= REDIS_UNSENT_MAX_BYTES)
        put(n, command);
    else if (soon)
        STAILQ_INSERT_TAIL(&n->waiting, command, next);
    else
        return false;
    watch_deadline(n);
    return true;
}

/* ---- connecting ----------------------------------------------------------------- */

static void on_connected(const redisAsyncContext *context, int status)
{
    struct redis_connection *n = context->data;
    if (n && status != REDIS_OK)
        give_up(n, context->errstr ? context->errstr : "it cannot be reached", true);
}

static void on_gone(const redisAsyncContext *context, int status)
{
    struct redis_connection *n = context->data;
    char why[WHY_BYTES];
    (void)status;
    if (n)
        give_up(n, redis_adapter_why(context, why, sizeof(why)), true);
}

static void on_handshake_over(void *owner, const char *why)
{
    struct redis_connection *n = owner;
    struct redis_command *command;
    explicit_bzero(n->password, sizeof(n->password));
    if (why) {
        give_up(n, why, false);
        return;
    }
    n->state = CONNECTION_UP;
    if (!n->place_since_ms)
        n->place_since_ms = clock_wall_ms();
    timer_clear(&n->pause);
    while ((command = pop(&n->waiting)))
        put(n, command);
    on_up(n->cluster, n);
}

static void connect_to(void *owner, const struct redis_place *place, const struct why *why)
{
    struct redis_connection *n = owner;
    char trouble[WHY_BYTES];
    if (!place) {
        give_up(n, why->text, false);
        return;
    }
    if (strcmp(n->place.host, place->host) != 0 || n->place.port != place->port)
        n->place_since_ms = 0;
    n->place = *place;
    memset(n->password, 0, sizeof(n->password));
    const char *file = n->cluster->options.password_file;
    if (file) { /* its first line; a password that is renewed there is used from the next connection on */
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        ssize_t len = fd < 0 ? -1 : read(fd, n->password, sizeof(n->password) - 1);
        int error = errno;
        if (fd >= 0)
            close(fd);
        if (len < 0) {
            snprintf(trouble, sizeof(trouble), "its password_file %s cannot be read: %s", file,
                     strerror(error));
            give_up(n, trouble, false);
            return;
        }
        n->password[strcspn(n->password, "\r\n")] = '\0';
    }
    redisAsyncContext *context =
        place->port ? redisAsyncConnect(place->host, place->port) : redisAsyncConnectUnix(place->host);
    if (!context || context->err) {
        snprintf(trouble, sizeof(trouble), "%s", context ? context->errstr : "no memory for a connection");
        if (context)
            redisAsyncFree(context);
        give_up(n, trouble, false);
        return;
    }
    n->context = context;
    context->data = n;
    redis_adapter_attach(n->cluster->options.loop, context);
    redisAsyncSetConnectCallback(context, on_connected);
    redisAsyncSetDisconnectCallback(context, on_gone);
    const struct redis_address *first = n->cluster->options.address; /* a cluster has one password for all */
    n->state = CONNECTION_HANDSHAKE;
    n->handshake.user = first->user;
    n->handshake.password = file ? str_of(n->password) : first->password;
    n->handshake.db = first->db;
    n->handshake.name = n->cluster->options.name;
    n->handshake.scripts = n->cluster->options.scripts;
    n->handshake.over = on_handshake_over;
    n->handshake.owner = n;
    redis_handshake_begin(&n->handshake, context);
}

static void connection_wake(struct redis_connection *n)
{
    struct loop *loop = n->cluster->options.loop;
    bool pausing = timer_is_set(&n->pause);
    if (n->state != CONNECTION_OFF || pausing)
        return;
    n->state = CONNECTION_DISCOVERY;
    timer_set(&n->pause, loop, REDIS_HANDSHAKE_MS, took_too_long, n);
    redis_discovery_free(n->discovery);
    n->discovery = redis_discovery_start(loop, n->address, connect_to, n);
}

static struct redis_connection *connection_new(struct redis_cluster *cluster,
                                               const struct redis_address *address, bool keeps)
{
    struct redis_connection *n = alloc_zeroed(sizeof(*n));
    n->cluster = cluster;
    n->address = address;
    n->keeps = keeps;
    STAILQ_INIT(&n->sent);
    STAILQ_INIT(&n->waiting);
    return n;
}

static void connection_free(struct redis_connection *n)
{
    redis_discovery_free(n->discovery);
    timer_clear(&n->deadline);
    timer_clear(&n->pause);
    if (n->context) {
        n->context->data = NULL;
        redisAsyncFree(n->context);
    }
    explicit_bzero(n->password, sizeof(n->password));
    free(n);
}

/* ---- nodes ---------------------------------------------------------------------- */

static void on_away(struct redis_cluster *r, const struct redis_connection *node, const char *why)
{
    for (size_t i = 0; r->slots && i < REDIS_SLOTS; i++)
        if (node == r->nodes[0] || r->nodes[r->slots[i]] == node)
            r->slots[i] = 0;
    if (node != r->nodes[0])
        return;
    r->settled = true;
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

static void on_up(struct redis_cluster *r, const struct redis_connection *node)
{
    if (node != r->nodes[0])
        return;
    r->settled = true;
    r->connects++;
    r->away_since_ms = 0;
    r->worst_us = 0;
    r->why_away[0] = '\0';
    snprintf(r->server, sizeof(r->server), "%s", node->handshake.facts.server);
    say_what_it_is(r, &node->handshake.facts);
    redis_diagnostics_run(&r->diagnostics, &node->handshake.facts, r->options.timeout_ms);
    r->hooks->up(r->owner);
}

/* A node of the cluster by its address, met now if need be; NULL: there are too many. */
static struct redis_connection *node_at(struct redis_cluster *r, struct str host, uint16_t port,
                                        uint8_t *number)
{
    for (uint32_t i = 0; i < r->node_count; i++) {
        const struct redis_address *a = r->nodes[i]->address;
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
    return r->nodes[r->node_count++] = connection_new(r, a, false);
}

/* ---- what a server says instead of a result ---------------------------------------- */

/* "MOVED 3999 127.0.0.1:6381"; without a host the same one is meant. */
static struct redis_connection *named_node(struct redis_cluster *r, const struct redis_connection *from,
                                           const char *text, uint8_t *number)
{
    const char *host = strchr(text, ' ') ? strchr(strchr(text, ' ') + 1, ' ') : NULL;
    const char *port = host ? strrchr(host, ':') : NULL;
    const struct redis_address *a = from->address;
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
    if (action == ACTION_RELOAD && from->state == CONNECTION_UP)
        redis_handshake_load_scripts(&from->handshake, from->context);
    if (action == ACTION_LEAVE && from->state == CONNECTION_UP) { /* what was sent is still awaited */
        from->state = CONNECTION_LEAVING;
        snprintf(from->leaving_for, sizeof(from->leaving_for), "%s", text);
    }
    if (action == ACTION_MOVED && to) {
        if (!r->slots)
            r->slots = alloc_zeroed(REDIS_SLOTS);
        r->slots[redis_command_slot(command)] = number;
    }
    command->asking = command->asking || action == ACTION_ASK;
    bool goes = to && action != ACTION_LEAVE && action != ACTION_WAIT && command->hops++ < REDIS_HOPS_MAX;
    if (goes)
        connection_wake(to);
    if (!goes || !connection_send(to, command, true))
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

/* ---- from outside -------------------------------------------------------------------- */

struct redis_cluster *redis_cluster_new(const struct redis_options *options, const struct redis_hooks *hooks,
                                        void *owner)
{
    struct redis_cluster *r = alloc_zeroed(sizeof(*r));
    r->options = *options;
    r->hooks = hooks;
    r->owner = owner;
    r->met = arena_new();
    r->shown = redis_address_shown(r->met, options->address);
    r->nodes[r->node_count++] = connection_new(r, options->address, true);
    connection_wake(r->nodes[0]);
    return r;
}

void redis_cluster_free(struct redis_cluster *r)
{
    for (uint32_t i = 0; r && i < r->node_count; i++)
        connection_free(r->nodes[i]);
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
    return r->nodes[0]->state == CONNECTION_UP;
}

static bool send_to(struct redis_connection *node, struct redis_command *command)
{
    command->began_us = clock_mono_us();
    command->hops = 0;
    command->asking = false;
    return connection_send(node, command, false);
}

bool redis_cluster_send(struct redis_cluster *r, struct redis_command *command)
{
    struct redis_connection *node = r->nodes[r->slots ? r->slots[redis_command_slot(command)] : 0];
    return send_to(node->state == CONNECTION_UP ? node : r->nodes[0], command);
}

bool redis_cluster_send_first(struct redis_cluster *r, struct redis_command *command)
{
    return send_to(r->nodes[0], command);
}

const struct redis_facts *redis_cluster_facts(const struct redis_cluster *r)
{
    return &r->nodes[0]->handshake.facts;
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

void redis_cluster_status(const struct redis_cluster *r, struct ledger_status *out)
{
    uint32_t sorted[MEDIAN_OF_ANSWERS];
    size_t count = r->answers < MEDIAN_OF_ANSWERS ? (size_t)r->answers : MEDIAN_OF_ANSWERS;
    memcpy(sorted, r->took_us, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_size);
    out->server = str_of(r->server);
    out->connects = r->connects;
    out->nodes = r->node_count;
    out->median_us = count ? sorted[count / 2] : 0;
    out->keys = r->connects ? r->known.keys : -1;
    out->worst_us = r->worst_us;
    out->redis_times = &r->times;
    out->why_away = r->why_away;
    out->away_since_ms = r->away_since_ms;
    out->warning_count = r->diagnostics.count;
    for (size_t i = 0; i < r->diagnostics.count; i++)
        out->warnings[i] = r->diagnostics.said[i];
    const struct redis_connection *first = r->nodes[0];
    out->master_since_ms = first->place_since_ms;
    if (first->address->kind == REDIS_ADDRESS_SENTINEL && first->place_since_ms) {
        out->master_name = first->address->master;
        out->master = first->place.host;
        out->master_port = first->place.port;
    }
}
