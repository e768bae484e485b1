/* Finds a tool by name, or the names closest to it. */
#include "gate/call_state.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"

/* Only examples call a tool that nobody has registered. */
static bool is_granted(const struct call *c, const struct call_request *r, const struct tool *tool)
{
    if (tool->unregistered && !r->ignore_prepare && !r->force_enforce)
        return false;
    return !r->peer || peer_may_call(&c->generation->config, r->peer, tool->name);
}

/* tools/list has no tools that the client registered, so prepare_tools does not see them before tools/call.
 */
static struct client_tools *listed_own(const struct call_request *r)
{
    return r->mode == CALL_RUN ? NULL : r->client_tools;
}

static bool is_shown(const struct call *c, const struct call_request *r, const struct tool *tool,
                     struct client_tools *own)
{
    struct catalog_request view = {.all = true,
                                   .peer = r->peer,
                                   .session = r->session,
                                   .goal = r->goal,
                                   .step = r->step,
                                   .context = r->context,
                                   .past = r->past,
                                   .client_tools = own};
    /* a report's tool has run already: it is judged even if it is hidden now */
    return r->ignore_prepare || r->mode == CALL_REPORT || catalog_shows(c->arena, c->generation, &view, tool);
}

static bool exists(const struct call *c, const struct call_request *r, const struct tool *tool)
{
    bool in_no_list = tool->unregistered && !(tool->policy && tool->policy->hooks[HOOK_PREPARE]);
    return is_granted(c, r, tool) && (in_no_list || is_shown(c, r, tool, listed_own(r)));
}

const struct tool *tool_lookup_find(const struct call *c, const struct call_request *r)
{
    const struct tool *tool = client_tools_find(r->client_tools, c->generation, r->tool);
    if (tool)
        return is_shown(c, r, tool, r->client_tools) ? tool : NULL;
    tool = generation_find(c->generation, r->tool);
    return tool && exists(c, r, tool) ? tool : NULL;
}

struct known_names {
    struct str *at;
    size_t own, count; /* the client's own come first */
};

static void collect_names(const struct call *c, const struct call_request *r, struct client_tools *own,
                          struct known_names *names)
{
    size_t own_count = client_tools_count(own), all_count = c->generation->tool_count;
    *names = (struct known_names){ARENA_ARRAY(c->arena, struct str, own_count + all_count), 0, 0};
    for (size_t i = 0; i < own_count; i++)
        if (client_tools_find(own, c->generation, client_tools_name_at(own, i)))
            names->at[names->count++] = client_tools_name_at(own, i);
    names->own = names->count;
    for (size_t i = 0; i < all_count; i++) {
        const struct tool *tool = c->generation->tools[i];
        bool duplicate = names->own && client_tools_find(own, c->generation, tool->name);
        if (!duplicate && (r->mode != CALL_RUN || tool_is_listed(tool)) && is_granted(c, r, tool))
            names->at[names->count++] = tool->name;
    }
}

/* The closest ones in front; returns how many are. Among few names, a shared word is no likeness. */
static size_t sort_by_likeness(struct arena *arena, struct str word, struct known_names *names, bool few)
{
    size_t closest[SUGGEST_MAX], count = suggest_ranked(word, names->at, names->count, closest), kept = 0;
    struct str *sorted = ARENA_ARRAY(arena, struct str, names->count);
    bool *taken = ARENA_ARRAY(arena, bool, names->count);
    for (size_t i = 0; i < count && kept < TOOL_LOOKUP_CLOSE_MAX; i++) {
        if (few && suggest_score(word, names->at[closest[i]]) < SUGGEST_CLOSE)
            break;
        taken[closest[i]] = true;
        sorted[kept++] = names->at[closest[i]];
    }
    count = kept;
    for (size_t i = 0; i < names->count; i++)
        if (!taken[i])
            sorted[kept++] = names->at[i];
    names->at = sorted;
    return count;
}

size_t tool_lookup_suggest(const struct call *c, const struct call_request *r,
                           struct str out[TOOL_LOOKUP_ALL_MAX], size_t *close)
{
    struct client_tools *own = listed_own(r);
    struct known_names names;
    collect_names(c, r, own, &names);
    bool few = names.count <= TOOL_LOOKUP_ALL_MAX;
    size_t like = sort_by_likeness(c->arena, r->tool, &names, few), found = 0;
    *close = 0;
    for (size_t i = 0; i < (few ? names.count : like); i++) { /* prepare hooks run for these names only */
        const struct tool *of_client = client_tools_find(own, c->generation, names.at[i]);
        const struct tool *tool = of_client ? NULL : generation_find(c->generation, names.at[i]);
        if (of_client ? is_shown(c, r, of_client, own) : tool && exists(c, r, tool)) {
            out[found++] = names.at[i];
            *close += i < like;
        }
    }
    return found;
}
