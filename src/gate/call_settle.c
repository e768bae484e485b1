/*
 * Stage 8: what the ledger is told of a call at its end. What was admitted is
 * settled once: by its result, by a report of what an agent ran itself, or as
 * released where nobody waits for it any more.
 */
#include "gate/call_state.h"

#include "base/arena.h"
#include "gate/decision_log.h"
#include "catalog/catalog.h"
#include "gate/metrics.h"
#include "json/canonical.h"

#include <math.h>

/* What the policy said of this result, else what the result says of itself. */
static double cost_told(const struct call *c)
{
    double cost;
    if (c->verdict.cost >= 0)
        return c->verdict.cost;
    bool told = json_double(json_get_text(c->result.metadata, CALL_COST_KEY), &cost);
    return told && cost >= 0 && cost <= POLICY_COST_MAX ? cost : -1;
}

static struct ledger_settle *settle_request(struct call *c, enum ledger_class class)
{
    struct ledger_settle *request = ARENA_NEW(c->arena, struct ledger_settle);
    const struct hash128 *gives = NULL;
    size_t gives_count = 0;
    double cost = cost_told(c);
    if (c->ran && c->tool->policy && c->tool->policy->gives_id_count && c->result.value)
        gives_count = ids_in_result(c->arena, c->tool->policy, c->result.value, &gives);
    *request = (struct ledger_settle){
        .place = c->place,
        .admission = c->admission,
        .tool = c->request.tool,
        .ext = c->request.ext,
        .arguments = c->fingerprint,
        .class = class == LEDGER_CLASS_OK && c->empty ? LEDGER_CLASS_GARBAGE : class,
        .label = str_of(error_class_info(c->verdict.class)->name),
        .result = c->result.value ? json_fingerprint(c->arena, c->result.value, NULL, 0)
                                  : hash_stable(c->verdict.quoted),
        .limits = &c->tool->limits,
        .gives_ids = gives,
        .gives_id_count = gives_count,
        .facts = json_is(c->verdict.facts, JSON_OBJECT) ? c->verdict.facts : NULL,
        .uncounted = c->answer.uncounted,
        .not_begun = c->verdict.class == CLASS_UNAVAILABLE,
        .cost_told = cost >= 0,
        .cost = cost >= 0 ? (uint64_t)llround(cost * LEDGER_COST_UNIT) : 0,
    };
    return request;
}

/* What says when to ask again has failed for the moment: who asks then goes in no circle. */
static enum ledger_class settles_as(const struct verdict *v)
{
    bool passes = v->class == CLASS_UNAVAILABLE && v->after_s >= 0;
    return passes ? LEDGER_CLASS_TRANSIENT : error_class_info(v->class)->settled_as;
}

enum step call_settle_answered(struct call *c)
{
    const struct ledger_settled *s = &c->settled;
    if (s->error != OK)
        log_event(LOG_WARN, "ledger_settle_failed", LOG_STR("tool", c->request.tool),
                  LOG_TEXT("why", s->why.text));
    decision_log_repair_chain(c->gate->metrics, &c->request, s->chain, s->chain_retries);
    verdict_from_settle(&c->verdict, s, c->ran);
    return GO_ON;
}

/* Only what was admitted has something to settle; a passed check keeps its reservation until its report. */
enum step call_settle(struct call *c)
{
    if (c->request.dry_run) {
        c->verdict.has_budget = c->verdict.class == CLASS_INVALID_ARGUMENTS;
        return GO_ON;
    }
    decision_log_repair_chain(c->gate->metrics, &c->request, c->answer.chain, c->answer.chain_retries);
    metrics_count_abandoned_chains(c->gate->metrics, c->answer.gave_up);
    bool reported = c->request.mode == CALL_REPORT;
    bool kept = c->request.mode == CALL_CHECK && !verdict_is_decided(&c->verdict);
    if (kept || !(c->admitted || reported) || !c->tool)
        return GO_ON;
    c->settling = true;
    const struct ledger_settle *request = settle_request(c, settles_as(&c->verdict));
    if (ledger_settle(c->gate->ledger, request, c->arena, &c->settled, call_resume, c) == LEDGER_PENDING)
        return WAIT;
    return call_settle_answered(c);
}

void call_release(struct call *c)
{
    verdict_set(&c->verdict, CLASS_CANCELLED, STR_LIT("cancelled"), STR_NONE, STR_NONE);
    ledger_settle(c->gate->ledger, settle_request(c, LEDGER_CLASS_RELEASED), c->arena, &c->settled, NULL,
                  NULL);
}
