/*
 * A client from accept to close: its identity by the kernel's peer
 * credentials, whether it may connect, and its lines.
 */
#include "base/alloc.h"
#include "server/served.h"
#include "server/server_internal.h"

#include "base/hash.h"
#include "base/log.h"
#include "catalog/client_tools.h"
#include "json/parse.h"
#include "server/listener.h"
#include "server/request.h"
#include "server/method_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* A new connection of a daemon that stops has waited for its first line. */
static void mark_heard(struct client *client)
{
    bool first = !client->heard;
    client->heard = true;
    if (first && client->server->draining)
        client_drain(client);
}

static void on_line(void *owner, struct str line)
{
    request_serve(owner, line);
    mark_heard(owner);
}

static void on_too_long(void *owner, struct str head, bool for_memory)
{
    struct client *client = owner;
    const struct config *config = server_config(client->server);
    char message[256];
    if (for_memory)
        snprintf(
            message, sizeof(message),
            "message dropped: all connections together hold more than limits.memory (%zu bytes), or than the "
            "daemon's address space (ulimit -v) has room for; send it again later, or raise the limit",
            config->limits.memory);
    else
        snprintf(message, sizeof(message),
                 "the message is longer than %u bytes (limits.message): send less in one message, or raise "
                 "limits.message in the configuration",
                 config->limits.message);
    log_event(LOG_WARN, for_memory ? "line_dropped" : "line_too_long", LOG_TEXT("connection", client->name),
              LOG_TEXT("user", client->peer.user));
    jsonrpc_write_error(conn_out(client->conn), json_recover_id(head),
                        for_memory ? RPC_MEMORY : RPC_MESSAGE_TOO_LONG, str_of(message), STR_NONE);
    mark_heard(client);
}

/* The last line of `printf '{…}' | …` has no end. An object that was cut off does not end in a brace, or is
 * no JSON. */
static void on_eof(void *owner, struct str rest)
{
    struct client *client = owner;
    struct str line = str_trim(rest);
    if (line.len && (line.at[line.len - 1] == '}' || line.at[line.len - 1] == ']'))
        on_line(client, line);
    else if (line.len)
        log_event(LOG_INFO, "partial_line_dropped", LOG_TEXT("connection", client->name),
                  LOG_NUM("bytes", line.len));
    client->at_eof = true;
    elicitation_end(client);
    client_close_if_done(client);
}

static void on_gone(void *owner)
{
    struct client *client = owner;
    while (!LIST_EMPTY(&client->pending))
        request_cancel(LIST_FIRST(&client->pending));
    subscriptions_clear(client);
    resource_links_free(client->resource_links);
    client_tools_free(client->client_tools);
    LIST_REMOVE(client, link);
    if (!--client->user->connections) {
        LIST_REMOVE(client->user, link);
        free(client->user);
    }
    client->server->client_count--;
    log_event(LOG_DEBUG, "client_disconnected", LOG_TEXT("connection", client->name));
    free(client);
}

static const struct conn_callbacks callbacks = {on_line, on_too_long, on_eof, on_gone, NULL, NULL};

/* Sends one error, and logs one line a second of each user's, which counts the others. `peer` NULL: it is not
 * known. */
