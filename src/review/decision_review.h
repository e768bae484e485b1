/*
 * toolgate decisions --review: shows the refusals one by one and takes a key for each. Marks are kept in a
 * file, one JSON object a line, so that a review goes on where it ended; the refusals that were wrong become
 * examples.
 */
#ifndef TOOLGATE_REVIEW_DECISION_REVIEW_H
#define TOOLGATE_REVIEW_DECISION_REVIEW_H

#include "replay/decision_filter.h"
#include "review/decision_input.h"

#define REVIEW_REFUSALS_MAX 10000u /* of one review; more need a filter */

struct review_options {
    const struct decision_filter *filter;
    const char *marks;    /* the file of the marks */
    const char *examples; /* written there; NULL: to stdout */
};

/* The exit code. */
int decision_review(const struct command *command, struct decision_input *input,
                    const struct review_options *options);

#endif
