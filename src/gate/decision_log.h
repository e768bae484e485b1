/*
 * The decision log: one event per call and one per ended repair chain. Arguments are logged only with
 * log = { arguments = true }.
 */
#ifndef TOOLGATE_GATE_DECISION_LOG_H
#define TOOLGATE_GATE_DECISION_LOG_H

#include "gate/call.h"
#include "gate/verdict.h"

/* `call tool=… verdict=… class=… code=… would=… stage=… session=… label=… ext=…`: a pass without `would` at
 * debug, the rest at info. */
void decision_log_call(const struct config *config, const struct call_request *request,
                       const struct verdict *verdict);

/* `validation_retry_outcome tool=… ext=… outcome=… retry_count=N`, and its counters. An empty outcome: no
 * chain ended. `metrics` may be NULL. */
void decision_log_repair_chain(struct metrics *metrics, const struct call_request *request,
                               struct str outcome, uint32_t retries);

/* `policy_error tool=… why=…` */
void decision_log_policy_error(struct str tool, const char *why);

#endif
