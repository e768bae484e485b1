/* What concerns the whole generation: dates of mode shadow, and policies for several tools: over which they
 * lie, and whether an example shows what they do. */
#include "lint/lint_internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "catalog/shadow.h"
#include "policy/policy_set.h"

/* In the order of the tools; the finding is the policy's. */
static void each_overlay(struct lint_context *c, void (*visit)(struct lint_context *c))
{
    const struct policy_set *policies = c->generation->policies;
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        c->policy = policy_set_at(policies, i);
        if (policy_is_overlay(c->policy))
            visit(c);
    }
    c->policy = NULL;
}

static void report_tools(struct lint_context *c)
{
    struct buf names = buf_in(c->arena);
    for (size_t i = 0; i < c->generation->tool_count; i++) {
        const struct tool *tool = c->generation->tools[i];
        if (tool_has_overlay(tool, c->policy))
            buf_printf(&names, "%s" STR_FMT, names.len ? ", " : "", STR_ARG(tool->name));
    }
    lint_report(c, 0, "lies over " STR_FMT, STR_ARG(names.len ? buf_view(&names) : STR_LIT("no tool yet")));
}

static void report_without_examples(struct lint_context *c)
{
    if (!c->policy->example_count)
        lint_report(
            c, 0,
            "no example shows what this policy does: add one for each decision, with the tool that it "
            "calls (tool = \"…\")");
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

void lint_overlay_tools(struct lint_context *c)
{
    each_overlay(c, report_tools);
}

void lint_overlay_examples(struct lint_context *c)
{
    each_overlay(c, report_without_examples);
}
