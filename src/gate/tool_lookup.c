/* Finds a tool by name, or the names closest to it. */
#include "gate/tool_lookup.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"

/* Only examples call a tool that nobody has registered. */
static bool is_granted(struct generation *generation, const struct call_request *r, const struct tool *tool)
{
    if (tool->unregistered && !r->ignore_prepare && !r->force_enforce)
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
                                    .context = r->context,
                                    .past = r->past};
}

/* tools/list has no tools that the client registered, so prepare_tools does not see them before tools/call.
 */
static struct client_tools *listed_own(const struct call_request *r)
{
    return r->mode == CALL_RUN ? NULL : r->client_tools;
}

/* A report's tool has run already: it is judged even if it is hidden meanwhile. */
static bool ignores_hooks(const struct call_request *r)
{
    return r->ignore_prepare || r->mode == CALL_REPORT;
}

static bool is_shown(struct arena *arena, struct generation *generation, const struct call_request *r,
                     const struct tool *tool, struct client_tools *own)
{
    struct catalog_request view = view_of(r);
    view.client_tools = own;
    return ignores_hooks(r) || catalog_shows(arena, generation, &view, tool);
}

static bool exists(struct arena *arena, struct generation *generation, const struct call_request *r,
                   const struct tool *tool)
{
    bool in_no_list = tool->unregistered && !(tool->policy && tool->policy->hooks[HOOK_PREPARE]);
    return is_granted(generation, r, tool) &&
           (in_no_list || is_shown(arena, generation, r, tool, listed_own(r)));
}

const struct tool *tool_lookup_find(struct arena *arena, struct generation *generation,
                                    const struct call_request *r)
{
    const struct tool *tool = client_tools_find(r->client_tools, generation, r->tool);
    if (tool)
        return is_shown(arena, generation, r, tool, r->client_tools) ? tool : NULL;
    tool = generation_find(generation, r->tool);
    return tool && exists(arena, generation, r, tool) ? tool : NULL;
}

struct known_names {
    struct str *at;
    size_t own, count; /* the client's own come first */
};

static void collect_names(struct arena *arena, struct generation *generation, const struct call_request *r,
                          struct client_tools *own, struct known_names *names)
{
    size_t own_count = client_tools_count(own), all_count = generation->tool_count;
    *names = (struct known_names){ARENA_ARRAY(arena, struct str, own_count + all_count), 0, 0};
    for (size_t i = 0; i < own_count; i++)
        if (client_tools_find(own, generation, client_tools_name_at(own, i)))
            names->at[names->count++] = client_tools_name_at(own, i);
    names->own = names->count;
    for (size_t i = 0; i < all_count; i++) {
        const struct tool *tool = generation->tools[i];
        bool duplicate = names->own && client_tools_find(own, generation, tool->name);
        if (!duplicate && (r->mode != CALL_RUN || tool_is_listed(tool)) && is_granted(generation, r, tool))
            names->at[names->count++] = tool->name;
    }
}

size_t tool_lookup_suggest(struct arena *arena, struct generation *generation, const struct call_request *r,
                           struct str out[TOOL_LOOKUP_ALL_MAX], bool *all)
{
    struct client_tools *own = listed_own(r);
    struct known_names names;
    size_t closest[TOOL_LOOKUP_ALL_MAX > SUGGEST_MAX ? TOOL_LOOKUP_ALL_MAX : SUGGEST_MAX], found = 0;
    collect_names(arena, generation, r, own, &names);
    *all = names.count <= TOOL_LOOKUP_ALL_MAX;
    size_t count = *all ? names.count : suggest_ranked(r->tool, names.at, names.count, closest);
    size_t most = *all ? TOOL_LOOKUP_ALL_MAX : TOOL_LOOKUP_CLOSE_MAX;
    for (size_t i = 0; i < count && found < most; i++) { /* prepare hooks run for these names only */
        size_t at = *all ? i : closest[i];
        struct str name = names.at[at];
        bool is_own = at < names.own;
        const struct tool *tool =
            is_own ? client_tools_find(own, generation, name) : generation_find(generation, name);
        if (is_own ? is_shown(arena, generation, r, tool, own) : exists(arena, generation, r, tool))
            out[found++] = name;
    }
    return found;
}
