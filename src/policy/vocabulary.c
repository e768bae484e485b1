/* The environment of policies. A word that is not added here does not exist for a policy: no io, os, ffi,
 * jit, debug, load, xpcall, newproxy, coroutine, getfenv, setfenv, getmetatable, setmetatable, rawget,
 * rawset. libraries.c says what of the libraries there is. */
#include "base/embedded.h"
#include "policy/policy_internal.h"
#include "sandbox/libraries.h"
#include "sandbox/bridge.h"
#include "policy/content.h"
#include "policy/id_format.h"
#include "base/suggest.h"

/* ---- builtins: marks, messages and source lines, for the words that are written in Lua ---- */

static const char *const mark_names[MARK_COUNT] = {
    [MARK_ARRAY] = "array", [MARK_OBJECT] = "object",
    [MARK_SET] = "set",     [MARK_OUTCOME] = "outcome",
    [MARK_RULE] = "rule",   [MARK_TYPE] = "type",
    [MARK_ID] = "id",       [MARK_DECLARATION] = "declaration",
    [MARK_CALL] = "call",   [MARK_CONDITION] = "condition",
};

static enum mark mark_named(lua_State *L, int at)
{
    const char *name = luaL_checkstring(L, at);
    for (int i = 1; i < MARK_COUNT; i++)
        if (strcmp(mark_names[i], name) == 0)
            return (enum mark)i;
    luaL_error(L, "no mark '%s'", name);
    return MARK_NONE;
}

/* A table that the file made at load is frozen: a copy of it is marked. */
static int builtin_mark(lua_State *L)
{
    enum mark mark = mark_named(L, 2);
    lua_settop(L, 1);
    proxy_copy(L);
    sandbox_set_mark(L, mark);
    return 1;
}

static int builtin_marked(lua_State *L)
{
    enum mark mark = sandbox_mark(L, 1);
    if (mark == MARK_NONE)
        lua_pushnil(L);
    else
        lua_pushstring(L, mark_names[mark]);
    return 1;
}

static int builtin_methods(lua_State *L)
{
    sandbox_push_mark(L, mark_named(L, 1));
    lua_pushvalue(L, 2);
    libraries_guard_missing(L, "rule");
    lua_setfield(L, -2, "__index");
    return 0;
}

static int builtin_constant(lua_State *L)
{
    const char *name = luaL_checkstring(L, 2);
    lua_pushvalue(L, 1);
    libraries_guard_missing(L, name);
    libraries_wrap_read_only(L, name);
    return 1;
}

static int builtin_kind(lua_State *L)
{
    lua_settop(L, 1);
    diagnostics_push_value(L, 1);
    return 1;
}

/* hint(name, names): " (did you mean '…'?)", or an empty string. */
static int builtin_hint(lua_State *L)
{
    struct str names[LIBRARIES_NAMES_MAX];
    size_t count = word_read_names(L, 2, names, LIBRARIES_NAMES_MAX);
    struct str meant = suggest_closest(sandbox_string(L, 1), names, count);
    lua_pushfstring(L, meant.len ? " (did you mean '%s'?)" : "", meant.at);
    return 1;
}

/* The running line of the policy: that of the first function up the stack that is not a builtin. False if
 * none exists, as after a tail call. */
static bool find_line(lua_State *L, lua_Debug *where)
{
    for (int level = 1; lua_getstack(L, level, where); level++) {
        lua_getinfo(L, "Sl", where);
        if (where->currentline > 0 && strcmp(where->source, SANDBOX_BUILTINS_CHUNK) != 0)
            return true;
    }
    return false;
}

static int builtin_line(lua_State *L)
{
    lua_Debug where;
    lua_pushinteger(L, find_line(L, &where) ? where.currentline : 0);
    return 1;
}

static int builtin_raise(lua_State *L)
{
    lua_Debug where;
    const char *text = luaL_checkstring(L, 1);
    if (find_line(L, &where))
        lua_pushfstring(L, "%s:%d: %s", where.short_src, where.currentline, text);
    else
        lua_pushstring(L, text);
    return lua_error(L);
}

/* only_list(expected, table, count): an error if it has other keys than 1 to count, which would be lost. */
static int builtin_only_list(lua_State *L)
{
    if (!table_has_other_key(L, 2, (size_t)luaL_checkinteger(L, 3)))
        return 0;
    diagnostics_push_value(L, -1);
    lua_pushfstring(L, "%s, got one with the key %s", luaL_checkstring(L, 1), lua_tostring(L, -1));
    lua_replace(L, 1);
    return builtin_raise(L);
}

static int builtin_loading(lua_State *L)
{
    lua_pushboolean(L, sandbox_context(L)->loading);
    return 1;
}

