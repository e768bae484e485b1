/* Records of the decision log on a terminal: one line for a call that passed, a short block for one that did
 * not. */
#ifndef TOOLGATE_REVIEW_DECISION_PRINT_H
#define TOOLGATE_REVIEW_DECISION_PRINT_H

#include "replay/decision.h"
#include "replay/decision_outcome.h"

/* Prints a string of the record to stdout, at most `max` bytes of it, safe for a terminal. */
void decision_print_text(struct str text, size_t max);

/* Each with the end of its line. `full`: arguments and messages are not shortened; `outcome` may be NULL. */
void decision_print(const struct decision *decision, const struct decision_outcome *outcome, bool full);

/* "the model repaired it in 1 call: {…}" and the end of the line; the outcome is known. */
void decision_print_outcome(const struct decision *decision, const struct decision_outcome *outcome,
                            bool full);

#endif
