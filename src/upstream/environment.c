/* Building an environment: inherited variables first, then those of the spec. */
#include "upstream/environment.h"

#include "base/arena.h"

#include <stdlib.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static bool has_name(const struct name_values *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (str_is(pairs->list[i].name, name))
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

enum err environment_build(struct arena *arena, const char *const *inherited, const struct name_values *pairs,
                           struct secrets *used, const char *const **out, struct why *why)
{
    size_t count = 0, room = pairs->count + 2;
    for (size_t i = 0; inherited[i]; i++)
        room++;
    const char **list = ARENA_ARRAY(arena, const char *, room);
    enum err err = OK;
    bool has_path = has_name(pairs, "PATH");
    for (size_t i = 0; inherited[i]; i++) {
        const char *value = getenv(inherited[i]);
        if (!value || has_name(pairs, inherited[i]))
            continue;
        has_path |= strcmp(inherited[i], "PATH") == 0;
        list[count++] = arena_printf(arena, "%s=%s", inherited[i], value).at;
    }
    if (!has_path)
        list[count++] = "PATH=" DEFAULT_PATH;
    for (size_t i = 0; i < pairs->count && !err; i++)
        err = expand_variable(arena, &pairs->list[i], used, &list[count++], why);
    *out = list;
    return err;
}
