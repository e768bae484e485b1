/* The table of outcome classes, a verdict as JSON, and the JSON Schemas that describe it (*.schema.json). */
#include "gate/verdict.h"

#include "base/arena.h"
#include "base/embedded.h"
#include "base/log.h"
#include "gate/arguments.h"
#include "gate/ids.h"
#include "json/write.h"
#include "policy/policy_hooks.h"

/* ---- classes ---- */

/* Short names for the columns that hold ledger constants. */
#define ADMIT(word)  LEDGER_SO_FAR_##word
#define SETTLE(word) LEDGER_CLASS_##word

#define DO_NOT_REPEAT "Do not repeat the call now. Use another tool, or tell the user."

/* One row per class: what programs see, what the ledger counts, what the model reads. */
const struct error_class_info error_class_table[CLASS_COUNT] = {
    [CLASS_OK] = {"ok", VERDICT_PASS, false, ADMIT(VALID), SETTLE(OK), .coverage = NULL},

    [CLASS_PARTIAL_DATA] = {"partial_data", VERDICT_PASS, false, ADMIT(VALID), SETTLE(PARTIAL),
                            .coverage = "NEEDS_MORE_TOOLS"},

    [CLASS_SEMANTIC_GARBAGE] = {"semantic_garbage", VERDICT_REPAIR, true, ADMIT(VALID), SETTLE(GARBAGE),
                                .coverage = "NEEDS_MORE_TOOLS",
                                .headline = "ran, but its result is not usable",
                                .next = "Change the arguments, or use another tool."},

    [CLASS_SCHEMA_MISMATCH] =
        {"schema_mismatch", VERDICT_REFUSE, true, ADMIT(VALID), SETTLE(SCHEMA_MISMATCH), .coverage = "FAILED",
         .headline = "ran, but its result is broken",
         .next = "The tool is broken, not your call: do not retry it. Use another tool, or tell the user."},

    [CLASS_TRANSIENT] = {"transient", VERDICT_WAIT, true, ADMIT(VALID), SETTLE(TRANSIENT),
                         .headline = "failed temporarily"},

    [CLASS_TOOL_ERROR] = {"tool_error", VERDICT_REPAIR, true, ADMIT(VALID), SETTLE(TOOL_ERROR),
                          .coverage = "FAILED", .headline = "ran and failed",
                          .next = "If the message names an argument, change that and call again; else use "
                                  "another tool, or tell the user."},

    [CLASS_INVALID_ARGUMENTS] = {"invalid_arguments", VERDICT_REPAIR, true, ADMIT(INVALID), SETTLE(INVALID)},

    [CLASS_FABRICATED_ID] =
        {"fabricated_id", VERDICT_REFUSE, true, ADMIT(FABRICATED), SETTLE(FABRICATED),
         .headline = "was not run: an id in its arguments was made up.",
         .next = "Look the id up with a search or list tool, or ask the user for it; do not guess it."},

    [CLASS_UNKNOWN_TOOL] = {"unknown_tool", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED)},

    [CLASS_FORBIDDEN] =
        {"forbidden", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED), .headline = "was refused",
         .next = "Do not repeat this call. Use another tool, or tell the user why it cannot be done."},

    [CLASS_AGENT_RUNS_THIS] = {"agent_runs_this", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED),
                               .headline = "is run by the agent itself, not by toolgate.",
                               .next = "Do not call it here again: your program must call toolgate/check, "
                                       "run the tool, and call toolgate/report."},

    [CLASS_RETRY_BUDGET] = {"retry_budget", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED)},

    [CLASS_LOOP] = {"loop", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED)},

    [CLASS_POLICY_ERROR] = {"policy_error", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED),
                            .headline =
                                "was not run: the gateway's policy for this tool is broken, not your call.",
                            .next = "Do not repeat the call. Use another tool, or tell the user that the "
                                    "operator must fix the policy."},

    [CLASS_UNAVAILABLE] = {"unavailable", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED),
                           .headline = "is unavailable", .next = DO_NOT_REPEAT},

    [CLASS_NEED_USER_INPUT] = {"need_user_input", VERDICT_ASK, true, ADMIT(VALID), SETTLE(RELEASED),
                               .coverage = "NEED_USER_INPUT"},

    [CLASS_CANCELLED] = {"cancelled", VERDICT_REFUSE, true, ADMIT(VALID), SETTLE(RELEASED),
                         .headline = "was cancelled", .next = DO_NOT_REPEAT},
};

