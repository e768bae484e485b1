/* Holds a generation by count and reads it; generation_build.c builds one. */
#include "catalog/generation_internal.h"

#include "base/arena.h"
#include "base/map.h"
#include "config/config.h"

struct generation *generation_ref(struct generation *g)
{
    g->references++;
    return g;
}

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

const struct config *generation_config(const struct generation *g)
{
    return &g->config;
}

struct policy_set *generation_policies(const struct generation *g)
{
    return g->policies;
}

uint64_t generation_number(const struct generation *g)
{
    return g->number;
}

struct str generation_hash(const struct generation *g)
{
    return g->hash;
}

uint64_t generation_list_hash(const struct generation *g)
{
    return g->list_hash;
}

const struct str *generation_warnings(const struct generation *g, size_t *count)
{
    *count = g->warning_count;
    return g->warnings;
}

const struct tool_list *generation_tool_list(const struct generation *g, struct str upstream)
{
    for (size_t i = 0; i < g->config.upstream_count; i++)
        if (str_eq(g->config.upstreams[i]->name, upstream))
            return g->tool_lists[i];
    return NULL;
}

struct generation_cache *generation_cache(struct generation *g)
{
    return &g->cache;
}

size_t generation_tool_count(const struct generation *g)
{
    return g->tool_count;
}

const struct tool *generation_tool_at(const struct generation *g, size_t index)
{
    return g->tools[index];
}

const struct tool *generation_find(const struct generation *g, struct str name)
{
    return map_get(g->by_name, name);
}

const struct json *generation_tools_in_file(const struct json *file)
{
    const struct json *result = json_get_text(file, "result");
    const struct json *tools = json_get_text(result ? result : file, "tools");
    if (json_is(file, JSON_ARRAY))
        return file;
    return json_is(tools, JSON_ARRAY) ? tools : NULL;
}
