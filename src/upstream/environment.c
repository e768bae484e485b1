/* Building an environment: inherited variables first, then those of the spec. */
#include "upstream/environment.h"

#include "base/arena.h"
#include "io/child.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static bool has_name(const struct name_values *pairs, struct str name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (str_eq(pairs->list[i].name, name))
            return true;
    return false;
}

static enum err expand_variable(struct arena *arena, const struct name_value *pair, struct secrets *used,
                                const char **out, struct why *why)
{
    struct str value;
    enum err err = secrets_expand(arena, pair->value, used, &value, why);
    if (!err && value.len && memchr(value.at, '\0', value.len))
        err = err_set(why, ERR_PARSE, "the value holds a NUL byte");
    if (err)
        err_prefix(why, arena_printf(arena, "env." STR_FMT, STR_ARG(str_cut(pair->name, 100))).at);
    else
        *out = ARENA_JOIN(arena, pair->name, STR_LIT("="), value).at;
    return err;
}

enum err environment_build(struct arena *arena, const char *inherited, const struct name_values *pairs,
                           struct secrets *used, const char *const **out, struct why *why)
{
    const char **list = ARENA_ARRAY(arena, const char *, pairs->count + strlen(inherited) / 2 + 3);
    size_t count = 0;
    enum err err = OK;
    bool has_path = has_name(pairs, STR_LIT("PATH"));
    for (const char *at = inherited; *at; at += strspn(at, " ")) {
        struct str name = arena_dup(arena, (struct str){at, strcspn(at, " ")});
        const char *value = getenv(name.at);
        at += name.len;
        if (!value || has_name(pairs, name))
            continue;
        has_path |= str_is(name, "PATH");
        list[count++] = ARENA_JOIN(arena, name, STR_LIT("="), str_of(value)).at;
    }
    if (!has_path)
        list[count++] = "PATH=" DEFAULT_PATH;
    for (size_t i = 0; i < pairs->count && !err; i++)
        err = expand_variable(arena, &pairs->list[i], used, &list[count++], why);
    *out = list;
    return err;
}

const char *const *environment_with_trace(struct arena *arena, const char *const *environment,
                                          const struct name_values *pairs, const struct trace_context *trace)
{
    static const struct str names[] = {[TRACE_PARENT] = STR("TRACEPARENT"),
                                       [TRACE_STATE] = STR("TRACESTATE"),
                                       [TRACE_BAGGAGE] = STR("BAGGAGE")};
    size_t count = 0;
    while (environment[count])
        count++;
    const char **list = ARENA_ARRAY(arena, const char *, count + TRACE_KEYS + 1);
    memcpy(list, environment, count * sizeof(*list));
    for (unsigned i = 0; i < TRACE_KEYS; i++)
        if (trace->values[i].len && !has_name(pairs, names[i]))
            list[count++] = ARENA_JOIN(arena, names[i], STR_LIT("="), trace->values[i]).at;
    return list;
}

/* ---- the command of a server ---- */

static struct str path_of(const struct upstream_spec *spec)
{
    const char *path = getenv("PATH");
    for (size_t i = 0; i < spec->env.count; i++)
        if (str_is(spec->env.list[i].name, "PATH"))
            return spec->env.list[i].value;
    return str_of(path ? path : DEFAULT_PATH);
}

enum err environment_find_command(struct arena *arena, const struct upstream_spec *spec, struct why *why)
{
    char found[PATH_MAX];
    if (spec->spawner.len)
        return OK; /* the spawner finds it */
    struct str name = spec->argv[0];
    const char *argv[] = {arena_dup(arena, name).at, NULL};
    const char *env[] = {arena_printf(arena, "PATH=" STR_FMT, STR_ARG(path_of(spec))).at, NULL};
    struct child_spec child = {.argv = argv, .env = env};
    if (memmem(name.at, name.len, "${", 2))
        return OK;
    enum err err = child_find_program(&child, found, why);
    bool relative = found[0] != '/' && spec->cwd.len;
    struct str path =
        relative ? arena_printf(arena, STR_FMT "/%s", STR_ARG(spec->cwd), found) : str_of(found);
    if (err == OK && access(path.at, X_OK) != 0)
        err = err_set(why, ERR_NOT_FOUND, "cannot run '%s': %s", path.at, strerror(errno));
    return err;
}
