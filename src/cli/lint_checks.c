/* Rules and examples: rules that conflict, code that no example reaches, examples that check nothing. What a
 * policy leaves unsaid: hints, effects. Paths in a policy that its schema does not have; a schema with
 * references or branches is not checked. And options of exec that stay without their argument. */
#include "cli/lint.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "catalog/definition.h"
#include "upstream/exec/exec.h"

#include <ctype.h>

#define PATH_NAMES_MAX 256u

static void report_conflict(void *owner, bool certain, int line, struct str sentence)
{
    (void)certain;
    lint_report(owner, line, STR_FMT, STR_ARG(sentence));
}

static void check_rule_conflicts(struct lint_context *c)
{
    if (c->policy)
        policy_rule_conflicts(c->policy, c->tool->input, c->arena, report_conflict, c);
}

static void check_untried_rules(struct lint_context *c)
{
    for (size_t i = 0; c->coverage && c->coverage->examples && i < c->coverage->rule_count; i++)
        if (!c->coverage->rules[i].ran)
            lint_report(c, policy_rule_line(c->policy, i),
                        "no example meets the rule '" STR_FMT
                        "': add one that it changes, repairs or refuses",
                        STR_ARG(str_cut(c->coverage->rules[i].words, 100)));
}

static void check_no_examples(struct lint_context *c)
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
static void check_untried_hooks(struct lint_context *c)
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
        if (c->coverage->hooks_missed[hooks[i].hook])
            lint_report(c, c->policy->hook_lines[hooks[i].hook], "no example reaches '%s': add one %s",
                        hooks[i].name, hooks[i].fix);
}