static void refuse(struct server *server, int fd, const struct peer *peer, const char *why,
                   enum rpc_error error, const char *message)
{
    char sink[4096];
    struct buf line = {0};
    uint64_t held;
    server->refused++;
    if (rate_limit_allow(&server->refusals[peer ? peer->uid % SERVER_REFUSAL_LIMITS : 0], 1, &held))
        log_event(LOG_WARN, "connection_refused", LOG_TEXT("why", why),
                  LOG_TEXT("user", peer ? peer->user : NULL), LOG_NUM("open", server->client_count),
                  LOG_NUM("not_logged", held));
    jsonrpc_write_error(&line, STR_NONE, error, str_of(message), STR_NONE);
    (void)!send(fd, line.at, line.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    /* A close with unread bytes would reset the connection, and the error would be lost. */
    for (int i = 0; i < 16 && recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0; i++)
        continue;
    buf_clear(&line);
}

static void on_no_files(void *owner, int fd)
{
    refuse(owner, fd, NULL, "no file descriptor left", RPC_FILES,
           "the daemon has no file descriptor left for another connection: raise LimitNOFILE= of its service "
           "(ulimit -n), or lower limits.connections");
}

/* False: refused. */
static bool admit(struct server *server, int fd, const struct peer *peer)
{
    const struct config *config = server_config(server);
    size_t configured = config->limits.connections, limit = server->connections_max;
    bool by_files = limit < configured;
    char message[256];
    if (!by_files)
        limit = configured;
    if (server->client_count >= limit && server->client_count - loop_closed_peers(server->loop) >= limit) {
        snprintf(message, sizeof(message),
                 "%zu connections are open, the most that %s: close one, or raise it", server->client_count,
                 by_files ? "the limit of open files allows (LimitNOFILE= of the service, ulimit -Hn)"
                          : "limits.connections in the configuration allows");
        refuse(server, fd, peer, "limits.connections", RPC_CONNECTIONS, message);
        return false;
    }
    if (!peer_may_connect(config, peer)) {
        snprintf(message, sizeof(message),
                 "user %s (uid %u) is not in the daemon's allow list: ask its operator for a rule in 'allow'",
                 peer->user, (unsigned)peer->uid);
        refuse(server, fd, peer, "allow", RPC_NOT_WELCOME, message);
        return false;
    }
    return true;
}

static void on_accepted(void *owner, int fd)
{
    struct server *server = owner;
    struct peer peer;
    struct ucred credentials;
    socklen_t size = sizeof(credentials);
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
    if (known)
        peer_init(&peer, credentials.uid, credentials.gid, credentials.pid);
    server->refused += !known;
    if (!known || !admit(server, fd, &peer)) {
        close(fd);
        return;
    }
    server->gate.many_users |= peer.uid && server->first_uid && server->first_uid != peer.uid;
    server->first_uid = server->first_uid ? server->first_uid : peer.uid;
    struct user_calls *user;
    LIST_FOREACH (user, &server->users, link)
        if (user->uid == peer.uid)
            break;
    if (!user) {
        user = alloc_zeroed(sizeof(*user));
        user->uid = peer.uid;
        LIST_INSERT_HEAD(&server->users, user, link);
    }
    user->connections++;
    struct client *client = alloc_zeroed(sizeof(*client));
    client->server = server;
    client->peer = peer;
    client->user = user;
    client->log_level = MCP_LOG_LEVEL_INFO;
    client->asked_level = MCP_LOG_LEVEL_NONE;
    server->client_count++;
    snprintf(client->name, sizeof(client->name), "c%" PRIu64 "-%016" PRIx64, ++server->accepted,
             hash_random());
    LIST_INSERT_HEAD(&server->clients, client, link);
    client->conn = conn_new(server->loop, fd, fd, server_config(server)->limits.message, &callbacks, client);
    log_event(LOG_DEBUG, "client_connected", LOG_TEXT("connection", client->name),
              LOG_TEXT("user", peer.user), LOG_NUM("pid", peer.pid));
}

const struct listener_hooks client_listener_hooks = {on_accepted, on_no_files};

void client_apply_config(struct client *client)
{
    const struct config *config = server_config(client->server);
    conn_limit_line(client->conn, config->limits.message);
    subscriptions_apply_config(client);
    if (peer_may_connect(config, &client->peer))
        return;
    jsonrpc_write_error(
        conn_out(client->conn), STR_NONE, RPC_NOT_WELCOME,
        str_of("this user is no longer in the daemon's allow list: ask its operator for a rule in 'allow'"),
        STR_NONE);
    conn_finish(client->conn);
}

void client_drain(struct client *client)
{
    conn_stop_reading(client->conn);
    subscriptions_end(client);
    client_close_if_done(client);
}

void client_give_up(struct client *client)
{
    struct request *r;
    while ((r = LIST_FIRST(&client->pending))) {
        reply_error(
            r, RPC_STOPPING,
            "the daemon stops, and this request did not end within %u s: it may have taken effect, so look "
            "before you repeat it",
            SERVER_DRAIN_MS / 1000);
        request_cancel(r);
    }
}
