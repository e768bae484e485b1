/* Translates JSON pointers. */
#include "replay/masked_paths.h"

#include "base/arena.h"
#include "base/buf.h"
#include "gate/decision_mask.h"
#include "json/build.h"
#include "json/path.h"

/* The end of the part that begins at `from`. */
static size_t part_end(struct str pointer, size_t from)
{
    while (from < pointer.len && pointer.at[from] != '/')
        from++;
    return from;
}

static bool is_index(struct str part)
{
    for (size_t i = 0; i < part.len; i++)
        if (!ascii_is_digit(part.at[i]))
            return false;
    return part.len > 0;
}

/* ~1 is a slash, ~0 a tilde. */
static void put_name(struct buf *path, struct str part)
{
    if (path->len)
        buf_byte(path, '.');
    for (size_t i = 0; i < part.len; i++)
        if (part.at[i] == '~' && i + 1 < part.len)
            buf_byte(path, part.at[++i] == '1' ? '/' : '~');
        else
            buf_byte(path, part.at[i]);
}

struct str path_of_pointer(struct arena *arena, struct str pointer)
{
    struct buf path = buf_in(arena);
    if (!pointer.at)
        return STR_NONE;
    for (size_t from = 1, end; from <= pointer.len; from = end + 1) {
        end = part_end(pointer, from);
        struct str part = {pointer.at + from, end - from};
        if (is_index(part))
            buf_printf(&path, "[" STR_FMT "]", STR_ARG(part));
        else
            put_name(&path, part);
    }
    return buf_view(&path);
}

size_t masked_paths_read(struct arena *arena, const struct json *pointers, struct str out[MASKED_PATHS_MAX])
{
    size_t count = 0;
    for (uint32_t i = 0; json_is(pointers, JSON_ARRAY) && i < pointers->len && count < MASKED_PATHS_MAX;
         i++) {
        out[count] = path_of_pointer(arena, json_str(&pointers->items[i]));
        count += out[count].len > 0;
    }
    return count;
}

/* The tag of a mask tells it apart by itself. */
static bool is_tagged(const struct json *value)
{
    static const char tagged[] = REDACTED_TAGGED;
    struct str text = value ? json_str(value) : STR_NONE;
    return text.len && memmem(text.at, text.len, tagged, sizeof(tagged) - 1);
}

const struct json *masked_paths_tell_apart(const struct recorded_call *call, const struct str *paths,
                                           size_t count)
{
    struct arena *arena = call->line->arena;
    bool at_name = count && !memchr(paths[0].at, '[', paths[0].len);
    if (!at_name || call->repeated || !json_is(call->arguments, JSON_OBJECT))
        return call->arguments;
    if (is_tagged(json_path_get(call->arguments, paths[0])))
        return call->arguments;
    struct json own =
        json_string(arena_printf(arena, "masked value of line %llu", (unsigned long long)call->line->number));
    return json_keep(arena, json_path_with(arena, call->arguments, paths[0], own));
}
