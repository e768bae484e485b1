/*
 * A client from accept to close: who it is by the kernel's word, whether it
 * is welcome, and what happens to its lines.
 */
#include "catalog/client_tools.h"
#include "server/server_internal.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "json/parse.h"
#include "server/mcp_keys.h"
#include "server/request.h"
#include "server/subscriptions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- lines ---------------------------------------------------------------- */

static void on_line(void *owner, struct str line)
{
    request_serve(owner, line);
}

static void on_too_long(void *owner, struct str head, bool for_memory)
{
    struct client *client = owner;
    const struct config *config = server_config(client->server);
    char message[256];
    if (for_memory)
        snprintf(message, sizeof(message),
                 "the message was given up: all connections together hold more than limits.memory (%zu "
                 "bytes); send "
                 "it again later, or raise limits.memory in the configuration",
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
}

static void on_eof(void *owner, size_t half_line)
{
    struct client *client = owner;
    if (half_line)
        log_event(LOG_INFO, "partial_line_dropped", LOG_TEXT("connection", client->name),
                  LOG_NUM("bytes", half_line));
    client->said_all = true;
    client_close_if_done(client);
}

void client_close_if_done(struct client *client)
{
    if (client->said_all && !client->pending)
        conn_finish(client->conn);
}

/* ---- from accept … -------------------------------------------------------- */

static void on_gone(void *owner)
{
    struct client *client = owner;
    struct server *server = client->server;
    while (client->pending)
        request_cancel(client->pending);
    subscriptions_clear(client);
    client_tools_free(client->client_tools);
    *(client->previous ? &client->previous->next : &server->clients) = client->next;
    if (client->next)
        client->next->previous = client->previous;
    server->client_count--;
    log_event(LOG_DEBUG, "client_disconnected", LOG_TEXT("connection", client->name));
    free(client);
}

static const struct conn_callbacks hooks = {on_line, on_too_long, on_eof, on_gone, NULL, NULL};

/* One line that says why, then the end. What it may have sent already is read away: closing with unread bytes
 * would reset the connection under the answer. */
static void refuse(int fd, enum rpc_error error, const char *message)
{
    char sink[4096];
    struct buf line = {0};
    jsonrpc_write_error(&line, STR_NONE, error, str_of(message), STR_NONE);
    (void)!send(fd, line.at, line.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 16 && recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0; i++)
        continue;
    buf_clear(&line);
}

void client_refuse_no_files(int fd)
{
    refuse(fd, RPC_FILES,
           "the daemon has no file descriptor left for another connection: raise LimitNOFILE= of its service "
           "(ulimit "
           "-n), or lower limits.connections");
}

static bool is_full(const struct server *server)
{
    size_t most = server_config(server)->limits.connections;
    if (server->connections_max < most)
        most = server->connections_max;
    return server->client_count >= most && server->client_count - loop_closed_peers(server->loop) >= most;
}

/* OK, or said why not. */
static enum err check_welcome(const struct server *server, int fd, const struct peer *peer)
{
    const struct config *config = server_config(server);
    char message[256];
    if (is_full(server)) {
        snprintf(message, sizeof(message),
                 "%zu connections are open, the most that %s: close one, or raise it", server->client_count,
                 server->connections_max < config->limits.connections
                     ? "the limit of open files allows (LimitNOFILE= of the service, ulimit -Hn)"
                     : "limits.connections in the configuration allows");
        refuse(fd, RPC_CONNECTIONS, message);
        log_event(LOG_WARN, "connection_refused", LOG_TEXT("why", "limits.connections"),
                  LOG_NUM("open", server->client_count));
        return ERR_LIMIT;
    }
    if (!peer_may_connect(config, peer)) {
        snprintf(message, sizeof(message),
                 "user %s (uid %u) is not in the daemon's allow list: ask its operator for a rule in 'allow'",
                 peer->user, (unsigned)peer->uid);
        refuse(fd, RPC_NOT_WELCOME, message);
        log_event(LOG_WARN, "connection_refused", LOG_TEXT("why", "allow"), LOG_TEXT("user", peer->user));
        return ERR_CLOSED;
    }
    return OK;
}

static enum err describe(int fd, struct peer *peer)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        return ERR_IO;
    peer_init(peer, who.uid, who.gid, who.pid);
    return OK;
}

static void link_client(struct server *server, struct client *client)
{
    client->next = server->clients;
    if (client->next)
        client->next->previous = client;
    server->clients = client;
    server->client_count++;
    server->accepted++;
}

void client_accept(struct server *server, int fd)
{
    struct peer peer;
    if (describe(fd, &peer) != OK || check_welcome(server, fd, &peer) != OK) {
        server->refused++;
        close(fd);
        return;
    }
    struct client *client = calloc(1, sizeof(*client));
    if (!client)
        abort();
    client->server = server;
    client->peer = peer;
    client->log_level = MCP_LOG_LEVEL_INFO;
    snprintf(client->name, sizeof(client->name), "c%" PRIu64 "-%016" PRIx64, server->accepted + 1,
             hash_random());
    link_client(server, client);
    client->conn = conn_new(server->loop, fd, server_config(server)->limits.message, &hooks, client);
    log_event(LOG_DEBUG, "client_connected", LOG_TEXT("connection", client->name), LOG_TEXT("user", peer.user),
              LOG_NUM("pid", peer.pid));
}

/* ---- … to close ----------------------------------------------------------- */

void client_apply_config(struct client *client)
{
    const struct config *config = server_config(client->server);
    conn_limit_line(client->conn, config->limits.message);
    if (peer_may_connect(config, &client->peer))
        return;
    jsonrpc_write_error(
        conn_out(client->conn), STR_NONE, RPC_NOT_WELCOME,
        str_of("this user is no longer in the daemon's allow list: ask its operator for a rule in "
               "'allow'"),
        STR_NONE);
    conn_finish(client->conn);
}

void client_drain(struct client *client)
{
    conn_stop_reading(client->conn);
    subscriptions_end(client);
    client_close_if_done(client);
}
