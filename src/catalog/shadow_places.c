/* The places are collected per tool, so that a policy without a tool has none. */
#include "catalog/shadow_places.h"

#include "base/arena.h"
#include "catalog/generation.h"

static bool declares_shadow(const struct policy *policy)
{
    return policy->mode_given && policy->mode == POLICY_SHADOW;
}

static bool is_policy_of(const struct policy *policy, const struct tool *tool)
{
    return tool->policy == policy || tool_has_overlay(tool, policy);
}

static bool declares_mode(const struct tool *tool)
{
    bool declares = tool->policy && tool->policy->mode_given;
    for (size_t i = 0; declares && i < tool->overlay_count; i++)
        declares = tool->overlays[i].policy->mode_given;
    return declares;
}

/* `policy` NULL: the configuration's defaults. */
static struct shadow_place place_of(const struct generation *g, const struct policy *policy,
                                    struct arena *arena)
{
    struct str *tools = ARENA_ARRAY(arena, struct str, g->tool_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < g->tool_count; i++)
        if (policy ? is_policy_of(policy, g->tools[i]) : declares_mode(g->tools[i]))
            tools[count++] = g->tools[i]->name;
    return (struct shadow_place){.file = policy ? policy->file : str_of(g->config.file),
                                 .line = policy ? policy->mode_line : g->config.mode_line,
                                 .is_default = !policy,
                                 .tools = tools,
                                 .tool_count = count};
}

size_t shadow_places(const struct generation *g, struct arena *arena, struct shadow_place **out)
{
    size_t policies = policy_set_count(g->policies), count = 0;
    struct shadow_place *list = ARENA_ARRAY(arena, struct shadow_place, policies + 1);
    for (size_t i = 0; i < policies; i++) {
        const struct policy *policy = policy_set_at(g->policies, i);
        if (!declares_shadow(policy))
            continue;
        list[count] = place_of(g, policy, arena);
        count += list[count].tool_count > 0;
    }
    if (g->config.mode == POLICY_SHADOW)
        list[count++] = place_of(g, NULL, arena);
    *out = list;
    return count;
}
