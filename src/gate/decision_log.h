/*
 * The decision log: one event a call, one event a repair chain's end. Values
 * of arguments only where the operator asked for them.
 */
#ifndef TOOLGATE_GATE_DECISION_LOG_H
#define TOOLGATE_GATE_DECISION_LOG_H

#include "gate/call.h"
#include "gate/verdict.h"

/* `call tool=… verdict=… class=… code=… would=… stage=… session=… label=… ext=…`; at debug what passes
 * without a would, the rest at info. */
void decision_log_call(const struct config *config, const struct call_request *request,
                       const struct verdict *verdict);

/* `validation_retry_outcome tool=… ext=… outcome=… retry_count=N`, at the level that LEDGER.md gives the
 * outcome. */
void decision_log_repair_chain(struct metrics *metrics, const struct call_request *request,
                               struct str outcome, uint32_t retries);

/* `policy_error tool=… why=…` */
void decision_log_policy_error(struct str tool, const char *why);

#endif
