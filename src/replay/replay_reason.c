/* Reads a verdict; the first problem that is no warning speaks for the call. */
#include "replay/replay_reason.h"

#include "base/arena.h"

struct str replay_reason_without_indexes(struct arena *arena, struct str path)
{
    char *out = arena_alloc(arena, path.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < path.len; i++)
        if (!(len && out[len - 1] == '[' && ascii_is_digit(path.at[i])))
            out[len++] = path.at[i];
    return (struct str){out, len};
}

struct str replay_reason_code(const struct verdict *v)
{
    if (v->class == CLASS_INVALID_ARGUMENTS && v->kind == VERDICT_REPAIR)
        for (size_t i = 0; i < v->problems.count; i++)
            if (!v->problems.list[i].warning)
                return str_of(v->problems.list[i].code);
    return v->code.len ? v->code : str_of(error_class_info(v->class)->name);
}

struct str replay_reason_path(struct arena *arena, const struct verdict *v)
{
    for (size_t i = 0; i < v->problems.count; i++)
        if (!v->problems.list[i].warning)
            return replay_reason_without_indexes(arena, v->problems.list[i].path);
    return STR_NONE;
}

struct str replay_reason_of(struct arena *arena, const struct problem *problem)
{
    return problem->path.len ? ARENA_JOIN(arena, problem->path, STR_LIT(": "), problem->message)
                             : problem->message;
}

struct str replay_reason_text(struct arena *arena, const struct verdict *v)
{
    for (size_t i = 0; i < v->problems.count; i++)
        if (!v->problems.list[i].warning)
            return replay_reason_of(arena, &v->problems.list[i]);
    return v->detail.len ? v->detail : v->quoted;
}
