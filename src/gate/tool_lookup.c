/* Finds a tool by name, or the names closest to it. */
#include "gate/tool_lookup.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"

static bool is_granted(struct generation *generation, const struct call_request *r, const struct tool *tool)
{
    if (tool->unregistered && !r->ignore_prepare)
        return false;
    return !r->peer || peer_may_call(&generation->config, r->peer, tool->name);
}

static struct catalog_request view_of(const struct call_request *r)
{
    return (struct catalog_request){.all = true,
                                    .peer = r->peer,
                                    .session = r->session,
                                    .goal = r->goal,
                                    .step = r->step,
                                    .past = r->past};
}

/* A report's tool has run already: it is judged even if it is hidden meanwhile. */
static bool ignores_hooks(const struct call_request *r)
{
    return r->ignore_prepare || r->mode == CALL_REPORT;
}

static bool exists(struct arena *arena, struct generation *generation, const struct call_request *r,
                   const struct tool *tool)
{
    struct catalog_request view = view_of(r);
    return is_granted(generation, r, tool) &&
           (ignores_hooks(r) || catalog_shows(arena, generation, &view, tool->name));
}

const struct tool *tool_lookup_find(struct arena *arena, struct generation *generation,
                                    const struct call_request *r)
{
    struct catalog_request view = view_of(r);
    const struct tool *tool = client_tools_find(r->client_tools, generation, r->tool);
    if (tool)
        return ignores_hooks(r) || catalog_shows_own(arena, generation, &view, tool) ? tool : NULL;
    tool = generation_find(generation, r->tool);
    return tool && exists(arena, generation, r, tool) ? tool : NULL;
}

size_t tool_lookup_suggest(struct arena *arena, struct generation *generation, const struct call_request *r,
                           struct str out[SUGGEST_MAX])
{
    struct client_tools *own = r->mode == CALL_RUN ? NULL : r->client_tools;
    size_t own_count = client_tools_count(own), all_count = generation->tool_count;
    struct str *names = ARENA_ARRAY(arena, struct str, own_count + all_count);
    size_t count = 0, closest[SUGGEST_MAX], found = 0;
    for (size_t i = 0; i < own_count; i++)
        if (client_tools_find(own, generation, client_tools_name_at(own, i)))
            names[count++] = client_tools_name_at(own, i);
    own_count = count;
    for (size_t i = 0; i < all_count; i++) {
        const struct tool *tool = generation->tools[i];
        bool duplicate = own_count && client_tools_find(own, generation, tool->name);
        if (!duplicate && (r->mode != CALL_RUN || tool_is_listed(tool)) && is_granted(generation, r, tool))
            names[count++] = tool->name;
    }
    size_t closest_count = suggest_ranked(r->tool, names, count, closest);
    for (size_t i = 0; i < closest_count; i++) { /* prepare hooks run for the few closest names only */
        struct str name = names[closest[i]];
        const struct tool *tool = closest[i] < own_count ? NULL : generation_find(generation, name);
        if (!tool || exists(arena, generation, r, tool))
            out[found++] = name;
    }
    return found;
}
