/*
 * What clients do that has no effect or not the one they mean: counted by kind, with the last text and
 * client, for the log and toolgate/status. Clients also hear of it in their replies.
 */
#ifndef TOOLGATE_SERVER_PROBLEMS_H
#define TOOLGATE_SERVER_PROBLEMS_H

#include "base/rate_limit.h"
#include "base/str.h"

#include <stdint.h>

struct client;
struct json_out;
struct server;

#define PROBLEM_TEXT_BYTES       256u /* of the last one of a kind; longer ones are cut */
#define PROBLEM_CLIENT_BYTES     96u
#define PROBLEM_LINES_PER_SECOND 5u /* in the log; further ones are counted */

enum problem_kind {
    PROBLEM_UNKNOWN_KEY,   /* of dev.toolgate/ in _meta */
    PROBLEM_MISPLACED_KEY, /* session beside _meta */
    PROBLEM_EMPTY_SESSION,
    PROBLEM_WRONG_TYPE,    /* of a label or flag in _meta */
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

#endif
