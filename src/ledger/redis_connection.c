/*
 * Replies come in the order of commands, so what is under way is a queue, and
 * only its head can be the first to be late. hiredis keeps callbacks of its
 * own; once a connection is given up they find no node.
 */
#include "ledger/redis_connection.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/timer.h"
#include "ledger/redis_adapter.h"
#include "ledger/redis_discovery.h"
#include "ledger/redis_diagnostics.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/sds.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PASSWORD_MAX_BYTES 1024u
#define WHY_BYTES          512u

struct queue {
    struct redis_command *head, *tail;
};

struct redis_connection {
    struct redis_connection_common *common;
    const struct redis_address *address;
    struct redis_discovery *discovery;
    redisAsyncContext *context; /* NULL: off or discovery */
    enum redis_connection_state state;
    bool keeps;
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

static void connect_to(void *owner, const struct redis_place *place, const struct why *why);

/* ---- queues ----------------------------------------------------------------- */

static void push(struct queue *queue, struct redis_command *command)
{
    command->next = NULL;
    if (queue->tail)
        queue->tail->next = command;
    else
        queue->head = command;
    queue->tail = command;
}

static struct redis_command *pop(struct queue *queue)
{
    struct redis_command *command = queue->head;
    if (command) {
        queue->head = command->next;
        queue->tail = queue->head ? queue->tail : NULL;
        command->next = NULL;
    }
    return command;
}

/* ---- giving up --------------------------------------------------------------- */

static void pause_is_over(void *owner)
{
    struct redis_connection *n = owner;
    if (n->keeps)
        redis_connection_wake(n);
}

/* `freed`: hiredis is about to free the connection itself. */
static void give_up(struct redis_connection *n, const char *why, bool freed)
{
    redisAsyncContext *context = n->context;
    struct queue sent = n->sent, waiting = n->waiting;
    char text[WHY_BYTES];
    redis_diagnostics_add_hint(why, text, sizeof(text));
    n->context = NULL;
    n->sent = n->waiting = (struct queue){NULL, NULL};
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
    timer_set(&n->pause, n->common->options->loop, ms, pause_is_over, n);
    n->common->away(n->common->owner, n, text);
    struct redis_command *command;
    while ((command = pop(&sent)))
        n->common->lost(n->common->owner, command, true);
    while ((command = pop(&waiting)))
        n->common->lost(n->common->owner, command, false);
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
    return n->sent.head ? n->sent.head : n->waiting.head;
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
    if (waited_ms < n->common->options->timeout_ms) {
        watch_deadline(n);
        return;
    }
    snprintf(why, sizeof(why), "it did not answer within %u ms", n->common->options->timeout_ms);
    give_up(n, why, false);
}

/* One timer for all that is under way, set for the oldest. */
static void watch_deadline(struct redis_connection *n)
{
    const struct redis_command *command = oldest(n);
    if (timer_is_set(&n->deadline) || !command)
        return;
    int64_t waited_ms = (clock_mono_us() - command->began_us) / 1000;
    int64_t left_ms = n->common->options->timeout_ms - waited_ms;
    timer_set(&n->deadline, n->common->options->loop, left_ms > 0 ? (uint32_t)left_ms : 0, on_deadline, n);
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
        n->common->failed(n->common->owner, n, command, reply->str);
    } else {
        struct redis_value value = redis_value_of(reply);
        n->failures = 0;
        n->common->answered(n->common->owner, n, command, &value);
    }
    if (n->context == context && n->state == CONNECTION_LEAVING && !n->sent.head)
        give_up(n, n->leaving_for, false);
}

static void put(struct redis_connection *n, struct redis_command *command)
{
    const struct redis_scripts *scripts = n->common->options->scripts;
    const char *name = NULL;
    if (command->script != REDIS_PLAIN_COMMAND)
        name = n->handshake.functions ? scripts->functions[command->script] : scripts->shas[command->script];
    struct str bytes = redis_command_finish(command, name && n->handshake.functions, name);
    if (command->asking)
        redisAsyncCommand(n->context, NULL, NULL, "ASKING"); /* the command behind it tells */
    command->asking = false;
    redisAsyncFormattedCommand(n->context, on_reply, NULL, bytes.at, bytes.len);
    push(&n->sent, command);
}

bool redis_connection_send(struct redis_connection *n, struct redis_command *command, bool waits)
{
    bool soon = waits && (n->state == CONNECTION_DISCOVERY || n->state == CONNECTION_HANDSHAKE);
    if (n->state == CONNECTION_UP &&
        sdslen(n->context->c.obuf) + command->bytes.len <= REDIS_UNSENT_MAX_BYTES)
        put(n, command);
    else if (soon)
        push(&n->waiting, command);
    else
        return false;
    watch_deadline(n);
    return true;
}

void redis_connection_leave(struct redis_connection *n, const char *why)
{
    if (n->state != CONNECTION_UP)
        return;
    n->state = CONNECTION_LEAVING;
    snprintf(n->leaving_for, sizeof(n->leaving_for), "%s", why);
}

void redis_connection_reload(struct redis_connection *n)
{
    if (n->state == CONNECTION_UP)
        redis_handshake_load_scripts(&n->handshake, n->context);
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
    n->common->up(n->common->owner, n);
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
    const char *file = n->common->options->password_file;
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
    redis_adapter_attach(n->common->options->loop, context);
    redisAsyncSetConnectCallback(context, on_connected);
    redisAsyncSetDisconnectCallback(context, on_gone);
    const struct redis_address *first = n->common->options->address; /* a cluster has one password for all */
    n->state = CONNECTION_HANDSHAKE;
    n->handshake.user = first->user;
    n->handshake.password = file ? str_of(n->password) : first->password;
    n->handshake.db = first->db;
    n->handshake.name = n->common->options->name;
    n->handshake.scripts = n->common->options->scripts;
    n->handshake.over = on_handshake_over;
    n->handshake.owner = n;
    redis_handshake_begin(&n->handshake, context);
}

void redis_connection_wake(struct redis_connection *n)
{
    struct loop *loop = n->common->options->loop;
    bool pausing = timer_is_set(&n->pause);
    if (n->state != CONNECTION_OFF || pausing)
        return;
    n->state = CONNECTION_DISCOVERY;
    timer_set(&n->pause, loop, REDIS_HANDSHAKE_MS, took_too_long, n);
    redis_discovery_free(n->discovery);
    n->discovery = redis_discovery_new(loop, n->address, connect_to, n);
    redis_discovery_start(n->discovery);
}

/* ---- from outside ---------------------------------------------------------------- */

struct redis_connection *redis_connection_new(struct redis_connection_common *common,
                                              const struct redis_address *address, bool keeps)
{
    struct redis_connection *n = calloc(1, sizeof(*n));
    if (!n)
        abort();
    n->common = common;
    n->address = address;
    n->keeps = keeps;
    return n;
}

void redis_connection_free(struct redis_connection *n)
{
    if (!n)
        return;
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

const struct redis_address *redis_connection_address(const struct redis_connection *n)
{
    return n->address;
}

enum redis_connection_state redis_connection_state(const struct redis_connection *n)
{
    return n->state;
}

const struct redis_place *redis_connection_master(const struct redis_connection *n, int64_t *since_ms)
{
    *since_ms = n->place_since_ms;
    return n->address->kind == REDIS_ADDRESS_SENTINEL && n->place_since_ms ? &n->place : NULL;
}

const struct redis_facts *redis_connection_facts(const struct redis_connection *n)
{
    return &n->handshake.facts;
}
