/* Comparing and copying the configuration of an upstream. */
#include "base/arena.h"
#include "base/buf.h"
#include "upstream/upstream_spec.h"

#include <string.h>

static bool lists_equal(const struct str *a, size_t a_count, const struct str *b, size_t b_count)
{
    bool equal = a_count == b_count;
    for (size_t i = 0; equal && i < a_count; i++)
        equal = str_eq(a[i], b[i]);
    return equal;
}

static bool paths_equal(const struct confine_paths *a, const struct confine_paths *b)
{
    return lists_equal(a->list, a->count, b->list, b->count);
}

static bool sandboxes_equal(const struct confine_spec *a, const struct confine_spec *b)
{
    return a->on == b->on && a->best_effort == b->best_effort && a->network == b->network &&
           a->reads_given == b->reads_given && paths_equal(&a->read, &b->read) &&
           paths_equal(&a->write, &b->write) && paths_equal(&a->env, &b->env) &&
           a->memory_bytes == b->memory_bytes && a->processes == b->processes;
}

static bool pairs_equal(const struct name_values *a, const struct name_values *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = str_eq(a->list[i].name, b->list[i].name) && str_eq(a->list[i].value, b->list[i].value);
    return equal;
}

bool upstream_spec_equal(const struct upstream_spec *a, const struct upstream_spec *b)
{
    return lists_equal(a->argv, a->argc, b->argv, b->argc) && str_eq(a->name, b->name) &&
           a->kind == b->kind && pairs_equal(&a->env, &b->env) && str_eq(a->cwd, b->cwd) &&
           str_eq(a->url, b->url) && pairs_equal(&a->headers, &b->headers) &&
           str_eq(a->ca_file, b->ca_file) && a->lazy == b->lazy && str_eq(a->user, b->user) &&
           a->per_user == b->per_user && str_eq(a->spawner, b->spawner) &&
           sandboxes_equal(&a->sandbox, &b->sandbox);
}

bool upstream_spec_next_file(struct str *text, struct str *before, struct str *path)
{
    static const char sign[] = "${file:";
    const char *open = text->len ? memmem(text->at, text->len, sign, sizeof(sign) - 1) : NULL;
    const char *end = open ? memchr(open, '}', (size_t)(text->at + text->len - open)) : NULL;
    if (!end)
        return false;
    *before = (struct str){text->at, (size_t)(open - text->at)};
    *path = (struct str){open + sizeof(sign) - 1, (size_t)(end - open) - (sizeof(sign) - 1)};
    *text = str_from(*text, (size_t)(end - text->at) + 1);
    return true;
}

static const char *find_user(struct str path)
{
    return path.len ? memmem(path.at, path.len, "%u", 2) : NULL;
}

bool upstream_spec_names_user(struct str text)
{
    struct str before, path;
    while (upstream_spec_next_file(&text, &before, &path))
        if (find_user(path))
            return true;
    return false;
}

static struct str copy_text(struct arena *arena, struct str text, const struct upstream_user *user)
{
    struct buf out = buf_in(arena);
    struct str before, path;
    if (!user || !upstream_spec_names_user(text))
        return arena_dup(arena, text);
    while (upstream_spec_next_file(&text, &before, &path)) {
        buf_str(&out, before);
        if (find_user(path))
            buf_printf(&out, "${user-file:%u:", (unsigned)user->uid);
        else
            buf_text(&out, "${file:");
        for (const char *at; (at = find_user(path));) {
            size_t n = (size_t)(at - path.at);
            buf_add(&out, path.at, n);
            buf_str(&out, user->name);
            path = str_from(path, n + 2);
        }
        buf_str(&out, path);
        buf_byte(&out, '}');
    }
    buf_str(&out, text);
    return arena_dup(arena, buf_view(&out));
}

static struct str *copy_list(struct arena *arena, const struct str *list, size_t count,
                             const struct upstream_user *user)
{
    struct str *copy = ARENA_ARRAY(arena, struct str, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = copy_text(arena, list[i], user);
    return copy;
}

static struct name_values copy_pairs(struct arena *arena, struct name_values from,
                                     const struct upstream_user *user)
{
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, from.count);
    for (size_t i = 0; i < from.count; i++)
        list[i] = (struct name_value){arena_dup(arena, from.list[i].name),
                                      copy_text(arena, from.list[i].value, user)};
    return (struct name_values){list, from.count};
}

bool name_globs_fit(const struct name_globs *globs, struct str name)
{
    for (size_t i = 0; i < globs->count; i++)
        if (str_glob(globs->list[i], name))
            return true;
    return !globs->given;
}

struct name_values name_values_copy(struct arena *arena, struct name_values from)
{
    return copy_pairs(arena, from, NULL);
}

struct upstream_spec *upstream_spec_copy(struct arena *arena, const struct upstream_spec *spec,
                                         const struct upstream_user *user)
{
    struct upstream_spec *copy = ARENA_NEW(arena, struct upstream_spec);
    *copy = *spec;
    copy->name = arena_dup(arena, spec->name);
    copy->from = arena_dup(arena, spec->from);
    copy->argv = copy_list(arena, spec->argv, spec->argc, user);
    copy->env = copy_pairs(arena, spec->env, user);
    copy->cwd = arena_dup(arena, spec->cwd);
    copy->user = arena_dup(arena, spec->user);
    copy->spawner = arena_dup(arena, spec->spawner);
    copy->sandbox.read.list = copy_list(arena, spec->sandbox.read.list, spec->sandbox.read.count, NULL);
    copy->sandbox.write.list = copy_list(arena, spec->sandbox.write.list, spec->sandbox.write.count, NULL);
    copy->sandbox.env.list = copy_list(arena, spec->sandbox.env.list, spec->sandbox.env.count, NULL);
    copy->url = copy_text(arena, spec->url, user);
    copy->headers = copy_pairs(arena, spec->headers, user);
    copy->ca_file = arena_dup(arena, spec->ca_file);
    copy->tools.list = copy_list(arena, spec->tools.list, spec->tools.count, NULL);
    copy->excluded.list = copy_list(arena, spec->excluded.list, spec->excluded.count, NULL);
    copy->prompts.list = copy_list(arena, spec->prompts.list, spec->prompts.count, NULL);
    copy->resources.list = copy_list(arena, spec->resources.list, spec->resources.count, NULL);
    return copy;
}
