/*
 * Stage 7: judges a result or a reported error. In order: failures that the result itself states, the output
 * schema, the policy's result hook, which has the last word; then shortens what the model gets.
 */
#include "gate/call_state.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/stack_trace.h"
#include "gate/verdict.h"
#include "json/build.h"
#include "policy/known_tools.h"
#include "result/failure_envelope.h"
#include "result/partial_result.h"
#include "result/pattern_sets.h"
#include "result/redact.h"
#include "schema/coerce.h"

/* ---- redaction ---- */

struct str call_redact_text(struct call *c, struct str text)
{
    const struct policy *policy;
    for (size_t i = 0; c->tool && (policy = tool_enforced_policy(c->tool, &i));) {
        text = redact_text(c->arena, policy->redact, policy->redact_count, text);
        text = pattern_sets_mask_text(c->arena, policy->result_sets, text);
    }
    return text;
}

/* Redacts what its own policy and its overlays name, as far as they are enforced; before anything is judged,
 * quoted or kept. */
void call_redact(struct call *c)
{
    const struct policy *policy;
    for (size_t i = 0; (policy = tool_enforced_policy(c->tool, &i));) {
        struct redact_found found = {0};
        if (policy->result_sets & PATTERN_SETS_MASKING)
            pattern_guard_mask(c, policy->result_sets & PATTERN_SETS_MASKING);
        if (!policy->redact_count)
            continue;
        enum redact_status status = redact_result(c->arena, policy->redact, policy->redact_count,
                                                  c->tool->output_schema, &c->result, &found);
        if (status == REDACT_UNFIT || status == REDACT_TOO_COMPLEX) {
            if (status == REDACT_TOO_COMPLEX)
                verdict_set(
                    &c->verdict, CLASS_SCHEMA_MISMATCH, STR_LIT("redaction_too_complex"),
                    arena_printf(c->arena,
                                 "it holds more that must be masked than the gateway looks for: over %u "
                                 "different values, or too much text around them",
                                 REDACT_COPIES_MAX),
                    CALL_HINT_ASK_FOR_LESS);
            else
                verdict_set(
                    &c->verdict, CLASS_SCHEMA_MISMATCH, STR_LIT("redaction_unfit"),
                    arena_printf(c->arena,
                                 "its result cannot be shown: with the fields masked that " STR_FMT
                                 " names in 'redact', it would not fit its output schema",
                                 STR_ARG(policy->file)),
                    STR_LIT("The operator must correct the policy. Use another tool, or tell the user."));
            c->result = (struct result){0};
            return;
        }
        if (policy == (c->request.enforced_overlay ? c->request.enforced_overlay : c->tool->policy))
            c->outcome.redacted = found.fields;
        if (found.blank) {
            /* The model reads which masks it could take for data. */
            struct buf names = buf_in(c->arena);
            for (size_t k = 0; k < policy->redact_count && k < REDACT_FIELDS_MAX; k++)
                if (found.fields & ((uint64_t)1 << k))
                    buf_printf(&names, "%s" STR_FMT, names.len ? ", " : "", STR_ARG(policy->redact[k]));
            verdict_warn(&c->verdict, c->arena,
                         ARENA_JOIN(c->arena, STR_LIT("Redacted: "), buf_view(&names),
                                    STR_LIT(". A 0, a false or an empty list there is a mask, not data.")));
        }
    }
}

/* ---- failures that the result states ---- */

static bool reads_envelopes(const struct tool *tool)
{
    return tool->mode != POLICY_OFF && !(tool->policy && !tool->policy->envelopes);
}

bool call_is_rate_limited(const struct call *c, const struct upstream_answer *a, int64_t *after_s)
{
    const struct result error = {.value = a->rpc_error};
    if (!a->reached || !json_is(a->rpc_error, JSON_OBJECT) || a->rpc_code == -32602 ||
        a->rpc_code == -32601 || !reads_envelopes(c->tool) || c->tool->mode != POLICY_ENFORCE)
        return false;
    struct envelope e = envelope_of_error(c->arena, &error);
    *after_s = e.after_s;
    return e.kind == ENVELOPE_TRANSIENT && strcmp(e.code, "rate_limited") == 0;
}

static const struct {
    const char *code, *detail;
} envelope_details[] = {
    {"success_false", "its result reports a failure"},
    {"valid_false", "its result reports that what it got is not valid"},
    {"status_error", "the status in its result is an error"},
    {"error_field", "its result has an error and no data"},
    {"errors_field", "its result has errors and no data"},
    {"http_status", "its result has an HTTP error status"},
    {"error_text", "its result is an error message"},
    {"exit_code", "its command failed"},
    {"rate_limited", "it is called too often"},
    {"timed_out", "it took too long"},
    {"overloaded", "the service behind it is overloaded"},
    {"connection_lost", "the connection behind it was lost"},
    {"busy", "its resource is in use"},
    {"server_error", "the service behind it had an internal error"},
    {"conflict", "what it changes was changed by someone else"},
    {"later", "it asks for a later retry"},
};

