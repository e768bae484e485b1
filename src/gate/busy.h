/*
 * Policies that use up their time: after BUSY_LATE_IN_A_ROW calls with a late hook the tool is `busy` for
 * BUSY_MS to the user who makes them; if the next call is late, too, again, else all is forgotten. Dry runs
 * have a list of their own and, since a person waits, a short pause: they make no tool busy to calls, and
 * still show what a policy decides while it is busy to calls. A daemon counts its own time alone.
 */
#ifndef TOOLGATE_GATE_BUSY_H
#define TOOLGATE_GATE_BUSY_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct json_out;

#define BUSY_LATE_IN_A_ROW  5u
#define BUSY_MS             10000
#define BUSY_DRY_IN_A_ROW   2u
#define BUSY_DRY_MS         1000 /* hooks of 50 ms then take a twentieth of the time */
#define BUSY_MAX            64u  /* pairs of user and tool that are counted; the oldest makes place */
#define BUSY_TOOL_MAX_BYTES 128u /* of the name that the status shows */

struct busy_row {
    char tool[BUSY_TOOL_MAX_BYTES];
    uint64_t tool_hash;
    int64_t late_ms, until_ms; /* of clock_mono_us, in ms: the last late call; 0: not busy yet */
    uint32_t late;             /* calls in a row */
    uid_t uid;
};

struct busy {
    struct busy_row rows[BUSY_MAX];
    size_t count;
    uint64_t times; /* that a tool became busy */
};

/* For how long; 0: it is not. */
int64_t busy_left_ms(const struct busy *busy, uid_t uid, struct str tool, int64_t now_ms);

/* A call has ended, of which hooks ran. True: from now on the tool is busy to this user. */
bool busy_count(struct busy *busy, uid_t uid, struct str tool, bool late, int64_t now_ms, bool dry);

/* "busy": [{tool, uid, left_s}], of one user or of all; nothing if none is busy now. */
void busy_write_status(struct json_out *out, const struct busy *busy, bool all, uid_t uid, int64_t now_ms);

#endif
