/*
 * What the files of this room share: the server and its clients, open to
 * them and to nobody else. A client is the protocol's side of a connection.
 */
#ifndef TOOLGATE_SERVER_SERVER_INTERNAL_H
#define TOOLGATE_SERVER_SERVER_INTERNAL_H

#include "catalog/generation.h"
#include "gate/call.h"
#include "gate/metrics.h"
#include "io/conn.h"
#include "server/server.h"

struct client;
struct event;
struct listener;
struct quarantine;
struct reloader;
struct request;
struct upstream_manager;
struct subscription;
struct watcher;

#define SERVER_IN_FLIGHT_FACTOR 64u      /* calls in flight in all: this many times limits.in_flight */
#define SERVER_LINE_MAX_BYTES   9437184u /* to a client: at 10 MiB the official SDK closes the connection */
#define SERVER_UNREAD_SHARES    16u      /* one client leaves unread at most this part of limits.memory */
#define SERVER_UNREAD_FREE      65536u   /* an answer of so many bytes is sent all the same */

struct server {
    const struct config_sources *sources;
    struct loop *loop;
    struct listener *listener;
    struct gate gate;
    struct metrics metrics;
    struct client *clients;
    size_t client_count, connections_max;
    size_t pending, pending_bytes; /* requests that wait for something, and the memory they hold */
    uint64_t accepted, refused;    /* connections since the start */
    int64_t started_ms;
    struct reloader *reloader;
    struct quarantine *quarantine; /* NULL until a configuration says where it is */
    struct watcher *watcher;
    struct upstream_manager *offers; /* NULL until a configuration names upstreams */
    struct event *on_term, *on_int, *on_hup, *watchdog, *drain_over;
    bool serving, draining, finished;
};

static inline const struct config *server_config(const struct server *server)
{
    return generation_config(server->gate.generation);
}

struct client {
    struct server *server;
    struct conn *conn;
    struct client *next, *previous;
    struct peer peer;
    char name[40]; /* of the connection, unlike any other's on any worker: names its anonymous session */
    struct client_tools *client_tools; /* NULL until something is registered */
    struct request *pending;
    size_t pending_count;
    struct subscription *subscriptions;
    size_t subscription_count;
    bool hears_changes; /* has shaken hands or listed tools in the legacy way: list_changed is pushed */
    int log_level;      /* legacy: the least that notifications/message are sent for */
    bool said_all;      /* end of file was read: closed once nothing is pending */
};

/* ---- client.c ---- */

void client_accept(struct server *server, int fd);
void client_refuse_no_files(int fd);
/* Closes it where the peer has said all and everything is answered. */
void client_close_if_done(struct client *client);
/* After a reload: limits, and peers who are not welcome any more. */
void client_apply_config(struct client *client);
/* The daemon stops: no more requests, closed once what is pending is answered. */
void client_drain(struct client *client);

#endif
