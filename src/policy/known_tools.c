/* The table is read once, when somebody first asks, by a Lua state of its own. */
#include "policy/known_tools.h"

#include "base/embedded.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 128u /* of one kind */

static struct str names[KNOWN_KINDS][NAMES_MAX];

static const char *const fields[KNOWN_KINDS] = {
    [KNOWN_READS] = "reads", [KNOWN_NOTES] = "notes", [KNOWN_EDITS] = "edits", [KNOWN_SHELLS] = "shells"};

enum known_tool known_tools_find(struct str name)
{
    bool is_read = names[KNOWN_READS][0].at;
    struct str source = is_read ? STR_NONE : embedded_text("known_tools.lua");
    lua_State *L = is_read ? NULL : luaL_newstate(); /* kept: the names are its strings */
    if (!is_read &&
        (!L || luaL_loadbuffer(L, source.at, source.len, "=known_tools.lua") || lua_pcall(L, 0, 1, 0))) {
        fprintf(stderr, "toolgate: known_tools.lua: %s\n", L ? lua_tostring(L, -1) : "no memory");
        abort(); /* an error in the embedded file is one of the build */
    }
    for (int kind = KNOWN_READS; kind < KNOWN_KINDS && !is_read; kind++) {
        lua_getfield(L, 1, fields[kind]);
        for (unsigned i = 0; i < NAMES_MAX; i++) {
            lua_rawgeti(L, 2, (int)i + 1);
            names[kind][i].at = lua_tolstring(L, -1, &names[kind][i].len);
            lua_pop(L, 1);
        }
        lua_settop(L, 1);
    }
    for (int kind = KNOWN_READS; kind < KNOWN_KINDS; kind++)
        for (size_t i = 0; i < NAMES_MAX && names[kind][i].len; i++)
            if (str_eq(names[kind][i], name))
                return kind;
    return KNOWN_NOT;
}
