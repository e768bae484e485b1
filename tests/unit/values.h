/* JSON from strings, and back, in the arena of the program: that of arena_case.h, or its own. */
#ifndef TOOLGATE_UNIT_VALUES_H
#define TOOLGATE_UNIT_VALUES_H

#include "unit.h"
#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"
#include "json/write.h"

static struct arena *arena;

static inline struct json *value_of_str(struct str text)
{
    struct json *value = ARENA_NEW(arena, struct json);
    struct json_error fault;
    if (json_parse(arena, text, NULL, value, &fault) != OK)
        fail_msg("%.*s: %s", (int)(text.len < 200 ? text.len : 200), text.at, fault.text);
    return value;
}

/* The text may change afterwards. */
static inline struct json *value_of(const char *text)
{
    return value_of_str(arena_dup(arena, str_of(text)));
}

static inline struct json parsed(const char *text)
{
    return *value_of(text);
}

/* NUL-terminated, in the arena. */
static inline const char *written(const struct json *value)
{
    return arena_dup(arena, json_to_str(arena, value)).at;
}

#endif
