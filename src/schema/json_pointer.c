/* "~0" stands for "~", "~1" for "/"; an array index has no leading sign and at most nine digits. */
#include "schema/json_pointer.h"

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
    if (!token.len || !memchr(token.at, '~', token.len))
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
    struct str rest = str_from(*pointer, 1);
    const char *slash = rest.len ? memchr(rest.at, '/', rest.len) : NULL;
    struct str token = {rest.at, slash ? (size_t)(slash - rest.at) : rest.len};
    *pointer = str_from(rest, token.len);
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
