/*
 * One connection is made, kept, given up when it stalls, and made again after a pause that grows:
 *
 *   off ─▶ resolving ─▶ asking a sentinel ─▶ greeting ─▶ up ─▶ leaving ─▶ off …
 *    ▲_________│________________│_______________│  (lost, silent for too long, useless)
 *
 * Names go through getaddrinfo_a, which asks in a thread of the C library, so that a slow resolver does not
 * block the loop. Sentinels are asked one after the other, beginning with the one that answered last.
 *
 * Replies come in the order of commands, so commands under way are a queue, and only its head can be the
 * first to be late. hiredis keeps callbacks of its own: those of a connection that was given up find no
 * owner.
 */
#include "ledger/redis_internal.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/descriptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/sds.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 3u  /* while a name is being resolved */
#define NUMERIC_BYTES 64u /* of an address in digits */

/* It may outlive the attempt that began it: the resolver's thread writes to it. */
struct redis_lookup {
    struct gaicb request;
    struct addrinfo hints;
    char name[REDIS_ADDRESS_HOST_MAX_BYTES + 1];
    int64_t began_us;
};

static void try_host(void *owner);

/* ---- what a peer may send: a reply that nobody asked for trips an assertion in hiredis, and a list of any
 * length is allocated at once. hiredis makes replies by four functions: ours first check whether one is
 * expected; an error ends the connection. ---- */

#if HIREDIS_MAJOR >= 1
typedef size_t item_count;
#else
typedef int item_count;
#endif

static redisReplyObjectFunctions plain, guarded; /* the same for all, set by the first */

static bool is_expected(const redisReadTask *task)
{
    const redisAsyncContext *context = task->privdata;
    return task->parent || context->replies.head;
}

static void *make_string(const redisReadTask *task, char *text, size_t len)
{
    return is_expected(task) ? plain.createString(task, text, len) : NULL;
}

static void *make_array(const redisReadTask *task, item_count count)
{
    bool fits = count <= (item_count)REDIS_REPLY_MAX_ITEMS;
    return fits && is_expected(task) ? plain.createArray(task, count) : NULL;
}

static void *make_integer(const redisReadTask *task, long long n)
{
    return is_expected(task) ? plain.createInteger(task, n) : NULL;
}

static void *make_nil(const redisReadTask *task)
{
    return is_expected(task) ? plain.createNil(task) : NULL;
}

static void guard(redisAsyncContext *context)
{
    redisReader *reader = context->c.reader;
    if (!plain.createString) {
        plain = guarded = *reader->fn;
        guarded.createString = make_string;
        guarded.createArray = make_array;
        guarded.createInteger = make_integer;
        guarded.createNil = make_nil;
    }
    reader->fn = &guarded;
    reader->privdata = context;
}

/* ---- hiredis on our loop. hiredis' own adapter for libevent asks the kernel twice for each command: ours
 * watches for writability only while a connection is being made, or takes no more. ---- */

static void on_ready(void *owner, int fd, bool readable, bool writable)
{
    struct redis_connection *n = owner;
    (void)fd;
    if (writable) {
        n->is_writing = true;
        redisAsyncHandleWrite(n->context);
        n->is_writing = false;
    }
    if (readable && n->context)
        redisAsyncHandleRead(n->context);
    redisReader *reader = n->context ? n->context->c.reader : NULL;
    if (reader && !reader->err && reader->len - reader->pos > REDIS_REPLY_MAX_BYTES) {
        reader->err = REDIS_ERR_OOM; /* ends the connection with the next bytes */
        snprintf(reader->errstr, sizeof(reader->errstr), "Out of memory");
    }
}

/* It is always watched for reading: hiredis has to see what nobody asked for, too. */
static void wants_nothing(void *owner)
{
    (void)owner;
}

static void wants_write(void *owner)
{
    const struct redis_connection *n = owner;
    if (n->context && n->context->c.flags & REDIS_CONNECTED && !n->is_writing)
        descriptor_writable_soon(n->descriptor);
    else
        descriptor_watch(n->descriptor, true, true);
}

static void wants_no_write(void *owner)
{
    descriptor_watch(((struct redis_connection *)owner)->descriptor, true, false);
}

/* hiredis frees the context. */
static void detach(void *owner)
{
    struct redis_connection *n = owner;
    descriptor_free(n->descriptor);
    n->descriptor = NULL;
}

/* ---- the end of an attempt, or of a connection ---- */

