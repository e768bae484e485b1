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

size_t tool_lookup_suggest(const struct call *c, const struct call_request *r,
                           struct str out[TOOL_LOOKUP_ALL_MAX], size_t *close)
{
    struct client_tools *own = listed_own(r);
    struct generation *generation = c->generation;
    size_t own_count = client_tools_count(own), all_count = generation->tool_count, count = 0, found = 0;
    struct str *names = ARENA_ARRAY(c->arena, struct str, own_count + all_count);
    for (size_t i = 0; i < own_count; i++) /* the client's own come first */
        if (client_tools_find(own, generation, client_tools_name_at(own, i)))
            names[count++] = client_tools_name_at(own, i);
    bool has_own = count;
    for (size_t i = 0; i < all_count; i++) {
        const struct tool *tool = generation->tools[i];
        bool duplicate = has_own && client_tools_find(own, generation, tool->name);
        if (!duplicate && (r->mode != CALL_RUN || tool_is_listed(tool)) && is_granted(c, r, tool))
            names[count++] = tool->name;
    }
    /* The closest names go first. Among few names, a shared word is no likeness. */
    bool few = count <= TOOL_LOOKUP_ALL_MAX;
    size_t order[SUGGEST_MAX + TOOL_LOOKUP_ALL_MAX], ranked = suggest_ranked(r->tool, names, count, order);
    size_t like = 0;
    while (like < ranked && like < TOOL_LOOKUP_CLOSE_MAX &&
           !(few && suggest_score(r->tool, names[order[like]]) < SUGGEST_CLOSE))
        like++;
    size_t listed = like;
    for (size_t i = 0; few && i < count; i++) {
        bool is_close = false;
        for (size_t k = 0; k < like; k++)
            is_close |= order[k] == i;
        if (!is_close)
            order[listed++] = i;
    }
    *close = 0;
    for (size_t i = 0; i < listed; i++) { /* prepare hooks run for these names only */
        struct str name = names[order[i]];
        const struct tool *of_client = client_tools_find(own, generation, name);
        const struct tool *tool = of_client ? NULL : generation_find(generation, name);
        if (of_client ? is_shown(c, r, of_client, own) : tool && exists(c, r, tool)) {
            out[found++] = name;
            *close += i < like;
        }
    }
    return found;
}
