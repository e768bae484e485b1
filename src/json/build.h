/*
 * Makes new values. Nothing is changed in place: each function returns a value
 * in the arena that shares every part it did not change, so that unchanged
 * values keep the bytes they were sent with.
 */
#ifndef TOOLGATE_JSON_BUILD_H
#define TOOLGATE_JSON_BUILD_H

#include "json/value.h"

struct arena;
struct arena_pool;

static inline struct json json_null(void)
{
    return (struct json){.type = JSON_NULL};
}

static inline struct json json_bool(bool truth)
{
    return (struct json){.type = JSON_BOOL, .truth = truth};
}

/* Borrows s. */
static inline struct json json_string(struct str s)
{
    return (struct json){.type = JSON_STRING, .len = (uint32_t)s.len, .text = s.at};
}

/* Borrows items. */
static inline struct json json_array(const struct json *items, size_t count)
{
    return (struct json){.type = JSON_ARRAY, .len = (uint32_t)count, .items = items};
}

static inline struct json_member json_member(struct str key, struct json value)
{
    return (struct json_member){key, value};
}

struct json json_number(struct arena *arena,
                        double n); /* shortest literal that reads back as n; null if n is not finite */
struct json json_integer(struct arena *arena, int64_t n);
struct json json_literal(struct str number); /* borrows a number's literal */
struct json json_object(struct arena *arena, const struct json_member *members, size_t count); /* copies */

/* The object with one member set (in its place, or last; the key is borrowed) or removed. `object` must be an
 * object. */
struct json json_with(struct arena *arena, const struct json *object, struct str key, struct json value);
struct json json_without(struct arena *arena, const struct json *object, struct str key);

/* For more than one change, as each of the two above copies the object: the members of `a` with those of `b`,
 * whose values win. NULL, or what is no object, has none. */
struct json json_merge(struct arena *arena, const struct json *a, const struct json *b);
/* An object or a list without what is null in it; another value itself. */
struct json json_without_nulls(struct arena *arena, const struct json *value);

/* The value itself in the arena; its parts stay shared. */
const struct json *json_keep(struct arena *arena, struct json value);

/* A deep copy, with strings and raw bytes: it does not refer to the original. */
struct json json_copy(struct arena *arena, const struct json *value);

/* The same in the arena of the pool: a string, or an object or list of only strings and numbers, is shared if
 * the pool knows an equal one. Text that was parsed is kept whole instead. */
const struct json *json_pool_copy(struct arena_pool *pool, const struct json *value);

/* Child `i` as it should be: the child itself, another value, or NULL to leave it out. *key is a member's and
 * may be replaced; an item has STR_NONE. */
typedef const struct json *json_map_child(void *owner, const struct json *parent, uint32_t i,
                                          struct str *key);

/* The value with its children mapped, each once and in their order. The value itself, byte for byte, if none
 * changes or if it has none. `map` descends by calling json_map again. */
const struct json *json_map(struct arena *arena, const struct json *value, json_map_child *map, void *owner);

/* Each string of the value and each key as `map` returns it, the text itself if it stays. Two keys that
 * become equal stay two. NULL: NULL. */
typedef struct str json_map_text(const void *owner, struct arena *arena, struct str text);
const struct json *json_map_strings(struct arena *arena, const struct json *value, json_map_text *map,
                                    const void *owner);

/* For src/json only: the array of copied members. Of a duplicate key, the first place and the last value are
 * kept; `members` is overwritten then, and *duplicate is the later member (else NULL). *count: the number of
 * members, and of those left afterwards. */
const struct json_member *object_row(struct arena *arena, struct json_member *members, uint32_t *count,
                                     const struct json_member **duplicate);

#endif