static struct redis_command *pop(struct redis_queue *queue)
{
    struct redis_command *command = STAILQ_FIRST(queue);
    if (command)
        STAILQ_REMOVE_HEAD(queue, next);
    return command;
}

/* A lookup that can't be called back is left to the resolver: its thread still writes there. */
static void drop_lookup(struct redis_connection *n)
{
    if (n->lookup && gai_cancel(&n->lookup->request) != EAI_NOTCANCELED) {
        if (n->lookup->request.ar_result)
            freeaddrinfo(n->lookup->request.ar_result);
        free(n->lookup);
    }
    n->lookup = NULL;
}

/* `freed`: hiredis is about to free the context itself. */
static void close_context(struct redis_connection *n, bool freed)
{
    redisAsyncContext *context = n->context;
    n->context = NULL;
    timer_clear(&n->step);
    drop_lookup(n);
    if (context)
        context->data = NULL;
    if (context && !freed)
        redisAsyncFree(context);
}

static void pause_is_over(void *owner)
{
    struct redis_connection *n = owner;
    if (redis_cluster_needs(n))
        redis_connection_wake(n);
}

static void give_up(struct redis_connection *n, const char *why, bool freed)
{
    struct redis_queue sent = STAILQ_HEAD_INITIALIZER(sent), waiting = STAILQ_HEAD_INITIALIZER(waiting);
    char text[REDIS_WHY_BYTES];
    redis_add_hint(why, text, sizeof(text));
    STAILQ_CONCAT(&sent, &n->sent);
    STAILQ_CONCAT(&waiting, &n->waiting);
    n->state = REDIS_OFF;
    n->failures++;
    timer_clear(&n->deadline);
    close_context(n, freed);
    /* From half the pause to one and a half: a fleet must not come back all at once. */
    uint32_t ms = REDIS_RETRY_FIRST_MS << (n->failures > 8 ? 8 : n->failures - 1);
    if (ms > REDIS_RETRY_LAST_MS)
        ms = REDIS_RETRY_LAST_MS;
    ms = ms / 2 + (uint32_t)(hash_random() % ms);
    log_event(LOG_DEBUG, "redis_reconnect_delayed", LOG_NUM("failures", n->failures), LOG_NUM("ms", ms));
    timer_set(&n->attempt, n->options->loop, ms, pause_is_over, n);
    redis_cluster_on_lost(n, text);
    struct redis_command *command;
    while ((command = pop(&sent)))
        command->ended(command, REDIS_LOST, NULL, text);
    while ((command = pop(&waiting)))
        command->ended(command, REDIS_UNDONE, NULL, text);
}

void redis_connection_give_up(struct redis_connection *n, const char *why)
{
    give_up(n, why, false);
}

static void took_too_long(void *owner)
{
    struct redis_connection *n = owner;
    bool connected = n->state == REDIS_GREETING && n->context->c.flags & REDIS_CONNECTED;
    char why[REDIS_WHY_BYTES];
    snprintf(why, sizeof(why),
             connected ? "it takes the connection and did not answer the greeting within %u ms"
                       : "it is not reached within %u ms: does a firewall stand between?",
             REDIS_CONNECT_MS);
    n->host = n->host_count ? (n->host + 1) % n->host_count : 0;
    give_up(n, why, false);
}

/* This host did not lead to the goal; the next sentinel may. */
static void host_failed(struct redis_connection *n, const char *why, bool freed)
{
    n->host = (n->host + 1) % n->host_count;
    if (++n->tried == n->host_count) {
        give_up(n, why, freed);
        return;
    }
    close_context(n, freed);
    n->state = REDIS_RESOLVING;
    timer_set(&n->step, n->options->loop, 0, try_host, n);
}

static void sentinel_failed(struct redis_connection *n, const char *how, bool freed)
{
    const struct redis_address_host *host = &n->hosts[n->host];
    struct why why;
    err_set(&why, ERR_UNAVAILABLE, "sentinel " STR_FMT ":%u %s", STR_ARG(host->name), host->port, how);
    host_failed(n, why.text, freed);
}

/* hiredis could not connect (then it is not "connected"), or has lost the connection; it frees the context.
 */
