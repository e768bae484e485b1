/* What a model is not told: descriptions, effects, hints, paths. */
#include "lint/lint_internal.h"

/* ---- when something is refused -------------------------------------------------- */

static void without_hint(void *owner, int line, struct str word)
{
    lint_report(owner, line,
                STR_FMT
                " without a hint: the model learns that it may not, and not what to do instead; add a "
                "third text",
                STR_ARG(word));
}

void lint_no_hint(struct looking *look)
{
    if (!look->policy)
        return;
    introspection_rules_without_hint(&look->survey, without_hint, look);
    introspection_calls_without_hint(&look->survey, without_hint, look);
}

static void without_path(void *owner, int line, struct str word)
{
    lint_report(owner, line,
                STR_FMT " without a path: the model has to guess which argument is meant; add path = \"…\"",
                STR_ARG(word));
}

void lint_no_path(struct looking *look)
{
    if (look->policy)
        introspection_problems_without_path(&look->survey, without_path, look);
}

/* ---- the definition --------------------------------------------------------------- */

static int tool_line(const struct looking *look)
{
    return look->policy ? introspection_tool_line(&look->survey) : 0;
}

void lint_no_description(struct looking *look)
{
    if (!look->tool->description.len && tool_is_described(look->tool))
        lint_report(look, tool_line(look),
                    "tool '" STR_FMT
                    "' has no description: say in a sentence what it does, as description = \"…\"",
                    STR_ARG(look->tool->name));
}

static void look_at_parameter(struct looking *look, struct str path, const struct json *schema)
{
    bool named = path.len && path.at[path.len - 1] != ']'; /* items are described by their list */
    if (named && !json_get_text(schema, "description") && !json_get_text(schema, "$ref"))
        lint_report(look, lint_schema_line(look),
                    "tool '" STR_FMT "': the argument '" STR_FMT
                    "' has no description: say what it is, as in str \"Task title\"",
                    STR_ARG(look->tool->name), STR_ARG(path));
}

void lint_undescribed_arguments(struct looking *look)
{
    if (tool_is_described(look->tool))
        lint_walk(look, look->tool->input, look_at_parameter);
}

void lint_no_effects(struct looking *look)
{
    if (look->policy && look->tool->effects == EFFECTS_UNDECLARED && tool_is_described(look->tool))
        lint_report(look, tool_line(look),
                    "tool '" STR_FMT
                    "' does not say what it does to the world: add effects = \"read\", \"write\", "
                    "\"destructive\" or \"toggle\", which sets how often the same call may be made",
                    STR_ARG(look->tool->name));
}

/* Where a failure cannot have reached the tool, trying again is right for any; else it may be done twice. */
void lint_retry_not_idempotent(struct looking *look)
{
    const struct tool *tool = look->tool;
    if (!look->policy || !look->policy->retry_given || !tool->retry.times || tool->idempotent ||
        look->policy->idempotent_given)
        return;
    lint_report(
        look, introspection_line(&look->survey, "retry", STR_LIT("again")),
        "tool '" STR_FMT
        "' is not declared idempotent, so retry.again does little: it tries again only what surely did not "
        "reach the tool; add idempotent = true where the same call twice does no more than once, "
        "idempotent = false where it does",
        STR_ARG(tool->name));
}
