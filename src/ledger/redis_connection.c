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
 * first to be late. hiredis parses and buffers; the queue and the loop are ours.
 */
#include "ledger/redis.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/descriptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <hiredis/sds.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_MAX_BYTES  16777216u /* of one reply that has not ended */
#define REPLY_MAX_ITEMS  16384u    /* of a list: more than the fields of any session's details */
#define UNSENT_MAX_BYTES 4194304u  /* of one connection; commands beyond it are not sent */
#define RETRY_FIRST_MS   20u       /* doubled with each failure in a row, and jittered by half */
#define RETRY_LAST_MS    1000u
#define CONNECT_MS       2000u       /* until a connection takes commands */
#define HOST_MS          1000u       /* of them for one name, and for one sentinel */
#define TOOK_MAX_US      3600000000u /* no deadline is as long */
#define LOOK_AGAIN_MS    3u          /* while a name is being resolved */

/* It may outlive the attempt that began it: the resolver's thread writes to it. */
struct redis_lookup {
    struct gaicb request;
    struct addrinfo hints;
    char name[REDIS_ADDRESS_HOST_MAX_BYTES + 1];
    int64_t began_us;
};

static void try_host(void *owner);

/* ---- the end of an attempt, or of a connection ---- */

#define REASON_MAX_BYTES 380u /* of a server's words; the hint stands behind them */
#define RIGHTS           "give its user the rights that docs/configuration.md lists"

/* The first whose word stands in the reason counts. */
static const struct {
    const char *word, *hint;
} hints[] = {
    {"behind ?sentinels=", "set the sentinels' own user and password there"},
    {"WRONGPASS", "set its user and password in ledger.redis, or the password in ledger.password_file"},
    {"NOAUTH", "name its user and password in ledger.redis, or the password in ledger.password_file"},
    {"invalid password", "set its password in ledger.redis or ledger.password_file"},
    {"without any password configured", "it knows no password: take yours out of ledger.redis"},
    {"unknown command 'AUTH'", "it has no AUTH: take user and password out of ledger.redis"},
    {"no password is set", "it knows no password: take yours out of ledger.redis"},
    {"NOPERM", RIGHTS},
    {"ACL failure in script", RIGHTS}, /* from 7.2 on */
    {"can't run this command", RIGHTS},
    {"DB index is out of range", "name a database that it has in ledger.redis, or raise its 'databases'"},
    {"OOM", "give it memory (CONFIG SET maxmemory), or let sessions end sooner (ledger.ttl_s)"},
    {"MISCONF", "it cannot save: its own log says why, mostly a full disk"},
    {"NOREPLICAS", "its replicas are gone, and its min-replicas-to-write demands them"},
    {"Connection refused", "nothing listens there: start it, or name its address in ledger.redis"},
    {"No such file", "nothing listens there: start it, or name its socket in ledger.redis"},
    {"Permission denied", "let the daemon's user open its socket (unixsocketperm, or its group)"},
};

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

static void close_context(struct redis_connection *n)
{
    timer_clear(&n->step);
    drop_lookup(n);
    descriptor_free(n->descriptor);
    if (n->context)
        redisFree(n->context);
    n->descriptor = NULL;
    n->context = NULL;
    n->closed++;
}

static void pause_is_over(void *owner)
{
    struct redis_connection *n = owner;
    if (n == n->cluster->first)
        redis_connection_wake(n);
}

