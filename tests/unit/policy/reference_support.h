/* The reference of policies, from lua/policy/reference.lua and the rows of fields, as the tests walk it. */
#ifndef TOOLGATE_TESTS_REFERENCE_SUPPORT_H
#define TOOLGATE_TESTS_REFERENCE_SUPPORT_H

#include "base/arena.h"
#include "base/embedded.h"
#include "policy/field.h"

#include <lauxlib.h>
#include <lualib.h>

struct vocabulary_word {
    const char *name, *group, *signature, *sentence, *type;
};
struct reference_field {
    const char *name, *form, *type, *sentence;
};
struct reference_table {
    const char *of, *type;
    bool given;
    struct reference_field fields[FIELDS_MAX];
    size_t count;
};
static struct {
    struct vocabulary_word words[200];
    struct reference_table tables[64];
    struct {
        const char *name, *is;
    } types[64];
    size_t word_count, table_count, type_count;
} reference;

/* The Lua state is kept: its strings are used. */
static const char *reference_text(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

static struct reference_field reference_field(lua_State *L)
{
    return (struct reference_field){reference_text(L, "name"), reference_text(L, "form"),
                                    reference_text(L, "type"), reference_text(L, "sentence")};
}

#define REFERENCE_EACH(L, list)                                                                              \
    for (int at_ = (lua_getfield(L, -1, list), 1);                                                           \
         lua_rawgeti(L, -1, at_), !lua_isnil(L, -1) || (lua_pop(L, 2), 0); lua_pop(L, 1), at_++)

static inline void reference_read(struct arena *arena)
{
    struct str source = embedded_text("policy/reference.lua");
    lua_State *L = luaL_newstate();
    size_t count;
    if (reference.word_count)
        return;
    luaL_openlibs(L);
    if (luaL_loadbuffer(L, source.at, source.len, "=reference.lua") || lua_pcall(L, 0, 1, 0))
        fail_msg("%s", lua_tostring(L, -1));
    REFERENCE_EACH(L, "words")
    reference.words[reference.word_count++] = (struct vocabulary_word){
        reference_text(L, "name"), reference_text(L, "group"), reference_text(L, "signature"),
        reference_text(L, "sentence"), reference_text(L, "type")};
    REFERENCE_EACH(L, "types")
    {
        reference.types[reference.type_count].name = reference_text(L, "name");
        reference.types[reference.type_count++].is = reference_text(L, "is");
    }
    REFERENCE_EACH(L, "tables")
    {
        struct reference_table *table = &reference.tables[reference.table_count++];
        table->of = reference_text(L, "of");
        table->type = reference_text(L, "type");
        lua_getfield(L, -1, "given");
        table->given = lua_toboolean(L, -1);
        lua_pop(L, 1);
        REFERENCE_EACH(L, "fields")
        table->fields[table->count++] = reference_field(L);
    }
    const struct field_table *const *rows = field_tables(&count);
    for (size_t i = 0; i < count; i++) {
        struct reference_table *table = &reference.tables[reference.table_count++];
        const struct field *field;
        *table = (struct reference_table){.of = rows[i]->name, .type = rows[i]->type};
        for (size_t at = 0; (field = field_next(rows[i], &at));)
            table->fields[table->count++] = (struct reference_field){
                field->name, field_form(arena, field), field_type(arena, field), field->sentence};
    }
}

#endif
