/* Comparing and copying the configuration of an upstream. */
#include "base/arena.h"
#include "upstream/upstream_spec.h"

static bool pairs_equal(const struct name_values *a, const struct name_values *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = str_eq(a->list[i].name, b->list[i].name) && str_eq(a->list[i].value, b->list[i].value);
    return equal;
}

bool upstream_spec_equal(const struct upstream_spec *a, const struct upstream_spec *b)
{
    bool equal = a->argc == b->argc;
    for (size_t i = 0; equal && i < a->argc; i++)
        equal = str_eq(a->argv[i], b->argv[i]);
    return equal && str_eq(a->name, b->name) && a->kind == b->kind && pairs_equal(&a->env, &b->env) &&
           str_eq(a->cwd, b->cwd) && str_eq(a->url, b->url) && pairs_equal(&a->headers, &b->headers) &&
           str_eq(a->ca_file, b->ca_file) && a->lazy == b->lazy && str_eq(a->user, b->user) &&
           str_eq(a->spawner, b->spawner) && confine_spec_equal(&a->sandbox, &b->sandbox);
}

static struct str *copy_list(struct arena *arena, const struct str *list, size_t count)
{
    struct str *copy = ARENA_ARRAY(arena, struct str, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = arena_dup(arena, list[i]);
    return copy;
}

struct name_values name_values_copy(struct arena *arena, struct name_values from)
{
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, from.count);
    for (size_t i = 0; i < from.count; i++)
        list[i] =
            (struct name_value){arena_dup(arena, from.list[i].name), arena_dup(arena, from.list[i].value)};
    return (struct name_values){list, from.count};
}

struct upstream_spec *upstream_spec_copy(struct arena *arena, const struct upstream_spec *spec)
{
    struct upstream_spec *copy = ARENA_NEW(arena, struct upstream_spec);
    *copy = *spec;
    copy->name = arena_dup(arena, spec->name);
    copy->from = arena_dup(arena, spec->from);
    copy->argv = copy_list(arena, spec->argv, spec->argc);
    copy->env = name_values_copy(arena, spec->env);
    copy->cwd = arena_dup(arena, spec->cwd);
    copy->user = arena_dup(arena, spec->user);
    copy->spawner = arena_dup(arena, spec->spawner);
    copy->sandbox = confine_spec_copy(arena, &spec->sandbox);
    copy->url = arena_dup(arena, spec->url);
    copy->headers = name_values_copy(arena, spec->headers);
    copy->ca_file = arena_dup(arena, spec->ca_file);
    copy->tools = copy_list(arena, spec->tools, spec->tool_count);
    return copy;
}