static void verdict_from_envelope(struct call *c, const struct envelope *e, struct str message)
{
    struct verdict *v = &c->verdict;
    if (e->kind == ENVELOPE_NEEDS_INPUT) {
        bool ambiguous = strcmp(e->code, "ambiguous") == 0;
        verdict_set(v, CLASS_NEED_USER_INPUT, str_of(e->code), STR_NONE, STR_NONE);
        if (!e->question.len)
            v->detail =
                ambiguous ? STR_LIT("Several things fit. Which one is meant?") : STR_LIT("How to go on?");
        v->quoted = e->question;
        v->choices = e->choices;
        if (e->choices_left_out)
            v->hint = arena_printf(c->arena,
                                   "Ask exactly that and wait for the answer; %zu more choices are left out: "
                                   "say so, too.",
                                   e->choices_left_out);
        return;
    }
    bool transient = e->kind == ENVELOPE_TRANSIENT;
    bool unsure = transient && !c->tool->idempotent &&
                  (strcmp(e->code, "timed_out") == 0 || strcmp(e->code, "connection_lost") == 0);
    const char *detail = NULL;
    for (size_t i = 0; e->code && i < sizeof(envelope_details) / sizeof(*envelope_details); i++)
        if (strcmp(envelope_details[i].code, e->code) == 0)
            detail = envelope_details[i].detail;
    verdict_set(v, transient ? CLASS_TRANSIENT : CLASS_TOOL_ERROR, str_of(e->code), str_of(detail),
                unsure ? CALL_HINT_CHECK_FIRST : STR_NONE);
    v->quoted = stack_trace_strip(c->arena, message);
    v->after_s = transient ? e->after_s : -1;
}

/* A failure's structured content, unless its words have it, and its pictures and links. */
static void keep_beside(struct call *c, const struct result *result)
{
    struct verdict *v = &c->verdict;
    v->keeps_blocks = result->is_call_result;
    bool has_data = result->structured && !json_is(result->structured, JSON_NULL);
    if (has_data && result->error_text.len &&
        !result_content_says(c->arena, result->content, result->structured))
        v->data = json_to_str(c->arena, result->structured);
}

/* An error that the tool reports is an error in every mode. Its kind (transient, a question, …) is read from
 * the result's text, or from `message` if there is no result. */
static void judge_stated_error(struct call *c, const struct result *result, struct str message)
{
    struct envelope envelope = {.kind = ENVELOPE_FAILED, .after_s = -1};
    if (reads_envelopes(c->tool) && c->tool->mode == POLICY_ENFORCE)
        envelope = result ? envelope_of_error(c->arena, result) : envelope_of_message(message);
    verdict_from_envelope(c, &envelope, message);
    if (result)
        keep_beside(c, result);
}

/* ---- the output schema ---- */

/* A null of an optional member means that it is absent. True: now the result fits. */
static bool drop_nulls(struct call *c)
{
    static const struct coerce_options nulls = {.nulls = true};
    struct result *r = &c->result;
    if (!c->tool->output_misfits)
        return false;
    r->value = schema_coerce(c->tool->output_schema, r->value, &nulls, c->arena, NULL);
    r->structured = r->structured ? r->value : NULL;
    return schema_validate(c->tool->output_schema, r->value) == SCHEMA_VALID;
}

/* What does not fit its server's own schema passes with a note: the schema is older than the server. `first`:
 * of the problems; NULL: it is no JSON. */
static void pass_misfit(struct call *c, const struct problem *first, struct str detail)
{
    struct verdict *v = &c->verdict;
    v->problems.count = first ? v->problems.count : 0;
    v->problems.errors = v->problems.more = 0;
    for (size_t i = 0; i < v->problems.count; i++) {
        struct problem *problem = &v->problems.list[i];
        problem->warning = problem->quiet = true;
        problem->renames = false;
    }
    verdict_warn(v, c->arena,
                 ARENA_JOIN(c->arena, STR_LIT("The result is as the tool sent it: "), detail, STR_LIT(".")));
    if (!*c->tool->output_misfits)
        log_event(LOG_WARN, "result_misfit", LOG_STR("tool", c->tool->name),
                  LOG_STR("at", first ? first->path : STR_NONE),
                  LOG_TEXT("rule", first ? first->code : "invalid_json"));
    *c->tool->output_misfits = true;
}

