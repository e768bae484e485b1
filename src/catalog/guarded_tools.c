/* A list in the generation: taken from the one before, then completed from its own tools. */
#include "catalog/guarded_tools.h"

#include "base/arena.h"
#include "catalog/generation.h"

/* Its name alone says which tool it is for. */
static bool is_unqualified(const struct policy *policy)
{
    return policy && !policy_is_overlay(policy) && !policy->upstream.len;
}

struct guarded_tool *guarded_tools_find(const struct generation *g, struct str policy)
{
    for (size_t i = 0; i < g->guarded_count; i++)
        if (str_eq(g->guarded[i].policy, policy))
            return &g->guarded[i];
    return NULL;
}

void guarded_tools_take(struct generation *g, const struct guarded_tool *before, size_t count)
{
    g->guarded = ARENA_ARRAY(g->arena, struct guarded_tool, policy_set_count(g->policies) + 1);
    for (size_t i = 0; i < count; i++) {
        const struct policy *policy = policy_set_find(g->policies, before[i].policy);
        if (is_unqualified(policy) && !guarded_tools_find(g, policy->name))
            g->guarded[g->guarded_count++] = (struct guarded_tool){
                .policy = policy->name, .upstream = arena_dup(g->arena, before[i].upstream)};
    }
}

void guarded_tools_collect(struct generation *g)
{
    for (size_t i = 0; i < g->tool_count; i++) {
        const struct tool *tool = g->tools[i];
        if (tool->target.kind == TARGET_MCP && is_unqualified(tool->policy) &&
            !guarded_tools_find(g, tool->policy->name))
            g->guarded[g->guarded_count++] =
                (struct guarded_tool){.policy = tool->policy->name, .upstream = tool->target.upstream};
    }
}
