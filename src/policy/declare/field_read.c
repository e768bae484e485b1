/* Strings and lists go into d->arena; errors are raised, and leave nothing to free. */
#include "policy/declare/field_read.h"
#include "base/arena.h"
#include "base/suggest.h"
#include "upstream/upstream_spec.h"
#include "json/build.h"
#include "policy/source_location.h"
#include "policy/vocabulary/vocabulary.h"
#include "sandbox/bridge.h"
#include "sandbox/diagnostics.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIELDS_MAX  64
#define CHOICES_MAX 16

int field_error(struct declaration *d, const char *name, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *chunk = sandbox_chunk(d->file.at);
    int line = d->line ? d->line : location_of_field(d->source, d->parent, str_of(name));
    if (line)
        luaL_error(d->L, "%s:%d: %s", chunk, line, text);
    luaL_error(d->L, "%s: %s", chunk, text);
    __builtin_unreachable();
}

int field_mismatch(struct declaration *d, const char *name, int at, const char *expected)
{
    diagnostics_push_value(d->L, at);
    field_error(d, name, "'%s%s%s': expected %s, got %s", d->parent ? d->parent : "", d->parent ? "." : "",
                name, expected, lua_tostring(d->L, -1));
}

void field_require_table(struct declaration *d, const char *name, int at, const char *expected)
{
    if (!lua_istable(d->L, at) || sandbox_mark(d->L, at) != MARK_NONE)
        field_mismatch(d, name, at, expected);
}

struct str field_string(struct declaration *d, int at)
{
    struct str s;
    s.at = lua_tolstring(d->L, at, &s.len);
    bridge_charge(d->L, "a string", s.len);
    return arena_dup(d->arena, s);
}

struct str field_raw_string(struct declaration *d, int at, const char *name)
{
    struct str s = STR_NONE;
    lua_pushstring(d->L, name);
    lua_rawget(d->L, at);
    if (lua_type(d->L, -1) == LUA_TSTRING)
        s = field_string(d, -1);
    lua_pop(d->L, 1);
    return s;
}

double field_number(struct declaration *d, const struct field *field, int at, double least, double most,
                    const char *expected)
{
    double n = lua_type(d->L, at) == LUA_TNUMBER ? lua_tonumber(d->L, at) : NAN;
    if (!(n >= least && n <= most))
        field_mismatch(d, field->name, at, expected);
    return n;
}

double field_whole_number(struct declaration *d, const struct field *field, int at, double least, double most,
                          const char *expected)
{
    double n = field_number(d, field, at, least, most, expected);
    if (n != floor(n))
        field_mismatch(d, field->name, at, expected);
    return n;
}

bool field_is_false(struct declaration *d, int at)
{
    return lua_isboolean(d->L, at) && !lua_toboolean(d->L, at);
}

/* The word `duration` has no milliseconds, as policies compute in seconds. */
static uint32_t read_duration(struct declaration *d, const struct field *field, int at)
{
    bool string = lua_type(d->L, at) == LUA_TSTRING;
    const char *text = string ? lua_tostring(d->L, at) : "";
    char *end;
    double ms = (double)strtoul(text, &end, 10);
    bool milliseconds = *text >= '0' && *text <= '9' && strcmp(end, "ms") == 0;
    if (!milliseconds && (string || lua_type(d->L, at) == LUA_TNUMBER)) {
        lua_pushcfunction(d->L, word_duration);
        lua_pushvalue(d->L, at);
        ms = lua_pcall(d->L, 1, 1, 0) == 0 ? lua_tonumber(d->L, -1) * 1000 : 0;
    }
    if (!(ms >= 1 && ms <= 1000.0 * field->most))
        field_mismatch(d, field->name, at, field->expected);
    lua_settop(d->L, at);
    return (uint32_t)(ms + 0.5);
}

