/* The log of calls, without their arguments. */
#include "gate/call_events.h"

#include "base/log.h"
#include "gate/metrics.h"
#include "ledger/ledger.h"

#define TOOL_NAME_LOGGED_BYTES 128u /* a client may make names as long as its messages */

/* Of a result that breaks its schema the place, which is no value: otherwise the log does not tell which
 * field of the tool to look at. */
static struct str broken_field(const struct verdict *v)
{
    bool violates = v->class == CLASS_SCHEMA_MISMATCH && str_is(v->code, "schema_violation");
    return violates ? v->detail : STR_NONE;
}

void call_events_call(const struct call_request *r, const struct verdict *v)
{
    static const char *const events[] = {
        [CALL_RUN] = "call", [CALL_CHECK] = "check", [CALL_REPORT] = "report"};
    bool plain_pass = v->kind == VERDICT_PASS && !v->would.len;
    log_event(plain_pass ? LOG_DEBUG : LOG_INFO, events[r->mode],
              LOG_STR("tool", str_cut(r->tool, TOOL_NAME_LOGGED_BYTES)),
              LOG_TEXT("verdict", verdict_name(v->kind)), LOG_TEXT("class", error_class_info(v->class)->name),
              LOG_STR("code", v->code), LOG_STR("would", v->would),
              LOG_TEXT("stage", v->stage ? v->stage : "settle"), LOG_STR("session", r->session),
              LOG_STR("label", r->label), LOG_STR("ext", r->ext), LOG_STR("why", broken_field(v)));
}

void call_events_repair_chain(struct metrics *metrics, const struct call_request *r, struct str outcome,
                              uint32_t retries)
{
    if (!outcome.len)
        return;
    metrics_count_chain(metrics, r->tool, outcome);
    ledger_log_chain(r->tool, r->ext, outcome, retries);
}

void call_events_policy_error(struct str tool, const char *why)
{
    log_event(LOG_WARN, "policy_error", LOG_STR("tool", tool), LOG_TEXT("why", why));
}
