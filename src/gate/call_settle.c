/*
 * Stage 8: reports to the ledger how a call ended. An admitted call is settled exactly once:
 * with its result, with the agent's report, or as released if it was cancelled.
 */
#include "gate/call_state.h"

#include "base/arena.h"
#include "gate/call_events.h"
#include "gate/verdict_from.h"
#include "result/result_mask.h"

#include <math.h>

static struct hash128 reported_arguments(const void *call)
{
    return call_fingerprint(call);
}

/* What a refusal of the same call will quote. */
static struct str error_text(const struct verdict *v)
{
    bool failed =
        v->class == CLASS_TOOL_ERROR || v->class == CLASS_TRANSIENT || v->class == CLASS_SCHEMA_MISMATCH;
    struct str text = v->quoted.len ? v->quoted : v->detail;
    return failed ? str_cut(str_trim(text), LEDGER_ERROR_MAX_BYTES) : STR_NONE;
}

static struct ledger_settle *settle_request(struct call *c, enum ledger_class class)
{
    struct ledger_settle *request = arena_alloc(c->arena, sizeof(*request));
    const struct hash128 *ids = NULL;
    size_t id_count = 0, problem_count;
    const struct ledger_problem *problems = call_problems(c, &problem_count);
    const struct json *compared = NULL;
    if (c->result.value)
        compared = result_compared(c->arena, c->tool->policy, &c->tool->limits, c->result.value);
    double cost = c->verdict.cost; /* from the policy, else from the result's _meta */
    if (cost < 0 &&
        (!json_double(json_get_text(c->result.metadata, CALL_COST_KEY), &cost) || cost > POLICY_COST_MAX))
        cost = -1;
    if (c->ran && c->tool->policy && c->tool->policy->gives_id_count && c->result.value)
        id_count = ids_in_result(c->arena, c->tool->policy, c->result.value, &ids);
    *request = (struct ledger_settle){
        .place = c->place,
        .admission = c->admission,
        .tool = c->request.tool,
        .ext = c->request.ext,
        .call = c->request.label,
        .problems = problems,
        .problem_count = problem_count,
        .arguments = c->fingerprint,
        .fingerprint = c->request.mode == CALL_REPORT ? reported_arguments : NULL,
        .of = c,
        .class = class == LEDGER_CLASS_OK && c->uninformative ? LEDGER_CLASS_GARBAGE : class,
        .error = error_text(&c->verdict),
        .label = str_of(error_class_info(c->verdict.class)->name),
        .result = compared ? call_result_hash(c, compared) : hash_stable(c->verdict.quoted),
        .limits = &c->tool->limits,
        .gives_ids = ids,
        .gives_id_count = id_count,
        .facts = json_is(c->verdict.facts, JSON_OBJECT) ? c->verdict.facts : NULL,
        .arguments_refused =
            c->tool->schema_mode == SCHEMA_LEARN && (c->lax || !c->admitted) && call_lax_refused(c),
        .uncounted = c->answer->uncounted,
        .not_begun = c->verdict.class == CLASS_UNAVAILABLE,
        .cost_told = cost >= 0,
        .cost = cost >= 0 ? (uint64_t)llround(cost * LEDGER_COST_UNIT) : 0,
    };
    if (class == LEDGER_CLASS_TOOL_ERROR)
        request->masked = result_mask_error(c->arena, compared, c->verdict.quoted);
    return request;
}

/* Only an admitted call or a report has something to settle; a check that passed keeps its reservation until
 * its report. */
enum step call_settle(struct call *c)
{
    struct verdict *v = &c->verdict;
    if (c->request.dry_run) {
        v->has_budget = v->class == CLASS_INVALID_ARGUMENTS;
        return STEP_NEXT;
    }
    call_events_repair_chain(c->gate->metrics, &c->request, c->answer->chain, c->answer->chain_retries);
    bool reserved = c->request.mode == CALL_CHECK && !verdict_is_decided(v);
    if (reserved || !(c->admitted || c->request.mode == CALL_REPORT) || !c->tool)
        return STEP_NEXT;
    /* If the upstream gave a retry time, the call counts as transient, so that a retry is no loop. */
    bool transient = v->class == CLASS_UNAVAILABLE && v->after_s >= 0;
    enum ledger_class class = transient ? LEDGER_CLASS_TRANSIENT : error_class_info(v->class)->settled_as;
    if (v->class == CLASS_NEED_USER_INPUT && call_ask_counts(c))
        class = LEDGER_CLASS_REFUSED;
    if (v->class == CLASS_POLICY_ERROR &&
        str_is(v->code, VERDICT_RESULT_UNCHECKED)) /* it ran: its budget stays spent */
        class = LEDGER_CLASS_SCHEMA_MISMATCH;
    c->settle_started = true;
    c->settled = arena_alloc(c->arena, sizeof(*c->settled)); /* ledger_settle fills it in */
    if (ledger_settle(c->gate->ledger, settle_request(c, class), c->arena, c->settled, call_resume, c) ==
        LEDGER_PENDING)
        return STEP_WAIT;
    return call_settle_answered(c);
}

enum step call_settle_answered(struct call *c)
{
    const struct ledger_settled *settled = c->settled;
    if (settled->error != OK)
        log_event(LOG_WARN, "ledger_settle_failed", LOG_STR("tool", c->request.tool),
                  LOG_TEXT("why", settled->why.text));
    call_events_repair_chain(c->gate->metrics, &c->request, settled->chain, settled->chain_retries);
    verdict_from_settle(&c->verdict, settled, c->ran);
    if (c->lax || settled->lax_learnt)
        call_lax_settled(c);
    return STEP_NEXT;
}

void call_release(struct call *c)
{
    verdict_set(&c->verdict, CLASS_CANCELLED, STR_LIT("cancelled"), STR_NONE, STR_NONE);
    c->settled = arena_alloc(c->arena, sizeof(*c->settled)); /* ledger_settle fills it in */
    ledger_settle(c->gate->ledger, settle_request(c, LEDGER_CLASS_RELEASED), c->arena, c->settled, NULL,
                  NULL);
}