static int builtin_is_shape(lua_State *L)
{
    lua_pushboolean(L, id_format_is_known(sandbox_string(L, 1)));
    return 1;
}

/* fields(word): the names of the fields that a word takes. */
static int builtin_fields(lua_State *L)
{
    const struct word_fields *fields = word_fields_of(luaL_checkstring(L, 1));
    lua_newtable(L);
    for (int i = 0; fields->names[i]; i++) {
        lua_pushstring(L, fields->names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* content_fault(blocks): what is wrong with a list of content blocks; nil: nothing. */
static int builtin_content_fault(lua_State *L)
{
    struct arena *arena = sandbox_context(L)->arena;
    sandbox_push_string(L, content_error(arena, bridge_read(L, 1, "tool_return: content", NULL, arena)));
    return 1;
}

static const luaL_Reg builtins[] = {{"mark", builtin_mark},
                                    {"marked", builtin_marked},
                                    {"methods", builtin_methods},
                                    {"constant", builtin_constant},
                                    {"kind", builtin_kind},
                                    {"hint", builtin_hint},
                                    {"line", builtin_line},
                                    {"raise", builtin_raise},
                                    {"only_list", builtin_only_list},
                                    {"loading", builtin_loading},
                                    {"is_shape", builtin_is_shape},
                                    {"fields", builtin_fields},
                                    {"content_fault", builtin_content_fault},
                                    {NULL, NULL}};

/* ---- the environment ---- */

/* Words that Lua brings along, and words that are written in C; all others are returned by the Lua files. */
static const char *const stock[] = {"ipairs", "next", "pairs", "select", "tonumber", "type", "unpack"};
static const luaL_Reg in_c[] = {{"require", lua_modules_require},
                                {"error", sandbox_error},
                                {"pcall", sandbox_pcall},
                                {"tostring", string_library_tostring},
                                {NULL, NULL}};

/* What the Lua files return for each other and for C, and not as a word. */
#define READ_ANNOTATIONS "read_annotations"
#define CONDITION_ON     "condition_on"

static const char *const lua_files[] = {"policy/conditions.lua",  "policy/declare.lua",  "policy/params.lua",
                                        "policy/annotations.lua", "policy/outcomes.lua", "policy/goal.lua",
                                        "policy/helpers.lua"};

/* The fields of words that take a table, in the order of messages; see lua/policy/reference.lua. */
static const struct word_fields takes[] = {
    {"repair", {"path", "message", "code", "suggest", "expected", "got"}},
    {"ok", {"coverage", "facts", "follow_up", "cost"}},
    {"ok.follow_up", {"tool", "args"}},
    {"tool_return", {"value", "content", "metadata"}},
};

const struct word_fields *word_fields_of(const char *word)
{
    for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++)
        if (strcmp(takes[i].word, word) == 0)
            return &takes[i];
    return NULL;
}

void vocabulary_push_annotations(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, READ_ANNOTATIONS);
}

void vocabulary_open(lua_State *L)
{
    libraries_open(L);
    proxy_open(L);
    call_table_open(L);
    lua_newtable(L);
    int found = lua_gettop(L);
    libraries_add(L, found);
    /* Each Lua file is called with the builtins and the words so far, and returns its own. */
    for (size_t i = 0; i < sizeof(lua_files) / sizeof(lua_files[0]); i++) {
        struct str text = embedded_text(lua_files[i]);
        if (luaL_loadbufferx(L, text.at, text.len, SANDBOX_BUILTINS_CHUNK, "t") != 0)
            lua_error(L);
        lua_newtable(L);
        luaL_setfuncs(L, builtins, 0);
        luaL_setfuncs(L, word_builtins, 0);
        lua_pushvalue(L, found);
        lua_call(L, 2, 1);
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, found);
        }
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < sizeof(stock) / sizeof(stock[0]); i++) {
        lua_getglobal(L, stock[i]);
        lua_setfield(L, found, stock[i]);
    }
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, found, "null");
    luaL_setfuncs(L, in_c, 0);
    luaL_setfuncs(L, words_in_c, 0);
    lua_getfield(L, found, READ_ANNOTATIONS);
    lua_setfield(L, LUA_REGISTRYINDEX, READ_ANNOTATIONS);
    lua_pushnil(L);
    lua_setfield(L, found, READ_ANNOTATIONS);
    lua_pushnil(L);
    lua_setfield(L, found, CONDITION_ON);
    libraries_guard_missing(L, NULL);
    /* The Lua files keep the stock functions in their environment; policies find an empty one. */
    lua_newtable(L);
    lua_replace(L, LUA_GLOBALSINDEX);
}