void field_name_values(struct declaration *d, const struct field *field, int at, size_t most,
                       struct name_values *out)
{
    static const char expected[] = "{ NAME = \"value\" }, both strings";
    struct name_value *list = ARENA_ARRAY(d->arena, struct name_value, most);
    size_t count = 0;
    field_require_table(d, field->name, at, expected);
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        int value = lua_gettop(d->L);
        if (lua_type(d->L, value - 1) != LUA_TSTRING || lua_type(d->L, value) != LUA_TSTRING)
            field_mismatch(d, field->name, value, expected);
        if (count == most)
            field_error(d, field->name, "'%s.%s': expected at most %zu", d->parent, field->name, most);
        list[count++] =
            (struct name_value){.name = field_string(d, value - 1), .value = field_string(d, value)};
    }
    *out = (struct name_values){.list = list, .count = count};
}

const struct json *field_json(struct declaration *d, const char *what, int at, const struct json *schema)
{
    struct bridge_hints hints = {
        .original = bridge_json_source(d->L, at), .schema = schema, .by_table = true};
    const struct json *value = bridge_read(d->L, at, what, &hints, d->scratch);
    struct json *kept = ARENA_NEW(d->arena, struct json);
    const struct json_file *file = d->set->files.first;
    while (file && !(value->raw_len && file->value.raw == value->raw))
        file = file->next;
    if (!file && value == hints.original)
        bridge_charge(d->L, what, bridge_size(value));
    *kept = file ? *value : json_copy(d->arena, value); /* a file's value is shared by all its readers */
    return kept;
}

/* Splits "read write destructive". */
static size_t split_choices(const char *choices, struct str out[CHOICES_MAX])
{
    size_t count = 0;
    for (struct str rest = str_of(choices); rest.len && count < CHOICES_MAX; count++) {
        const char *space = memchr(rest.at, ' ', rest.len);
        out[count] = (struct str){rest.at, space ? (size_t)(space - rest.at) : rest.len};
        rest = str_from(rest, out[count].len + 1);
    }
    return count;
}

static void read_choice(struct declaration *d, const struct field *field, int at, int *out)
{
    struct str names[CHOICES_MAX], given = STR_NONE;
    size_t count = split_choices(field->choices, names);
    char list[300] = "one of ", *end = list + strlen(list);
    if (lua_type(d->L, at) == LUA_TSTRING)
        given.at = lua_tolstring(d->L, at, &given.len);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(names[i], given)) {
            *out = (int)i + field->first;
            return;
        }
        end += snprintf(end, sizeof(list) - (size_t)(end - list), "%s" STR_FMT, i ? ", " : "",
                        STR_ARG(names[i]));
    }
    struct str meant = given.len ? suggest_closest(given, names, count) : STR_NONE;
    if (!meant.len)
        field_mismatch(d, field->name, at, list);
    field_error(d, field->name, "'%s%s%s': expected %s, got \"" STR_FMT "\" (did you mean '" STR_FMT "'?)",
                d->parent ? d->parent : "", d->parent ? "." : "", field->name, list,
                STR_ARG(str_cut(given, 60)), STR_ARG(meant));
}

static uint32_t read_count(struct declaration *d, const struct field *field, int at)
{
    bool large = lua_type(d->L, at) == LUA_TNUMBER && lua_tonumber(d->L, at) > 1e9;
    char expected[48];
    snprintf(expected, sizeof(expected), "a whole number from %u%s", field->least,
             large ? " to 1000000000" : "");
    return (uint32_t)field_whole_number(d, field, at, field->least, 1e9, expected);
}

struct string_list {
    const struct str *list;
    size_t count;
};

/* A list of strings, or one string. */
static struct string_list read_strings(struct declaration *d, const struct field *field, int at)
{
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 1;
    struct str *list = ARENA_ARRAY(d->arena, struct str, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (lua_istable(d->L, at))
            lua_rawgeti(d->L, at, (int)i + 1);
        else
            lua_pushvalue(d->L, at);
        if (lua_type(d->L, -1) != LUA_TSTRING)
            field_mismatch(d, field->name, -1, "a list of strings");
        list[i] = field_string(d, -1);
        lua_pop(d->L, 1);
    }
    return (struct string_list){list, count};
}