void redis_connection_give_up(struct redis_connection *n, const char *format, ...)
{
    struct redis_queue sent = STAILQ_HEAD_INITIALIZER(sent), waiting = STAILQ_HEAD_INITIALIZER(waiting);
    char why[REDIS_WHY_BYTES], text[REDIS_WHY_BYTES];
    const char *hint = NULL; /* how to fix it, if that is known */
    va_list args;
    va_start(args, format);
    size_t len = (size_t)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    for (size_t i = 0; !hint && i < sizeof(hints) / sizeof(*hints); i++)
        if (strstr(why, hints[i].word))
            hint = hints[i].hint;
    len -= hint && len && len < sizeof(why) && why[len - 1] == '.';
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(len < REASON_MAX_BYTES ? len : REASON_MAX_BYTES), why,
             hint ? "; " : "", hint ? hint : "");
    STAILQ_CONCAT(&sent, &n->sent);
    STAILQ_CONCAT(&waiting, &n->waiting);
    n->state = REDIS_OFF;
    n->failures++;
    timer_clear(&n->deadline);
    close_context(n);
    /* From half the pause to one and a half: a fleet must not come back all at once. */
    uint32_t ms = RETRY_FIRST_MS << (n->failures > 8 ? 8 : n->failures - 1);
    if (ms > RETRY_LAST_MS)
        ms = RETRY_LAST_MS;
    ms = ms / 2 + (uint32_t)(hash_random() % ms);
    log_event(LOG_DEBUG, "redis_reconnect_delayed", LOG_NUM("failures", n->failures), LOG_NUM("ms", ms));
    timer_set(&n->attempt, n->options->loop, ms, pause_is_over, n);
    redis_cluster_on_lost(n, text);
    struct redis_command *command;
    while ((command = pop(&sent)))
        command->ended(command, STORE_LOST, NULL, text);
    while ((command = pop(&waiting)))
        command->ended(command, STORE_UNDONE, NULL, text);
}

static void took_too_long(void *owner)
{
    struct redis_connection *n = owner;
    bool connected = n->state == REDIS_GREETING && n->is_connected;
    n->host = n->host_count ? (n->host + 1) % n->host_count : 0;
    redis_connection_give_up(n,
                             connected
                                 ? "it takes the connection and did not answer the greeting within %u ms"
                                 : "it is not reached within %u ms: does a firewall stand between?",
                             CONNECT_MS);
}

void redis_connection_host_failed(struct redis_connection *n, const char *format, ...)
{
    const struct redis_address_host *host = &n->hosts[n->host];
    char sentinel[REDIS_ADDRESS_HOST_MAX_BYTES + 32] = "";
    struct why why;
    va_list args;
    va_start(args, format);
    vsnprintf(why.text, sizeof(why.text), format, args);
    va_end(args);
    if (n->state == REDIS_ASKING)
        snprintf(sentinel, sizeof(sentinel), "sentinel " STR_FMT ":%u ", STR_ARG(host->name), host->port);
    n->host = (n->host + 1) % n->host_count;
    if (++n->tried == n->host_count) {
        redis_connection_give_up(n, "%s%s", sentinel, why.text);
        return;
    }
    close_context(n);
    n->state = REDIS_RESOLVING;
    timer_set(&n->step, n->options->loop, 0, try_host, n);
}

/* It could not be made, or has ended. */
static void lost(struct redis_connection *n, int error, const char *said)
{
    if (n->state == REDIS_ASKING)
        redis_connection_host_failed(n, n->is_connected ? "closed the connection" : "cannot be reached");
    else if (n->state == REDIS_GREETING && n->problem[0]) /* what it said before it closed */
        redis_connection_give_up(n, "%s", n->problem);
    else if (error == REDIS_ERR_OOM)
        redis_connection_give_up(
            n, "what answers there is no Redis: it says what nobody asked for, or too much of it");
    else
        redis_connection_give_up(n, error == REDIS_ERR_PROTOCOL ? "what answers there is no Redis: %s" : "%s",
                                 said);
}

/* ---- commands ---- */

static void watch_deadline(struct redis_connection *n);

static const struct redis_command *oldest(const struct redis_connection *n)
{
    return !STAILQ_EMPTY(&n->sent) ? STAILQ_FIRST(&n->sent) : STAILQ_FIRST(&n->waiting);
}

/* A connection that is still being made has a limit of its own: its handshake may take longer than an answer
 * may, and must not begin again with each command that waits for it. */
