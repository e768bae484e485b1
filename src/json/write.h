/* Serialises values, and has a writer for messages that we compose member by member. */
#ifndef TOOLGATE_JSON_WRITE_H
#define TOOLGATE_JSON_WRITE_H

#include "base/buf.h"
#include "base/hash.h"
#include "json/value.h"

/* A parsed value is written byte for byte as it was sent, without newlines between tokens; a built value is
 * written compactly. The output is always one line. */
void json_write(struct buf *out, const struct json *value);

/* The same as a string in the arena; empty for NULL. */
struct str json_to_str(struct arena *arena, const struct json *value);

/* A string literal with its quotes; invalid UTF-8 becomes U+FFFD, so the output is always valid JSON. */
void json_write_string(struct buf *out, struct str s);

/* The same for a string that needs no escape. */
static inline void json_write_plain(struct buf *out, struct str s)
{
    char *at = buf_reserve(out, s.len + 2);
    *at = '"';
    if (s.at)
        memcpy(at + 1, s.at, s.len);
    at[1 + s.len] = '"';
    out->len += s.len + 2;
}

/*
 * The canonical form: one JSON text for all spellings of a value. Keys are sorted by bytes, numbers written
 * by value (1, 1.0 and 1e0 are equal), no spaces. A whole number of at most 21 digits is written as digits,
 * any other as d[.ddd]e[-]n: "120", "1.1e0", "1e400"; a string as json_write_string does. The form must not
 * change: ledger keys hash it, and daemons of several releases share one ledger.
 */
void json_canonical(struct buf *out, const struct json *value);

/* hash_stable of the canonical text; members of the top-level object named in `without` are left out. `value`
 * NULL hashes as {}. */
struct hash128 json_fingerprint(struct arena *scratch, const struct json *value, const struct str *without,
                                size_t without_count);

/*
 * A writer that inserts the commas:
 *
 *   struct json_out out = json_out(&buf);
 *   json_open(&out, '{');
 *   json_field_text(&out, "verdict", "pass");
 *   json_close(&out, '}');
 */
struct json_out {
    struct buf *buf;
    bool comma;
};

static inline struct json_out json_out(struct buf *buf)
{
    return (struct json_out){.buf = buf};
}

/* Writes the comma before a value, if one is needed, and returns the buffer for the value. */
static inline struct buf *json_next_value(struct json_out *out)
{
    if (out->comma)
        buf_byte(out->buf, ',');
    out->comma = true;
    return out->buf;
}

static inline void json_open(struct json_out *out, char bracket)
{
    buf_byte(json_next_value(out), bracket);
    out->comma = false;
}

static inline void json_close(struct json_out *out, char bracket)
{
    buf_byte(out->buf, bracket);
    out->comma = true;
}

static inline void json_put_str(struct json_out *out, struct str s)
{
    json_write_string(json_next_value(out), s);
}

static inline void json_put_text(struct json_out *out, const char *text)
{
    json_put_str(out, str_of(text));
}

static inline void json_key_str(struct json_out *out, struct str key)
{
    json_put_str(out, key);
    buf_byte(out->buf, ':');
    out->comma = false;
}

/* `key` is a name of ours, which needs no escape. Room is made once: records and replies have dozens. */
static inline void json_key(struct json_out *out, const char *key)
{
    size_t len = strlen(key);
    char *start = buf_reserve(out->buf, len + 4), *at = start;
    if (out->comma)
        *at++ = ',';
    *at++ = '"';
    memcpy(at, key, len);
    at += len;
    *at++ = '"';
    *at++ = ':';
    out->buf->len += (size_t)(at - start);
    out->comma = false;
}

static inline void json_put_int(struct json_out *out, int64_t n)
{
    buf_int(json_next_value(out), n);
}

static inline void json_put_bool(struct json_out *out, bool truth)
{
    buf_text(json_next_value(out), truth ? "true" : "false");
}

/* `json_text` is valid JSON already. */
static inline void json_put_raw(struct json_out *out, struct str json_text)
{
    buf_str(json_next_value(out), json_text);
}

