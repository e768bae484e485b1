/*
 * An MCP client: one server over one transport, its handshake, its tool list,
 * its restarts (see upstream.h), and many calls at once. It trusts a server in
 * nothing but the response to its own call.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_CLIENT_H
#define TOOLGATE_UPSTREAM_MCP_MCP_CLIENT_H

#include "upstream/upstream_call.h"

struct mcp_client;

#define MCP_BACKOFF_FIRST_MS 200u   /* before a restart, doubled each time … */
#define MCP_BACKOFF_MAX_MS   10000u /* … up to this, with a quarter of jitter */
#define MCP_STEADY_MS        5000u  /* being up for this long resets the failures in a row */
#define MCP_PROGRESS_TIMES   5u     /* progress renews the timeout, up to this many times of it in all */
#define MCP_CALLS_MAX        4096u  /* pending for one server */
#define MCP_PAGES_MAX        64u    /* of a list */
#define MCP_LIST_FRESH_MS    2000u  /* a list of a server that reports no changes */
#define MCP_LIST_SETTLE_MS   50u    /* from list_changed to the next tools/list */

/* What it reports to its upstream (upstream.c): each from the loop's turn, never inside an mcp_client_
 * function; mcp_client_free is not allowed inside. */
void upstream_listed(struct upstream *upstream, enum upstream_list list); /* mcp_client_list has changed */
void upstream_updated(struct upstream *upstream,
                      struct str uri);                  /* a resource has; it is the server's text */
void upstream_state_changed(struct upstream *upstream); /* mcp_client_view has changed */
void upstream_stopped(struct upstream *upstream); /* mcp_client_stop is done: no call, no process is left */

/* Borrows `spec`, whose kind selects the transport. Starts nothing yet. */
struct mcp_client *mcp_client_new(struct loop *loop, const struct upstream_spec *spec,
                                  struct upstream *upstream);

/* Starts the server unless it is up or starting; one that waits or is down is retried at once. */
void mcp_client_start(struct mcp_client *client);
/* Closes the server, once it has no calls and will get none. upstream_stopped follows in any case. */
void mcp_client_stop(struct mcp_client *client);
/* At once: drops pending calls without its `finish` and kills the process. */
void mcp_client_free(struct mcp_client *client);

/* Borrowed; NULL: not known yet. Remains while the server is down. */
struct tool_list *mcp_client_list(const struct mcp_client *client, enum upstream_list list);

uint32_t mcp_client_subscriptions(const struct mcp_client *client);
/* Until as many unsubscriptions, through restarts. NULL, or why not, as the end of "the server 'x' …". */
const char *mcp_client_subscribe(struct mcp_client *client, struct str uri);
void mcp_client_unsubscribe(struct mcp_client *client, struct str uri);
/* Those of the client that this one replaces, which is not up yet. */
void mcp_client_inherit(struct mcp_client *client, const struct mcp_client *before);

/* The lowest level of log messages (0 debug … 7 emergency) that it sends; -1: as it likes. */
void mcp_client_set_log_level(struct mcp_client *client, int level);

/* Lists again if the server is up, reports no changes, and its list is older than MCP_LIST_FRESH_MS; ever
 * less often while it goes on changing. */
void mcp_lists_refresh(struct mcp_client *client, enum upstream_list list);

enum mcp_client_state { MCP_STOPPED, MCP_STARTING, MCP_UP, MCP_WAITING, MCP_DOWN, MCP_STOPPING };

struct mcp_client_status {
    const char *name;       /* of the state */
    bool has_started;       /* was up once, or has failed once: a loading daemon does not wait for it */
    struct str error;       /* why it is not up, or was not; may be empty. Valid until it changes */
    struct str last_stderr; /* what its process wrote last, unless it is up: data; may be empty. Likewise */
    uint32_t failures;      /* starts and exits in a row */
    int64_t next_ms;        /* until the next start; -1: none is planned */
    uint32_t queued;        /* calls not sent yet */
    uint64_t ignored;       /* messages that could not be used */
    uint64_t starts;
    int64_t pid;        /* 0: there is no process */
    struct str version; /* of the protocol, as agreed; may be empty */
    struct str server;  /* its name and version, data; may be empty */
};
void mcp_client_view(const struct mcp_client *client, struct mcp_client_status *status);

/* The runner of TARGET_MCP, see upstream_call.h. Starts the server if necessary; the call waits for that
 * within its own timeout. */
enum upstream_call_state mcp_client_call(struct mcp_client *client, struct upstream_call *call);

#endif
