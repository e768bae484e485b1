/* Looks up the whole path as a key first, then splits it at its first dot. */
#include "json/path.h"

#include "base/arena.h"
#include "json/build.h"

/* Splits "a.b.c" into "a" and "b.c"; false if there is no dot. */
static bool split(struct str path, struct str *first, struct str *rest)
{
    *rest = path;
    *first = str_split(rest, '.');
    return str_has(path, '.');
}

const struct json *json_path_get(const struct json *object, struct str path)
{
    struct str first, rest;
    const struct json *found = json_get(object, path);
    if (found || !split(path, &first, &rest))
        return found;
    return json_path_get(json_get(object, first), rest);
}

struct json json_path_with(struct arena *arena, const struct json *object, struct str path, struct json value)
{
    struct str first, rest;
    const struct json *inner;
    if (json_get(object, path) || !split(path, &first, &rest) ||
        !json_is(inner = json_get(object, first), JSON_OBJECT))
        return json_with(arena, object, path, value);
    return json_with(arena, object, first, json_path_with(arena, inner, rest, value));
}

struct json json_path_without(struct arena *arena, const struct json *object, struct str path)
{
    struct str first, rest;
    const struct json *inner;
    if (json_get(object, path))
        return json_without(arena, object, path);
    if (!split(path, &first, &rest) || !json_is(inner = json_get(object, first), JSON_OBJECT))
        return *object;
    return json_with(arena, object, first, json_path_without(arena, inner, rest));
}

/* `path` is what follows the value: "", ".id", "[].id"; at the beginning "id". */
size_t json_path_scalars(const struct json *value, struct str path, const struct json **out, size_t max)
{
    size_t count = 0;
    if (!value || !max)
        return 0;
    /* A single value instead of a list is accepted; a path may have 100,000 of them. */
    while (str_starts(path, "[]") && value->type != JSON_ARRAY)
        path = str_from(path, 2);
    if (value->type == JSON_ARRAY && (path.len == 0 || str_starts(path, "[]"))) {
        for (uint32_t i = 0; i < value->len && count < max; i++)
            count +=
                json_path_scalars(&value->items[i], str_from(path, 2), out ? out + count : NULL, max - count);
        return count;
    }
    if (path.len == 0) {
        count = value->type == JSON_STRING || value->type == JSON_NUMBER;
        if (count && out)
            out[0] = value;
        return count;
    }
    if (path.at[0] == '.')
        path = str_from(path, 1);
    struct str name = str_first_name(path);
    return json_path_scalars(json_get(value, name), str_from(path, name.len), out, max);
}

/* ---- JSON pointers ---- */

/* "~0" stands for "~", "~1" for "/". */
void json_pointer_put(struct buf *out, struct str token)
{
    buf_byte(out, '/');
    for (size_t i = 0; i < token.len; i++)
        if (token.at[i] == '~')
            buf_text(out, "~0");
        else if (token.at[i] == '/')
            buf_text(out, "~1");
        else
            buf_byte(out, token.at[i]);
}

static struct str decode(struct arena *arena, struct str token)
{
    struct buf out = buf_in(arena);
    if (!str_has(token, '~'))
        return token;
    for (size_t i = 0; i < token.len; i++) {
        char next = i + 1 < token.len ? token.at[i + 1] : '\0';
        bool escaped = token.at[i] == '~' && (next == '0' || next == '1');
        buf_byte(&out, !escaped ? token.at[i] : next == '0' ? '~' : '/');
        i += escaped;
    }
    return buf_view(&out);
}

const struct json *json_pointer_step(struct arena *arena, const struct json *at, struct str *pointer)
{
    struct str rest = str_from(*pointer, 1), token = str_split(&rest, '/');
    *pointer = str_from(*pointer, token.len + 1);
    if (at->type == JSON_OBJECT)
        return json_get(at, decode(arena, token));
    uint64_t index = 0;
    bool is_index = at->type == JSON_ARRAY && token.len > 0 && token.len < 10;
    for (size_t i = 0; is_index && i < token.len; i++) {
        is_index = token.at[i] >= '0' && token.at[i] <= '9';
        index = index * 10 + (uint64_t)(token.at[i] - '0');
    }
    return is_index && index < at->len ? &at->items[index] : NULL;
}

const struct json *json_pointer_find(struct arena *arena, const struct json *document, struct str reference)
{
    const struct json *at = str_starts(reference, "#") ? document : NULL;
    for (struct str rest = str_from(reference, 1); at && rest.len;)
        at = json_pointer_step(arena, at, &rest);
    return at;
}