static void on_deadline(void *owner)
{
    struct redis_connection *n = owner;
    const struct redis_command *command;
    while ((command = oldest(n)) && (clock_mono_us() - command->began_us) / 1000 >= n->options->timeout_ms) {
        if (n->state >= REDIS_UP) {
            redis_connection_give_up(n, "it did not answer within %u ms", n->options->timeout_ms);
            return;
        }
        struct redis_command *late = pop(&n->waiting);
        late->ended(late, STORE_UNDONE, NULL, "its node is still being connected to");
    }
    watch_deadline(n);
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

/* What was appended is written at the end of this turn, without asking the kernel whether it can be. */
static void write_soon(struct redis_connection *n)
{
    if (n->is_connected)
        descriptor_writable_soon(n->descriptor);
}

static void take_time(struct redis_cluster *r, const struct redis_command *command)
{
    int64_t took = clock_mono_us() - command->began_us;
    r->took_us[r->answers++ % REDIS_MEDIAN_OF] = took < TOOK_MAX_US ? (uint32_t)took : TOOK_MAX_US;
    histogram_add(&r->times, &histogram_fine_bounds, took * 1000);
    if (took > r->worst_us)
        r->worst_us = took;
}

/* Replies come in the order in which they were asked for. */
static void on_reply(struct redis_connection *n, const redisReply *reply)
{
    struct redis_command *command = STAILQ_FIRST(&n->sent);
    if (n->steps_done < n->step_count) {
        redis_handshake_on_reply(n, n->steps[n->steps_done++], reply);
    } else if (!command) {
        lost(n, REDIS_ERR_OOM, NULL);
    } else if (command->skips) {
        command->skips--;
    } else {
        STAILQ_REMOVE_HEAD(&n->sent, next);
        take_time(n->cluster, command);
        if (reply->type == REDIS_REPLY_ERROR) {
            redis_cluster_on_error(n, command, reply->str);
        } else {
            n->failures = 0;
            command->ended(command, STORE_DONE, reply, NULL);
        }
        if (n->state == REDIS_LEAVING && STAILQ_EMPTY(&n->sent))
            redis_connection_give_up(n, "%s", n->problem);
    }
}

static void read_replies(struct redis_connection *n)
{
    redisContext *context = n->context;
    uint32_t closed = n->closed;
    void *reply = NULL;
    int read = redisBufferRead(context);
    while (read == REDIS_OK && (read = redisGetReplyFromReader(context, &reply)) == REDIS_OK && reply) {
        on_reply(n, reply);
        freeReplyObject(reply);
        if (n->closed != closed) /* the reply was its end */
            return;
    }
    if (read != REDIS_OK)
        lost(n, context->err, context->errstr);
    else if (context->reader->len - context->reader->pos > REPLY_MAX_BYTES)
        lost(n, REDIS_ERR_OOM, NULL);
    else if (n->steps_done < n->step_count)
        write_soon(n);
}

/* The server has closed the connection: what it said before tells why. */
static void write_failed(struct redis_connection *n)
{
    uint32_t closed = n->closed;
    struct why how;
    snprintf(how.text, sizeof(how.text), "%s", n->context->errstr);
    n->context->err = 0; /* else nothing is read */
    read_replies(n);
    if (n->closed == closed)
        lost(n, REDIS_ERR_IO, how.text);
}

static void on_ready(void *owner, int fd, bool readable, bool writable)
{
    struct redis_connection *n = owner;
    int error = 0, done = 0;
    if (writable && !n->is_connected) {
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof(error)});
        if (error) {
            lost(n, REDIS_ERR_IO, strerror(error));
            return;
        }
        n->is_connected = true;
    }
    if (writable && redisBufferWrite(n->context, &done) != REDIS_OK) {
        write_failed(n);
        return;
    }
    if (writable)
        descriptor_watch(n->descriptor, true, !done);
    if (readable && n->is_connected)
        read_replies(n);
}

#define HEAD_BYTES 80u /* "*65535\r\n$7\r\nEVALSHA\r\n$40\r\n", the name, and some */

