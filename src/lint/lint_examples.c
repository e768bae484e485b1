/* Examples: what they leave untried, and those that show nothing. */
#include "lint/lint_internal.h"

#include "base/arena.h"

void lint_no_examples(struct looking *look)
{
    const struct policy *p = look->policy;
    if (!p || p->example_count || p->mode == POLICY_OFF)
        return;
    bool decides = p->rule_count || p->id_count || p->hooks[HOOK_NORMALISE] || p->hooks[HOOK_CHECK] ||
                   p->hooks[HOOK_RUN] || p->hooks[HOOK_RESULT];
    if (decides)
        lint_report(
            look, introspection_tool_line(&look->survey),
            "the policy decides something and has no example: add examples = { { \"what it shows\", args "
            "= { … }, gives = \"pass\" } }");
}

/* prepare is left out: lists are written for peers, and an example is a call. */
void lint_untried_hooks(struct looking *look)
{
    static const struct {
        const char *name;
        enum policy_hook hook;
        const char *mend;
    } hooks[] = {{"normalise", HOOK_NORMALISE, "whose arguments fit the schema"},
                 {"check", HOOK_CHECK, "that gets past the schema, rules and ids"},
                 {"run", HOOK_RUN, "that passes, without a result"},
                 {"result", HOOK_RESULT, "that passes, with result = { … }"}};
    if (!look->of || !look->of->examples)
        return;
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
        for (size_t f = 0; f < look->of->function_count; f++) {
            const struct coverage_function *function = &look->of->functions[f];
            if (look->policy->hooks[hooks[i].hook] && str_is(function->name, hooks[i].name) &&
                !function->hits)
                lint_report(look, function->line, "no example reaches '%s': add one %s", hooks[i].name,
                            hooks[i].mend);
        }
}

void lint_unused_result(struct looking *look)
{
    for (size_t i = 0; i < look->played_count; i++) {
        const struct policy_example *e = look->played[i].example;
        if (e->result && !look->played[i].was_judged)
            lint_report(look, e->line,
                        "example '" STR_FMT
                        "': its result is never looked at, as the call is decided before it "
                        "runs: remove the result, or mend args, seen or goal",
                        STR_ARG(e->name));
    }
}

static bool same_json(const struct json *a, const struct json *b)
{
    return a == b || (a && b && json_equal(a, b));
}

static bool same_call(const struct policy_example *a, const struct policy_example *b)
{
    return same_json(a->args, b->args) && same_json(a->result, b->result) && same_json(a->seen, b->seen) &&
           same_json(a->history, b->history) && same_json(a->facts, b->facts) && str_eq(a->goal, b->goal) &&
           str_eq(a->user, b->user) && str_eq(a->called, b->called) && a->turn == b->turn;
}

void lint_duplicate_example(struct looking *look)
{
    const struct policy *p = look->policy;
    for (size_t i = 0; p && i < p->example_count; i++)
        for (size_t n = 0; n < i; n++) {
            if (!same_call(&p->examples[i], &p->examples[n]))
                continue;
            lint_report(look, p->examples[i].line,
                        "example '" STR_FMT "' makes the same call as the one on line %d: join what the two "
                        "expect, or change args, seen, goal or result",
                        STR_ARG(p->examples[i].name), p->examples[n].line);
            break;
        }
}

void lint_mode_off(struct looking *look)
{
    if (look->policy && look->policy->example_count && look->tool->mode == POLICY_OFF)
        lint_report(look, introspection_line(&look->survey, NULL, STR_LIT("mode")),
                    "the mode is \"off\", so that no call is told what its %zu example%s show%s: set mode to "
                    "\"enforce\" or \"shadow\" when it shall work again",
                    look->policy->example_count, look->policy->example_count == 1 ? "" : "s",
                    look->policy->example_count == 1 ? "s" : "");
}
