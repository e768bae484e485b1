/*
 * What gateway { check, result } does with pattern sets (result/pattern_sets.h): arguments with a find are
 * refused, secrets in results are masked, orders in results are marked as data. Called by the stages check
 * and judge.
 */
#ifndef TOOLGATE_GATE_PATTERN_GUARD_H
#define TOOLGATE_GATE_PATTERN_GUARD_H

#include "gate/call_state.h"

/* Decides `found` if the arguments hold what the policy's sets look for. */
void pattern_guard_check(struct call *c, const struct policy *policy, struct verdict *found);

/* Masks what the sets find in every part of the result. */
void pattern_guard_mask(struct call *c, unsigned sets);

/* Notes what the policy's sets find in the result: for the model if it is enforced, else as what it `would`.
 */
void pattern_guard_judge(struct call *c, const struct overlay *overlay);

#endif
