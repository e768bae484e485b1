/* See field_read.h. Texts go into the arena of the set of policies. */
#include "policy/declare/field_read.h"
#include "base/arena.h"
#include "policy/source_location.h"
#include "policy/vocabulary/vocabulary.h"
#include "base/suggest.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define FIELDS_MAX 64

int fields_complain(struct declaration *d, const char *parent, const char *name, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *chunk = sandbox_chunk(d->file.at);
    int line = locate_field(d->source, parent, str_of(name));
    if (line)
        luaL_error(d->L, "%s:%d: %s", chunk, line, text);
    luaL_error(d->L, "%s: %s", chunk, text);
    __builtin_unreachable();
}

int fields_wrong(struct declaration *d, const char *parent, const char *name, int at, const char *expected)
{
    words_push_kind(d->L, at);
    fields_complain(d, parent, name, "'%s%s%s': expected %s, got %s", parent ? parent : "", parent ? "." : "",
                    name, expected, lua_tostring(d->L, -1));
}

struct str fields_text(struct declaration *d, int at)
{
    struct str s;
    s.at = lua_tolstring(d->L, at, &s.len);
    return arena_dup(d->arena, s);
}

/* ---- by type ------------------------------------------------------------------------- */

static int choice_named(const char *choices, struct str given)
{
    struct str rest = str_of(choices);
    for (int i = 0; rest.len; i++) {
        const char *space = memchr(rest.at, ' ', rest.len);
        size_t n = space ? (size_t)(space - rest.at) : rest.len;
        if (str_eq((struct str){rest.at, n}, given))
            return i;
        rest = str_from(rest, n + 1);
    }
    return -1;
}

static void wrong_choice(struct declaration *d, const char *parent, const struct field *field, int at)
{
    struct str names[16], rest = str_of(field->choices), given = STR_NONE;
    char list[300] = "one of ", *end = list + strlen(list);
    size_t count = 0;
    while (rest.len && count < 16) {
        const char *space = memchr(rest.at, ' ', rest.len);
        names[count] = (struct str){rest.at, space ? (size_t)(space - rest.at) : rest.len};
        end += snprintf(end, sizeof(list) - (size_t)(end - list), "%s" STR_FMT, count ? ", " : "",
                        STR_ARG(names[count]));
        rest = str_from(rest, names[count++].len + 1);
    }
    if (lua_type(d->L, at) == LUA_TSTRING)
        given.at = lua_tolstring(d->L, at, &given.len);
    struct str meant = given.len ? suggest_closest(given, names, count) : STR_NONE;
    if (!meant.len)
        fields_wrong(d, parent, field->name, at, list);
    fields_complain(d, parent, field->name,
                    "'%s': expected %s, got \"" STR_FMT "\" (did you mean '" STR_FMT "'?)", field->name, list,
                    STR_ARG(str_cut(given, 60)), STR_ARG(meant));
}

static void read_choice(struct declaration *d, const char *parent, const struct field *field, int at,
                        void *out)
{
    struct str given = STR_NONE;
    if (lua_type(d->L, at) == LUA_TSTRING)
        given.at = lua_tolstring(d->L, at, &given.len);
    int choice = choice_named(field->choices, given);
    if (choice < 0)
        wrong_choice(d, parent, field, at);
    *(int *)out = choice + field->from;
}

static void read_count(struct declaration *d, const char *parent, const struct field *field, int at,
                       uint32_t *out)
{
    double n = lua_type(d->L, at) == LUA_TNUMBER ? lua_tonumber(d->L, at) : -1;
    char expected[48];
    snprintf(expected, sizeof(expected), "a whole number from %u%s", field->least,
             n > 1e9 ? " to 1000000000" : "");
    if (n < field->least || n != floor(n) || n > 1e9)
        fields_wrong(d, parent, field->name, at, expected);
    *out = (uint32_t)n;
}

/* A list of texts, or one text. */
struct texts {
    const struct str *list;
    size_t count;
};

static void read_texts(struct declaration *d, const char *parent, const struct field *field, int at,
                       struct texts *out)
{
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 1;
    struct str *list = ARENA_ARRAY(d->arena, struct str, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (lua_istable(d->L, at))
            lua_rawgeti(d->L, at, (int)i + 1);
        else
            lua_pushvalue(d->L, at);
        if (lua_type(d->L, -1) != LUA_TSTRING)
            fields_wrong(d, parent, field->name, -1, "a list of texts");
        list[i] = fields_text(d, -1);
        lua_pop(d->L, 1);
    }
    out->list = list;
    out->count = count;
}

static void read_field(struct declaration *d, const char *parent, const struct field *field, int at,
                       void *out)
{
    void *into = (char *)out + field->offset;
    switch (field->kind) {
    case FIELD_TEXT:
        if (lua_type(d->L, at) != LUA_TSTRING)
            fields_wrong(d, parent, field->name, at, "text");
        *(struct str *)into = fields_text(d, at);
        break;
    case FIELD_FLAG:
        if (!lua_isboolean(d->L, at))
            fields_wrong(d, parent, field->name, at, "true or false");
        *(bool *)into = lua_toboolean(d->L, at);
        break;
    case FIELD_COUNT:
        read_count(d, parent, field, at, into);
        break;
    case FIELD_CHOICE:
        read_choice(d, parent, field, at, into);
        break;
    case FIELD_TEXTS:
        read_texts(d, parent, field, at, into);
        break;
    case FIELD_OWN:
        field->read(d, field, at);
        break;
    case FIELD_ANY: /* only tables that a reader of their own reads have these */
        break;
    case FIELD_ABSENT:
        fields_complain(d, parent, field->name, "'%s': %s", field->name, field->choices);
    }
    if (field->given)
        *((bool *)out + field->given - 1) = true;
}

/* ---- a table ---------------------------------------------------------------------------- */

static const struct field *field_named(const struct field *fields, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(name, fields[i].name))
            return &fields[i];
    return NULL;
}

static void unknown_field(struct declaration *d, const char *parent, const struct field *fields, size_t count,
                          struct str name)
{
    struct str names[FIELDS_MAX];
    size_t n = 0;
    for (; n < count && n < FIELDS_MAX; n++)
        names[n] = str_of(fields[n].name);
    struct str meant = suggest_closest(name, names, n);
    name = str_cut(name, 80);
    if (meant.len)
        fields_complain(d, parent, name.at, "unknown field '%s%s" STR_FMT "' (did you mean '" STR_FMT "'?)",
                        parent ? parent : "", parent ? "." : "", STR_ARG(name), STR_ARG(meant));
    fields_complain(d, parent, name.at, "unknown field '%s%s" STR_FMT "': remove it", parent ? parent : "",
                    parent ? "." : "", STR_ARG(name));
}

void fields_read(struct declaration *d, int at, const char *parent, const struct field *fields, size_t count,
                 void *out)
{
    lua_State *L = d->L;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        struct str name;
        if (lua_type(L, -2) != LUA_TSTRING)
            fields_complain(d, parent, parent ? parent : "",
                            "'%s': expected { name = value }, got a list item without a name",
                            parent ? parent : "tool");
        name.at = lua_tolstring(L, -2, &name.len);
        if (!field_named(fields, count, name))
            unknown_field(d, parent, fields, count, name);
    }
    for (size_t i = 0; i < count; i++) { /* in the order of the table, as some need what others have read */
        lua_pushstring(L, fields[i].name);
        lua_rawget(L, at);
        if (!lua_isnil(L, -1))
            read_field(d, parent, &fields[i], lua_gettop(L), out);
        lua_pop(L, 1);
    }
}
