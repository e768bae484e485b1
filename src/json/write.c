/* Writes raw bytes if a value has them, else compactly. */
#include "json/write.h"

#include "json/decimal.h"
#include "json/string.h"

#include <math.h>

#define PIECE_BYTES 1024 /* of a string */

/* Raw newlines are only between tokens and can be left out. */
static void write_raw(struct buf *out, struct str raw)
{
    const char *p = raw.at, *end = p + raw.len;
    if (!memchr(p, '\n', raw.len) && !memchr(p, '\r', raw.len)) {
        buf_str(out, raw);
        return;
    }
    while (p < end) {
        const char *start = p;
        while (p < end && *p != '\n' && *p != '\r')
            p++;
        buf_add(out, start, (size_t)(p - start));
        while (p < end && (*p == '\n' || *p == '\r'))
            p++;
    }
}

void json_write(struct buf *out, const struct json *value)
{
    if (value->raw_len) {
        write_raw(out, (struct str){value->raw, value->raw_len});
        return;
    }
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        buf_text(out, "null");
        break;
    case JSON_BOOL:
        buf_text(out, value->truth ? "true" : "false");
        break;
    case JSON_NUMBER:
        buf_add(out, value->text, value->len);
        break;
    case JSON_STRING:
        json_write_string(out, json_str(value));
        break;
    case JSON_ARRAY:
        buf_byte(out, '[');
        for (uint32_t i = 0; i < value->len; i++) {
            if (i)
                buf_byte(out, ',');
            json_write(out, &value->items[i]);
        }
        buf_byte(out, ']');
        break;
    case JSON_OBJECT:
        buf_byte(out, '{');
        for (uint32_t i = 0; i < value->len; i++) {
            if (i)
                buf_byte(out, ',');
            json_write_string(out, value->members[i].key);
            buf_byte(out, ':');
            json_write(out, &value->members[i].value);
        }
        buf_byte(out, '}');
        break;
    }
}

struct str json_to_str(struct arena *arena, const struct json *value)
{
    struct buf text = buf_in(arena);
    if (value)
        json_write(&text, value);
    return buf_view(&text);
}

/* In pieces, so that a long string reserves no multiple of its length. */
static __attribute__((noinline)) void write_pieces(struct buf *out, struct str s)
{
    const char *p = s.at, *end = p + s.len;
    buf_byte(out, '"');
    while (p < end) {
        size_t piece = end - p < PIECE_BYTES ? (size_t)(end - p) : PIECE_BYTES;
        char *at = buf_reserve(out, JSON_STRING_ENCODED_BYTES(piece));
        size_t encoded = json_string_encode(at, &p, p + piece, end);
        out->len += encoded;
    }
    buf_byte(out, '"');
}

/* Most strings are short and plain. */
void json_write_string(struct buf *out, struct str s)
{
    char *at = buf_reserve(out, s.len + 2);
    if (!json_string_copy_short(at + 1, s)) {
        write_pieces(out, s);
        return;
    }
    at[0] = at[1 + s.len] = '"';
    out->len += s.len + 2;
}

void json_put(struct json_out *out, const struct json *value)
{
    static const struct json null = {.type = JSON_NULL};
    json_write(json_next_value(out), value ? value : &null);
}

void json_put_double(struct json_out *out, double n)
{
    char text[DECIMAL_DOUBLE_BYTES] = "null";
    size_t len = isfinite(n) ? decimal_from_double(text, n) : strlen(text);
    buf_add(json_next_value(out), text, len);
}
