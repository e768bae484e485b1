/* Configurations of upstreams side by side, and one taken along. */
#include "base/arena.h"
#include "upstream/upstream_spec.h"

static bool pairs_same(const struct name_values *a, const struct name_values *b)
{
    for (size_t i = 0; a->count == b->count && i < a->count; i++)
        if (!str_eq(a->list[i].name, b->list[i].name) || !str_eq(a->list[i].value, b->list[i].value))
            return false;
    return a->count == b->count;
}

static bool argv_same(const struct upstream_spec *a, const struct upstream_spec *b)
{
    for (size_t i = 0; a->argc == b->argc && i < a->argc; i++)
        if (!str_eq(a->argv[i], b->argv[i]))
            return false;
    return a->argc == b->argc;
}

bool upstream_spec_equal(const struct upstream_spec *a, const struct upstream_spec *b)
{
    return str_eq(a->name, b->name) && a->kind == b->kind && argv_same(a, b) &&
           pairs_same(&a->env, &b->env) && str_eq(a->cwd, b->cwd) && str_eq(a->url, b->url) &&
           pairs_same(&a->headers, &b->headers) && str_eq(a->ca_file, b->ca_file) && a->lazy == b->lazy;
}

static struct str *copy_list(struct arena *arena, const struct str *list, size_t count)
{
    struct str *copy = ARENA_ARRAY(arena, struct str, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = arena_dup(arena, list[i]);
    return copy;
}

static struct name_values copy_pairs(struct arena *arena, const struct name_values *pairs)
{
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, pairs->count);
    for (size_t i = 0; i < pairs->count; i++)
        list[i] = (struct name_value){arena_dup(arena, pairs->list[i].name),
                                      arena_dup(arena, pairs->list[i].value)};
    return (struct name_values){list, pairs->count};
}

struct upstream_spec *upstream_spec_copy(struct arena *arena, const struct upstream_spec *spec)
{
    struct upstream_spec *copy = ARENA_NEW(arena, struct upstream_spec);
    *copy = *spec;
    copy->name = arena_dup(arena, spec->name);
    copy->from = arena_dup(arena, spec->from);
    copy->argv = copy_list(arena, spec->argv, spec->argc);
    copy->env = copy_pairs(arena, &spec->env);
    copy->cwd = arena_dup(arena, spec->cwd);
    copy->url = arena_dup(arena, spec->url);
    copy->headers = copy_pairs(arena, &spec->headers);
    copy->ca_file = arena_dup(arena, spec->ca_file);
    copy->tools = copy_list(arena, spec->tools, spec->tool_count);
    return copy;
}
