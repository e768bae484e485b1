/*
 * A JSON value as it was sent: numbers keep their text, every value knows the
 * bytes it came from, objects keep the order of their keys. Values are
 * immutable once built; a change makes a new one that shares the rest
 * (json/build.h). They live in an arena, and what came from a message also
 * points into that message's text, which must live as long.
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
    bool integral;    /* JSON_NUMBER: its value is a whole number, whatever the spelling (1, 1.0, 1e0) */
    uint32_t len;     /* bytes of a string or number, items of an array, members of an object */
    uint32_t raw_len; /* 0: built by us, not sent */
    union {
        const char *text; /* JSON_STRING: decoded UTF-8; JSON_NUMBER: its literal */
        const struct json *items;
        const struct json_member *members; /* for large objects an index stands before them; see json_get */
    };
    const char *raw; /* the bytes as sent, written out again unchanged */
};

struct json_member {
    struct str key; /* decoded */
    struct json value;
};

static inline bool json_is(const struct json *v, enum json_type type)
{
    return v && v->type == type;
}

/* The text of a string; STR_NONE for anything else, NULL included. */
static inline struct str json_str(const struct json *v)
{
    return json_is(v, JSON_STRING) ? (struct str){v->text, v->len} : STR_NONE;
}

static inline bool json_is_true(const struct json *v)
{
    return json_is(v, JSON_BOOL) && v->truth;
}

/* The member's value, or NULL where there is none or `object` is no object (NULL included). Constant time. */
const struct json *json_get(const struct json *object, struct str key);
const struct json *json_get_text(const struct json *object, const char *key);

/* An array has this text among its items; false for everything that is no array, NULL included. */
bool json_array_has(const struct json *array, struct str text);

/* Whole numbers that fit, in any spelling; false for everything else. */
bool json_int(const struct json *v, int64_t *out);

/* A number of up to nine digits and no exponent, which most are: its value is whole / scale, a power of ten,
 * and the product of two such wholes or scales fits. Scale 0: it is no such number. */
struct json_small {
    int64_t whole, scale;
};
struct json_small json_small(const struct json *v);

/* The nearest double, never by the locale; infinity for 1e400. False where v is no number. */
bool json_double(const struct json *v, double *out);

/* JSON Schema's equality: by value, numbers exactly by their decimal text (1 == 1.0), key order ignored. */
bool json_equal(const struct json *a, const struct json *b);

/* -1, 0, 1 by exact decimal value, of any length and exponent. */
int json_number_cmp(const struct json *a, const struct json *b);

const char *json_type_name(enum json_type type); /* "null", "boolean", … */

#endif
