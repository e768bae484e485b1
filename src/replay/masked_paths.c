/* Translates JSON pointers. */
#include "replay/masked_paths.h"

#include "base/arena.h"
#include "base/buf.h"
#include "gate/decision_mask.h"
#include "json/build.h"
#include "json/path.h"

struct str path_of_pointer(struct arena *arena, struct str pointer)
{
    struct buf path = buf_in(arena);
    if (!pointer.at)
        return STR_NONE;
    for (size_t from = 1, end; from <= pointer.len; from = end + 1) {
        bool is_index = true;
        for (end = from; end < pointer.len && pointer.at[end] != '/'; end++)
            is_index = is_index && ascii_is_digit(pointer.at[end]);
        struct str part = {pointer.at + from, end - from};
        if (is_index && part.len) {
            buf_printf(&path, "[" STR_FMT "]", STR_ARG(part));
            continue;
        }
        if (path.len)
            buf_byte(&path, '.');
        for (size_t i = 0; i < part.len; i++) /* ~1 is a slash, ~0 a tilde */
            if (part.at[i] == '~' && i + 1 < part.len)
                buf_byte(&path, part.at[++i] == '1' ? '/' : '~');
            else
                buf_byte(&path, part.at[i]);
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

const struct json *masked_paths_tell_apart(const struct recorded_call *call, const struct str *paths,
                                           size_t count)
{
    struct arena *arena = call->line->arena;
    bool at_name = count && !memchr(paths[0].at, '[', paths[0].len);
    if (!at_name || call->repeated || !json_is(call->arguments, JSON_OBJECT))
        return call->arguments;
    /* The tag of a mask tells it apart by itself. */
    struct str text = json_str(json_path_get(call->arguments, paths[0]));
    if (text.len && memmem(text.at, text.len, REDACTED_TAGGED, strlen(REDACTED_TAGGED)))
        return call->arguments;
    struct json own =
        json_string(arena_printf(arena, "masked value of line %llu", (unsigned long long)call->line->number));
    return json_keep(arena, json_path_with(arena, call->arguments, paths[0], own));
}
