/* Rules and examples: rules that conflict, code that no example reaches, examples that check nothing. */
#include "lint/lint_internal.h"

#include "base/arena.h"

static void report_conflict(void *owner, bool certain, int line, struct str sentence)
{
    (void)certain;
    lint_report(owner, line, STR_FMT, STR_ARG(sentence));
}

void lint_rule_conflicts(struct lint_context *c)
{
    if (c->policy)
        policy_rule_conflicts(c->policy, c->tool->input, c->arena, report_conflict, c);
}

void lint_untried_rules(struct lint_context *c)
{
    for (size_t i = 0; c->coverage && c->coverage->examples && i < c->coverage->rule_count; i++)
        if (!c->coverage->rules[i].hits)
            lint_report(c, policy_rule_line(c->policy, i),
                        "no example meets the rule '" STR_FMT
                        "': add one that it changes, repairs or refuses",
                        STR_ARG(str_cut(c->coverage->rules[i].words, 100)));
}

void lint_no_examples(struct lint_context *c)
{
    const struct policy *p = c->policy;
    if (!p || p->example_count || p->mode == POLICY_OFF)
        return;
    bool decides = p->rule_count || p->id_count || p->hooks[HOOK_NORMALISE] || p->hooks[HOOK_CHECK] ||
                   p->hooks[HOOK_RUN] || p->hooks[HOOK_RESULT];
    if (decides)
        lint_report(c, location_of_tool(c->tokens),
                    "the policy has no example: add examples = { { \"what it shows\", args "
                    "= { … }, gives = \"pass\" } }");
}

/* Without prepare: an example is a call, and prepare runs for tools/list. */
void lint_untried_hooks(struct lint_context *c)
{
    static const struct {
        const char *name;
        enum policy_hook hook;
        const char *fix;
    } hooks[] = {{"normalise", HOOK_NORMALISE, "whose arguments fit the schema"},
                 {"check", HOOK_CHECK, "that gets past the schema, rules and ids"},
                 {"run", HOOK_RUN, "that passes, without a result"},
                 {"result", HOOK_RESULT, "that passes, with result = { … }"}};
    if (!c->coverage || !c->coverage->examples)
        return;
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
        for (size_t f = 0; f < c->coverage->function_count; f++) {
            const struct coverage_function *function = &c->coverage->functions[f];
            if (c->policy->hooks[hooks[i].hook] && str_is(function->name, hooks[i].name) && !function->hits)
                lint_report(c, function->line, "no example reaches '%s': add one %s", hooks[i].name,
                            hooks[i].fix);
        }
}

void lint_unused_result(struct lint_context *c)
{
    for (size_t i = 0; i < c->run_count; i++) {
        const struct policy_example *e = c->runs[i].example;
        if (e->result && !c->runs[i].was_judged)
            lint_report(c, e->line,
                        "example '" STR_FMT "': its result is not used, as the call is decided before it "
                        "runs: remove the result, or change args, seen or goal",
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
           same_json(a->history, b->history) && same_json(a->facts, b->facts) &&
           same_json(a->context, b->context) && str_eq(a->goal, b->goal) && str_eq(a->user, b->user) &&
           str_eq(a->called, b->called) && a->turn == b->turn;
}

void lint_duplicate_example(struct lint_context *c)
{
    const struct policy *p = c->policy;
    for (size_t i = 0; p && i < p->example_count; i++)
        for (size_t n = 0; n < i; n++) {
            if (!same_call(&p->examples[i], &p->examples[n]))
                continue;
            lint_report(c, p->examples[i].line,
                        "example '" STR_FMT "' makes the same call as the one on line %d: join what the two "
                        "expect, or change args, seen, goal or result",
                        STR_ARG(p->examples[i].name), p->examples[n].line);
            break;
        }
}

void lint_mode_off(struct lint_context *c)
{
    if (c->policy && c->policy->example_count && c->tool->mode == POLICY_OFF)
        lint_report(c, location_of_field(c->tokens, NULL, STR_LIT("mode")),
                    "the mode is \"off\", so it decides nothing in spite of %zu example%s: set mode to "
                    "\"enforce\" or "
                    "\"shadow\" to use it",
                    c->policy->example_count, c->policy->example_count == 1 ? "" : "s");
}
