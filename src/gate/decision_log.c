/* The events of the decision log. */
#include "gate/decision_log.h"

#include "base/log.h"
#include "config/config.h"
#include "gate/metrics.h"
#include "json/write.h"
#include "ledger/ledger.h"

#define TOOL_NAME_LOGGED_BYTES 128u /* a client may make names as long as its messages */

void decision_log_call(const struct config *config, const struct call_request *r, const struct verdict *v)
{
    static const char *const events[] = {
        [CALL_RUN] = "call", [CALL_CHECK] = "check", [CALL_REPORT] = "report"};
    bool plain_pass = v->kind == VERDICT_PASS && !v->would.len;
    log_event(plain_pass ? LOG_DEBUG : LOG_INFO, events[r->mode],
              LOG_STR("tool", str_cut(r->tool, TOOL_NAME_LOGGED_BYTES)),
              LOG_TEXT("verdict", verdict_name(v->kind)), LOG_TEXT("class", error_class_info(v->class)->name),
              LOG_STR("code", v->code), LOG_STR("would", v->would),
              LOG_TEXT("stage", v->stage ? v->stage : "settle"), LOG_STR("session", r->session),
              LOG_STR("label", r->label), LOG_STR("ext", r->ext));
    if (!config->log_arguments)
        return;
    struct buf arguments = {0};
    if (r->arguments)
        json_write(&arguments, r->arguments);
    log_event(LOG_INFO, "arguments", LOG_STR("tool", r->tool), LOG_STR("call", r->label),
              LOG_STR("arguments", buf_view(&arguments)));
    buf_clear(&arguments);
}

void decision_log_repair_chain(struct metrics *metrics, const struct call_request *r, struct str outcome,
                               uint32_t retries)
{
    if (!outcome.len)
        return;
    metrics_count_chain(metrics, r->tool, outcome);
    ledger_log_chain(r->tool, r->ext, outcome, retries);
}

void decision_log_policy_error(struct str tool, const char *why)
{
    log_event(LOG_WARN, "policy_error", LOG_STR("tool", tool), LOG_TEXT("why", why));
}
