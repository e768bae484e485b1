/* One function per source of a verdict; see verdict_from.h. */
#include "gate/verdict_from.h"

#include "base/arena.h"
#include "base/log.h"
#include "json/write.h"

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

void verdict_from_settle(struct verdict *v, const struct ledger_settled *settled, bool ran)
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

void verdict_from_question(struct verdict *v, const struct policy_outcome *outcome)
{
    verdict_set(v, CLASS_NEED_USER_INPUT, outcome->code, outcome->detail, outcome->hint);
    v->choices = outcome->choices;
    v->coverage = STR_LIT("NEED_USER_INPUT");
}

void verdict_from_failure(struct verdict *v, enum error_class class, const struct policy_outcome *outcome)
{
    verdict_set(v, class, outcome->code, STR_NONE, outcome->hint);
    v->quoted = outcome->detail;
    v->after_s = class == CLASS_TRANSIENT ? outcome->after_s : -1;
}

/* A policy's messages do not contain what they suggest; the schema's do. */
static void take_problems(struct verdict *v, struct arena *arena, const struct policy_outcome *outcome)
{
    v->problems = outcome->problems;
    v->suggest = outcome->suggest;
    for (size_t i = 0; i < v->problems.count; i++) {
        struct problem *p = &v->problems.list[i];
        if (p->suggestion.len)
            p->message = arena_printf(arena, STR_FMT " (try " STR_FMT ")", STR_ARG(p->message),
                                      STR_ARG(arena_truncate(arena, p->suggestion, PROBLEM_GOT_MAX_BYTES)));
        problem_clean(arena, p);
    }
}

void verdict_from_hook(struct verdict *v, struct arena *arena, const struct policy_outcome *outcome)
{
    struct str code = outcome->code.len ? outcome->code : STR_LIT("invalid_arguments");
    switch (outcome->kind) {
    case OUTCOME_REPAIR:
        take_problems(v, arena, outcome);
        verdict_set(v, CLASS_INVALID_ARGUMENTS, code, outcome->detail, outcome->hint);
        v->valid = false;
        break;
    case OUTCOME_RETRY:
        verdict_set(v, CLASS_INVALID_ARGUMENTS, STR_LIT("retry"), outcome->detail, outcome->hint);
        v->valid = false;
        break;
    case OUTCOME_REFUSE:
        verdict_set(v, CLASS_FORBIDDEN, outcome->code, outcome->detail, outcome->hint);
        break;
    case OUTCOME_ASK:
        verdict_from_question(v, outcome);
        break;
    case OUTCOME_TRANSIENT:
        verdict_from_failure(v, CLASS_TRANSIENT, outcome);
        break;
    case OUTCOME_FAILED:
        verdict_from_failure(v, CLASS_TOOL_ERROR, outcome);
        break;
    default:
        break;
    }
}
