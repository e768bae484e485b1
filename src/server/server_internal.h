/*
 * What the files of src/server share: the server and its clients. A client is
 * the protocol's side of a connection (io/conn.h is the byte side).
 */
#ifndef TOOLGATE_SERVER_SERVER_INTERNAL_H
#define TOOLGATE_SERVER_SERVER_INTERNAL_H

#include "base/rate_limit.h"
#include "catalog/generation.h"
#include "gate/busy.h"
#include "gate/call.h"
#include "gate/metrics.h"
#include "policy/peer.h"
#include "io/conn.h"
#include "io/timer.h"
#include "server/problems.h"
#include "server/server.h"

#include <sys/queue.h>
#include <unistd.h>

#define SERVER_LINE_MAX_BYTES 9437184u /* to a client: at 10 MiB the official SDK closes the connection */
#define SERVER_UNREAD_SHARES  16u      /* unread replies of one client: limits.memory divided by this */
#define SERVER_UNREAD_FREE    65536u   /* replies up to this size are sent although others are unread */

#define SERVER_SIGNALS        4u
#define SERVER_WATCH_LISTS    1024u /* by the hash of the URI */
#define SERVER_REFUSAL_LIMITS 64u   /* users whose refused connections are logged apart */

struct server_lists {        /* prompts, resources and templates for clients: served.c */
    struct served *now;      /* NULL: not made yet */
    struct served *before;   /* for clients in the middle of its pages */
    uint32_t number;         /* of `now` */
    uint64_t warned;         /* hash of the warnings that were logged */
    struct timer due;        /* set: the lists will be made again */
    struct rate_limit lines; /* in the log, about what servers list and answer */
};

struct server {
    const struct config_sources *sources;
    struct loop *loop;
    struct listener *listener;
    struct gate gate;
    uid_t first_uid; /* of those that connected, root aside; 0: none has */
    struct metrics metrics;
    struct busy busy[2];                 /* of calls, of dry runs */
    struct span_exporter *spans;         /* NULL: never configured */
    struct http_endpoint *http_endpoint; /* NULL: none is configured */
    LIST_HEAD(, client) clients;
    LIST_HEAD(, user_calls) users;
    LIST_HEAD(, watched_resource) watched[SERVER_WATCH_LISTS]; /* of all clients */
    size_t client_count, connections_max;
    size_t pending, pending_bytes;                     /* requests without a reply yet, and their memory */
    uint64_t accepted, refused;                        /* connections since the start */
    struct rate_limit refusals[SERVER_REFUSAL_LIMITS]; /* of log lines, by the uid that is refused */
    int64_t started_ms, generation_ms;                 /* since when it runs, and serves this generation */
    int64_t started_boot_ns;                           /* the start on a clock that is never set */
    struct problem_notes problems;
    struct reloader *reloader;
    struct server_lists lists;
    TAILQ_HEAD(, tools_list) tools_lists; /* of tool_methods.c: those that wait for `tools_list` */
    struct tools_list *tools_list;        /* has a tool that is written in part, or is next; NULL: none */
    struct pins *pins;                    /* NULL: none are kept so far */
    struct arena *pins_arena;
    struct quarantine *quarantine;         /* NULL until a configuration is loaded */
    struct page_decisions *page_decisions; /* NULL: no page */
    struct event *signals[SERVER_SIGNALS], *watchdog;
    struct timer drain_new, drain_limit, shadow_timer, memory_timer, idle_timer;
    int64_t shadow_day; /* since 1970: the last one for which the log was written */
    bool serving, reloading, draining, signalled, finished;
};

static inline const struct config *server_config(const struct server *server)
{
    return &server->gate.generation->config;
}

/* The requests without a reply of all connections of one user. */
struct user_calls {
    LIST_ENTRY(user_calls) link;
    uid_t uid;
    size_t connections, pending;
    LIST_HEAD(, watch_count) watches; /* of subscriptions.c */
};

enum list_changed { LIST_CHANGED_TOOLS, LIST_CHANGED_PROMPTS, LIST_CHANGED_RESOURCES, LIST_CHANGED_COUNT };

struct client {
    LIST_ENTRY(client) link;
    struct server *server;
    struct conn *conn;
    struct peer peer;
    struct user_calls *user;
    char name[40];                     /* unique among all workers: its anonymous session has this name */
    struct client_tools *client_tools; /* NULL until it registers a tool */
    LIST_HEAD(, request) pending;
    size_t pending_count;
    struct request *list_writing; /* of tool_methods.c; NULL: none */
    bool in_batch;                /* a message of a batch is served, whose next one follows at once */
    LIST_HEAD(, subscription) subscriptions;
    size_t subscription_count;
    LIST_HEAD(, watched_resource) watched;
    size_t watched_count;
    struct resource_links *resource_links; /* that its results have named */
    struct unreported unreported;
    const char *protocol;              /* legacy: the version that initialize agreed on; NULL: none */
    bool wants_list_changed;           /* legacy: it sent initialize, or asked for a list */
    uint64_t told[LIST_CHANGED_COUNT]; /* the end of the last such notification in its output */
    int log_level;                     /* legacy: the lowest level of notifications/message that it gets */
    int asked_level;                   /* modern: the lowest that a request has asked for */
    bool elicits;                      /* legacy: initialize declared elicitation by forms */
    bool heard;                        /* it has sent a line */
    bool at_eof;                       /* closed once no request is pending */
};

/* Closes it if the peer sends no more and every request has its reply. */
static inline void client_close_if_done(struct client *client)
{
    if (client->at_eof && LIST_EMPTY(&client->pending))
        conn_finish(client->conn);
}

/* By the kernel's peer credentials and `operators`. */
static inline bool client_is_operator(const struct client *client)
{
    return peer_is_operator(server_config(client->server), &client->peer);
}

/* Whether the tool exists for this client, by the rules of the configuration. */
static inline bool client_may_call(const struct client *client, struct str tool)
{
    return peer_may_call(server_config(client->server), &client->peer, tool);
}

/* ---- server.c ---- */

/* Calls are timed while the metrics endpoint or the decision log reads the times. */
void server_time_calls(struct server *server);
/* The decision log and the exporter of spans follow the configuration. Fails only at the first time. */
enum err server_apply_records(struct server *server, const struct config *config, struct why *why);
/* Turns the loop until `done`, or for `ms`. False: it took too long. */
bool server_turn_until(struct server *server, bool (*done)(struct server *server), uint32_t ms);

/* ---- client.c ---- */

/* For listener_new; the owner is the server. */
extern const struct listener_hooks client_listener_hooks;
/* After a reload: new limits; a peer that is no longer allowed is disconnected. */
void client_apply_config(struct client *client);
/* The daemon stops: serves what the client has sent already, and closes once all of it has its replies. */
void client_drain(struct client *client);
/* The time for that is over: each request that is left gets an error. */
void client_give_up(struct client *client);

#endif
