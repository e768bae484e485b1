/*
 * What the model did after each refused call, from the later records of its session: it repaired the call,
 * made the same call again, or gave it up. Records are added in the order of the log; then each refusal can
 * be asked about.
 *
 * A refusal is followed up within its turn, by calls of the same tool that came in another message of the
 * model. Memory grows with the refusals, not with the calls.
 */
#ifndef TOOLGATE_REPLAY_DECISION_OUTCOME_H
#define TOOLGATE_REPLAY_DECISION_OUTCOME_H

#include "replay/decision.h"

#define OUTCOME_REFUSALS_MAX   1000000u /* later ones are not followed up */
#define OUTCOME_OPEN_MAX       64u      /* refusals of one session that are followed up at the same time */
#define OUTCOME_ARGUMENT_BYTES 400u     /* kept of the arguments that passed in the end */

struct decision_outcomes;

enum outcome_kind {
    OUTCOME_UNKNOWN,  /* no refusal, or not followed up */
    OUTCOME_REPAIRED, /* a later call with other arguments passed */
    OUTCOME_PASSED,   /* the same call passed later, for example after a wait */
    OUTCOME_REPEATED, /* the same call was made again, and none passed */
    OUTCOME_GAVE_UP   /* no later call of the tool passed */
};

struct decision_outcome {
    enum outcome_kind kind;
    uint32_t tries;   /* later calls of the tool in the turn, with the one that passed */
    uint32_t repeats; /* of them with the same arguments */
    /* the first call of another tool in the turn, if no call of this one came; empty: none */
    struct str next_tool;
    /* of the call that passed, as JSON, cut at OUTCOME_ARGUMENT_BYTES; empty: not recorded */
    struct str arguments;
    struct str ran; /* the class of the result of a call that was not enforced; empty: not known */
};

struct decision_outcomes *decision_outcomes_new(void);
void decision_outcomes_free(struct decision_outcomes *outcomes); /* accepts NULL */

void decision_outcomes_add(struct decision_outcomes *outcomes, const struct decision *decision);
/* After the last record. */
void decision_outcomes_end(struct decision_outcomes *outcomes);

/* Refusals beyond the limits above, whose outcome is unknown. */
uint64_t decision_outcomes_left_out(const struct decision_outcomes *outcomes);

/* Of a refusal that was added; valid until decision_outcomes_free. Never NULL. */
const struct decision_outcome *decision_outcomes_get(const struct decision_outcomes *outcomes,
                                                     const struct decision *decision);

#endif
