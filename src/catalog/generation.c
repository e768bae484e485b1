/* Counts the references to a generation and finds its tools; generation_build.c builds one. */
#include "catalog/generation.h"

#include "base/arena.h"

#include <unistd.h>

void generation_unref(struct generation *g)
{
    if (!g || --g->references > 0)
        return;
    if (g->cache.data)
        g->cache.free(g->cache.data);
    policy_set_free(g->policies);
    for (size_t i = 0; g->tool_lists && i < g->config.upstream_count; i++)
        tool_list_unref(g->tool_lists[i]);
    config_free(&g->config);
    arena_free(g->arena);
}

struct str generation_serves_nothing(const struct generation *g, struct arena *arena)
{
    char folder[4096];
    if (g->tool_count || g->config.upstream_count || policy_set_count(g->policies) ||
        policy_set_has_gateway(g->policies))
        return STR_NONE;
    if (g->config.policies)
        return arena_printf(
            arena, "nothing is served: %s holds no policy (*.lua), and no tools or upstreams are named",
            g->config.policies);
    return arena_printf(
        arena,
        "nothing is served: there is no folder " CONFIG_DEFAULT_FOLDER
        " in %s, and no policies, tools or upstreams are named: start it elsewhere, or name them with "
        "--policies DIR or -c FILE",
        getcwd(folder, sizeof(folder)) ? folder : "the working directory");
}

const struct tool_list *generation_tool_list(const struct generation *g, struct str upstream)
{
    for (size_t i = 0; i < g->config.upstream_count; i++)
        if (str_eq(g->config.upstreams[i]->name, upstream))
            return g->tool_lists[i];
    return NULL;
}

const struct json *generation_tools_in_file(const struct json *file)
{
    const struct json *result = json_get_text(file, "result");
    const struct json *tools = json_get_text(result ? result : file, "tools");
    if (json_is(file, JSON_ARRAY))
        return file;
    return json_is(tools, JSON_ARRAY) ? tools : NULL;
}
