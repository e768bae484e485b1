/* Words and fields of policies: those of lua/policy/reference.lua and of the rows of fields. */
#ifndef TOOLGATE_TESTS_REFERENCE_SUPPORT_H
#define TOOLGATE_TESTS_REFERENCE_SUPPORT_H

#include "base/embedded.h"
#include "policy/field.h"

#include <lauxlib.h>
#include <lualib.h>

struct vocabulary_word {
    const char *name, *signature, *type;
};
struct reference_table {
    const char *of, *fields[FIELDS_MAX];
    size_t count;
};
static struct {
    struct vocabulary_word words[200];
    struct reference_table tables[64];
    size_t word_count, table_count;
} reference;

/* The Lua state is kept: its strings are used. */
static const char *reference_text(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

/* Pushes the n-th item of the list in a field of the table on top; false: there is none, nothing is pushed.
 */
static bool reference_item(lua_State *L, const char *list, int n)
{
    lua_getfield(L, -1, list);
    lua_rawgeti(L, -1, n);
    lua_remove(L, -2);
    bool found = !lua_isnil(L, -1);
    if (!found)
        lua_pop(L, 1);
    return found;
}

static inline void reference_read(void)
{
    struct str source = embedded_text("policy/reference.lua");
    lua_State *L = luaL_newstate();
    size_t count;
    luaL_openlibs(L);
    if (luaL_loadbuffer(L, source.at, source.len, "=reference.lua") || lua_pcall(L, 0, 1, 0))
        fail_msg("%s", lua_tostring(L, -1));
    for (int i = 1; reference_item(L, "words", i); i++, lua_pop(L, 1))
        reference.words[reference.word_count++] = (struct vocabulary_word){
            reference_text(L, "name"), reference_text(L, "signature"), reference_text(L, "type")};
    for (int i = 1; reference_item(L, "tables", i); i++, lua_pop(L, 1)) {
        struct reference_table *table = &reference.tables[reference.table_count++];
        table->of = reference_text(L, "of");
        for (int n = 1; reference_item(L, "fields", n); n++, lua_pop(L, 1))
            table->fields[table->count++] = reference_text(L, "name");
    }
    const struct field_table *const *rows = field_tables(&count);
    for (size_t i = 0; i < count; i++) {
        struct reference_table *table = &reference.tables[reference.table_count++];
        const struct field *field;
        table->of = rows[i]->name;
        for (size_t at = 0; (field = field_next(rows[i], &at));)
            table->fields[table->count++] = field->name;
    }
}

#endif
