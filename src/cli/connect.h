/*
 * The bridge of `toolgate connect`: a client's stdio on one side, the daemon's socket on the other. The
 * client sees one server that stays, although daemons come and go behind it:
 *
 *   away ──connect──▶ greeting ──the daemon answers──▶ open ──the connection ends──▶ away
 *
 * Away and greeting: requests wait, bounded in time, number and bytes. Open: a request is sent, then in
 * flight until its answer. When the connection ends, each request in flight gets its one answer from the
 * bridge. connect.c has the connection and the loop, connect_lines.c what a line means.
 */
#ifndef TOOLGATE_CLI_CONNECT_H
#define TOOLGATE_CLI_CONNECT_H

#include "base/buf.h"
#include "base/hash.h"
#include "json/value.h"

#include <stdbool.h>
#include <sys/queue.h>

#define BRIDGE_RETRY_FIRST_MS 20u       /* after the connection ended; doubles up to the next line */
#define BRIDGE_RETRY_MAX_MS   1000u     /* between two attempts to connect */
#define BRIDGE_WAITING_MAX    1024u     /* requests that wait for a daemon */
#define BRIDGE_WAITING_BYTES  16777216u /* of them */
#define BRIDGE_IN_FLIGHT_MAX  4096u     /* above this, stdin is not read until answers arrive */
#define BRIDGE_PENDING_BYTES  262144u   /* above this, stdin is not read until the daemon has read some */
#define BRIDGE_KEEP_MAX_BYTES 65536u    /* of a request that is sent again to the next daemon */
#define BRIDGE_REPEATS_MAX    3u        /* of a request: it may be what ends the daemon */
#define BRIDGE_SUBSCRIPTIONS  64u       /* of the modern era, sent again to the next daemon */
#define BRIDGE_WATCHED_MAX    256u      /* resources/subscribe of the legacy era, sent again, too */
#define BRIDGE_QUESTIONS_MAX  256u      /* of the daemon to the client, unanswered; the oldest is cancelled */
#define BRIDGE_LIST_NODES     10000000u /* thousands of tools may be one reply */
#define BRIDGE_LINE_MAX_BYTES 1073741824u /* the maximum of limits.message */

/* A message that the bridge keeps. Without an id it is for the daemon of now only: a notification, or the
 * answer to its question. */
struct tracked {
    TAILQ_ENTRY(tracked) link;
    struct tracked_list *list; /* NULL: in none */
    char *line;                /* with its newline; NULL once sent, unless it `repeats` */
    size_t line_len, sent;
    int64_t until_us;
    struct str id, key, tool; /* as sent; canonical; of tools/call */
    unsigned repeats;         /* how often it may still be sent again */
    bool is_call, reads, modern, lists, initializes;
    bool tools, acknowledged; /* a subscription */
};

struct tracked_list {
    TAILQ_HEAD(tracked_head, tracked) all;
    size_t count, bytes; /* bytes: of their lines when they were added */
};

enum bridge_state { BRIDGE_AWAY, BRIDGE_GREETING, BRIDGE_OPEN };

struct bridge {
    const char *path;
    struct str session;        /* a JSON string; empty: requests pass unchanged */
    const char *servers;       /* the file of mcp_config whose servers alone the client gets; NULL: all */
    struct lua_State *starter; /* has an option `start`; NULL: somebody else starts daemons */
    bool started;              /* it was called in this outage */
    bool owns_session;         /* no other process has it: it ends with the client */
    int64_t wait_us;
    enum bridge_state state;
    int socket;
    int64_t retry_at_us;
    unsigned retry_ms, epoch; /* epoch: connections that have ended */
    bool was_open, outage_told, client_ended, shut_down;
    bool watch_failed;                   /* this daemon has refused a subscription to a resource */
    bool has_failed;                     /* a request got its answer from the bridge */
    struct buf from_daemon, from_client; /* up to an incomplete line */
    size_t daemon_seen, client_seen;     /* bytes of them that hold no newline */
    struct buf to_client, greeting;      /* greeting: for the daemon, before all requests */
    struct tracked_list waiting, sent;   /* requests; the first that waits may be partly sent */
    struct tracked_list subscriptions, questions;
    struct tracked_list watched; /* resources/subscribe, with the URI as their `tool` */
    char *initialize, *level; /* the client's own lines, for the next daemon; NULL: not answered, or none */
    bool has_confirmed;
    bool batches;                        /* it speaks 2025-03-26, which has them */
    bool lists_prompts, lists_resources; /* a legacy client that has asked for them */
    /* What tools/list said last: */
    char *tools_request; /* the client's, sent again to the next daemon; NULL: it never asked */
    bool tools_modern;
    struct hash128 tools_fingerprint;
    struct arena *tools_arena;
    struct map *readers; /* the tools with readOnlyHint, in tools_arena */
};

/* ---- connect.c ---- */

/* `id` NULL: none. `line` without its newline; STR_NONE: none. Copies all. */
struct tracked *tracked_new(struct str line, const struct json *id, struct str tool);
void tracked_add(struct tracked_list *list, struct tracked *t);
void tracked_end(struct tracked *t); /* takes it out of its list, if it is in one, and frees it */

/* The oldest with this id, or NULL. The canonical form: 1 and 1.0 are one id. */
struct tracked *tracked_find(const struct tracked_list *list, const struct json *id);

void bridge_tell(struct bridge *bridge, const char *text); /* once an outage, on stderr */

/* Whether as much waits as may wait, with `more` bytes. */
bool bridge_is_full(const struct bridge *bridge, size_t more);

/* ---- connect_lines.c: each line is without its newline ---- */

void bridge_client_line(struct bridge *bridge, struct str line);
void bridge_client_ended(struct bridge *bridge); /* once, after its last line */
void bridge_daemon_line(struct bridge *bridge, struct str line);
void bridge_greet(struct bridge *bridge); /* a new daemon, before any request */

/* The bridge's own answer to a request. `sent`: it may have reached the daemon whose connection ended. */
void bridge_answer(struct bridge *bridge, const struct tracked *request, bool sent);

/* Tells the client to forget a question of the daemon, and frees it. `reason`: plain text. */
void bridge_cancel_question(struct bridge *bridge, struct tracked *question, const char *reason);

/* Appends the line of a request, which is parsed as `message`. One without a session in its _meta gets
 * `"dev.toolgate/session":SESSION` (`session` is a JSON string); all other bytes stay the same. */
void bridge_put_session(struct buf *out, struct str line, const struct json *message, struct str session);

#endif