/* What is sent before a command's bytes: how many words it has, and what its script is called here. */
static void put_head(struct redis_connection *n, const struct redis_command *command)
{
    const struct redis_scripts *scripts = n->cluster->scripts;
    bool is_plain = command->script == REDIS_PLAIN_COMMAND;
    struct str verb = is_plain           ? STR_LIT("\r\n")
                      : n->has_functions ? STR_LIT("\r\n$5\r\nFCALL\r\n$40\r\n")
                                         : STR_LIT("\r\n$7\r\nEVALSHA\r\n$40\r\n");
    char head[HEAD_BYTES] = "*", *at = mempcpy(digits_put(head + 1, command->words), verb.at, verb.len);
    if (!is_plain) {
        at = mempcpy(at, (n->has_functions ? scripts->functions : scripts->shas)[command->script],
                     REDIS_SCRIPT_NAME_BYTES);
        at = mempcpy(at, "\r\n", 2);
    }
    redisAppendFormattedCommand(n->context, head, (size_t)(at - head));
}

static void put(struct redis_connection *n, struct redis_command *command)
{
    command->skips = 0;
    if (command->reloads)
        command->skips += redis_handshake_load_scripts(n);
    if (command->asking)
        command->skips += redisAppendCommand(n->context, "ASKING") == REDIS_OK;
    command->asking = command->reloads = false;
    put_head(n, command);
    redisAppendFormattedCommand(n->context, command->bytes.at, command->bytes.len);
    STAILQ_INSERT_TAIL(&n->sent, command, next);
    write_soon(n);
}

bool redis_connection_send(struct redis_connection *n, struct redis_command *command, bool waits)
{
    if (n->state == REDIS_UP && sdslen(n->context->obuf) + command->bytes.len <= UNSENT_MAX_BYTES)
        put(n, command);
    else if (waits && n->state != REDIS_OFF && n->state < REDIS_UP)
        STAILQ_INSERT_TAIL(&n->waiting, command, next);
    else
        return false;
    watch_deadline(n);
    return true;
}

/* ---- connecting ---- */

#if HIREDIS_MAJOR >= 1
typedef size_t item_count;
#else
typedef int item_count;
#endif

static redisReplyObjectFunctions plain, bounded; /* the same for all, set by the first */

/* hiredis allocates a list at once, of any length that a peer names. */
static void *make_list(const redisReadTask *task, item_count count)
{
    return count <= (item_count)REPLY_MAX_ITEMS ? plain.createArray(task, count) : NULL;
}

/* The handshake, or the question to a sentinel, begins with what is asked before the connection is made. */
static bool open_context(struct redis_connection *n, const char *address, uint16_t port)
{
    redisContext *context = port ? redisConnectNonBlock(address, port) : redisConnectUnixNonBlock(address);
    n->is_connected = false;
    n->step_count = n->steps_done = 0;
    n->context = context;
    if (!context || context->err) {
        lost(n, REDIS_ERR_IO, context ? context->errstr : "no memory for a connection");
        return false;
    }
    if (!plain.createArray) {
        plain = bounded = *context->reader->fn;
        bounded.createArray = make_list;
    }
    context->reader->fn = &bounded;
    n->descriptor = descriptor_new(n->options->loop, context->fd, on_ready, n);
    descriptor_watch(n->descriptor, true, true);
    return true;
}

/* The first line of the password file: a renewed password counts from the next connection on. */
static bool read_password(struct redis_connection *n)
{
    const char *file = n->options->password_file;
    memset(n->secret, 0, sizeof(n->secret));
    n->password = n->options->address.password; /* a cluster has one for all nodes */
    if (!file)
        return true;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, n->secret, sizeof(n->secret) - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (len < 0) {
        redis_connection_give_up(n, "its password_file %s cannot be read: %s", file, strerror(error));
        return false;
    }
    n->secret[strcspn(n->secret, "\r\n")] = '\0';
    n->password = str_of(n->secret);
    return true;
}