/* `given` is the result before redaction, since redacted fields may violate the schema. If anything was
 * redacted, no problem is listed: it could quote a redacted value. */
static void judge_by_schema(struct call *c, const struct result *given)
{
    struct verdict *v = &c->verdict;
    const struct tool *tool = c->tool;
    bool validates = tool->output_schema && !(tool->policy && !tool->policy->validate);
    enum schema_validity validity =
        validates ? schema_validate(tool->output_schema, given->value) : SCHEMA_VALID;
    struct str detail = STR_LIT("it does not fit the tool's output schema");
    struct problems found; /* a redacted result is named by its first problem's place alone */
    bool redacted = c->result.value != given->value;
    if (validity == SCHEMA_TOO_COMPLEX) {
        /* A good result is not refused because its schema is too much work for it: it goes out as it came. */
        log_event(LOG_WARN, "result_not_judged", LOG_STR("tool", c->tool->name),
                  LOG_TEXT("reason", "too_complex"), LOG_NUM("max_steps", SCHEMA_MAX_STEPS));
        if (!v->problems.arena)
            problems_init(&v->problems, c->arena);
        problems_add(
            &v->problems,
            (struct problem){.code = "too_complex",
                             .message = STR_LIT("was not compared with the tool's output schema: that "
                                                "takes more steps than a result may"),
                             .in_result = true,
                             .warning = true,
                             .quiet = true});
    }
    if (validity != SCHEMA_INVALID || drop_nulls(c))
        return;
    problems_init(&v->problems, c->arena);
    const char *code = result_parse_error(given);
    struct str cut = code ? partial_result_cut(c->arena, given) : STR_NONE;
    if (cut.len) { /* what is missing is no problem of the tool's: nothing to list */
        verdict_set(v, CLASS_SCHEMA_MISMATCH, STR_LIT("truncated_response"), cut, CALL_HINT_ASK_FOR_LESS);
        return;
    }
    problems_init(&found, c->arena);
    schema_explain(tool->output_schema, tool->output_misfits ? c->result.value : given->value, &found, NULL);
    if (found.count && found.list[0].path.len)
        detail =
            arena_printf(c->arena, STR_FMT " at '" STR_FMT "'", STR_ARG(detail), STR_ARG(found.list[0].path));
    if (!redacted) { /* else a message may quote what is redacted */
        v->problems = found;
        if (found.count)
            detail = ARENA_JOIN(c->arena, detail, STR_LIT(": "), found.list[0].message);
    }
    for (size_t i = 0; i < v->problems.count; i++)
        v->problems.list[i].in_result = true;
    if (tool->output_misfits) {
        pass_misfit(c, code ? NULL : found.list,
                    code ? STR_LIT("it is no JSON, as the tool's output schema says") : detail);
        return;
    }
    verdict_set(v, CLASS_SCHEMA_MISMATCH, str_of(code ? code : "schema_violation"),
                code ? STR_LIT("the tool should return JSON, and its answer is none") : detail, STR_NONE);
}

/* ---- the policy's result hook ---- */

/* Merges the hook's changes, such as {page = 2}, into this call's arguments. */
static const struct json *next_args(struct call *c, const struct json *changes)
{
    if (!json_is(changes, JSON_OBJECT) || !json_is(c->args.now, JSON_OBJECT))
        return NULL;
    return json_keep(c->arena, json_merge(c->arena, c->args.now, changes));
}

/* NULL if the client may not call the tool that should follow. Examples (no metrics) do not look: they load
 * one policy without the other tools. */
static const struct json *follow_up(struct call *c, const struct json *follow)
{
    struct call_request next = c->request;
    const struct json *args = json_get_text(follow, "args");
    if (!follow)
        return NULL;
    next.tool = json_str(json_get_text(follow, "tool"));
    if (c->gate->metrics && !tool_lookup_find(c, &next)) {
        log_event(LOG_WARN, "follow_up_unknown", LOG_STR("tool", c->tool->name), LOG_STR("names", next.tool),
                  LOG_TEXT("why", "this peer may not call that tool; the follow-up was dropped"));
        return NULL;
    }
    if (!json_is(follow, JSON_OBJECT) || json_is(args, JSON_OBJECT) || (args && args->len))
        return follow;
    struct json empty = json_object(c->arena, NULL, 0); /* an empty Lua table arrives as [] */
    return json_keep(c->arena, json_with(c->arena, follow, STR_LIT("args"), empty));
}

