/*
 * The bridge of `toolgate connect`: a client's stdio on one side, the daemon's socket on the other. The
 * client sees one server that stays, although daemons come and go behind it:
 *
 *   away ──connect──▶ greeting ──the daemon answers──▶ open ──the connection ends──▶ away
 *
 * Away and greeting: requests wait, bounded in time, number and bytes. Open: a request is sent, then in
 * flight until its answer. When the connection ends, each request in flight gets its one answer from the
 * bridge.
 */
#ifndef TOOLGATE_CLI_CONNECT_BRIDGE_H
#define TOOLGATE_CLI_CONNECT_BRIDGE_H

#include "base/buf.h"
#include "base/hash.h"
#include "cli/connect/requests.h"
#include "json/value.h"

#include <stdbool.h>

#define BRIDGE_RETRY_FIRST_MS 20u       /* after the connection ended; doubles up to the next line */
#define BRIDGE_RETRY_MAX_MS   1000u     /* between two attempts to connect */
#define BRIDGE_WAIT_S         30u       /* of a request while no daemon answers; --wait */
#define BRIDGE_WAIT_MAX_S     3600u     /* of --wait */
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
#define BRIDGE_OWN_ID                                                                                        \
    "toolgate/connect/" /* of the bridge's own requests, and of later daemons' questions                     \
                         */

enum bridge_state { BRIDGE_AWAY, BRIDGE_GREETING, BRIDGE_OPEN };

struct arena;
struct map;

/* What the client was told last by tools/list. */
struct known_tools {
    char *request; /* its tools/list, asked again of the next daemon; NULL: it never asked */
    bool modern;
    struct hash128 fingerprint;
    struct arena *arena;
    struct map *readers; /* the tools with readOnlyHint */
};

struct bridge {
    const char *path;
    struct str session; /* a JSON string; empty: requests pass unchanged */
    bool owns_session;  /* no other process has it: it ends with the client */
    int64_t wait_us;
    enum bridge_state state;
    int socket;
    int64_t retry_at_us;
    unsigned retry_ms, epoch; /* epoch: connections that have ended */
    bool was_open, outage_told, client_ended, shut_down;
    bool watch_failed;              /* this daemon has refused a subscription to a resource */
    bool has_failed;                /* a request got its answer from the bridge */
    struct buf from_daemon;         /* up to an incomplete line */
    size_t daemon_seen;             /* bytes of it that hold no newline */
    struct buf to_client, greeting; /* greeting: for the daemon, before all requests */
    struct requests requests;
    char *initialize, *level; /* the client's own lines, for the next daemon */
    bool is_initialized, has_confirmed;
    bool batches; /* it speaks 2025-03-26, which has them */
    struct requests subscriptions;
    struct requests watched; /* resources/subscribe, with the URI as their `tool` */
    struct requests questions;
    bool lists_prompts, lists_resources; /* a legacy client that has asked for them */
    struct known_tools tools;
};

/* link.c: the connection. bridge_next_us: when bridge_connect or bridge_expire has something to do, or -1. */
int64_t bridge_next_us(const struct bridge *bridge);
void bridge_tell(struct bridge *bridge, const char *text); /* once an outage, on stderr */
void bridge_connect(struct bridge *bridge);
void bridge_write_daemon(struct bridge *bridge);
void bridge_read_daemon(struct bridge *bridge);
void bridge_lost(struct bridge *bridge);
void bridge_expire(struct bridge *bridge);

/* Gives each whole line of `in` to `take`. *seen: bytes of it that hold no newline. */
void bridge_take_lines(struct bridge *bridge, struct buf *in, size_t *seen,
                       void (*take)(struct bridge *bridge, struct str line));

/* The bridge's own answer to a request. */
enum unavailable { UNAVAILABLE_LOST, UNAVAILABLE_AWAY };
void bridge_answer(struct bridge *bridge, const struct tracked *request, enum unavailable why);

/* Whether as much waits as may wait, with `more` bytes. */
bool bridge_is_full(const struct bridge *bridge, size_t more);

/* client_lines.c, daemon_lines.c: one line without its newline. */
void bridge_client_line(struct bridge *bridge, struct str line);
void bridge_client_ended(struct bridge *bridge); /* once, after its last line */
void bridge_daemon_line(struct bridge *bridge, struct str line);
/* Tells the client to forget a question of the daemon, and frees it. `reason`: plain text. */
void bridge_cancel_question(struct bridge *bridge, struct tracked *question, const char *reason);

/* Appends the line with another id in place of `id`, which was parsed from it. */
void bridge_put_line(struct buf *to, struct str line, const struct json *id, struct str with);
void bridge_greet(struct bridge *bridge); /* a new daemon, before any request */
/* Keeps a copy for the next daemon, unless the line is longer than BRIDGE_KEEP_MAX_BYTES. */
void bridge_keep(char **kept, struct str line);

#endif
