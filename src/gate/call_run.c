/*
 * Stage 6 and the way back to it: the tool is run, here or outside, and where
 * it failed for the moment and its policy says so, after a pause once more.
 * What a try leaves behind is taken back before the next; to the ledger all
 * tries are one call.
 */
#include "gate/call_state.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "gate/upstream_result.h"
#include "config/peer.h"

static int64_t mono_ms(void)
{
    return clock_mono_us() / 1000;
}

/* Whatever a try leaves behind is taken back before the next: here is what there was before the first. */
static void begin_try(struct call *c)
{
    bool again = c->tool->again.times && c->tool->mode == POLICY_ENFORCE && c->gate->upstreams;
    if (again && !c->fresh) {
        c->fresh = ARENA_NEW(c->arena, struct verdict);
        *c->fresh = c->verdict;
        c->first_try_ms = mono_ms();
    }
    c->verdict.tries = ++c->tries;
}

/* What is left for this try; 0: the first takes its own time. */
static uint32_t time_left_ms(const struct call *c)
{
    if (c->tries < 2)
        return 0;
    int64_t left = c->first_try_ms + c->tool->again.within_ms - mono_ms();
    return left > 0 ? (uint32_t)left : 1;
}

static void take_outcome(struct call *c, const struct policy_outcome *said)
{
    if (said->kind == OUTCOME_VALUE || said->kind == OUTCOME_PASS)
        result_from_value(c->arena, said->value, said->content, said->metadata, c->tool->output != NULL,
                          &c->result);
    else if (said->kind == OUTCOME_POLICY_ERROR)
        verdict_from_policy_error(&c->verdict, c->tool, c->arena, said->why.text);
    else
        verdict_from_hook(&c->verdict, c->arena, said);
}

static void run_lua(struct call *c)
{
    struct policy_outcome said;
    struct policy_call view = call_for_policy(c);
    policy_run(c->tool->policy, &view, c->args.now, c->arena, &said);
    take_outcome(c, &said);
}

/* Turned away at the door, it has not run. */
enum step call_upstream_answered(struct call *c)
{
    const struct upstream_answer *answer = &c->outside->answer;
    c->ran =
        answer->outcome != UPSTREAM_UNAVAILABLE && !(answer->outcome == UPSTREAM_REFUSED && !answer->reached);
    upstream_result_read(&c->verdict, c->arena, c->tool, answer, &c->result);
    return GO_ON;
}

/* A conversation; where it has no name, whoever is at the other end of the connection. */
static uint64_t caller_of(const struct call_request *r)
{
    uint64_t user = r->peer ? r->peer->uid : UINT32_MAX;
    return hash_seeded(r->session.len ? r->session : r->connection) ^ (user << 32);
}

/* Arguments go out as they stand: in shadow mode that is as they were sent. The second try of a client that
 * was asked something is a call like any other and counts as one: what the first had taken, need_user_input
 * has given back. So nobody gets past the budgets by saying that it answers a question. */
static enum step run_outside(struct call *c)
{
    const struct call_request *r = &c->request;
    if (!c->gate->upstreams) {
        upstream_result_unavailable_here(&c->verdict, c->arena, c->tool);
        return GO_ON;
    }
    c->outside = ARENA_NEW(c->arena, struct outside);
    c->outside->request = (struct upstream_request){
        .target = &c->tool->target,
        .arguments = c->args.now,
        .can_elicit = r->supports_elicitation,
        .input_responses = r->responses,
        .request_state = r->request_state,
        .max_ms = time_left_ms(c),
        .progress = c->progress,
        .log = c->log,
        .listener = c->listener,
        .caller = caller_of(r),
    };
    if (upstream_start(c->gate->upstreams, &c->outside->request, c->arena, &c->outside->answer, call_resume,
                       c) == UPSTREAM_PENDING)
        return WAIT;
    return call_upstream_answered(c);
}

/* A run that breaks has no result to go on with: there is no failing open here. */
enum step call_run(struct call *c)
{
    begin_try(c);
    c->ran = true;
    if (c->request.simulated_result)
        result_read(c->arena, c->request.simulated_result, &c->result);
    else if (c->tool->runner == RUNNER_UPSTREAM)
        return run_outside(c);
    else
        run_lua(c);
    return GO_ON;
}

/* ---- again ---------------------------------------------------------------- */

/* What may have been carried out is only done again where that does no harm. */
static bool does_no_harm(const struct call *c)
{
    const struct upstream_answer *answer = c->outside ? &c->outside->answer : NULL;
    return c->tool->idempotent || (answer && answer->outcome == UPSTREAM_TRANSIENT && !answer->reached);
}

/* When it is to be asked again: its own word. Of a server that died nobody needs to wait for more than the
 * pause, since the next try waits until it is up. */
static uint64_t told_ms(const struct call *c)
{
    bool restarts = c->outside && str_is(c->verdict.code, "crashed");
    return c->verdict.after_s > 0 && !restarts ? (uint64_t)c->verdict.after_s * 1000 : 0;
}

/* Doubled with each try, a quarter more or less by chance, so that those who failed together do not come back
 * together; and never before the time that the tool named. */
static uint32_t pause_ms(const struct call *c)
{
    uint64_t ms = (uint64_t)c->tool->again.backoff_ms << (c->tries - 1);
    ms = ms - ms / 4 + hash_random() % (ms / 2 + 1);
    uint64_t told = told_ms(c), longest = told > ms ? told : ms;
    return longest < UINT32_MAX ? (uint32_t)longest : UINT32_MAX;
}

static void log_again(const struct call *c, uint32_t pause)
{
    log_event(LOG_INFO, "call_again", LOG_STR("tool", c->tool->name), LOG_STR("ext", c->request.ext),
              LOG_NUM("tries", c->tries), LOG_NUM("pause_ms", pause), LOG_STR("code", c->verdict.code));
}

/* To the ledger all tries are one call. */
enum step call_retry(struct call *c)
{
    const struct policy_retry *again = c->fresh ? &c->tool->again : NULL;
    if (!again || c->verdict.class != CLASS_TRANSIENT || c->tries > again->times || !does_no_harm(c))
        return GO_ON;
    uint32_t pause = pause_ms(c);
    if (mono_ms() + pause > c->first_try_ms + again->within_ms)
        return GO_ON;
    log_again(c, pause);
    upstream_delay(c->gate->upstreams, pause, c->arena, call_resume, c);
    return WAIT;
}

enum step call_retry_due(struct call *c)
{
    c->verdict = *c->fresh;
    c->result = (struct result){0};
    c->shown = (struct compacted){0};
    c->outside = NULL;
    c->ran = c->empty = false;
    return GO_BACK;
}
