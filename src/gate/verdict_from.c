/* One function a speaker. */
#include "gate/verdict_from.h"

#include "base/arena.h"
#include "gate/decision_log.h"
#include "json/build.h"
#include "json/write.h"

#define WAIT_FIRST_S                                                                                         \
    2 /* after a passing failure, where the tool names no time; doubled with each failure                    \
       */
#define WAIT_DOUBLINGS 5

void verdict_from_policy_error(struct verdict *v, const struct tool *tool, struct arena *arena,
                               const char *why)
{
    decision_log_policy_error(tool->name, why);
    verdict_set(
        v, CLASS_POLICY_ERROR, STR_LIT("policy_broke"), arena_dup(arena, str_of(why)),
        STR_LIT(
            "This is a fault in the gateway, not in your call: do not repeat it; use another tool or tell "
            "the user."));
}

void verdict_from_broken_hook(struct verdict *v, const struct tool *tool, struct arena *arena,
                              const char *why)
{
    if (tool->policy->fails_open)
        decision_log_policy_error(tool->name, why);
    else
        verdict_from_policy_error(v, tool, arena, why);
}

/* ---- arguments and ids ---------------------------------------------------- */

void verdict_from_arguments(struct verdict *v, const struct tool *tool, struct arena *arena,
                            const struct arguments *args)
{
    v->problems = args->problems;
    if (args->broke.len)
        verdict_from_broken_hook(v, tool, arena, args->broke.at);
    else if (args->problems.errors)
        verdict_set(v, CLASS_INVALID_ARGUMENTS, STR_LIT("invalid_arguments"), STR_NONE, STR_NONE);
}

/* What is known now of a place stands instead of what the schema said of it. */
static void put_problem(struct verdict *v, struct problem problem)
{
    for (size_t i = 0; i < v->problems.count; i++)
        if (!v->problems.list[i].warning && str_eq(v->problems.list[i].path, problem.path)) {
            v->problems.list[i] = problem;
            return;
        }
    problems_add(&v->problems, problem);
}

/* The id is one more line among all that is wrong; that it was made up decides the class. */
static void decide_id(struct verdict *v, enum error_class class, const char *code,
                      const struct id_fault *fault, struct str message, struct str hint)
{
    put_problem(v,
                (struct problem){.path = fault->path, .code = code, .message = message, .got = fault->got});
    verdict_set(v, class, str_of(code), STR_NONE, hint);
    v->valid = false;
}

void verdict_from_malformed_id(struct verdict *v, struct arena *arena, const struct id_fault *fault)
{
    struct str message = arena_printf(arena, STR_FMT " cannot be an id of this tool: expected %s",
                                      STR_ARG(fault->got), fault->wanted);
    decide_id(v, CLASS_FABRICATED_ID, "impossible_id", fault, message, STR_NONE);
}

void verdict_from_unseen_id(struct verdict *v, struct arena *arena, const struct id_fault *fault,
                            const struct policy_id *from, bool certain)
{
    struct str message = arena_printf(arena, STR_FMT " came neither from an earlier result nor from the user",
                                      STR_ARG(fault->got));
    struct str hint = STR_LIT("Look the id up first, or ask the user for it; never make one up.");
    if (from->look_up.len)
        hint = arena_printf(arena, "Look the id up first with " STR_FMT "; never make one up.",
                            STR_ARG(from->look_up));
    decide_id(v, certain ? CLASS_FABRICATED_ID : CLASS_INVALID_ARGUMENTS, "unseen_id", fault, message, hint);
}

/* ---- the ledger ----------------------------------------------------------- */

static bool is_loop(struct str code)
{
    return str_is(code, "loop") || str_is(code, "cycle");
}

static void exhaust(struct verdict *v)
{
    v->kind = VERDICT_REFUSE;
    v->code = STR_LIT("retry_budget_exceeded");
}

/* Asked sooner than its policy allows: nothing is wrong with the call but the time. */
static void wait_for_it(struct verdict *v, const struct ledger_answer *a)
{
    verdict_set(v, CLASS_TRANSIENT, a->code, STR_NONE, STR_NONE);
    v->after_s = (int64_t)(a->used + 999) / 1000;
}

