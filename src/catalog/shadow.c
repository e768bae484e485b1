/* Where mode shadow is declared, and where it has outlived its date: in each policy, and in the defaults. */
#include "catalog/shadow.h"

#include "base/arena.h"
#include "base/date.h"
#include "catalog/generation.h"

static bool has_come(struct str date, int64_t now_ms)
{
    int64_t seconds;
    return date_read(date, &seconds) && seconds * 1000 <= now_ms;
}

static struct shadow_expiry expiry(struct arena *arena, const struct policy *policy, struct str file,
                                   struct str date)
{
    struct str sentence = arena_printf(arena,
                                       "%smode = \"shadow\" was to end on " STR_FMT
                                       ", and nothing is enforced yet: set mode = \"enforce\", "
                                       "or a later shadow_until",
                                       policy ? "" : "defaults: ", STR_ARG(date));
    return (struct shadow_expiry){policy, file, sentence};
}

size_t shadow_expired(const struct generation *generation, int64_t now_ms, struct arena *arena,
                      struct shadow_expiry **out)
{
    const struct config *config = &generation->config;
    size_t policies = policy_set_count(generation->policies), count = 0;
    struct shadow_expiry *list = ARENA_ARRAY(arena, struct shadow_expiry, policies + 1);
    if (has_come(config->defaults.shadow_until, now_ms))
        list[count++] = expiry(arena, NULL, str_of(config->file), config->defaults.shadow_until);
    for (size_t i = 0; i < policies; i++) {
        const struct policy *policy = policy_set_at(generation->policies, i);
        if (has_come(policy->shadow_until, now_ms))
            list[count++] = expiry(arena, policy, policy->file, policy->shadow_until);
    }
    *out = list;
    return count;
}

/* `policy` NULL: the configuration's defaults. */
static struct shadow_place place_of(const struct generation *g, const struct policy *policy,
                                    struct arena *arena)
{
    struct str *tools = ARENA_ARRAY(arena, struct str, g->tool_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < g->tool_count; i++) {
        const struct tool *tool = g->tools[i];
        bool declares = tool->policy && tool->policy->mode_given; /* in all its policies */
        for (size_t n = 0; declares && n < tool->overlay_count; n++)
            declares = tool->overlays[n].policy->mode_given;
        if (policy ? tool->policy == policy || tool_has_overlay(tool, policy) : declares)
            tools[count++] = tool->name;
    }
    return (struct shadow_place){.file = policy ? policy->file : str_of(g->config.file),
                                 .line = policy ? policy->mode_line : g->config.defaults.mode_line,
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
        if (!policy->mode_given || policy->mode != POLICY_SHADOW)
            continue;
        list[count] = place_of(g, policy, arena);
        count += list[count].tool_count > 0;
    }
    if (g->config.defaults.mode == POLICY_SHADOW)
        list[count++] = place_of(g, NULL, arena);
    *out = list;
    return count;
}
