/*
 * A JSON value as it was sent: numbers keep their literal, every value refers
 * to the bytes it was parsed from, objects keep the order of their keys. Values
 * are immutable; json/build.h makes changed ones that share the rest. They are
 * in an arena, and a parsed value also points into its message, which must live
 * as long.
 */
#ifndef TOOLGATE_JSON_VALUE_H
#define TOOLGATE_JSON_VALUE_H

#include "base/str.h"

#include <stdint.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_member;

struct json {
    uint8_t type;     /* enum json_type */
    bool truth;       /* JSON_BOOL */
    bool integral;    /* JSON_NUMBER: its value is a whole number in any spelling (1, 1.0, 1e0) */
    uint32_t len;     /* bytes of a string or number, items of an array, members of an object */
    uint32_t raw_len; /* 0: built, not parsed */
    union {
        const char *text; /* JSON_STRING: decoded UTF-8; JSON_NUMBER: its literal */
        const struct json *items;
        const struct json_member *members; /* a large object has an index before them; see json_get */
    };
    const char *raw; /* the bytes as sent, which json_write writes unchanged */
};

struct json_member {
    struct str key; /* decoded */
    struct json value;
};

static inline bool json_is(const struct json *v, enum json_type type)
{
    return v && v->type == type;
}

/* Of an array or object: its items or members; 0 for any other value and for NULL. json_child: the value of
 * one. */
static inline uint32_t json_child_count(const struct json *v)
{
    return v && v->type >= JSON_ARRAY ? v->len : 0;
}

static inline const struct json *json_child(const struct json *container, uint32_t at)
{
    return container->type == JSON_ARRAY ? &container->items[at] : &container->members[at].value;
}

/* The string; STR_NONE for any other type and for NULL. */
static inline struct str json_str(const struct json *v)
{
    return json_is(v, JSON_STRING) ? (struct str){v->text, v->len} : STR_NONE;
}

static inline bool json_is_true(const struct json *v)
{
    return json_is(v, JSON_BOOL) && v->truth;
}

static inline bool json_is_false(const struct json *v)
{
    return json_is(v, JSON_BOOL) && !v->truth;
}

/* The member's value, or NULL if none exists or `object` is NULL or no object. Constant time. */
const struct json *json_get(const struct json *object, struct str key);

static inline const struct json *json_get_text(const struct json *object, const char *key)
{
    return json_get(object, str_of(key));
}

/* Whether `array` is an array with this string among its items; NULL is allowed. */
bool json_array_has(const struct json *array, struct str text);

/* True for a whole number that fits, in any spelling. */
bool json_int(const struct json *v, int64_t *out);

/* The fast path for numbers of up to nine digits without exponent: the value is whole / scale, where scale is
 * a power of ten, or 0 for any other value. The product of two such wholes or scales fits an int64_t. */
struct json_small {
    int64_t whole, scale;
};
struct json_small json_small(const struct json *v);

/* The nearest double, independent of the locale; infinity for 1e400. False if v is no number. */
bool json_double(const struct json *v, double *out);

/* JSON Schema's equality: numbers by their exact decimal value (1 == 1.0), key order ignored. */
bool json_equal(const struct json *a, const struct json *b);

/* -1, 0, 1 by exact decimal value, of any length; exponents of up to 36 digits. */
int json_number_cmp(const struct json *a, const struct json *b);

/* Whether its text is longer, or, if it was built, the texts, numbers and keys in it together; looks no
 * further than that. */
bool json_is_longer(const struct json *value, size_t bytes);

const char *json_type_name(enum json_type type); /* "null", "boolean", … */

#endif
