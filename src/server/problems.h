/*
 * What clients do that has no effect or not the one they mean: counted by kind, with the last text and
 * client, for the log and toolgate/status. Clients also hear of it in their replies.
 */
#ifndef TOOLGATE_SERVER_PROBLEMS_H
#define TOOLGATE_SERVER_PROBLEMS_H

#include "base/err.h"
#include "base/rate_limit.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct client;
struct json_out;
struct request;
struct server;

#define PROBLEM_TEXT_BYTES       256u /* of the last one of a kind; longer ones are cut */
#define PROBLEM_CLIENT_BYTES     96u
#define PROBLEM_LINES_PER_SECOND 5u /* in the log; further ones are counted */

enum problem_kind {
    PROBLEM_UNKNOWN_KEY,   /* of dev.toolgate/ in _meta */
    PROBLEM_MISPLACED_KEY, /* session beside _meta */
    PROBLEM_EMPTY_SESSION,
    PROBLEM_WRONG_TYPE,    /* of a label or flag in _meta */
    PROBLEM_SHARE,         /* one user would have more of what all users share than its part */
    PROBLEM_META_TOO_LONG, /* more _meta for the server than is passed on */
    PROBLEM_TRACE_CONTEXT, /* a traceparent, tracestate or baggage that cannot be passed on */
    PROBLEM_CHECKS_UNREPORTED,
    PROBLEM_REPORT_UNPLACED, /* its callId is missing, wrong, or of a call that is forgotten */
    PROBLEM_KINDS
};

struct problem_note {
    uint64_t count;
    int64_t last_ms; /* wall clock */
    char text[PROBLEM_TEXT_BYTES], client[PROBLEM_CLIENT_BYTES];
};

struct problem_notes { /* embedded in struct server; initially zero */
    struct problem_note kinds[PROBLEM_KINDS];
    struct rate_limit lines;
};

/* Counts it, and logs it as `request_warning` within PROBLEM_LINES_PER_SECOND. */
void problems_note(struct client *client, enum problem_kind kind, struct str text);

/* "problems":[{"code","count","last","client","last_ms"}]: only kinds that occurred. */
void problems_write(struct json_out *out, const struct server *server);

/* ---- checks without a report: such a program has no budgets, no loop detection and no result hooks, and
 * nothing else would tell it ---- */

#define UNREPORTED_MAX 8u /* checks in a row without a report; from the next one on, each verdict says so */

struct unreported {      /* of a client; initially zero */
    uint32_t count;      /* since its last report; those of one step, which run in parallel, are one */
    uint64_t step;       /* hash of the step that the last one named; 0: none */
    uint32_t next_noted; /* logged again at this count, twice the one before */
};

/* A check has passed. Returns the count if it is beyond UNREPORTED_MAX, else 0. */
uint32_t unreported_add(struct client *client, struct str step);

/* The client has reported a call. */
void unreported_clear(struct client *client);

/* ---- the keys of params._meta ---- */

#define GATE_NOTICES_MAX 4u /* of a request; further mistakes show once these are corrected */

/* Looks for unknown keys, keys beside _meta and an empty session. For a method of toolgate/, which a program
 * calls, the first is an error: replies and returns ERR_PARSE. Else they become request->notices: an error
 * would end a model's run. */
enum err gate_keys_check(struct request *request);

#endif