/* To a numeric address, or to a socket's path if `port` is 0, and begins the handshake. */
static void connect_to(struct redis_connection *n, const char *address, uint16_t port)
{
    close_context(n);
    if (strcmp(n->address, address) != 0 || n->port != port)
        n->address_since_ms = 0;
    snprintf(n->address, sizeof(n->address), "%s", address);
    n->port = port;
    n->state = REDIS_GREETING;
    if (read_password(n) && open_context(n, n->address, port))
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

/* ---- sentinels and names ---- */

static void sentinel_silent(void *owner)
{
    redis_connection_host_failed(owner, "does not answer");
}

/* A host of the address, or the one that a sentinel or the cluster has named. */
static const struct redis_address_host *host_of(const struct redis_connection *n)
{
    return n->own.port ? &n->own : &n->hosts[n->host];
}

static void have_host(struct redis_connection *n, const char *address)
{
    uint16_t port = host_of(n)->port;
    if (n->options->address.kind != REDIS_ADDRESS_SENTINEL || n->own.port) {
        connect_to(n, address, port);
        return;
    }
    n->state = REDIS_ASKING;
    if (!open_context(n, address, port))
        return;
    redis_handshake_ask_sentinel(n);
    timer_set(&n->step, n->options->loop, HOST_MS, sentinel_silent, n);
}

static void look_again(void *owner)
{
    struct redis_connection *n = owner;
    char address[REDIS_NUMERIC_BYTES];
    int state = gai_error(&n->lookup->request);
    bool is_late = clock_mono_us() - n->lookup->began_us > (int64_t)HOST_MS * 1000;
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
        redis_connection_host_failed(n, "the host '" STR_FMT "' is not found: %s", STR_ARG(host_of(n)->name),
                                     state == EAI_INPROGRESS ? "the resolver takes too long"
                                                             : gai_strerror(state));
}

static void resolve(struct redis_connection *n)
{
    unsigned char binary[sizeof(struct in6_addr)];
    struct str name = host_of(n)->name;
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
        redis_connection_host_failed(n, "the host '" STR_FMT "' is not found: the resolver cannot be asked",
                                     STR_ARG(name));
        return;
    }
    n->lookup = lookup;
    timer_set(&n->step, n->options->loop, LOOK_AGAIN_MS, look_again, n);
}

static void try_host(void *owner)
{
    struct redis_connection *n = owner;
    if (n->options->address.kind == REDIS_ADDRESS_SENTINEL)
        n->own.port = 0;
    if (n->host_count)
        resolve(n);
    else
        connect_to(n, n->options->address.path.at, 0);
}

void redis_connection_name(struct redis_connection *n, struct str host, uint16_t port)
{
    memcpy(n->own_name, host.at, host.len);
    n->own_name[host.len] = '\0';
    n->own = (struct redis_address_host){{n->own_name, host.len}, port};
}

void redis_connection_to_master(struct redis_connection *n, struct str host, uint16_t port)
{
    close_context(n);
    redis_connection_name(n, host, port);
    n->state = REDIS_RESOLVING;
    resolve(n);
}

void redis_connection_wake(struct redis_connection *n)
{
    if (n->state != REDIS_OFF || timer_is_set(&n->attempt))
        return;
    n->state = REDIS_RESOLVING;
    n->tried = 0;
    timer_set(&n->attempt, n->options->loop, CONNECT_MS, took_too_long, n);
    timer_set(&n->step, n->options->loop, 0, try_host, n);
}

struct redis_connection *redis_connection_new(struct redis_cluster *cluster,
                                              const struct redis_address_host *hosts, size_t host_count)
{
    struct redis_connection *n = alloc_zeroed(sizeof(*n));
    n->cluster = cluster;
    n->options = cluster->options;
    n->hosts = hosts;
    n->host_count = host_count;
    STAILQ_INIT(&n->sent);
    STAILQ_INIT(&n->waiting);
    return n;
}

void redis_connection_free(struct redis_connection *n)
{
    close_context(n);
    timer_clear(&n->deadline);
    timer_clear(&n->attempt);
    explicit_bzero(n->secret, sizeof(n->secret));
    free(n);
}
