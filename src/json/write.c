/*
 * Writes raw bytes if a value has them, else compactly; and canonical JSON, whose form must not change: keys
 * of a shared ledger are hashes of it.
 */
#include "json/write.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "json/decimal.h"
#include "json/string.h"

#include <math.h>

#define PIECE_BYTES     1024   /* of a string */
#define SORT_LOCAL      32u    /* members sorted on the C stack */
#define HASH_PART_BYTES 32768u /* a longer text is hashed in parts, and never stands in memory as a whole */

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

/* Of a value without children. */
static void write_plain_value(struct buf *out, const struct json *value)
{
    if (value->type == JSON_STRING)
        json_write_string(out, json_str(value));
    else if (value->type == JSON_NUMBER)
        buf_add(out, value->text, value->len);
    else
        buf_text(out, value->type == JSON_NULL ? "null" : value->truth ? "true" : "false");
}

void json_write(struct buf *out, const struct json *value)
{
    if (value->raw_len) {
        write_raw(out, (struct str){value->raw, value->raw_len});
        return;
    }
    struct json_out w = json_out(out);
    switch ((enum json_type)value->type) {
    case JSON_ARRAY:
        json_open(&w, '[');
        for (uint32_t i = 0; i < value->len; i++)
            json_put(&w, &value->items[i]);
        json_close(&w, ']');
        break;
    case JSON_OBJECT:
        json_open(&w, '{');
        for (uint32_t i = 0; i < value->len; i++) {
            json_key_str(&w, value->members[i].key);
            json_put(&w, &value->members[i].value);
        }
        json_close(&w, '}');
        break;
    default:
        write_plain_value(out, value);
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

void json_write_fields(struct json_out *out, const struct json_field *fields)
{
    for (const struct json_field *f = fields; f->key; f++)
        if (f->kind == JSON_FIELD_NUM)
            json_field_int(out, f->key, f->number);
        else if (f->kind == JSON_FIELD_BOOL)
            json_field_bool(out, f->key, f->number);
        else if (f->kind == JSON_FIELD_RAW)
            json_field_raw(out, f->key, f->text);
        else if (f->kind == JSON_FIELD_STR && (f->text.len || !f->optional))
            json_field_str(out, f->key, f->text);
}

/* ---- canonical JSON ---- */

struct writer {
    struct json_out out;
    struct hash_stream *stream; /* NULL: the text itself is wanted */
    bool streams;               /* a part has gone to `stream` */
};

static void put_value(struct writer *w, const struct json *value);

static void pass_on(struct writer *w)
{
    struct buf *text = w->out.buf;
    if (!w->stream || text->len < HASH_PART_BYTES)
        return;
    if (!w->streams)
        hash_stream_begin(w->stream);
    w->streams = true;
    hash_stream_add(w->stream, buf_view(text));
    text->len = 0;
}

static bool is_canonical(struct str literal)
{
    size_t i = literal.at[0] == '-';
    if (literal.len - i > DECIMAL_PLAIN_DIGITS || (i && literal.at[i] == '0'))
        return false;
    for (; i < literal.len; i++)
        if (literal.at[i] < '0' || literal.at[i] > '9')
            return false;
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;
    return str_cmp((*x)->key, (*y)->key);
}

static void sort_members(const struct json_member **row, size_t count)
{
    if (count > SORT_LOCAL) {
        qsort(row, count, sizeof(*row), by_key);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const struct json_member *m = row[i];
        size_t k = i;
        for (; k > 0 && str_cmp(row[k - 1]->key, m->key) > 0; k--)
            row[k] = row[k - 1];
        row[k] = m;
    }
}

static void put_object(struct writer *w, const struct json *object, const struct str *without,
                       size_t without_count)
{
    const struct json_member *local[SORT_LOCAL] __attribute__((uninitialized)), **row = local;
    size_t count = 0;
    if (object->len > SORT_LOCAL && !(row = malloc(object->len * sizeof(*row))))
        alloc_failed("%u keys to sort", object->len);
    for (uint32_t i = 0; i < object->len; i++) {
        size_t k = 0;
        while (k < without_count && !str_eq(object->members[i].key, without[k]))
            k++;
        if (k == without_count)
            row[count++] = &object->members[i];
    }
    sort_members(row, count);
    json_open(&w->out, '{');
    for (size_t i = 0; i < count; i++) {
        json_key_str(&w->out, row[i]->key);
        put_value(w, &row[i]->value);
        pass_on(w);
    }
    json_close(&w->out, '}');
    if (row != local)
        free(row);
}

static void put_value(struct writer *w, const struct json *value)
{
    struct str literal;
    switch ((enum json_type)value->type) {
    case JSON_NUMBER:
        literal = (struct str){value->text, value->len};
        if (is_canonical(literal))
            json_put_raw(&w->out, literal);
        else
            decimal_canonical(json_next_value(&w->out), literal);
        break;
    case JSON_ARRAY:
        json_open(&w->out, '[');
        for (uint32_t i = 0; i < value->len; i++) {
            put_value(w, &value->items[i]);
            pass_on(w);
        }
        json_close(&w->out, ']');
        break;
    case JSON_OBJECT:
        put_object(w, value, NULL, 0);
        break;
    default:
        write_plain_value(json_next_value(&w->out), value);
    }
}

void json_canonical(struct buf *out, const struct json *value)
{
    struct writer w = {.out = json_out(out)};
    put_value(&w, value);
}

struct hash128 json_fingerprint(struct arena *scratch, const struct json *value, const struct str *without,
                                size_t without_count)
{
    struct buf text = buf_in(scratch);
    struct hash_stream stream __attribute__((uninitialized));
    struct writer w = {.out = json_out(&text), .stream = &stream};
    if (!value)
        buf_text(&text, "{}");
    else if (value->type == JSON_OBJECT)
        put_object(&w, value, without, without_count);
    else
        put_value(&w, value);
    if (!w.streams)
        return hash_stable(buf_view(&text));
    hash_stream_add(&stream, buf_view(&text));
    return hash_stream_end(&stream);
}
