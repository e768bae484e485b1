/*
 * The decision log as `toolgate decisions` and `toolgate shadow` read it: named files, standard input, or the
 * log of the daemon with its rotated files. It may be read several times.
 */
#ifndef TOOLGATE_REVIEW_DECISION_INPUT_H
#define TOOLGATE_REVIEW_DECISION_INPUT_H

#include "cli/command.h"
#include "replay/decision.h"
#include "replay/decision_outcome.h"
#include "replay/recording.h"

struct arena;
struct decision_input;

/* Opens the named files; standard input and pipes are copied to a temporary file first. NULL after an error
 * on stderr. Close it. */
struct decision_input *decision_input_open(const struct command *command, const char *const *files,
                                           size_t count);
void decision_input_close(struct decision_input *input); /* accepts NULL */

/* Called with each record in the order of the log; both are valid during the call only. False ends the walk.
 */
typedef bool decision_visit(void *owner, const struct decision *decision, const struct recording_line *line);

/* Reads all records. `report`: counts what could not be read on stderr, by file and line. False after an
 * error on stderr. */
bool decision_input_walk(struct decision_input *input, bool report, decision_visit *visit, void *owner);

/* Follows the one file through its rotations; `wait` is called with `owner` when all of it was read. What
 * cannot be read is reported on stderr at once. Returns when the visit or the wait returns false. */
bool decision_input_follow(struct decision_input *input, recording_wait *wait, decision_visit *visit,
                           void *owner);

/* Says on stderr how many refusals were not followed up, if any. */
void decision_input_report_left_out(const struct decision_input *input,
                                    const struct decision_outcomes *outcomes);

/* Records of the last walk. */
uint64_t decision_input_records(const struct decision_input *input);

/* Some file could not be read to its end: what was printed is not all. */
bool decision_input_is_cut_short(const struct decision_input *input);

#endif
