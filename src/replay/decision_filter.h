/* Which records a reader wants: the filters of `toolgate decisions` and `toolgate shadow`. */
#ifndef TOOLGATE_REPLAY_DECISION_FILTER_H
#define TOOLGATE_REPLAY_DECISION_FILTER_H

#include "base/err.h"
#include "replay/decision.h"

/* Every member empty or -1: everything passes. The words are globs, several with commas between them. */
struct decision_filter {
    struct str tool, verdict, class, code, session, user;
    int64_t since_us, until_us, turn;
    bool refused; /* only calls that were kept from their tool */
    bool would;   /* verdict, class, code and refused look at what was not enforced */
};

#define DECISION_FILTER_NONE                                                                                 \
    (struct decision_filter)                                                                                 \
    {                                                                                                        \
        .since_us = -1, .until_us = -1, .turn = -1                                                           \
    }

bool decision_filter_matches(const struct decision_filter *filter, const struct decision *decision);

/* Checks the words of `verdict` and `class`, which have a closed list. ERR_PARSE: one of them matches nothing
 * in it; `why` names the closest. */
enum err decision_filter_check(const struct decision_filter *filter, struct why *why);

/* "90m", "1d", "2w" before `now_us`; "2026-11-20", "2026-11-20 14:30", "2026-11-20T14:30:00" in local time;
 * or with "Z" or an offset. A date alone is its first moment, with `end` the first moment of the next day. */
enum err decision_filter_moment(struct str text, int64_t now_us, bool end, int64_t *us, struct why *why);

#endif
