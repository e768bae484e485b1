/* toolgate decisions --follow: the last records of the log, then each one when it is written. */
#ifndef TOOLGATE_REVIEW_DECISION_FOLLOW_H
#define TOOLGATE_REVIEW_DECISION_FOLLOW_H

#include "replay/decision_filter.h"
#include "review/decision_input.h"

#include <stdint.h>

#define FOLLOW_HISTORY_DEFAULT 10u
#define FOLLOW_HISTORY_ALL     UINT32_MAX

struct follow_options {
    const struct decision_filter *filter;
    unsigned history; /* matching records of before that are printed */
    unsigned limit;   /* ends after so many; 0: none */
    bool json, full;
};

/* The input has one file. What the model did after a refusal is not known yet, so it is not printed. False
 * after an error on stderr. */
bool decision_follow(struct decision_input *input, const struct follow_options *options);

#endif
