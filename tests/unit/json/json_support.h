/* Shared by the tests of src/json: an arena for each test, a parse that must succeed, a value as a string. */
#ifndef TOOLGATE_TESTS_JSON_SUPPORT_H
#define TOOLGATE_TESTS_JSON_SUPPORT_H

#include "unit.h"
#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"
#include "json/write.h"

static struct arena *arena;

static void open_arena(void)
{
    arena = arena_new();
}

static void close_arena(void)
{
    arena_free(arena);
    arena = NULL;
}

USUAL_FIXTURE(open_arena, close_arena)

static inline struct json parsed_str(struct str text)
{
    struct json value;
    struct json_error fault;
    if (json_parse(arena, text, NULL, &value, &fault) != OK)
        fail_msg("%.*s: %s", (int)(text.len < 200 ? text.len : 200), text.at, fault.text);
    return value;
}

static inline struct json parsed(const char *text)
{
    return parsed_str(str_of(text));
}

/* NUL-terminated, in the arena. */
static inline const char *written(const struct json *value)
{
    struct buf out = buf_in(arena);
    json_write(&out, value);
    return arena_dup(arena, buf_view(&out)).at;
}

#endif
