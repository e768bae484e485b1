/*
 * Replays recorded sessions, in the order in which they were recorded, with a virtual clock: what one set of
 * policies, or two of them side by side, would have said. A refused call is not reported to the ledger of the
 * set that refused it; the recording goes on as it was recorded.
 *
 *   replay_new, replay_next until it returns false, replay_finish, replay_free.
 */
#ifndef TOOLGATE_REPLAY_REPLAY_H
#define TOOLGATE_REPLAY_REPLAY_H

#include "replay/judge.h"
#include "replay/replay_report.h"

struct replay;

#define REPLAY_PEERS_MAX 1024u /* users whose names are kept; of more, the last one is replaced */
#define REPLAY_STEP_MS   1000  /* between two calls of a session without recorded times */

struct replay_options {
    struct recording *recording;
    enum recorded_format format;
    struct judge *policies, *against; /* borrowed; `against` NULL: none */
};

struct replay *replay_new(const struct replay_options *options, struct replay_report *report);

/* Reads one line and judges its calls. False: there are no more. */
bool replay_next(struct replay *replay);

/* Completes the report. */
void replay_finish(struct replay *replay);
void replay_free(struct replay *replay);

#endif
