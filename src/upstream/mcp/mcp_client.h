/*
 * One MCP server as we speak to it, over whatever carries the messages
 * (upstream/mcp/mcp_transport.h): greeted, asked for its tools, kept alive, called by
 * many at once. What it sends is believed in nothing but its own answer to
 * its own call.
 *
 *   stopped ─▶ starting ─▶ up ─▶ (dies) ─▶ waiting ─▶ starting …   UPSTREAM_DOWN_AFTER in a row ─▶ down
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_CLIENT_H
#define TOOLGATE_UPSTREAM_MCP_MCP_CLIENT_H

#include "upstream/upstream_call.h"
#include "upstream/mcp/mcp_transport.h"

struct mcp_client;

#define MCP_BACKOFF_FIRST_MS 200u   /* before it is started again, doubled each time … */
#define MCP_BACKOFF_MAX_MS   10000u /* … up to this; a quarter of it is by chance */
#define MCP_STEADY_MS        5000u  /* one that was up for this long has not failed "in a row" */
#define MCP_PROGRESS_TIMES   5u     /* progress sets a call's time anew, up to this many times all in all */
#define MCP_CALLS_MAX        4096u  /* that one upstream has to answer or that wait for it */
#define MCP_PAGES_MAX        64u    /* of tools/list */
#define MCP_LIST_SETTLE_MS   50u    /* of quiet after list_changed before it is asked for again */

/* Each fires from the loop's turn, never inside an mcp_ function; mcp_client_free is not for inside of them.
 */
struct mcp_client_hooks {
    void (*changed)(void *owner); /* mcp_client_tools is another than before */
    void (*state)(void *owner);   /* mcp_client_view says something else */
    void (*stopped)(void *owner); /* mcp_client_stop is done: no call is left, the process is gone */
};

/* `spec` is borrowed for as long as it lives. Nothing is started yet. The kind of the spec says what carries
 * the messages. */
struct mcp_client *mcp_client_new(struct loop *loop, const struct upstream_spec *spec,
                                  const struct mcp_client_hooks *hooks, void *owner);

/* Starts it, if it isn't up or starting; one that waits or is down is tried at once. */
void mcp_client_start(struct mcp_client *mcp);
/* In order: takes no more calls, answers those that it has, then ends it. `stopped` fires, also where nothing
 * ran.
 */
void mcp_client_stop(struct mcp_client *mcp);
/* At once: calls that are pending are forgotten (no upstream_call_finish), the process is killed. */
void mcp_client_free(struct mcp_client *mcp);

/* What it offers, borrowed; NULL: not known yet. Stays while it is down. */
struct tool_list *mcp_client_tools(const struct mcp_client *mcp);

enum mcp_client_state { MCP_STOPPED, MCP_STARTING, MCP_UP, MCP_WAITING, MCP_DOWN, MCP_STOPPING };

struct mcp_client_status {
    enum mcp_client_state state;
    const char *name; /* of the state, for status */
    bool
        has_started; /* was up once, or has failed once, since it was made: its tools needn't be waited for */
    struct str
        error; /* why it is not up, or was not at last; empty: nothing to tell. Valid until it changes */
    uint32_t failures; /* starts and deaths in a row */
    int64_t next_ms;   /* until it is tried again; -1: it is not waiting for that */
    uint32_t calls;    /* under way there */
    uint32_t queued;   /* waiting for it */
    uint64_t ignored;  /* messages from it that nobody could use */
    uint64_t starts;
    int64_t pid;        /* of its process; 0: there is none */
    struct str version; /* of the protocol, agreed upon; empty: none yet */
    struct str server;  /* its own name and version, data; may be empty */
};
void mcp_client_view(const struct mcp_client *mcp, struct mcp_client_status *view);

/*
 * One call: what `mcp_run` (upstream_call.h) does once it knows which server. UPSTREAM_DONE with an answer
 * where it is down or has too many already; otherwise run->stop is set and upstream_call_finish called once,
 * from the loop's turn. A server that isn't up is started, the call waits for it within its own time.
 */
enum upstream_call_state mcp_client_call(struct mcp_client *mcp, struct upstream_call *run);

#endif
