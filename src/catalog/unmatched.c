/* Compares the names in policies with those of the tools, once all of both are known. */
#include "catalog/import.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "policy/policy_hooks.h"
#include "upstream/tool_list.h"

#include <stdarg.h>

struct unmatched {
    struct generation *generation;
    struct generation_report *report;
    bool tools_changed, waits;
    struct str *names; /* of the tools that something defines */
    size_t name_count;
};

/* A tool that only exists because a policy or an example names it. */
static bool is_defined(const struct tool *tool)
{
    return tool && !tool->unregistered;
}

struct unmatched *unmatched_begin(struct generation *generation, bool tools_changed,
                                  struct generation_report *report)
{
    const struct config *config = &generation->config;
    struct unmatched *u = ARENA_NEW(generation->arena, struct unmatched);
    *u = (struct unmatched){.generation = generation, .report = report, .tools_changed = tools_changed};
    u->names = ARENA_ARRAY(generation->arena, struct str, generation->tool_count + 1);
    for (size_t i = 0; i < generation->tool_count; i++)
        if (is_defined(generation->tools[i]))
            u->names[u->name_count++] = generation->tools[i]->name;
    for (size_t i = 0; i < config->upstream_count; i++)
        u->waits |= config->upstreams[i]->kind != UPSTREAM_REST && !generation->tool_lists[i];
    return u;
}

bool unmatched_waits(const struct unmatched *u)
{
    return u->waits;
}

static void add_gap(struct unmatched *u, const struct policy *policy, struct str name, const char *why)
{
    struct generation *g = u->generation;
    g->unmatched = arena_grow(g->arena, g->unmatched, g->unmatched_count, sizeof(*g->unmatched));
    g->unmatched[g->unmatched_count++] = (struct unmatched_policy){policy->file, name, why};
}

static void wait(struct unmatched *u, const struct policy *policy, struct str name)
{
    generation_report_warning(u->report,
                              STR_FMT ": waiting for a server that has not listed its tools yet: until it "
                                      "offers '" STR_FMT "', this guards nothing there",
                              STR_ARG(policy->file), STR_ARG(name));
    add_gap(u, policy, name, NULL);
}

/* The generation goes live without the guard only if no operator asked for this load. */
__attribute__((format(printf, 5, 6))) static void fail(struct unmatched *u, const struct policy *policy,
                                                       struct str name, bool refuses, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str why = arena_vprintf(u->generation->arena, format, args);
    va_end(args);
    if (refuses && !u->tools_changed) {
        generation_report_error(u->report, STR_FMT ": " STR_FMT, STR_ARG(policy->file), STR_ARG(why));
        return;
    }
    generation_report_warning(u->report, STR_FMT ": " STR_FMT, STR_ARG(policy->file), STR_ARG(why));
    add_gap(u, policy, name, why.at);
}

/* ---- the policy of one tool ---- */

static void report_bare(struct unmatched *u, const struct policy *policy)
{
    struct str meant = suggest_misspelled(policy->name, u->names, u->name_count);
    const struct tool *other = meant.len ? generation_find(u->generation, meant) : NULL;
    const struct guarded_tool *guarded = guarded_tools_find(u->generation, policy->name);
    if (guarded && guarded->moved_to.len)
        fail(u, policy, policy->name, false,
             "it guarded the tool of upstream '" STR_FMT
             "', which offers it no more; that of upstream '" STR_FMT
             "' is left out until the policy names its upstream: upstream = \"" STR_FMT "\"",
             STR_ARG(guarded->upstream), STR_ARG(guarded->moved_to), STR_ARG(guarded->moved_to));
    else if (u->waits)
        wait(u, policy, policy->name);
    else if (other && !other->policy) /* the author of two policies knows both names */
        fail(u, policy, policy->name, true,
             "guards no tool: did you mean '" STR_FMT "'? Rename the file and its tool \"" STR_FMT "\"",
             STR_ARG(meant), STR_ARG(policy->name));
    else
        generation_report_warning(
            u->report,
            STR_FMT ": guards nothing yet, as no tool '" STR_FMT "' is known: it takes effect when an agent "
                    "registers the tool; if a server offers it, name that with upstream = \"NAME\", if "
                    "toolgate runs it, declare run, exec or http, and else its schema",
            STR_ARG(policy->file), STR_ARG(policy->name));
}