void verdict_from_ledger(struct verdict *v, const struct ledger_answer *a)
{
    v->attempt = a->attempt;
    v->attempts_left = a->attempts_left;
    v->has_budget = v->class == CLASS_INVALID_ARGUMENTS;
    v->repeats = a->repeats;
    v->no_progress = a->no_progress;
    v->spent = a->spent;
    v->used = a->used;
    v->of_session = a->of_session;
    if (a->would.len && !v->would.len && (a->says == LEDGER_RUN || a->says == LEDGER_REPAIR))
        v->would = a->would;
    if (a->error != OK)
        verdict_set(v, CLASS_UNAVAILABLE, STR_LIT("ledger_unavailable"), STR_NONE, STR_NONE);
    else if (a->says == LEDGER_HALT || (a->says == LEDGER_REFUSE && is_loop(a->code)))
        verdict_set(v, CLASS_LOOP, a->code, STR_NONE, STR_NONE);
    else if (a->says == LEDGER_REFUSE && v->class == CLASS_INVALID_ARGUMENTS)
        exhaust(v);
    else if (a->says == LEDGER_REFUSE && v->class == CLASS_OK && str_is(a->code, "too_soon"))
        wait_for_it(v, a);
    else if (a->says == LEDGER_REFUSE && v->class == CLASS_OK)
        verdict_set(v, CLASS_RETRY_BUDGET, a->code, STR_NONE, STR_NONE);
    if (a->says == LEDGER_HALT)
        v->kind = VERDICT_HALT;
}

static int64_t wait_s(uint32_t failures)
{
    return (int64_t)WAIT_FIRST_S << (failures > WAIT_DOUBLINGS ? WAIT_DOUBLINGS
                                     : failures                ? failures - 1
                                                               : 0);
}

void verdict_from_settle(struct verdict *v, const struct ledger_settled *settled, bool ran)
{
    if (v->class == CLASS_INVALID_ARGUMENTS) {
        v->attempt = settled->attempt;
        v->attempts_left = settled->attempts_left;
        v->has_budget = true;
        if (settled->says == LEDGER_REFUSE)
            exhaust(v);
    }
    v->no_progress = settled->no_progress;
    if (ran && settled->unchanged)
        v->repeats = settled->repeats;
    if (v->class == CLASS_TRANSIENT && v->after_s < 0)
        v->after_s = wait_s(settled->transient_count);
}

/* ---- hooks ---------------------------------------------------------------- */

void verdict_from_question(struct verdict *v, const struct policy_outcome *said)
{
    verdict_set(v, CLASS_NEED_USER_INPUT, said->code, said->detail, said->hint);
    v->choices = said->choices;
    v->coverage = STR_LIT("NEED_USER_INPUT");
}

/* What a tool says of its own failure is data: quoted, never our words. */
void verdict_from_failure(struct verdict *v, enum error_class class, const struct policy_outcome *said)
{
    verdict_set(v, class, said->code, STR_NONE, said->hint);
    v->quoted = said->detail;
    v->after_s = class == CLASS_TRANSIENT ? said->after_s : -1;
}

/* The schema's own messages say what they suggest; a policy's do not. */
static void take_problems(struct verdict *v, struct arena *arena, const struct policy_outcome *said)
{
    v->problems = said->problems;
    v->suggest = said->suggest;
    for (size_t i = 0; i < v->problems.count; i++) {
        struct problem *p = &v->problems.list[i];
        if (p->suggestion.len)
            p->message = arena_printf(arena, STR_FMT " (try " STR_FMT ")", STR_ARG(p->message),
                                      STR_ARG(arena_truncate(arena, p->suggestion, PROBLEM_GOT_MAX_BYTES)));
    }
}

void verdict_from_hook(struct verdict *v, struct arena *arena, const struct policy_outcome *said)
{
    switch (said->kind) {
    case OUTCOME_REPAIR:
        take_problems(v, arena, said);
        verdict_set(v, CLASS_INVALID_ARGUMENTS, said->code.len ? said->code : STR_LIT("invalid_arguments"),
                    said->detail, said->hint);
        v->valid = false;
        break;
    case OUTCOME_RETRY:
        verdict_set(v, CLASS_INVALID_ARGUMENTS, STR_LIT("retry"), said->detail, said->hint);
        v->valid = false;
        break;
    case OUTCOME_REFUSE:
        verdict_set(v, CLASS_FORBIDDEN, said->code, said->detail, said->hint);
        break;
    case OUTCOME_ASK:
        verdict_from_question(v, said);
        break;
    case OUTCOME_TRANSIENT:
        verdict_from_failure(v, CLASS_TRANSIENT, said);
        break;
    case OUTCOME_FAILED:
        verdict_from_failure(v, CLASS_TOOL_ERROR, said);
        break;
    default:
        break;
    }
}
