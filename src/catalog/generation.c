/* Counts the references to a generation and finds its tools; generation_build.c builds one. */
#include "catalog/generation.h"

#include "base/arena.h"

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