static void check_unused_result(struct lint_context *c)
{
    for (size_t i = 0; c->policy && i < c->policy->example_count; i++) {
        const struct policy_example *e = &c->policy->examples[i];
        bool unjudged = false;
        for (size_t k = 0; e->result && k < c->unjudged_count; k++)
            unjudged |= c->unjudged[k] == e;
        if (unjudged)
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

static void check_duplicate_example(struct lint_context *c)
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

static void check_mode_off(struct lint_context *c)
{
    if (c->policy && c->policy->example_count && c->tool->mode == POLICY_OFF)
        lint_report(c, location_of_field(c->tokens, NULL, STR_LIT("mode")),
                    "the mode is \"off\", so it decides nothing in spite of %zu example%s: set mode to "
                    "\"enforce\" or "
                    "\"shadow\" to use it",
                    c->policy->example_count, c->policy->example_count == 1 ? "" : "s");
}

/* Those of a published schema are warnings about its tool, unless a policy wants it kept as it is. */
static void check_contradictions(struct lint_context *c)
{
    if (!c->policy || c->tool->contradictory)
        return;
    for (size_t i = 0; i < c->tool->contradiction_count; i++)
        lint_report(c, lint_schema_line(c), "schema " STR_FMT ": " STR_FMT,
                    STR_ARG(c->tool->contradictions[i].path), STR_ARG(c->tool->contradictions[i].message));
}

static void check_no_hint(struct lint_context *c)
{
    for (size_t i = 0; c->policy && i < c->policy->rule_count; i++)
        if (policy_rule_lacks_hint(c->policy, i))
            lint_report(c, policy_rule_line(c->policy, i),
                        "refuses without a hint: the model learns that it may not, and not what to do "
                        "instead; add a third text");
}

/* Lines with "TODO:", as toolgate new writes it. */
static void check_todo(struct lint_context *c)
{
    int line = 1;
    for (struct str rest = c->source; rest.len; line++) {
        struct str text = str_split(&rest, '\n');
        const char *at = text.len ? memmem(text.at, text.len, "TODO:", 5) : NULL;
        if (at && (at == text.at || !isalnum((unsigned char)at[-1])))
            lint_report(c, line, "left to do: " STR_FMT,
                        STR_ARG(str_cut(str_trim(str_from(text, (size_t)(at + 5 - text.at))), 120)));
    }
}

static void check_no_effects(struct lint_context *c)
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
static void check_hints(struct lint_context *c)
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
static void check_retry_not_idempotent(struct lint_context *c)
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

/* ---- paths ---- */

static bool is_plain(const struct json *schema)
{
    static const char *const branching[] = {"$ref", "$dynamicRef",       "anyOf",           "oneOf", "allOf",
                                            "if",   "patternProperties", "dependentSchemas"};
    for (size_t i = 0; i < sizeof(branching) / sizeof(branching[0]); i++)
        if (json_get_text(schema, branching[i]))
            return false;
    return json_is(schema, JSON_OBJECT);
}

/* Whether the schema has no such path, such as "events[].id"; `closest`: the name that is meant, or STR_NONE.
 */
static bool lacks(const struct json *schema, struct str path, struct str *closest)
{
    while (path.len) {
        size_t n = 0;
        while (n < path.len && path.at[n] != '.' && path.at[n] != '[')
            n++;
        if (n) {
            const struct json *properties = json_get_text(schema, "properties");
            const struct json *others = json_get_text(schema, "additionalProperties"), *found;
            struct str name = {path.at, n}, names[PATH_NAMES_MAX];
            uint32_t count = 0;
            if (!is_plain(schema) || !json_is(properties, JSON_OBJECT) || !properties->len)
                return false;
            found = json_get(properties, name);
            if (!found && !json_is(others, JSON_OBJECT)) {
                for (; count < properties->len && count < PATH_NAMES_MAX; count++)
                    names[count] = properties->members[count].key;
                *closest = suggest_closest(name, names, count);
                return true;
            }
            schema = found ? found : others;
        }
        path = str_from(path, n);
        for (; str_starts(path, "[]"); path = str_from(path, 2)) {
            const struct json *items = json_get_text(schema, "items");
            if (!is_plain(schema) || !json_is(items, JSON_OBJECT))
                return false;
            schema = items;
        }
        if (path.len && path.at[0] != '.')
            return false;
        path = str_from(path, path.len ? 1 : 0);
    }
    return false;
}

static void check_path(struct lint_context *c, const struct json *schema, const char *parent,
                       const char *field, struct str path, const char *which)
{
    struct str closest;
    if (!schema || !lacks(schema, path, &closest))
        return;
    int line = location_of_field(c->tokens, parent, str_of(field));
    const char *dot = parent ? "." : "";
    if (closest.len)
        lint_report(c, line,
                    "'%s%s%s' names '" STR_FMT "', which the %s does not have (did you mean '" STR_FMT "'?)",
                    parent ? parent : "", dot, field, STR_ARG(path), which, STR_ARG(closest));
    else
        lint_report(c, line,
                    "'%s%s%s' names '" STR_FMT
                    "', which the %s does not have: add it there, or remove it here",
                    parent ? parent : "", dot, field, STR_ARG(path), which);
}

static void check_argument_paths(struct lint_context *c)
{
    const struct policy *p = c->policy;
    for (size_t i = 0; p && i < p->id_count; i++)
        check_path(c, c->tool->input, NULL, "ids", p->ids[i].path, "schema");
    for (size_t i = 0; p && i < p->volatile_count; i++)
        check_path(c, c->tool->input, "loop", "volatile", p->volatiles[i], "schema");
}

/* Only real paths: in redact, keep and drop a single name means a field at any depth. */
static void check_paths(struct lint_context *c, const char *parent, const char *field, const struct str *list,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_has(list[i], '.') || str_has(list[i], '['))
            check_path(c, c->tool->output, parent, field, list[i], "output schema");
}

static void check_result_paths(struct lint_context *c)
{
    const struct policy *p = c->policy;
    for (size_t i = 0; p && i < p->gives_id_count; i++)
        check_path(c, c->tool->output, NULL, "gives_ids", p->gives_ids[i], "output schema");
    if (!p)
        return;
    check_paths(c, "loop", "volatile_result", p->volatile_results, p->volatile_result_count);
    check_paths(c, NULL, "redact", p->redact, p->redact_count);
    check_paths(c, "compact", "keep", p->compact.keep, p->compact.keep_count);
    check_paths(c, "compact", "drop", p->compact.drop, p->compact.drop_count);
}

/* The optional argument that the word names, without which exec omits it, or STR_NONE. */
static struct str optional_argument(const struct json *schema, struct str word)
{
    struct exec_piece piece;
    while (exec_argv_next_piece(&word, &piece))
        if (piece.kind == EXEC_PIECE_ARGUMENT &&
            !json_array_has(json_get_text(schema, "required"), piece.text))
            return piece.text;
    return STR_NONE;
}

/* "--max-count" and "max_count"; of other options it is unknown whether they take a value. */
static bool is_named_after(struct str option, struct str name)
{
    bool same = option.len == name.len + 2 && str_starts(option, "--");
    for (size_t i = 0; same && i < name.len; i++)
        same = option.at[i + 2] == name.at[i] || (option.at[i + 2] == '-' && name.at[i] == '_');
    return same;
}

/* "--limit", "{limit}" outside a group. */
static void check_left_option(struct lint_context *c)
{
    const struct exec_spec *exec = c->policy ? c->policy->exec : NULL;
    const struct json *schema = c->policy ? c->policy->schema : NULL;
    if (!exec || !schema)
        return;
    for (size_t i = 1; i < exec->word_count; i++) {
        const struct exec_word *option = &exec->words[i - 1], *word = &exec->words[i];
        if (option->group || word->group)
            continue;
        struct str name = optional_argument(schema, word->text);
        if (name.len && is_named_after(option->text, name))
            lint_report(c, lint_tool_line(c),
                        "exec: without the argument '" STR_FMT "', the option '" STR_FMT
                        "' takes the next word as its value: put both into a group, { \"" STR_FMT
                        "\", \"{" STR_FMT "}\" }",
                        STR_ARG(name), STR_ARG(option->text), STR_ARG(option->text), STR_ARG(name));
    }
}

static const struct {
    const char *code;
    void (*check)(struct lint_context *c);
    bool of_tool;
} checks[] = {{"contradiction", check_contradictions, false},
              {"rule", check_rule_conflicts, false},
              {"untried-rule", check_untried_rules, false},
              {"untried-hook", check_untried_hooks, false},
              {"no-examples", check_no_examples, false},
              {"unjudged", check_unused_result, false},
              {"twice", check_duplicate_example, false},
              {"off", check_mode_off, false},
              {"argument", check_argument_paths, false},
              {"result", check_result_paths, false},
              {"todo", check_todo, false},
              {"no-hint", check_no_hint, false},
              {"no-effects", check_no_effects, false},
              {"hints", check_hints, true},
              {"again", check_retry_not_idempotent, false},
              {"left-option", check_left_option, false}};

void lint_check_tool(struct lint_context *c)
{
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        c->code = checks[i].code;
        c->of_tool = checks[i].of_tool;
        checks[i].check(c);
    }
}