void json_put(struct json_out *out, const struct json *value); /* NULL writes null */
/* The shortest literal that reads back as n; null if n is not finite. */
void json_put_double(struct json_out *out, double n);

/* A member of an object: the key, then the value. */
static inline void json_field(struct json_out *out, const char *key, const struct json *value)
{
    json_key(out, key);
    json_put(out, value);
}

static inline void json_field_str(struct json_out *out, const char *key, struct str value)
{
    json_key(out, key);
    json_put_str(out, value);
}

static inline void json_field_text(struct json_out *out, const char *key, const char *value)
{
    json_field_str(out, key, str_of(value));
}

static inline void json_field_int(struct json_out *out, const char *key, int64_t value)
{
    json_key(out, key);
    json_put_int(out, value);
}

static inline void json_field_bool(struct json_out *out, const char *key, bool value)
{
    json_key(out, key);
    json_put_bool(out, value);
}

static inline void json_field_raw(struct json_out *out, const char *key, struct str json_text)
{
    json_key(out, key);
    json_put_raw(out, json_text);
}

static inline void json_field_open(struct json_out *out, const char *key, char bracket)
{
    json_key(out, key);
    json_open(out, bracket);
}

/* "key":["…", …] */
static inline void json_field_strs(struct json_out *out, const char *key, const struct str *list,
                                   size_t count)
{
    json_field_open(out, key, '[');
    for (size_t i = 0; i < count; i++)
        json_put_str(out, list[i]);
    json_close(out, ']');
}

/* A member that is left out if the value is NULL or empty. */
static inline void json_field_optional(struct json_out *out, const char *key, const struct json *value)
{
    if (value)
        json_field(out, key, value);
}

static inline void json_field_optional_str(struct json_out *out, const char *key, struct str value)
{
    if (value.len)
        json_field_str(out, key, value);
}

/*
 * Several members in one statement:
 *
 *   json_fields(&out, FIELD_TEXT("mode", mode), FIELD_NUM("tools", count));
 *   json_field_object(&out, "connections", FIELD_NUM("open", open), FIELD_NUM("refused", refused));
 */
struct json_field {
    const char *key; /* NULL ends the list */
    enum json_field_kind {
        JSON_FIELD_STR,
        JSON_FIELD_RAW,
        JSON_FIELD_NUM,
        JSON_FIELD_BOOL,
        JSON_FIELD_NONE
    } kind;
    bool optional; /* left out if the text is empty */
    struct str text;
    int64_t number;
};

#define FIELD_STR(name, value)      ((struct json_field){.key = (name), .text = (value)})
#define FIELD_OPTIONAL(name, value) ((struct json_field){.key = (name), .optional = true, .text = (value)})
#define FIELD_TEXT(name, value)     FIELD_STR(name, str_of(value))
#define FIELD_RAW(name, value)                                                                               \
    ((struct json_field){.key = (name), .kind = JSON_FIELD_RAW, .text = (value)}) /* JSON already */
#define FIELD_NUM(name, value)                                                                               \
    ((struct json_field){.key = (name), .kind = JSON_FIELD_NUM, .number = (int64_t)(value)})
#define FIELD_BOOL(name, value)                                                                              \
    ((struct json_field){.key = (name), .kind = JSON_FIELD_BOOL, .number = (value)})

/* Left out unless `wanted`; the value is computed all the same. */
#define FIELD_IF(wanted, field) json_field_if((wanted), (field))
static inline struct json_field json_field_if(bool wanted, struct json_field field)
{
    field.kind = wanted ? field.kind : JSON_FIELD_NONE;
    return field;
}

void json_write_fields(struct json_out *out, const struct json_field *fields);

#define json_fields(out, ...)                                                                                \
    json_write_fields((out), (const struct json_field[]){__VA_ARGS__, {.key = NULL}})

/* An object of these members, as a value … */
#define json_put_object(out, ...)                                                                            \
    (json_open((out), '{'), json_fields((out), __VA_ARGS__), json_close((out), '}'))

/* … and as a member. */
#define json_field_object(out, name, ...) (json_key((out), (name)), json_put_object((out), __VA_ARGS__))

#endif