static void check_own_tool(struct unmatched *u, const struct policy *policy)
{
    const struct tool *tool = generation_find(u->generation, policy->name);
    struct str name, upstream = tool_upstream(policy, &name);
    const struct tool_list *list = upstream.len ? generation_tool_list(u->generation, upstream) : NULL;
    if (!tool || tool->policy != policy || tool->held)
        return;
    if (tool->unregistered)
        report_bare(u, policy);
    else if (tool->schema_pending && !list && u->waits)
        wait(u, policy, policy->name);
    if (tool->unregistered || !tool->schema_pending || !list)
        return;
    /* Its server has listed its tools, and this is not one of them. */
    const struct json *tools = tool_list_array(list);
    struct str *names = ARENA_ARRAY(u->generation->arena, struct str, tools->len + 1);
    for (uint32_t i = 0; i < tools->len; i++)
        names[i] = json_str(json_get_text(&tools->items[i], "name"));
    struct str slip = suggest_misspelled(name, names, tools->len);
    struct str meant = slip.len ? slip : suggest_closest(name, names, tools->len);
    fail(u, policy, policy->name, slip.len > 0,
         "upstream '" STR_FMT "' offers no tool '" STR_FMT "'%s" STR_FMT "%s", STR_ARG(upstream),
         STR_ARG(name), meant.len ? " (did you mean '" : "", STR_ARG(meant),
         meant.len ? "'?)" : ": its calls will fail");
}

/* ---- a policy for several tools ---- */

static bool matches_any(const struct unmatched *u, struct str pattern)
{
    if (!str_is_glob(pattern)) {
        const struct tool *tool = generation_find(u->generation, pattern);
        return is_defined(tool) || (tool && tool->policy);
    }
    for (size_t i = 0; i < u->generation->tool_count; i++) {
        const struct tool *tool = u->generation->tools[i];
        if ((is_defined(tool) || tool->policy) && str_glob(pattern, tool->name))
            return true;
    }
    return false;
}

/* The name, or for PREFIX* the pattern with the beginning of a name, that is meant; STR_NONE: none is close.
 */
static struct str meant_pattern(const struct unmatched *u, struct str pattern)
{
    struct arena *arena = u->generation->arena;
    struct str prefix = pattern;
    if (!str_is_glob(pattern))
        return suggest_misspelled(pattern, u->names, u->name_count);
    for (size_t i = 0; i < prefix.len; i++)
        if (prefix.at[i] == '*' || prefix.at[i] == '?')
            prefix.len = i;
    struct str *beginnings = ARENA_ARRAY(arena, struct str, u->name_count + 1);
    for (size_t i = 0; i < u->name_count; i++)
        beginnings[i] = str_cut(u->names[i], prefix.len);
    struct str meant = suggest_misspelled(prefix, beginnings, u->name_count);
    if (!meant.len || str_eq(meant, prefix))
        return STR_NONE;
    return arena_printf(arena, STR_FMT STR_FMT, STR_ARG(meant), STR_ARG(str_from(pattern, prefix.len)));
}

static void check_pattern(struct unmatched *u, const struct policy *policy, struct str pattern)
{
    struct str slip = meant_pattern(u, pattern);
    struct str meant = slip.len ? slip : suggest_closest(pattern, u->names, u->name_count);
    bool in_example = false; /* then it is meant, though no such tool is registered yet */
    for (size_t i = 0; i < policy->example_count; i++)
        in_example |= str_glob(pattern, policy->examples[i].tool);
    if (u->waits)
        wait(u, policy, pattern);
    else if (slip.len)
        fail(u, policy, pattern, true, "tools: '" STR_FMT "' is no tool: did you mean '" STR_FMT "'?",
             STR_ARG(pattern), STR_ARG(slip));
    else if (!u->name_count || in_example)
        generation_report_warning(u->report,
                                  STR_FMT ": tools: '" STR_FMT "' matches no tool that is known: it takes "
                                          "effect when an agent registers one",
                                  STR_ARG(policy->file), STR_ARG(pattern));
    else
        fail(u, policy, pattern, true,
             "tools: '" STR_FMT "' matches no tool%s" STR_FMT "%s; for a tool that agents register, add an "
             "example that calls it",
             STR_ARG(pattern), meant.len ? " (the closest is '" : "", STR_ARG(meant), meant.len ? "')" : "");
}

void unmatched_check(struct unmatched *u, const struct policy *policy)
{
    if (policy->quarantined) /* its examples are not known, and the daemon must start */
        return;
    if (!policy_is_overlay(policy))
        check_own_tool(u, policy);
    for (size_t i = 0; i < policy->guard_count; i++)
        if (!matches_any(u, policy->guards[i]))
            check_pattern(u, policy, policy->guards[i]);
}
