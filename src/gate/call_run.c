/*
 * Stage 6: runs the tool in Lua or in an upstream, whose answer becomes a result or a verdict; and goes back
 * to it after a transient failure.
 */
#include "gate/call_state.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "json/write.h"
#include "result/failure_envelope.h"

enum step call_run_answered(struct call *c)
{
    /* An MCP server marks its content; the result of a command or an endpoint is a value unless it has that
     * form. */
    static void (*const readers[])(struct arena *, const struct json *, struct result *) = {
        [TARGET_MCP] = result_read_mcp, [TARGET_HTTP] = result_read, [TARGET_EXEC] = result_read_command};
    const struct upstream_answer *a = &c->upstream->answer;
    struct verdict *v = &c->verdict;
    int64_t after_s;
    struct str detail = call_redact_text(c, a->detail), said = a->quoted;
    struct str hint =
        str_is(str_cut_front(a->code, strlen("too_large")), "too_large") ? CALL_HINT_ASK_FOR_LESS : STR_NONE;
    c->ran = a->outcome != UPSTREAM_UNAVAILABLE && !(a->outcome == UPSTREAM_REFUSED && !a->reached);
    switch (a->outcome) {
    case UPSTREAM_RESULT:
        readers[c->tool->target.kind](c->arena, a->result, &c->result);
        return STEP_NEXT;
    case UPSTREAM_REFUSED: /* not reached: the arguments do not fit, which the model can correct */
        c->result.value = json_get_text(a->rpc_error, "data");
        c->result.error_text = a->quoted;
        call_redact(c); /* before the verdict: what cannot be redacted is left out */
        said = c->result.error_text;
        if (c->result.value && !json_is(c->result.value, JSON_NULL))
            v->data = json_is(c->result.value, JSON_STRING) ? json_str(c->result.value)
                                                            : json_to_str(c->arena, c->result.value);
        c->result = (struct result){0};
        if (call_is_rate_limited(c, a, &after_s)) {
            detail = ARENA_JOIN(c->arena, detail, STR_LIT("; the call did not run"));
            verdict_set(v, CLASS_TRANSIENT, STR_LIT("rate_limited"), detail, STR_NONE);
            v->after_s = after_s;
            break;
        }
        verdict_set(v, a->reached ? CLASS_TOOL_ERROR : CLASS_INVALID_ARGUMENTS, a->code, detail, hint);
        v->valid = a->reached;
        break;
    case UPSTREAM_TRANSIENT:
        if (a->reached && !c->tool->idempotent) {
            detail = ARENA_JOIN(c->arena, detail, STR_LIT("; the call may have taken effect"));
            hint = CALL_HINT_CHECK_FIRST;
        } else if (!a->reached && a->after_s > 0) {
            detail = ARENA_JOIN(c->arena, detail, STR_LIT("; the call did not run"));
        }
        verdict_set(v, CLASS_TRANSIENT, a->code, detail, hint);
        v->after_s =
            a->after_s < 0 && str_is(a->code, "http_429") ? envelope_of_message(said).after_s : a->after_s;
        break;
    case UPSTREAM_UNAVAILABLE:
        if (a->after_s >= 0)
            hint = arena_printf(c->arena,
                                "Use another tool, or repeat the call in %lld s, not before. If it fails "
                                "again, tell the user.",
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
    v->quoted = call_redact_text(c, said);
    v->last_stderr = call_redact_text(c, a->last_stderr);
    return STEP_NEXT;
}

/* Arguments go out as they are in `args.now`: in shadow mode as the client sent them. A client's second try,
 * with its user's answers, is admitted like any call: need_user_input gave back what the first one took. */
static enum step run_upstream(struct call *c)
{
    const struct call_request *r = &c->request;
    uint64_t user = r->peer ? r->peer->uid : UINT32_MAX;
    int64_t left_ms = c->tries < 2 ? 0 : c->first_try_ms + c->tool->retry.within_ms - call_mono_ms();
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
        .meta = r->meta,
        .can_elicit = r->supports_elicitation,
        .input_responses = r->input_responses,
        .request_state = r->request_state,
        .max_ms = c->tries < 2  ? 0
                  : left_ms > 0 ? (uint32_t)left_ms
                                : 1,
        .progress = r->progress,
        .log = r->log,
        .ask = r->elicit,
        .listener = r->listener,
        .user = r->peer ? r->peer->uid : 0,
        .caller = hash_seeded(r->session.len ? r->session : r->connection) ^ (user << 32),
    };
    if (upstream_start(c->gate->upstreams, &c->upstream->request, c->arena, &c->upstream->answer, call_resume,
                       c) == UPSTREAM_PENDING)
        return STEP_WAIT;
    return call_run_answered(c);
}

enum step call_run(struct call *c)
{
    bool retries = c->tool->retry.times && c->tool->mode == POLICY_ENFORCE && c->gate->upstreams;
    if (retries && !c->before_run) {
        c->before_run = ARENA_NEW(c->arena, struct verdict);
        *c->before_run = c->verdict;
        c->first_try_ms = call_mono_ms();
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

/* A transient failure that the policy wants retried: waits and goes back to stage 6. To the ledger all tries
 * are one call. */
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
    if (call_mono_ms() + pause > c->first_try_ms + c->tool->retry.within_ms)
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
