/*
 * Policies for several tools: each lies over the tool's own policy and is asked after it, in the order of the
 * files; the strictest verdict wins. A stage comes here only if the tool has overlays. In mode shadow an
 * overlay leaves only the code that it would have given; in mode off it is not asked.
 */
#ifndef TOOLGATE_GATE_OVERLAYS_H
#define TOOLGATE_GATE_OVERLAYS_H

#include "gate/arguments.h"

struct call;
struct verdict;

void overlays_check_rules(struct call *call); /* 3: rules, normalise, format of ids */
void overlays_check(struct call *call);       /* 5 */

/* What the enforced ones make of the arguments of an earlier call, whose verdict is known. */
void overlays_normalise(struct arguments *args, const struct policy_call *call);

/* Takes over what an overlay found, if it is stricter than the verdict so far; `found` began as a copy of
 * that. */
void overlays_merge(struct call *call, const struct overlay *overlay, const struct verdict *found);

/* ---- pattern sets (result/pattern_sets.h): what gateway { check, result } does with them. Arguments with a
 * find are refused, secrets in results are masked, orders in results are marked as data. ---- */

/* Masks what the sets find in every part of the result. */
void pattern_guard_mask(struct call *c, unsigned sets);

/* Notes what the policy's sets find in the result: for the model if it is enforced, else as what it `would`.
 */
void pattern_guard_judge(struct call *c, const struct overlay *overlay);

#endif