/* True: the hook judged the result. */
static bool judge_by_policy(struct call *c, const struct policy *policy)
{
    struct verdict *v = &c->verdict;
    if (!policy || !policy->hooks[HOOK_RESULT])
        return false;
    struct policy_outcome outcome __attribute__((uninitialized)); /* 2 KB, filled in by policy_judge */
    struct policy_call view = call_for_policy(c);
    policy_judge(policy, &view, c->args.now, c->result.value, c->arena, &outcome);
    v->coverage = outcome.coverage;
    v->facts = outcome.facts;
    v->follow_up = follow_up(c, outcome.follow_up);
    if (outcome.cost >= 0)
        v->cost = outcome.cost;
    if (outcome.next_args)
        v->next_args = next_args(c, outcome.next_args);
    verdict_from_hook(v, c->arena, &outcome);
    v->quoted_is_policy |= outcome.kind == OUTCOME_TRANSIENT || outcome.kind == OUTCOME_FAILED;
    if (outcome.kind == OUTCOME_GARBAGE)
        v->quoted = result_text(c->arena, &c->result);
    if (outcome.kind != OUTCOME_POLICY_ERROR)
        return outcome.kind != OUTCOME_PASS;
    if (policy->fails_open) { /* the result is delivered, with a warning */
        verdict_log_policy_error(c->tool->name, outcome.why.text);
        v->warning = STR_LIT("The gateway could not check this result; verify it yourself.");
        return false;
    }
    verdict_from_policy_error(v, c->tool, c->arena, outcome.why.text);
    v->code = STR_LIT(VERDICT_RESULT_UNCHECKED);
    v->hint = STR_LIT("Do not repeat the call: it has run. Use another tool, or tell the user that the "
                      "operator must fix the policy.");
    return true;
}

/* ---- what is under way ---- */

/* Of a shell's arguments: "tail log", ["tail", "log"], ["bash", "-c", "tail log"]. */
static struct str shell_command(struct arena *arena, const struct json *args)
{
    const struct json *command = json_get_text(args, "command");
    struct buf words = buf_in(arena);
    command = command ? command : json_get_text(args, "cmd");
    if (!json_is(command, JSON_ARRAY))
        return json_str(command);
    static const char *const flags[] = {"-c", "-lc", "-ic", "/c", "-Command"};
    bool is_script = command->len > 2 && STR_IS_ONE_OF(json_str(&command->items[1]), flags);
    for (uint32_t i = is_script ? 2 : 0; i < command->len; i++)
        buf_printf(&words, STR_FMT " ", STR_ARG(json_str(&command->items[i])));
    return buf_view(&words);
}

/* A tool of unknown effects may have written, but for a shell whose command shows how far something is. */
bool call_under_way(struct arena *arena, const struct ledger_limits *limits, const struct json *args,
                    const struct result *result)
{
    bool reads = limits->effects == LEDGER_EFFECTS_READ || limits->polls;
    bool watches =
        limits->effects == LEDGER_EFFECTS_UNKNOWN && known_tools_watches(shell_command(arena, args));
    return result->value && !limits->compare_arguments && (reads || watches) &&
           result_is_under_way(result, watches);
}

/* ---- the stage ---- */

/* A failure envelope need not have the form that the output schema declares, unless the policy takes it for a
 * result. */
static void judge_result(struct call *c, const struct result *given)
{
    const struct policy *policy = c->tool->policy;
    struct verdict *v = &c->verdict;
    struct envelope envelope = {.kind = ENVELOPE_NONE};
    bool reads = reads_envelopes(c->tool);
    if (reads)
        envelope = envelope_detect(c->arena, &c->result, &(struct envelope_call){c->tool->name, c->args.now});
    if (!envelope.kind) {
        judge_by_schema(c, given);
        struct partial_result partial = {NULL};
        if (!verdict_is_decided(v) && !judge_by_policy(c, policy) && reads)
            partial = partial_result_detect(c->arena, &c->result, c->tool->input, c->args.now);
        if (partial.code)
            verdict_set(v, CLASS_PARTIAL_DATA, str_of(partial.code), partial.detail, STR_NONE);
        /* The arguments of the rest are shown only if the tool would accept them. */
        const struct json *next = partial.next && !v->next_args ? next_args(c, partial.next) : NULL;
        if (next && c->tool->input_schema && schema_validate(c->tool->input_schema, next) == SCHEMA_VALID)
            v->next_args = next;
    } else if (!judge_by_policy(c, policy)) {
        verdict_from_envelope(c, &envelope, result_text(c->arena, &c->result));
        keep_beside(c, &c->result);
        /* Clients and models of a tool that speaks MCP get what it sent, and its own isError: a failure that
         * is only recognised must not hide data. Clients reject it only for its output schema. */
        bool fits =
            !c->tool->output || (given->structured && c->tool->output_schema &&
                                 schema_validate(c->tool->output_schema, given->value) == SCHEMA_VALID);
        v->as_sent =
            c->result.is_call_result && fits && (v->class == CLASS_TOOL_ERROR || v->class == CLASS_TRANSIENT);
    } else if (!error_class_info(v->class)->is_error) {
        judge_by_schema(c, given);
    }
    v->final = policy && policy->final && !error_class_info(v->class)->is_error;
    call_discard_unless_enforced(c);
    /* An error stands: no overlay can be stricter about a result that the model does not get. */
    for (size_t i = 0; i < c->tool->overlay_count; i++) {
        const struct overlay *overlay = &c->tool->overlays[i];
        struct verdict before = c->verdict;
        if (overlay->mode == POLICY_OFF || error_class_info(before.class)->is_error)
            continue;
        pattern_guard_judge(c, overlay);
        before = c->verdict;
        judge_by_policy(c, overlay->policy);
        struct verdict found = c->verdict;
        c->verdict = before;
        overlays_merge(c, overlay, &found);
    }
}