static void on_lost(const redisAsyncContext *context, int status)
{
    struct redis_connection *n = context->data;
    bool connected = context->c.flags & REDIS_CONNECTED;
    char why[REDIS_WHY_BYTES];
    if (!n || status == REDIS_OK)
        return;
    if (n->state == REDIS_ASKING) {
        sentinel_failed(n, connected ? "closed the connection" : "cannot be reached", true);
        return;
    }
    const char *said = context->errstr && context->errstr[0] ? context->errstr : NULL;
    if (!said)
        said = connected ? "it closed the connection" : "it cannot be reached";
    if (context->err == REDIS_ERR_PROTOCOL)
        snprintf(why, sizeof(why), "what answers there is no Redis: %s", said);
    else if (context->err == REDIS_ERR_OOM)
        snprintf(why, sizeof(why),
                 "what answers there is no Redis: it says what nobody asked for, or too much of it");
    else
        snprintf(why, sizeof(why), "%s", said);
    give_up(n, why, true);
}

/* ---- commands ---- */

static void watch_deadline(struct redis_connection *n);

static const struct redis_command *oldest(const struct redis_connection *n)
{
    return !STAILQ_EMPTY(&n->sent) ? STAILQ_FIRST(&n->sent) : STAILQ_FIRST(&n->waiting);
}

static void on_deadline(void *owner)
{
    struct redis_connection *n = owner;
    const struct redis_command *command = oldest(n);
    char why[96];
    if (command && (clock_mono_us() - command->began_us) / 1000 >= n->options->timeout_ms) {
        snprintf(why, sizeof(why), "it did not answer within %u ms", n->options->timeout_ms);
        give_up(n, why, false);
    } else {
        watch_deadline(n);
    }
}

/* One timer for all commands under way, set for the oldest. */
static void watch_deadline(struct redis_connection *n)
{
    const struct redis_command *command = oldest(n);
    if (timer_is_set(&n->deadline) || !command)
        return;
    int64_t left_ms = n->options->timeout_ms - (clock_mono_us() - command->began_us) / 1000;
    timer_set(&n->deadline, n->options->loop, left_ms > 0 ? (uint32_t)left_ms : 0, on_deadline, n);
}

static void on_reply(redisAsyncContext *context, void *answer, void *unused)
{
    struct redis_connection *n = context->data;
    const redisReply *reply = answer;
    (void)unused;
    if (!n || !reply) /* given up, or lost: then on_lost follows */
        return;
    struct redis_command *command = pop(&n->sent);
    redis_cluster_on_answer(n->cluster, command);
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_cluster_on_error(n, command, reply->str);
    } else {
        n->failures = 0;
        command->ended(command, REDIS_ANSWERED, reply, NULL);
    }
    if (n->context == context && n->state == REDIS_LEAVING && STAILQ_EMPTY(&n->sent))
        give_up(n, n->problem, false);
}

struct str redis_connection_bytes(const struct redis_connection *n, struct redis_command *command)
{
    const struct redis_scripts *scripts = n->options->scripts;
    bool is_script = command->script != REDIS_PLAIN_COMMAND;
    const char *name = !is_script         ? NULL
                       : n->has_functions ? scripts->functions[command->script]
                                          : scripts->shas[command->script];
    return redis_command_finish(command, n->has_functions, name);
}

static void put(struct redis_connection *n, struct redis_command *command)
{
    struct str bytes = redis_connection_bytes(n, command);
    if (command->asking)
        redisAsyncCommand(n->context, NULL, NULL, "ASKING"); /* an error follows from the command behind it */
    command->asking = false;
    redisAsyncFormattedCommand(n->context, on_reply, NULL, bytes.at, bytes.len);
    STAILQ_INSERT_TAIL(&n->sent, command, next);
}

bool redis_connection_send(struct redis_connection *n, struct redis_command *command, bool waits)
{
    if (n->state == REDIS_UP && sdslen(n->context->c.obuf) + command->bytes.len <= REDIS_UNSENT_MAX_BYTES)
        put(n, command);
    else if (waits && n->state != REDIS_OFF && n->state < REDIS_UP)
        STAILQ_INSERT_TAIL(&n->waiting, command, next);
    else
        return false;
    watch_deadline(n);
    return true;
}

/* ---- connecting ---- */

