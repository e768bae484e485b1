/*
 * The events that calls write to the log: one per call, one per ended repair chain, one per failed policy.
 * None has arguments; the decision log (decision_log.h) has them.
 */
#ifndef TOOLGATE_GATE_CALL_EVENTS_H
#define TOOLGATE_GATE_CALL_EVENTS_H

#include "gate/call.h"
#include "gate/verdict.h"

/* `call tool=… verdict=… class=… code=… would=… stage=… session=… label=… ext=…`: a pass without `would` at
 * debug, the rest at info. */
void call_events_call(const struct call_request *request, const struct verdict *verdict);

/* `validation_retry_outcome tool=… ext=… outcome=… retry_count=N`, and its counters. An empty outcome: no
 * chain ended. `metrics` may be NULL. */
void call_events_repair_chain(struct metrics *metrics, const struct call_request *request, struct str outcome,
                              uint32_t retries);

/* `policy_error tool=… why=…` */
void call_events_policy_error(struct str tool, const char *why);

#endif