/* The fact by which later calls, hooks and toolgate/session see the last judgement of the session. */
#define COVERAGE_FACT STR_LIT("coverage")

enum step call_judge(struct call *c)
{
    struct verdict *v = &c->verdict;
    if (c->request.mode == CALL_REPORT) {
        const struct call_request *r = &c->request;
        /* a report begins here: the agent ran the tool */
        struct str message = call_redact_text(c, r->error_message);
        c->ran = true;
        c->verdict.valid = true;
        if (r->arguments) /* else hooks see none */
            arguments_read(&c->args, c->arena, NULL, r->arguments, STR_NONE, &c->generation->config);
        if (!r->has_error) {
            result_read(c->arena, r->result, &c->result);
        } else if (r->error_cancelled) {
            verdict_set(&c->verdict, CLASS_CANCELLED, STR_LIT("cancelled"), STR_NONE, STR_NONE);
        } else if (r->error_retry) { /* what the tool asks its caller to do better, as retry() of a hook */
            verdict_set(&c->verdict, CLASS_INVALID_ARGUMENTS, STR_LIT("retry"), message, STR_NONE);
            c->verdict.valid = false;
        } else if (r->error_transient_given) {
            verdict_set(&c->verdict, r->error_transient ? CLASS_TRANSIENT : CLASS_TOOL_ERROR, STR_NONE,
                        STR_NONE, STR_NONE);
            c->verdict.quoted = message;
        } else {
            judge_stated_error(c, NULL, message);
        }
    }
    const struct result given = c->result; /* redacted fields may break the output schema */
    if (c->tool->redacts)
        call_redact(c);
    if (!verdict_is_decided(v) && c->result.is_error)
        judge_stated_error(c, &c->result, result_text(c->arena, &c->result));
    if (!verdict_is_decided(v) && (c->tool->mode != POLICY_OFF || c->tool->overlay_count))
        judge_result(c, &given);
    if (c->request.coverage
            .len) { /* what the agent's own judge says has the last word: it knows the conversation */
        struct json facts = json_merge(c->arena, v->facts, c->request.judged_facts);
        facts = json_with(c->arena, &facts, COVERAGE_FACT, json_string(c->request.coverage));
        v->facts = json_keep(c->arena, facts);
        v->coverage = c->request.coverage;
        if (c->request.judged_follow_up)
            v->follow_up = follow_up(c, c->request.judged_follow_up);
        if (c->request.judged_question.len)
            v->hint = ARENA_JOIN(c->arena, STR_LIT("Ask the user: "), c->request.judged_question);
    }
    bool is_error = verdict_replaces_result(v);
    if (!is_error)
        result_complete(c->arena, &c->result, c->tool->output != NULL);
    c->uninformative = result_is_uninformative(&c->result, c->tool->effects);
    v->blank = c->result.content && result_is_blank(&c->result);
    /* Ids, facts and fingerprints come from the whole result; only the model gets the compacted one. */
    if (!is_error && c->tool->compact.on && c->tool->mode == POLICY_ENFORCE &&
        compact_result(c->arena, c->tool, c->args.now, call_goal(c), &c->result, &c->compacted)) {
        v->compact_note = c->compacted.note;
        v->bytes_from = c->compacted.done ? c->compacted.from : 0;
        v->bytes_to = c->compacted.done ? c->compacted.to : 0;
    }
    return STEP_NEXT;
}