/* False: the attempt, or this host's part of it, has failed. */
static bool open_context(struct redis_connection *n, const char *address, uint16_t port)
{
    redisAsyncContext *context = port ? redisAsyncConnect(address, port) : redisAsyncConnectUnix(address);
    char why[REDIS_WHY_BYTES];
    if (!context || context->err) {
        snprintf(why, sizeof(why), "%s", context ? context->errstr : "no memory for a connection");
        if (context)
            redisAsyncFree(context);
        if (n->state == REDIS_ASKING)
            sentinel_failed(n, "cannot be reached", false);
        else
            give_up(n, why, false);
        return false;
    }
    n->context = context;
    context->data = n;
    n->descriptor = descriptor_new(n->options->loop, context->c.fd, on_ready, n);
    descriptor_watch(n->descriptor, true, false);
    guard(context);
    context->ev.data = n;
    context->ev.addRead = wants_nothing;
    context->ev.delRead = wants_nothing;
    context->ev.addWrite = wants_write;
    context->ev.delWrite = wants_no_write;
    context->ev.cleanup = detach;
    redisAsyncSetConnectCallback(context, on_lost);
    redisAsyncSetDisconnectCallback(context, on_lost);
    return true;
}

/* The first line of the password file: a password that is renewed there is used from the next connection on.
 */
static bool read_password(struct redis_connection *n)
{
    const char *file = n->options->password_file;
    char why[REDIS_WHY_BYTES];
    memset(n->secret, 0, sizeof(n->secret));
    n->password = n->options->address->password; /* a cluster has one for all nodes */
    if (!file)
        return true;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, n->secret, sizeof(n->secret) - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (len < 0) {
        snprintf(why, sizeof(why), "its password_file %s cannot be read: %s", file, strerror(error));
        give_up(n, why, false);
        return false;
    }
    n->secret[strcspn(n->secret, "\r\n")] = '\0';
    n->password = str_of(n->secret);
    return true;
}

static void set_address(struct redis_connection *n, const char *address, uint16_t port)
{
    if (strcmp(n->address, address) != 0 || n->port != port)
        n->address_since_ms = 0;
    snprintf(n->address, sizeof(n->address), "%s", address);
    n->port = port;
}

static void connect_to_address(void *owner)
{
    struct redis_connection *n = owner;
    n->state = REDIS_GREETING;
    if (read_password(n) && open_context(n, n->address, n->port))
        redis_handshake_begin(n);
}

void redis_connection_is_up(struct redis_connection *n)
{
    struct redis_command *command;
    explicit_bzero(n->secret, sizeof(n->secret));
    n->state = REDIS_UP;
    if (!n->address_since_ms)
        n->address_since_ms = clock_wall_ms();
    timer_clear(&n->attempt);
    while ((command = pop(&n->waiting)))
        put(n, command);
    redis_cluster_on_up(n);
}

/* ---- sentinels ---- */

static void sentinel_silent(void *owner)
{
    sentinel_failed(owner, "does not answer", false);
}

static void on_sentinel_auth(redisAsyncContext *context, void *answer, void *unused)
{
    struct redis_connection *n = context->data;
    const redisReply *reply = answer;
    (void)unused;
    if (n && reply && reply->type == REDIS_REPLY_ERROR)
        redis_redact(reply->str, n->options->address->sentinel_password, n->problem, sizeof(n->problem));
}

static void on_master(redisAsyncContext *context, void *answer, void *unused)
{
    struct redis_connection *n = context->data;
    const redisReply *reply = answer;
    (void)unused;
    if (!n || !reply) /* given up, or lost: then on_lost follows */
        return;
    const struct redis_address *a = n->options->address;
    char how[REDIS_WHY_BYTES];
    bool names = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                 reply->element[0]->type == REDIS_REPLY_STRING &&
                 reply->element[1]->type == REDIS_REPLY_STRING && reply->element[0]->len < NUMERIC_BYTES;
    unsigned long port = names ? strtoul(reply->element[1]->str, NULL, 10) : 0;
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    if (port > 0 && port <= UINT16_MAX) {
        set_address(n, reply->element[0]->str, (uint16_t)port);
        close_context(n, false); /* and in the loop's next turn, since hiredis is inside this context: */
        timer_set(&n->step, n->options->loop, 0, connect_to_address, n);
        return;
    }
    if (is_error && n->problem[0]) /* one that wants no password answers all the same, and is believed */
        snprintf(how, sizeof(how), "turns down what stands behind ?sentinels= in the address: %.200s",
                 n->problem);
    else if (is_error && !a->sentinel_password.len && strncmp(reply->str, "NOAUTH", 6) == 0)
        snprintf(how, sizeof(how),
                 "wants a password of its own: put ?sentinels=user:password behind the address");
    else if (is_error)
        snprintf(how, sizeof(how), "says: %.200s", reply->str);
    else
        snprintf(how, sizeof(how), "knows no master '" STR_FMT "'", STR_ARG(a->master));
    sentinel_failed(n, how, false);
}

