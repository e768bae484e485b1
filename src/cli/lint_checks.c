/* Rules and examples: rules that conflict, code that no example reaches, examples that check nothing. And
 * what a policy leaves unsaid: hints, effects, an end of mode shadow. */
#include "cli/lint.h"

#include "base/arena.h"
#include "base/clock.h"
#include "catalog/definition.h"
#include "catalog/shadow.h"

#include <ctype.h>

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

/* Those of a published schema are warnings about its tool, unless a policy wants it kept as it is. */
void lint_contradictions(struct lint_context *c)
{
    if (!c->policy || c->tool->contradictory)
        return;
    for (size_t i = 0; i < c->tool->contradiction_count; i++)
        lint_report(c, lint_schema_line(c), "schema " STR_FMT ": " STR_FMT,
                    STR_ARG(c->tool->contradictions[i].path), STR_ARG(c->tool->contradictions[i].message));
}

void lint_no_hint(struct lint_context *c)
{
    for (size_t i = 0; c->policy && i < c->policy->rule_count; i++)
        if (policy_rule_lacks_hint(c->policy, i))
            lint_report(c, policy_rule_line(c->policy, i),
                        "refuses without a hint: the model learns that it may not, and not what to do "
                        "instead; add a third text");
}

/* Lines with "TODO:", as toolgate new writes it. */
void lint_todo(struct lint_context *c)
{
    int line = 1;
    for (struct str rest = c->source; rest.len; line++) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        const char *at = memmem(rest.at, len, "TODO:", 5);
        if (at && (at == rest.at || !isalnum((unsigned char)at[-1])))
            lint_report(c, line, "left to do: " STR_FMT,
                        STR_ARG(str_cut((struct str){at, len - (size_t)(at - rest.at)}, 120)));
        rest = str_from(rest, len + (end ? 1 : 0));
    }
}

void lint_no_effects(struct lint_context *c)
{
    bool guessed = c->tool->effects_from == EFFECTS_FROM_NAME;
    if (!c->policy || !tool_is_described(c->tool) || (c->tool->effects != EFFECTS_UNDECLARED && !guessed))
        return;
    struct str guess = STR_NONE;
    if (guessed)
        guess = arena_printf(c->arena, " (guessed from its name: %s)", tool_effects_name(c->tool));
    lint_report(c, lint_tool_line(c),
                "tool '" STR_FMT "' does not declare its effects" STR_FMT
                ": add effects = \"read\", \"write\", \"destructive\" or \"toggle\", which determines how "
                "often the same call is allowed",
                STR_ARG(c->tool->name), STR_ARG(guess));
}

static bool has_hint(const struct tool *tool, const char *name)
{
    return json_is_true(json_get_text(tool->annotations, name));
}

/* Hints that cannot both be right, or that the name or the policy denies. */
void lint_hints(struct lint_context *c)
{
    const struct tool *tool = c->tool;
    bool reads = has_hint(tool, "readOnlyHint"), destroys = has_hint(tool, "destructiveHint");
    bool by_policy = tool->effects_from == EFFECTS_FROM_POLICY;
    enum policy_effects guess = effects_guess(tool->name);
    if (reads && destroys)
        lint_report(c, lint_tool_line(c),
                    "tool '" STR_FMT "' is annotated as reading (readOnlyHint) and as destroying "
                    "(destructiveHint): it counts as %s; declare its effects in a policy",
                    STR_ARG(tool->name), tool_effects_name(tool));
    else if (reads && !by_policy && guess == EFFECTS_DESTRUCTIVE)
        lint_report(c, lint_tool_line(c),
                    "tool '" STR_FMT "' is annotated as reading (readOnlyHint), and its name says that it "
                    "destroys: it counts as %s; declare its effects in a policy",
                    STR_ARG(tool->name), tool_effects_name(tool));
    else if (by_policy && ((destroys && !tool_destroys(tool)) || (reads && tool_writes(tool))))
        lint_report(c, lint_tool_line(c),
                    "tool '" STR_FMT "' is annotated with %s, and its policy declares effects = \"%s\": the "
                    "policy decides; check that it is right",
                    STR_ARG(tool->name), reads ? "readOnlyHint" : "destructiveHint", tool_effects_name(tool));
}

/* Only a failure that cannot have reached the tool is safe to retry if the tool is not idempotent. */
void lint_retry_not_idempotent(struct lint_context *c)
{
    const struct tool *tool = c->tool;
    if (!c->policy || !c->policy->retry_given || !tool->retry.times || tool->idempotent ||
        c->policy->idempotent_given)
        return;
    lint_report(c, location_of_field(c->tokens, "retry", STR_LIT("again")),
                "tool '" STR_FMT "' is not declared idempotent, so retry.again has little effect: it retries "
                "only calls that surely did not "
                "reach the tool; add idempotent = true if repeating a call has no further effect, "
                "else idempotent = false",
                STR_ARG(tool->name));
}

/* Of policies for one tool, too, and of the defaults. */
void lint_shadow_expired(struct lint_context *c)
{
    struct shadow_expiry *list;
    size_t count = shadow_expired(c->generation, clock_wall_ms(), c->arena, &list);
    for (size_t i = 0; i < count; i++) {
        struct str file = list[i].policy ? STR_NONE : list[i].file;
        c->policy = list[i].policy;
        lint_report(c, 0, STR_FMT "%s" STR_FMT, STR_ARG(file), file.len ? ": " : "",
                    STR_ARG(list[i].sentence));
    }
    c->policy = NULL;
}