enum err error_class_named(struct str name, enum error_class *out)
{
    for (int i = 0; i < CLASS_COUNT; i++)
        if (str_is(name, error_class_table[i].name)) {
            *out = (enum error_class)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}

/* ---- verdicts ---- */

static const char *const verdict_names[] = {"pass", "repair", "wait", "refuse", "ask", "halt"};

const char *verdict_name(enum verdict_kind kind)
{
    return verdict_names[kind];
}

void verdict_set(struct verdict *v, enum error_class class, struct str code, struct str detail,
                 struct str hint)
{
    v->class = class;
    v->kind = error_class_info(class)->verdict;
    v->code = code;
    v->detail = detail;
    v->hint = hint;
}

void verdict_describe(struct verdict *v, struct str detail, struct str hint)
{
    v->detail = v->detail.len ? v->detail : detail;
    v->hint = v->hint.len ? v->hint : hint;
}

void verdict_warn(struct verdict *v, struct arena *arena, struct str sentence)
{
    v->warning = ARENA_JOIN(arena, v->warning, v->warning.len ? STR_LIT(" ") : STR_NONE, sentence);
}

struct verdict *verdict_copy(struct arena *arena, const struct verdict *v)
{
    struct verdict *copy = arena_alloc(arena, sizeof(*copy));
    *copy = *v;
    return copy;
}

void verdict_discard(struct verdict *v, struct arena *arena, bool remember)
{
    struct verdict kept = {.valid = true,
                           .after_s = -1,
                           .cost = v->cost,
                           .would = v->would,
                           .shadowed = v->shadowed,
                           .attempt = v->attempt,
                           .repeats = v->repeats,
                           .no_progress = v->no_progress,
                           .engine = v->engine};
    if (remember && !v->would.len && error_class_info(v->class)->is_error) {
        kept.would = v->code.len ? v->code : str_of(error_class_info(v->class)->name);
        kept.shadowed = verdict_copy(arena, v);
    }
    problems_init(&kept.problems, arena);
    *v = kept;
}

static void write_suggestion(struct json_out *out, const struct problem *place, struct str value)
{
    struct buf path = {0};
    problem_path(&path, place);
    json_open(out, '{');
    json_field_str(out, "path", buf_view(&path));
    json_key(out, "value");
    json_put_raw(out, value);
    json_close(out, '}');
    buf_clear(&path);
}

void verdict_write(struct json_out *out, const struct verdict *v)
{
    json_field_text(out, "verdict", verdict_name(v->kind));
    json_field_bool(out, "valid", v->valid);
    json_field_text(out, "error_class", error_class_info(v->class)->name);
    json_field_optional_str(out, "code", v->code);
    json_field_optional_str(out, "detail", v->detail);
    json_field_optional_str(out, "hint", v->hint);
    if (v->problems.count) {
        json_field_open(out, "messages", '[');
        for (size_t i = 0; i < v->problems.count; i++)
            problem_json(out, &v->problems.list[i]);
        json_close(out, ']');
        if (v->problems.more)
            json_field_int(out, "more_messages", (int64_t)v->problems.more);
    }
    const struct json *suggest = json_is(v->suggest, JSON_OBJECT) && v->suggest->len ? v->suggest : NULL;
    size_t suggested = 0;
    for (size_t i = 0; i < v->problems.count; i++)
        suggested += v->problems.list[i].suggestion.len > 0;
    if (suggested || suggest) { /* those of single problems, then those of the policy */
        json_field_open(out, "suggestions", '[');
        for (size_t i = 0; i < v->problems.count; i++)
            if (v->problems.list[i].suggestion.len)
                write_suggestion(out, &v->problems.list[i], v->problems.list[i].suggestion);
        for (uint32_t i = 0; suggest && i < suggest->len; i++) {
            struct problem place = {.path = suggest->members[i].key};
            write_suggestion(out, &place, json_to_str(v->problems.arena, &suggest->members[i].value));
        }
        json_close(out, ']');
    }
    if (v->rewrites && v->rewrites->len)
        json_field(out, "rewrites", v->rewrites);
    if (v->attempt)
        json_field_int(out, "attempt", v->attempt);
    if (v->has_budget)
        json_field_int(out, "attempts_left", v->attempts_left);
    json_field_int(out, "repeats", v->repeats);
    if (v->notice_count)
        json_field_strs(out, "warnings", v->notices, v->notice_count);
    json_field_optional_str(out, "last_stderr", v->last_stderr);
    if (v->tries > 1)
        json_field_int(out, "tries", v->tries);
    if (v->no_progress >= VERDICT_NO_PROGRESS)
        json_field_int(out, "no_progress", v->no_progress);
    if (v->same_failure >= LEDGER_SAME_FAILURE_NOTED)
        json_field_int(out, "same_failure", v->same_failure);
    if (v->after_s >= 0)
        json_field_int(out, "after_s", v->after_s);
    json_field_optional_str(out, "coverage", v->coverage);
    json_field_optional(out, "facts", v->facts);
    json_field_optional(out, "follow_up", v->follow_up);
    json_field_optional(out, "next_args", v->next_args);
    json_field_optional(out, "choices", v->choices);
    json_field_optional_str(out, "approval", v->approval);
    if (v->bytes_from)
        json_field_object(out, "compacted", FIELD_NUM("from_bytes", v->bytes_from),
                          FIELD_NUM("to_bytes", v->bytes_to));
    json_field_optional_str(out, "would", v->would);
    if (v->final)
        json_field_bool(out, "final", true);
    json_field_optional_str(out, "ledger", str_of(v->engine));
}

struct str verdict_schema(void)
{
    return str_trim(embedded_text("src/gate/verdict.schema.json"));
}

struct str coverage_schema(void)
{
    return str_trim(embedded_text("src/gate/coverage.schema.json"));
}

/* ---- what arguments, ids, the ledger and policy hooks report ---- */

/* How long to wait after a transient failure if the tool names no time; doubled with each failure. */
#define WAIT_FIRST_S       2
#define WAIT_DOUBLINGS_MAX 5u

void verdict_log_policy_error(struct str tool, const char *why)
{
    log_event(LOG_WARN, "policy_error", LOG_STR("tool", tool), LOG_TEXT("why", why));
}

void verdict_from_policy_error(struct verdict *v, const struct tool *tool, struct arena *arena,
                               const char *why)
{
    verdict_log_policy_error(tool->name, why);
    verdict_set(v, CLASS_POLICY_ERROR, STR_LIT("policy_broke"), arena_dup(arena, str_of(why)),
                str_of(error_class_info(CLASS_POLICY_ERROR)->next));
}

void verdict_from_broken_hook(struct verdict *v, const struct tool *tool, const struct policy *policy,
                              struct arena *arena, const char *why)
{
    if (policy->fails_open)
        verdict_log_policy_error(tool->name, why);
    else
        verdict_from_policy_error(v, tool, arena, why);
}

void verdict_from_arguments(struct verdict *v, const struct tool *tool, const struct policy *policy,
                            struct arena *arena, const struct arguments *args)
{
    bool is_cut_off = false;
    v->problems = args->problems;
    for (size_t i = 0; i < v->problems.count; i++)
        is_cut_off |= strcmp(v->problems.list[i].code, "cut_off") == 0;
    if (args->policy_error.len)
        verdict_from_broken_hook(v, tool, policy, arena, args->policy_error.at);
    else if (args->problems.errors)
        verdict_set(v, CLASS_INVALID_ARGUMENTS,
                    is_cut_off ? STR_LIT("cut_off") : STR_LIT("invalid_arguments"), STR_NONE, STR_NONE);
    if (args->problems.errors && args->proposed &&
        json_to_str(arena, args->proposed).len <= ARGUMENTS_PROPOSED_MAX_BYTES)
        v->suggest = args->proposed;
}

/* The problem replaces what the schema reported for the same path. */
static void verdict_from_id(struct verdict *v, struct arena *arena, enum error_class class, const char *code,
                            const struct id_fault *fault, struct str message, struct str hint)
{
    struct problem problem = {.path = fault->path, .code = code, .message = message, .got = fault->got};
    size_t i = 0;
    while (i < v->problems.count &&
           (v->problems.list[i].warning || !str_eq(v->problems.list[i].path, problem.path)))
        i++;
    problem_clean(arena, &problem);
    if (i < v->problems.count)
        v->problems.list[i] = problem;
    else
        problems_add(&v->problems, problem);
    verdict_set(v, class, str_of(code), STR_NONE, hint);
    v->valid = false;
}

void verdict_from_malformed_id(struct verdict *v, struct arena *arena, const struct id_fault *fault)
{
    struct str message = arena_printf(arena, STR_FMT " cannot be an id of this tool: expected %s",
                                      STR_ARG(fault->got), fault->wanted);
    verdict_from_id(v, arena, CLASS_FABRICATED_ID, "impossible_id", fault, message, STR_NONE);
}

void verdict_from_unseen_id(struct verdict *v, struct arena *arena, const struct id_fault *fault,
                            const struct policy_id *id, bool certain)
{
    struct str message = arena_printf(arena, STR_FMT " came neither from an earlier result nor from the user",
                                      STR_ARG(fault->got));
    struct str hint = STR_LIT("Look the id up first, or ask the user for it; never make one up.");
    if (id->look_up.len)
        hint = arena_printf(arena, "Look the id up first with " STR_FMT "; never make one up.",
                            STR_ARG(id->look_up));
    verdict_from_id(v, arena, certain ? CLASS_FABRICATED_ID : CLASS_INVALID_ARGUMENTS, "unseen_id", fault,
                    message, hint);
}

void verdict_from_many_ids(struct verdict *v, struct arena *arena, const struct policy_id *id)
{
    struct id_fault fault = {.path = id->path};
    verdict_from_id(
        v, arena, CLASS_INVALID_ARGUMENTS, "too_many_ids", &fault,
        arena_printf(arena, "more than %u different ids in one call", LEDGER_IDS_MAX),
        arena_printf(arena, "Make several calls, each with at most %u of the ids.", LEDGER_IDS_MAX));
}

static void exhaust_repairs(struct verdict *v)
{
    v->kind = VERDICT_REFUSE;
    v->code = STR_LIT("retry_budget_exceeded");
}

void verdict_from_ledger(struct verdict *v, const struct ledger_answer *answer)
{
    bool runs = answer->says == LEDGER_RUN || answer->says == LEDGER_REPAIR;
    v->attempt = answer->attempt;
    v->attempts_left = answer->attempts_left;
    v->has_budget = v->class == CLASS_INVALID_ARGUMENTS;
    v->repeats = answer->repeats;
    v->at_once = answer->at_once;
    v->came_of = answer->came_of;
    v->last_error = answer->last_error;
    v->may_insist = answer->may_insist;
    v->no_progress = answer->no_progress;
    v->same_calls = answer->spent;
    v->limit_used = answer->used;
    v->session_limit = answer->of_session;
    if (runs && answer->would.len && !v->would.len)
        v->would = answer->would;
    if (answer->error != OK)
        verdict_set(v, CLASS_UNAVAILABLE, STR_LIT("ledger_unavailable"), STR_NONE, STR_NONE);
    else if (!runs) {
        bool is_loop = str_is(answer->code, "loop") || str_is(answer->code, "cycle");
        if (answer->says == LEDGER_HALT || is_loop) {
            verdict_set(v, CLASS_LOOP, answer->code, STR_NONE, STR_NONE);
        } else if (v->class == CLASS_INVALID_ARGUMENTS) {
            exhaust_repairs(v);
        } else if (v->class == CLASS_OK && (str_is(answer->code, "too_soon") ||
                                            str_is(answer->code, "rate_limit"))) { /* fine later */
            verdict_set(v, CLASS_TRANSIENT, answer->code, STR_NONE, STR_NONE);
            v->after_s = (int64_t)(answer->used + 999) / 1000;
        } else if (v->class == CLASS_OK) {
            verdict_set(v, CLASS_RETRY_BUDGET, answer->code, STR_NONE, STR_NONE);
        }
        if (answer->says == LEDGER_HALT)
            v->kind = VERDICT_HALT;
    }
}

void verdict_from_settle(struct verdict *v, const struct ledger_answer *settled, bool ran)
{
    if (v->class == CLASS_INVALID_ARGUMENTS) {
        v->attempt = settled->attempt;
        v->attempts_left = settled->attempts_left;
        v->has_budget = true;
        if (settled->says == LEDGER_REFUSE)
            exhaust_repairs(v);
    }
    v->no_progress = settled->no_progress;
    v->same_failure = settled->same_failure;
    v->failed_alike = settled->failed_alike;
    if (ran && settled->unchanged)
        v->repeats = settled->repeats;
    if (v->class == CLASS_TRANSIENT && v->after_s < 0) {
        uint32_t doublings = settled->transient_count ? settled->transient_count - 1 : 0;
        v->after_s = (int64_t)WAIT_FIRST_S
                     << (doublings > WAIT_DOUBLINGS_MAX ? WAIT_DOUBLINGS_MAX : doublings);
    }
}

/* CLASS_OK: nothing is decided, or not here. */
static const enum error_class hook_classes[OUTCOME_POLICY_ERROR + 1] = {
    [OUTCOME_REPAIR] = CLASS_INVALID_ARGUMENTS, [OUTCOME_RETRY] = CLASS_INVALID_ARGUMENTS,
    [OUTCOME_REFUSE] = CLASS_FORBIDDEN,         [OUTCOME_ASK] = CLASS_NEED_USER_INPUT,
    [OUTCOME_PARTIAL] = CLASS_PARTIAL_DATA,     [OUTCOME_GARBAGE] = CLASS_SEMANTIC_GARBAGE,
    [OUTCOME_BROKEN] = CLASS_SCHEMA_MISMATCH,   [OUTCOME_TRANSIENT] = CLASS_TRANSIENT,
    [OUTCOME_FAILED] = CLASS_TOOL_ERROR};

void verdict_from_hook(struct verdict *v, struct arena *arena, const struct policy_outcome *outcome)
{
    enum error_class class = hook_classes[outcome->kind];
    if (class == CLASS_OK)
        return;
    verdict_set(v, class, outcome->code, outcome->detail, outcome->hint);
    switch (outcome->kind) {
    case OUTCOME_REPAIR:
        v->problems = outcome->problems;
        v->suggest = outcome->suggest;
        for (size_t i = 0; i < v->problems.count; i++) {
            struct problem *p = &v->problems.list[i];
            if (p->suggestion.len) /* a policy's messages do not contain it; the schema's do */
                p->message =
                    arena_printf(arena, STR_FMT " (try " STR_FMT ")", STR_ARG(p->message),
                                 STR_ARG(arena_truncate(arena, p->suggestion, PROBLEM_GOT_MAX_BYTES)));
            problem_clean(arena, p);
        }
        v->code = v->code.len ? v->code : STR_LIT("invalid_arguments");
        v->valid = false;
        break;
    case OUTCOME_RETRY:
        v->code = STR_LIT("retry");
        v->valid = false;
        break;
    case OUTCOME_ASK:
        v->choices = outcome->choices;
        v->coverage = STR_LIT("NEED_USER_INPUT");
        break;
    case OUTCOME_TRANSIENT:
    case OUTCOME_FAILED: /* in the tool's own words, or in the result hook's */
        v->quoted = outcome->detail;
        v->detail = STR_NONE;
        v->after_s = outcome->kind == OUTCOME_FAILED ? -1 : outcome->after_s;
        break;
    default:
        break;
    }
}