static void ask_sentinel(struct redis_connection *n, const char *address, uint16_t port)
{
    const struct redis_address *a = n->options->address;
    n->state = REDIS_ASKING;
    n->problem[0] = '\0';
    if (!open_context(n, address, port))
        return;
    redis_auth(n->context, on_sentinel_auth, NULL, a->sentinel_user, a->sentinel_password);
    redisAsyncCommand(n->context, on_master, NULL, "SENTINEL get-master-addr-by-name %s", a->master.at);
    timer_set(&n->step, n->options->loop, REDIS_HOST_MS, sentinel_silent, n);
}

/* ---- names ---- */

static void have_host(struct redis_connection *n, const char *address)
{
    uint16_t port = n->hosts[n->host].port;
    if (n->options->address->kind == REDIS_ADDRESS_SENTINEL) {
        ask_sentinel(n, address, port);
        return;
    }
    set_address(n, address, port);
    connect_to_address(n);
}

static void name_failed(struct redis_connection *n, const char *how)
{
    struct why why;
    err_set(&why, ERR_UNAVAILABLE, "the host '" STR_FMT "' is not found: %s", STR_ARG(n->hosts[n->host].name),
            how);
    host_failed(n, why.text, false);
}

static void look_again(void *owner)
{
    struct redis_connection *n = owner;
    char address[NUMERIC_BYTES];
    int state = gai_error(&n->lookup->request);
    bool is_late = clock_mono_us() - n->lookup->began_us > (int64_t)REDIS_HOST_MS * 1000;
    if (state == EAI_INPROGRESS && !is_late) {
        timer_set(&n->step, n->options->loop, LOOK_AGAIN_MS, look_again, n);
        return;
    }
    const struct addrinfo *found = n->lookup->request.ar_result;
    bool is_found = state == 0 && getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof(address),
                                              NULL, 0, NI_NUMERICHOST) == 0;
    drop_lookup(n);
    if (is_found)
        have_host(n, address);
    else
        name_failed(n, state == EAI_INPROGRESS ? "the resolver takes too long" : gai_strerror(state));
}

static void try_host(void *owner)
{
    struct redis_connection *n = owner;
    unsigned char binary[sizeof(struct in6_addr)];
    if (!n->host_count) {
        set_address(n, n->options->address->path.at, 0);
        connect_to_address(n);
        return;
    }
    struct str name = n->hosts[n->host].name;
    if (inet_pton(AF_INET, name.at, binary) == 1 || inet_pton(AF_INET6, name.at, binary) == 1) {
        have_host(n, name.at);
        return;
    }
    struct redis_lookup *lookup = alloc_zeroed(sizeof(*lookup));
    struct gaicb *list[1] = {&lookup->request};
    memcpy(lookup->name, name.at, name.len);
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->request = (struct gaicb){.ar_name = lookup->name, .ar_request = &lookup->hints};
    lookup->began_us = clock_mono_us();
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) != 0) {
        free(lookup);
        name_failed(n, "the resolver cannot be asked");
        return;
    }
    n->lookup = lookup;
    timer_set(&n->step, n->options->loop, LOOK_AGAIN_MS, look_again, n);
}

void redis_connection_wake(struct redis_connection *n)
{
    if (n->state != REDIS_OFF || timer_is_set(&n->attempt))
        return;
    n->state = REDIS_RESOLVING;
    n->tried = 0;
    timer_set(&n->attempt, n->options->loop, REDIS_CONNECT_MS, took_too_long, n);
    timer_set(&n->step, n->options->loop, 0, try_host, n);
}

/* ---- new, free ---- */

struct redis_connection *redis_connection_new(struct redis_cluster *cluster,
                                              const struct redis_options *options,
                                              const struct redis_address_host *hosts, size_t host_count)
{
    struct redis_connection *n = alloc_zeroed(sizeof(*n));
    n->cluster = cluster;
    n->options = options;
    n->hosts = hosts;
    n->host_count = host_count;
    STAILQ_INIT(&n->sent);
    STAILQ_INIT(&n->waiting);
    return n;
}

void redis_connection_free(struct redis_connection *n)
{
    close_context(n, false);
    timer_clear(&n->deadline);
    timer_clear(&n->attempt);
    explicit_bzero(n->secret, sizeof(n->secret));
    free(n);
}