static void read_field(struct declaration *d, const struct field *field, int at)
{
    void *into = (char *)d->out + field->offset;
    switch (field->kind) {
    case FIELD_STRING:
        if (lua_type(d->L, at) != LUA_TSTRING)
            field_mismatch(d, field->name, at, "a string");
        *(struct str *)into = field_string(d, at);
        break;
    case FIELD_BOOL:
        if (!lua_isboolean(d->L, at))
            field_mismatch(d, field->name, at, "true or false");
        *(bool *)into = lua_toboolean(d->L, at);
        break;
    case FIELD_COUNT:
        *(uint32_t *)into = read_count(d, field, at);
        break;
    case FIELD_CHOICE:
        read_choice(d, field, at, into);
        break;
    case FIELD_STRINGS:
        *(struct string_list *)into = read_strings(d, field, at);
        break;
    case FIELD_LIMIT:
    case FIELD_WHOLE:
        *(uint32_t *)into =
            field->kind == FIELD_LIMIT && field_is_false(d, at)
                ? 0
                : (uint32_t)field_whole_number(d, field, at, field->least, field->most, field->expected);
        break;
    case FIELD_DURATION:
        *(uint32_t *)into = read_duration(d, field, at);
        break;
    case FIELD_CUSTOM:
        field->read(d, field, at);
        break;
    case FIELD_ANY: /* only in tables that Lua reads */
        break;
    }
    if (field->given)
        *((bool *)d->out + field->given - 1) = true;
}

/* Raises if the table has no field of this name. */
static void check_name(struct declaration *d, const struct field_table *table, struct str name)
{
    struct str names[FIELDS_MAX];
    const char *parent = d->parent ? d->parent : "", *dot = d->parent ? "." : "";
    size_t count = 0;
    for (; count < field_table_rows(table) && count < FIELDS_MAX; count++) {
        names[count] = str_of(field_table_row(table, count)->name);
        if (str_eq(name, names[count]))
            return;
    }
    struct str meant = suggest_closest(name, names, count);
    name = str_cut(name, 80);
    if (meant.len)
        field_error(d, name.at, "unknown field '%s%s" STR_FMT "' (did you mean '" STR_FMT "'?)", parent, dot,
                    STR_ARG(name), STR_ARG(meant));
    field_error(d, name.at, "unknown field '%s%s" STR_FMT "': remove it", parent, dot, STR_ARG(name));
}

void field_read_named(struct declaration *d, int at, const char *parent, const struct field_table *table,
                      size_t items, void *out)
{
    lua_State *L = d->L;
    const char *outer_parent = d->parent;
    void *outer_out = d->out;
    d->parent = parent;
    d->out = out;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        struct str name;
        if (lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) >= 1 &&
            lua_tonumber(L, -2) <= (double)items)
            continue;
        if (lua_type(L, -2) != LUA_TSTRING)
            field_error(d, parent ? parent : "",
                        "'%s': expected { name = value }, got a list item without a name",
                        parent ? parent : "tool");
        name.at = lua_tolstring(L, -2, &name.len);
        check_name(d, table, name);
    }
    for (size_t i = 0; i < field_table_rows(table); i++) { /* in their order: some need what others read */
        const struct field *field = field_table_row(table, i);
        lua_pushstring(L, field->name);
        lua_rawget(L, at);
        if (!lua_isnil(L, -1))
            read_field(d, field, lua_gettop(L));
        lua_pop(L, 1);
    }
    d->parent = outer_parent;
    d->out = outer_out;
}

void field_read_table(struct declaration *d, int at, const char *parent, const struct field_table *table,
                      void *out)
{
    field_read_named(d, at, parent, table, 0, out);
}
