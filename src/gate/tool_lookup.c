/* Finding a tool by its name, or the names that come close. */
#include "gate/tool_lookup.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"

static bool is_granted(struct generation *generation, const struct call_request *r, const struct tool *tool)
{
    if (tool->unregistered && !r->ignore_prepare)
        return false;
    return !r->peer || peer_may_call(generation_config(generation), r->peer, tool->name);
}

static bool exists(struct arena *arena, struct generation *generation, const struct call_request *r,
                   const struct tool *tool)
{
    struct catalog_request view = {.all = true,
                                   .peer = r->peer,
                                   .session = r->session,
                                   .goal = r->goal,
                                   .session_stuck = r->session_stuck};
    return is_granted(generation, r, tool) &&
           (r->ignore_prepare || catalog_shows(arena, generation, &view, tool->name));
}

const struct tool *tool_lookup_find(struct arena *arena, struct generation *generation,
                                    const struct call_request *r)
{
    const struct tool *tool = client_tools_find(r->client_tools, generation, r->tool);
    if (tool)
        return tool; /* the connection's own; tools/call is told that the agent runs it */
    tool = generation_find(generation, r->tool);
    return tool && exists(arena, generation, r, tool) ? tool : NULL;
}

size_t tool_lookup_suggest(struct arena *arena, struct generation *generation, const struct call_request *r,
                           struct str out[SUGGEST_MAX])
{
    size_t own = r->mode == CALL_RUN ? 0 : client_tools_count(r->client_tools),
           all = generation_tool_count(generation);
    struct str *names = ARENA_ARRAY(arena, struct str, own + all);
    size_t count = 0, close[SUGGEST_MAX], found = 0;
    for (size_t i = 0; i < own; i++)
        if (client_tools_find(r->client_tools, generation, client_tools_name_at(r->client_tools, i)))
            names[count++] = client_tools_name_at(r->client_tools, i);
    own = count;
    for (size_t i = 0; i < all; i++) {
        const struct tool *tool = generation_tool_at(generation, i);
        bool named = own && client_tools_find(r->client_tools, generation, tool->name); /* and policed here */
        if (!named && (r->mode != CALL_RUN || tool_is_listed(tool)) && is_granted(generation, r, tool))
            names[count++] = tool->name;
    }
    size_t n = suggest_ranked(r->tool, names, count, close);
    for (size_t i = 0; i < n; i++) { /* only the few that are close are looked at by policies */
        const struct tool *tool = close[i] < own ? NULL : generation_find(generation, names[close[i]]);
        if (!tool || exists(arena, generation, r, tool))
            out[found++] = names[close[i]];
    }
    return found;
}
