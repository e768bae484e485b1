/*
 * Stage 6: runs the tool in Lua or in an upstream, and turns the upstream's answer into a result or a
 * verdict. After a transient failure that the policy wants retried, waits and goes back to the beginning of
 * the stage; to the ledger all tries are one call.
 *
 * Stage 8: reports to the ledger how a call ended. An admitted call is settled exactly once: with its result,
 * with the agent's report, or as released if it was cancelled.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "policy/peer.h"
#include "gate/call_state.h"
#include "gate/metrics.h"
#include "gate/verdict.h"
#include "result/result_mask.h"

#include <math.h>

static int64_t mono_ms(void)
{
    return clock_mono_us() / 1000;
}

/* ---- upstreams ---- */

/* Arguments go out as they are in `args.now`: in shadow mode as the client sent them. A client's second try,
 * with its user's answers, is admitted like any call: need_user_input gave back what the first one took. */
static enum step run_upstream(struct call *c)
{
    const struct call_request *r = &c->request;
    uint64_t user = r->peer ? r->peer->uid : UINT32_MAX;
    int64_t left_ms = c->tries < 2 ? 0 : c->first_try_ms + c->tool->retry.within_ms - mono_ms();
    if (!c->gate->upstreams) {
        static const char *const kinds[] = {
            [TARGET_MCP] = "a server", [TARGET_HTTP] = "an HTTP endpoint", [TARGET_EXEC] = "a command"};
        verdict_set(
            &c->verdict, CLASS_UNAVAILABLE, STR_LIT("not_run_here"),
            arena_printf(c->arena,
                         "this tool runs in %s, which only a running daemon (toolgate serve) can call",
                         kinds[c->tool->target.kind]),
            STR_LIT("Give the example a result, or make the call through a running daemon."));
        return STEP_NEXT;
    }
    c->upstream = ARENA_NEW(c->arena, struct upstream_exchange);
    c->upstream->request = (struct upstream_request){
        .target = &c->tool->target,
        .arguments = c->args.now,
        .trace_context = c->span ? call_span_for_upstream(c) : r->trace_context,
        .can_elicit = r->supports_elicitation,
        .input_responses = r->input_responses,
        .request_state = r->request_state,
        .max_ms = c->tries < 2  ? 0
                  : left_ms > 0 ? (uint32_t)left_ms
                                : 1,
        .progress = c->progress,
        .log = c->log,
        .listener = c->listener,
        .user = r->peer ? r->peer->uid : 0,
        .caller = hash_seeded(r->session.len ? r->session : r->connection) ^ (user << 32),
    };
    if (upstream_start(c->gate->upstreams, &c->upstream->request, c->arena, &c->upstream->answer, call_resume,
                       c) == UPSTREAM_PENDING)
        return STEP_WAIT;
    return call_upstream_answered(c);
}

enum step call_upstream_answered(struct call *c)
{
    /* An MCP server marks its content; the result of a command or an endpoint is a value unless it has that
     * form. */
    static void (*const readers[])(struct arena *, const struct json *, struct result *) = {
        [TARGET_MCP] = result_read_mcp, [TARGET_HTTP] = result_read, [TARGET_EXEC] = result_read_command};
    const struct upstream_answer *a = &c->upstream->answer;
    struct verdict *v = &c->verdict;
    struct str detail = call_redact_text(c, a->detail), hint = STR_NONE;
    c->ran = a->outcome != UPSTREAM_UNAVAILABLE && !(a->outcome == UPSTREAM_REFUSED && !a->reached);
    switch (a->outcome) {
    case UPSTREAM_RESULT:
        readers[c->tool->target.kind](c->arena, a->result, &c->result);
        return STEP_NEXT;
    case UPSTREAM_REFUSED: /* not reached: the arguments do not fit the request, which the model can correct
                            */
        verdict_set(v, a->reached ? CLASS_TOOL_ERROR : CLASS_INVALID_ARGUMENTS, a->code, detail, hint);
        v->valid = a->reached;
        break;
    case UPSTREAM_TRANSIENT:
        if (a->reached && !c->tool->idempotent) {
            detail = ARENA_JOIN(c->arena, detail, STR_LIT("; the call may have taken effect"));
            hint = CALL_HINT_CHECK_FIRST;
        }
        verdict_set(v, CLASS_TRANSIENT, a->code, detail, hint);
        v->after_s = a->after_s;
        break;
    case UPSTREAM_UNAVAILABLE:
        if (a->after_s >= 0)
            hint = arena_printf(
                c->arena,
                "Use another tool, or tell the user. The same call fails until the next attempt in %lld s.",
                (long long)(a->after_s > 0 ? a->after_s : 1));
        verdict_set(v, CLASS_UNAVAILABLE, a->code, detail, hint);
        v->after_s = a->after_s;
        break;
    case UPSTREAM_BROKEN:
        verdict_set(v, CLASS_SCHEMA_MISMATCH, a->code, detail, hint);
        break;
    case UPSTREAM_INPUT_REQUIRED: /* the server's question, for the model to pass on */
        verdict_set(v, CLASS_NEED_USER_INPUT, a->code.len ? a->code : STR_LIT("input_required"), STR_NONE,
                    hint);
        v->quoted = call_redact_text(c, a->question);
        v->coverage = STR_LIT("NEED_USER_INPUT");
        return STEP_NEXT;
    }
    v->quoted = call_redact_text(c, a->quoted);
    return STEP_NEXT;
}

/* ---- the stage ---- */

