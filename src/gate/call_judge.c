/*
 * Stage 7: what came back, judged by what it says of itself, by the output
 * schema and by the policy, whose word is the last; then what of it is shown.
 */
#include "gate/call_state.h"

#include "base/log.h"
#include "gate/tool_lookup.h"
#include "result/redact.h"

/* Where the model is sent it must be able to go: what it may not call is no next step. In examples a policy
 * may stand without its neighbours. */
static void check_follow_up(struct call *c)
{
    struct call_request there = c->request;
    there.tool = json_str(json_get_text(c->verdict.follow_up, "tool"));
    if (!c->verdict.follow_up || !c->gate->metrics || tool_lookup_find(c->arena, c->generation, &there))
        return;
    log_event(LOG_WARN, "follow_up_unknown", LOG_STR("tool", c->tool->name), LOG_STR("names", there.tool),
              LOG_TEXT("why", "there is no such tool for this peer, so it is not told"));
    c->verdict.follow_up = NULL;
}

/* True: it had something to say. */
static bool judge_by_policy(struct call *c)
{
    const struct policy *policy = c->tool->policy;
    if (!policy || !policy->hooks[HOOK_RESULT])
        return false;
    struct policy_outcome said;
    struct policy_call view = call_for_policy(c);
    policy_judge(policy, &view, c->args.now, c->result.value, c->arena, &said);
    verdict_from_result_hook(&c->verdict, c->tool, c->arena, c->args.now, &c->result, &said);
    check_follow_up(c);
    return said.kind != OUTCOME_PASS && said.kind != OUTCOME_POLICY_ERROR;
}

/* The schema speaks of what the tool gave, with all that is to be hidden of it. */
static void judge_output(struct call *c, const struct result *given)
{
    verdict_from_output_schema(&c->verdict, c->tool, c->arena, given);
    if (verdict_is_decided(&c->verdict) && c->result.value != given->value)
        problems_init(&c->verdict.problems, c->arena); /* they quote it */
}

static void redact(struct call *c)
{
    const struct policy *policy = c->tool->policy;
    if (policy && c->tool->mode == POLICY_ENFORCE)
        redact_result(c->arena, policy->redact, policy->redact_count, &c->result);
}

/* What says of itself that it failed need not be what the schema declares. The policy has the last word of
 * what it is; if it takes it for a result, it is held to the schema after all. */
static void judge_envelope(struct call *c, const struct result *given, const struct envelope *envelope)
{
    if (!judge_by_policy(c))
        verdict_from_envelope(&c->verdict, c->tool, c->arena, envelope, result_text(c->arena, &c->result));
    else if (!error_class_info(c->verdict.class)->is_error)
        judge_output(c, given);
}

static void judge_result(struct call *c)
{
    const struct policy *policy = c->tool->policy;
    const struct result given = c->result;
    struct envelope envelope = {.kind = ENVELOPE_NONE};
    if (c->tool->mode == POLICY_OFF)
        return;
    redact(c);
    if (judge_reads_envelopes(c->tool))
        envelope = envelope_detect(c->arena, &c->result);
    if (envelope.kind) {
        judge_envelope(c, &given, &envelope);
    } else {
        judge_output(c, &given);
        if (!verdict_is_decided(&c->verdict))
            judge_by_policy(c);
    }
    c->verdict.final = policy && policy->final && !error_class_info(c->verdict.class)->is_error;
    call_discard_unless_enforced(c);
}

/* Only for the answer: ids, facts and fingerprints are those of the whole result. */
static void compact(struct call *c)
{
    const struct tool *tool = c->tool;
    bool felt =
        tool->compact.on && tool->mode == POLICY_ENFORCE && !error_class_info(c->verdict.class)->is_error;
    if (!felt || !compact_result(c->arena, tool, c->args.now, call_goal(c), &c->result, &c->shown))
        return;
    c->verdict.compact_note = c->shown.note;
    c->verdict.bytes_from = c->shown.done ? c->shown.from : 0;
    c->verdict.bytes_to = c->shown.done ? c->shown.to : 0;
}

/* What a tool says of its own failure is no judgement of ours, and stays in every mode. */
enum step call_judge(struct call *c)
{
    if (!verdict_is_decided(&c->verdict) && c->result.is_error)
        verdict_from_error_result(&c->verdict, c->tool, c->arena, &c->result);
    if (!verdict_is_decided(&c->verdict))
        judge_result(c);
    if (!error_class_info(c->verdict.class)->is_error)
        result_fill_structured(&c->result, c->tool->output != NULL);
    c->empty = result_is_uninformative(&c->result, c->tool->effects);
    c->verdict.blank = c->result.content && result_is_blank(&c->result);
    compact(c);
    return GO_ON;
}
