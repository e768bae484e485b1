/* Events of the decision log. */
#include "gate/decision_log.h"

#include "base/arena.h"
#include "base/log.h"
#include "config/config.h"
#include "gate/metrics.h"
#include "json/write.h"

static const char *const modes[] = {"call", "check", "report"};

static void log_arguments(const struct call_request *request)
{
    struct buf text = {0};
    if (request->arguments)
        json_write(&text, request->arguments);
    log_event(LOG_INFO, "arguments", LOG_STR("tool", request->tool), LOG_STR("call", request->label),
              LOG_STR("arguments", buf_view(&text)));
    buf_clear(&text);
}

void decision_log_call(const struct config *config, const struct call_request *r, const struct verdict *v)
{
    bool unremarkable = v->kind == VERDICT_PASS && !v->would.len;
    log_event(unremarkable ? LOG_DEBUG : LOG_INFO, modes[r->mode], LOG_STR("tool", str_cut(r->tool, 128)),
              LOG_TEXT("verdict", verdict_name(v->kind)), LOG_TEXT("class", error_class_info(v->class)->name),
              LOG_STR("code", v->code), LOG_STR("would", v->would),
              LOG_TEXT("stage", v->stage ? v->stage : "settle"), LOG_STR("session", r->session),
              LOG_STR("label", r->label), LOG_STR("ext", r->ext));
    if (config->log_arguments)
        log_arguments(r);
}

void decision_log_repair_chain(struct metrics *metrics, const struct call_request *r, struct str outcome,
                               uint32_t retries)
{
    if (!outcome.len)
        return;
    if (metrics) {
        metrics->chains_ended += !str_is(outcome, "no_retry");
        metrics->fabricated_on_retry += str_is(outcome, "fabricated_id_on_retry");
    }
    ledger_log_chain(r->tool, r->ext, outcome, retries);
}

void decision_log_policy_error(struct str tool, const char *why)
{
    log_event(LOG_WARN, "policy_error", LOG_STR("tool", tool), LOG_TEXT("why", why));
}
