/* Missing information: hints, paths, descriptions, effects. */
#include "lint/lint_internal.h"

#include "base/arena.h"
#include "catalog/effects_guess.h"

#include <ctype.h>

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

void lint_no_description(struct lint_context *c)
{
    if (!c->tool->description.len && tool_is_described(c->tool))
        lint_report(c, lint_tool_line(c), "tool '" STR_FMT "' has no description: add description = \"…\"",
                    STR_ARG(c->tool->name));
}

static void check_argument(struct lint_context *c, struct str path, const struct json *schema)
{
    bool named = path.len && path.at[path.len - 1] != ']'; /* items are described by their list */
    if (named && !json_get_text(schema, "description") && !json_get_text(schema, "$ref"))
        lint_report(c, lint_schema_line(c),
                    "tool '" STR_FMT "': the argument '" STR_FMT
                    "' has no description: add one, as in str \"Task title\"",
                    STR_ARG(c->tool->name), STR_ARG(path));
}

void lint_undescribed_arguments(struct lint_context *c)
{
    if (tool_is_described(c->tool))
        lint_walk(c, c->tool->input, check_argument);
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
