/* See environment.h. */
#include "upstream/environment.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH_OTHERWISE "/usr/local/bin:/usr/bin:/bin"

static bool names(const struct name_values *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (str_is(pairs->list[i].name, name))
            return true;
    return false;
}

static enum err wrong_value(const struct name_value *pair, enum err err, struct why *why)
{
    char prefix[200];
    snprintf(prefix, sizeof(prefix), "env." STR_FMT, STR_ARG(str_cut(pair->name, 100)));
    err_prefix(why, prefix);
    return err;
}

static enum err make_one(struct arena *arena, const struct name_value *pair, struct secrets *used,
                         const char **out, struct why *why)
{
    struct str value;
    enum err err = secrets_expand(arena, pair->value, used, &value, why);
    if (!err && value.len && memchr(value.at, '\0', value.len))
        err = err_set(why, ERR_PARSE, "a NUL byte in the value");
    if (err)
        return wrong_value(pair, err, why);
    *out = ARENA_JOIN(arena, pair->name, STR_LIT("="), value).at;
    return OK;
}

enum err environment_build(struct arena *arena, const char *const *taken, const struct name_values *pairs,
                           struct secrets *used, const char *const **out, struct why *why)
{
    size_t count = 0, n = pairs->count;
    for (size_t i = 0; taken[i]; i++)
        n++;
    const char **list = ARENA_ARRAY(arena, const char *, n + 2);
    enum err err = OK;
    bool has_path = names(pairs, "PATH");
    for (size_t i = 0; taken[i]; i++) {
        const char *value = getenv(taken[i]);
        if (!value || names(pairs, taken[i]))
            continue;
        has_path |= strcmp(taken[i], "PATH") == 0;
        list[count++] = arena_printf(arena, "%s=%s", taken[i], value).at;
    }
    if (!has_path)
        list[count++] = "PATH=" PATH_OTHERWISE;
    for (size_t i = 0; i < pairs->count && !err; i++)
        err = make_one(arena, &pairs->list[i], used, &list[count++], why);
    *out = list;
    return err;
}
