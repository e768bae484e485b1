/* Writes raw bytes if a value has them, else compactly. */
#include "json/write.h"

#include "json/decimal.h"
#include "json/string.h"

#include <math.h>

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

/* Writes one byte that needs an escape, or one UTF-8 sequence; returns the bytes read. */
static size_t write_special(struct buf *out, const char *p, const char *end)
{
    static const char hex[] = "0123456789abcdef";
    static const char short_names[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    unsigned char c = (unsigned char)*p;
    if (c < 0x20 && !short_names[c]) {
        buf_add(out, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
        return 1;
    }
    if (c < 0x80) {
        buf_add(out, (const char[]){'\\', c < 0x20 ? short_names[c] : *p}, 2);
        return 1;
    }
    size_t len = str_utf8_length(p, end);
    if (len)
        buf_add(out, p, len);
    else
        buf_text(out, REPLACEMENT_CHARACTER);
    return len ? len : 1;
}

void json_write_string(struct buf *out, struct str s)
{
    const char *p = s.at ? s.at : "", *end = p + s.len, *special = json_string_skip_plain(p, end);
    if (special == end) {
        json_write_plain(out, s);
        return;
    }
    buf_byte(out, '"');
    while (p < end) {
        buf_add(out, p, (size_t)(special - p));
        p = special;
        if (p < end)
            p += write_special(out, p, end);
        special = json_string_skip_plain(p, end);
    }
    buf_byte(out, '"');
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