enum step call_run(struct call *c)
{
    bool retries = c->tool->retry.times && c->tool->mode == POLICY_ENFORCE && c->gate->upstreams;
    if (retries && !c->before_run) {
        c->before_run = ARENA_NEW(c->arena, struct verdict);
        *c->before_run = c->verdict;
        c->first_try_ms = mono_ms();
    }
    c->verdict.tries = ++c->tries;
    c->ran = true;
    if (c->request.simulated_result)
        result_read(c->arena, c->request.simulated_result, &c->result);
    else if (c->tool->runner == RUNNER_UPSTREAM)
        return run_upstream(c);
    else {
        struct policy_outcome outcome __attribute__((uninitialized)); /* 2 KB, filled in by policy_run */
        struct policy_call view = call_for_policy(c);
        policy_run(c->tool->policy, &view, c->args.now, c->arena, &outcome);
        if (outcome.kind == OUTCOME_VALUE || outcome.kind == OUTCOME_PASS)
            result_from_value(c->arena, outcome.value, outcome.content, outcome.metadata,
                              c->tool->output != NULL, &c->result);
        else if (outcome.kind ==
                 OUTCOME_POLICY_ERROR) /* even with on_policy_error = "open": there is no result */
            verdict_from_policy_error(&c->verdict, c->tool, c->arena, outcome.why.text);
        else
            verdict_from_hook(&c->verdict, c->arena, &outcome);
    }
    return STEP_NEXT;
}

/* ---- retry ---- */

enum step call_retry(struct call *c)
{
    const struct upstream_answer *answer = c->upstream ? &c->upstream->answer : NULL;
    if (!c->tool || !c->before_run || c->verdict.class != CLASS_TRANSIENT || c->tries > c->tool->retry.times)
        return STEP_NEXT;
    /* A call that may have taken effect is only retried if it is idempotent. */
    if (!c->tool->idempotent && !(answer && answer->outcome == UPSTREAM_TRANSIENT && !answer->reached))
        return STEP_NEXT;
    /* The pause: doubled with each try, a quarter more or less at random so that calls that failed together
     * do not retry together; never before the time that the tool named. A crashed server's time is ignored:
     * the next try waits for its start. */
    bool restarts = answer && str_is(c->verdict.code, "crashed");
    uint64_t named_ms = c->verdict.after_s > 0 && !restarts ? (uint64_t)c->verdict.after_s * 1000 : 0;
    uint64_t ms = (uint64_t)c->tool->retry.backoff_ms << (c->tries - 1);
    ms = ms - ms / 4 + hash_random() % (ms / 2 + 1);
    if (ms < named_ms)
        ms = named_ms;
    uint32_t pause = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    if (mono_ms() + pause > c->first_try_ms + c->tool->retry.within_ms)
        return STEP_NEXT;
    log_event(LOG_INFO, "call_retry", LOG_STR("tool", c->tool->name), LOG_STR("ext", c->request.ext),
              LOG_NUM("tries", c->tries), LOG_NUM("pause_ms", pause), LOG_STR("code", c->verdict.code));
    upstream_delay(c->gate->upstreams, pause, c->arena, call_resume, c);
    return STEP_WAIT;
}

enum step call_retry_due(struct call *c)
{
    c->verdict = *c->before_run;
    c->result = (struct result){0};
    c->compacted = (struct compaction){0};
    c->upstream = NULL;
    c->ran = c->uninformative = false;
    return STEP_RETRY;
}

/* ---- 8 settle ---- */

static struct hash128 reported_arguments(const void *call)
{
    return call_fingerprint(call);
}

static struct ledger_settle *settle_request(struct call *c, enum ledger_class class)
{
    struct ledger_settle *request = arena_alloc(c->arena, sizeof(*request));
    const struct verdict *v = &c->verdict;
    bool failed =
        v->class == CLASS_TOOL_ERROR || v->class == CLASS_TRANSIENT || v->class == CLASS_SCHEMA_MISMATCH;
    struct str said = str_trim(v->quoted.len ? v->quoted : v->detail);
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
        /* what a refusal of the same call will quote */
        .error = failed ? str_cut(said, LEDGER_ERROR_MAX_BYTES) : STR_NONE,
        .label = str_of(error_class_info(v->class)->name),
        .result = compared ? call_result_hash(c, compared) : hash_stable(v->quoted),
        .limits = &c->tool->limits,
        .gives_ids = ids,
        .gives_id_count = id_count,
        .facts = json_is(v->facts, JSON_OBJECT) ? v->facts : NULL,
        .arguments_refused =
            c->tool->schema_mode == SCHEMA_LEARN && (c->lax || !c->admitted) && call_lax_refused(c),
        .uncounted = c->answer->uncounted,
        .not_begun = v->class == CLASS_UNAVAILABLE,
        .cost_told = cost >= 0,
        .cost = cost >= 0 ? (uint64_t)llround(cost * LEDGER_COST_UNIT) : 0,
    };
    if (class == LEDGER_CLASS_TOOL_ERROR)
        request->masked = result_mask_error(c->arena, compared, v->quoted);
    return request;
}

/* A repair chain has ended with the call; an empty outcome: none has. */
static void end_chain(const struct call *c, struct str outcome, uint32_t retries)
{
    if (!outcome.len)
        return;
    metrics_count_chain(c->gate->metrics, c->request.tool, outcome);
    ledger_log_chain(c->request.tool, c->request.ext, outcome, retries);
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
    end_chain(c, c->answer->chain, c->answer->chain_retries);
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
    end_chain(c, settled->chain, settled->chain_retries);
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
