/*
 * What is not in this table does not exist for a policy: no io, os, ffi, jit,
 * debug, load, require, xpcall, newproxy, coroutine, getfenv, setfenv,
 * getmetatable, setmetatable, rawget, rawset, string.dump, math.random. The
 * libraries are shared by all policies, so a policy gets them as userdata
 * that only reads: a table could be written to, if only by table.insert.
 */
#include "policy/words.h"
#include "base/embedded.h"
#include "policy/call_table.h"
#include "policy/policy.h"
#include "policy/sandbox.h"
#include "policy/strings.h"
#include "policy/tables.h"
#include "policy/shape.h"
#include "schema/suggest.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS_CHUNK "=(words)"

static int word_tostring(lua_State *L);

enum origin { FROM_LUA, FROM_STOCK, FROM_C, FROM_LIBRARY, FROM_VALUE, FROM_METHOD };

struct word {
    struct policy_word told;
    enum origin origin;
    lua_CFunction function;
};

#define DECLARING "Declaring"
#define RULES     "Rules"
#define PARAMS    "Types of params"
#define DECIDING  "Deciding"
#define RUNNING   "Running"
#define JUDGING   "Judging"
#define HELPING   "Helping"
#define LUAS      "Lua's own"

/* clang-format off */
static const struct word words[] = {
    {{"tool", DECLARING, "tool \"name\" { … }", "Declares a tool's policy; the file returns it."}, FROM_LUA, NULL},
    {{"gateway", DECLARING, "gateway { instructions = …, prepare_tools = function(defs, call) … end }", "Declares what holds for all tools; the file returns it."}, FROM_LUA, NULL},
    {{"json", DECLARING, "json \"file.json\"  or  json [[{…}]]", "JSON from a file beside the policy, or from the text itself; only while the policy loads."}, FROM_C, word_json},
    {{"params", DECLARING, "params { name = type, … }  or  params({ … }, { open = true })", "A JSON Schema without JSON: closed, everything required that is not optional."}, FROM_LUA, NULL},
    {{"seen", DECLARING, "seen()  or  seen { look_up = \"…\", shape = \"uuid\" }", "Each id here must have come from an earlier result or from the user."}, FROM_LUA, NULL},
    {{"shape", DECLARING, "shape \"uuid\"  or  shape { prefix = \"evt_\" }", "Each id here must look like this, or it cannot be one: uuid, integer, digits, hex, slug, email, url, or a prefix."}, FROM_LUA, NULL},
    {{"null", DECLARING, "null", "JSON's null; it counts as true in a condition, so compare with it."}, FROM_VALUE, NULL},
    {{"array", DECLARING, "array { … }", "Marks a table as a JSON array, even when it is empty."}, FROM_LUA, NULL},

    {{"when", RULES, "when { argument = value, other = { value, value } }", "Begins a rule that holds where each argument has the value, or one of the list."}, FROM_LUA, NULL},
    {{"always", RULES, "always : defaults { page = 1 }", "Begins a rule that always holds."}, FROM_LUA, NULL},
    {{"needs", RULES, "rule : needs \"start, end\"", "These arguments are required."}, FROM_METHOD, NULL},
    {{"drops", RULES, "rule : drops \"limit\"", "These arguments mean nothing here and are taken out."}, FROM_METHOD, NULL},
    {{"defaults", RULES, "rule : defaults { limit = 50 }", "Values for arguments that are left out."}, FROM_METHOD, NULL},
    {{"refuses", RULES, "rule : refuses(code, message, hint)  or  rule : refuses \"message\"", "Such a call is refused."}, FROM_METHOD, NULL},
    {{"needs_one_of", RULES, "needs_one_of { \"id\", \"query\" }  or  rule : needs_one_of { … }", "At least one of these arguments is required."}, FROM_LUA, NULL},
    {{"exclusive", RULES, "exclusive { \"id\", \"name\" }  or  rule : exclusive { … }", "At most one of these arguments may be given."}, FROM_LUA, NULL},

    {{"str", PARAMS, "str  or  str \"Title\"  or  str { min = 1, max = 80, pattern = \"^[a-z]+$\", \"Title\" }", "Text."}, FROM_LUA, NULL},
    {{"int", PARAMS, "int { min = 1, max = 100, \"How many\" }", "A whole number."}, FROM_LUA, NULL},
    {{"num", PARAMS, "num { over = 0, \"Price\" }", "A number; over and under exclude the bound, min and max include it, step is what it is a multiple of."}, FROM_LUA, NULL},
    {{"bool", PARAMS, "bool \"Whether to send\"", "true or false."}, FROM_LUA, NULL},
    {{"list", PARAMS, "list(str, \"Tags\")  or  list { uuid, \"Members\", min = 1, unique = true }", "A list of one type."}, FROM_LUA, NULL},
    {{"object", PARAMS, "object({ street = str, city = str }, \"Where to\")", "An object with these fields, closed."}, FROM_LUA, NULL},
    {{"enum", PARAMS, "enum({ \"open\", \"done\" }, \"State\")", "One of these values."}, FROM_LUA, NULL},
    {{"uuid", PARAMS, "uuid \"Project\"", "Text in the form of a UUID."}, FROM_LUA, NULL},
    {{"datetime", PARAMS, "datetime \"When it is due\"", "Text: an ISO 8601 date and time with its zone."}, FROM_LUA, NULL},
    {{"email", PARAMS, "email \"Whom to ask\"", "Text: an email address."}, FROM_LUA, NULL},
    {{"uri", PARAMS, "uri \"Where it is\"", "Text: a URI."}, FROM_LUA, NULL},
    {{"optional", PARAMS, "optional(str \"Note\")  or  optional(int, 1)", "May be left out; the second argument is the default that the schema tells."}, FROM_LUA, NULL},

    {{"repair", DECIDING, "repair { path = \"end\", code = \"before_start\", message = \"…\", suggest = … }  or  repair { {…}, {…} }", "The model should change the arguments: one problem, or several."}, FROM_LUA, NULL},
    {{"refuse", DECIDING, "refuse(code, message, hint)", "This call may not be made."}, FROM_LUA, NULL},
    {{"ask", DECIDING, "ask(question, { choice, … })", "The user must decide."}, FROM_LUA, NULL},
    {{"retry", DECIDING, "retry(message, hint)", "From run: the model should try again with other arguments; spends its repair budget."}, FROM_LUA, NULL},

    {{"tool_return", RUNNING, "tool_return { value = …, content = { … }, metadata = { … } }", "From run: a value with MCP content blocks, or with metadata for the agent's program alone."}, FROM_LUA, NULL},

    {{"ok", JUDGING, "ok { coverage = \"SATISFIED\", facts = { … }, follow_up = { tool = …, args = { … } } }", "The result is what was asked for."}, FROM_LUA, NULL},
    {{"partial", JUDGING, "partial(code, detail, next_args, hint)", "There is more; next_args gets it."}, FROM_LUA, NULL},
    {{"garbage", JUDGING, "garbage(code, detail, hint)", "The result is well formed and means nothing."}, FROM_LUA, NULL},
    {{"broken", JUDGING, "broken(code, detail)", "The tool is broken: asking again does not help."}, FROM_LUA, NULL},
    {{"transient", JUDGING, "transient(detail, after_seconds)", "It will work later."}, FROM_LUA, NULL},
    {{"need_user", JUDGING, "need_user(question, { choice, … })", "Only the user can go on."}, FROM_LUA, NULL},
    {{"failed", JUDGING, "failed(code, detail, hint)", "The tool says that it could not."}, FROM_LUA, NULL},
    {{"newest", JUDGING, "newest(list, field)", "The item whose field is the latest time or the greatest number, and its position."}, FROM_LUA, NULL},

    {{"wants_all", HELPING, "wants_all(call.goal)", "Whether the user's words ask for everything there is (all, every, everyone, entire, …)."}, FROM_LUA, NULL},
    {{"time", HELPING, "time(\"2026-05-01T00:00:00Z\")", "Seconds since 1970 of an ISO 8601 time or date; nil for any other text."}, FROM_C, word_time},
    {{"date", HELPING, "date(\"2026-05-01T10:00:00Z\")  or  date(seconds)  or, in params, date \"The day\"", "The day of a time as \"2026-05-01\", in UTC; nil for any other text. In params: text, an ISO 8601 date."}, FROM_LUA, NULL},
    {{"duration", HELPING, "duration(\"PT1H30M\")  or  duration(\"90m\")", "Seconds of an ISO 8601 or short duration (weeks, days, hours, minutes, seconds); nil for any other text."}, FROM_C, word_duration},
    {{"url", HELPING, "url(\"https://example.com:8080/a?b=c#d\")", "A table with scheme, host, port, path, query, fragment, user; nil for any other text."}, FROM_C, word_url},
    {{"host_in", HELPING, "host_in(url_or_host, { \"example.com\", \"*.example.org\" })", "Whether the host is one of these; *. stands for any subdomain, not for the domain itself."}, FROM_C, word_host_in},
    {{"glob", HELPING, "glob(\"reports/*.pdf\", path)", "Whether the text fits the pattern: * is any run of characters, ? is one."}, FROM_C, word_glob},
    {{"set", HELPING, "set { \"a\", \"b\" }", "A table for asking: set[x] is true for its members."}, FROM_LUA, NULL},

    {{"assert", LUAS, "assert(value, message)", "Raises the message where value is false or nil."}, FROM_STOCK, NULL},
    {{"error", LUAS, "error(message)", "Ends the hook with an error; the call fails as policy_error."}, FROM_STOCK, NULL},
    {{"ipairs", LUAS, "ipairs(list)", "Iterates positions 1, 2, 3, …"}, FROM_STOCK, NULL},
    {{"next", LUAS, "next(table, key)", "The next key and value."}, FROM_STOCK, NULL},
    {{"pairs", LUAS, "pairs(table)", "Iterates all keys."}, FROM_STOCK, NULL},
    {{"pcall", LUAS, "pcall(f, …)", "Calls f and catches its errors; a spent deadline it does not catch."}, FROM_STOCK, NULL},
    {{"select", LUAS, "select(n, …)", "The arguments from the n-th on, or their number for \"#\"."}, FROM_STOCK, NULL},
    {{"tonumber", LUAS, "tonumber(text, base)", "The number, or nil."}, FROM_STOCK, NULL},
    {{"tostring", LUAS, "tostring(value)", "The text of a value."}, FROM_C, word_tostring},
    {{"type", LUAS, "type(value)", "\"nil\", \"boolean\", \"number\", \"string\", \"table\", \"function\", \"userdata\"."}, FROM_STOCK, NULL},
    {{"unpack", LUAS, "unpack(list)", "The items as separate values."}, FROM_STOCK, NULL},
    {{"string", LUAS, "string.find, match, gmatch, gsub, format, rep, sub, lower, upper, len, byte, char, reverse", "Text; pattern functions count their steps and end."}, FROM_LIBRARY, NULL},
    {{"table", LUAS, "table.concat, insert, remove, sort, unpack", "Lists."}, FROM_LIBRARY, NULL},
    {{"math", LUAS, "math.floor, ceil, abs, min, max, sqrt, huge, …", "Numbers; nothing random, so that a replay says the same."}, FROM_LIBRARY, NULL},
    {{"bit", LUAS, "bit.band, bor, bxor, bnot, lshift, rshift, …", "Bits of 32-bit numbers."}, FROM_LIBRARY, NULL},
};
/* clang-format on */

#define WORD_COUNT (sizeof(words) / sizeof(words[0]))

static const char *const lua_files[] = {"policy/declare.lua", "policy/params.lua", "policy/outcomes.lua",
                                        "policy/helpers.lua"};

struct library {
    const char *name;
    const char *const *functions; /* of the stock library; NULL-terminated */
    const luaL_Reg *ours;         /* instead of, or beside, the stock ones */
};

static const luaL_Reg our_string[] = {{"find", strings_find},
                                      {"match", strings_match},
                                      {"gmatch", strings_gmatch},
                                      {"gsub", strings_gsub},
                                      {NULL, NULL}};
static const luaL_Reg our_table[] = {{"sort", tables_sort}, {"insert", tables_insert}, {NULL, NULL}};
static const luaL_Reg nothing[] = {{NULL, NULL}};

static const char *const stock_string[] = {"byte", "char", "format", "len",     "lower",
                                           "rep",  "sub",  "upper",  "reverse", NULL};
static const char *const stock_table[] = {"concat", "remove", NULL};
static const char *const stock_math[] = {"abs",   "acos", "asin",  "atan", "atan2", "ceil", "cos",   "cosh",
                                         "deg",   "exp",  "floor", "fmod", "frexp", "huge", "ldexp", "log",
                                         "log10", "max",  "min",   "modf", "pi",    "pow",  "rad",   "sin",
                                         "sinh",  "sqrt", "tan",   "tanh", NULL};
static const char *const stock_bit[] = {"arshift", "band", "bnot",   "bor",   "bswap", "bxor", "lshift",
                                        "rol",     "ror",  "rshift", "tobit", "tohex", NULL};

static const struct library libraries[] = {{"string", stock_string, our_string},
                                           {"table", stock_table, our_table},
                                           {"math", stock_math, nothing},
                                           {"bit", stock_bit, nothing}};

#define LIBRARY_COUNT (sizeof(libraries) / sizeof(libraries[0]))

const struct policy_word *policy_words(size_t *count)
{
    static struct policy_word told[WORD_COUNT];
    for (size_t i = 0; i < WORD_COUNT; i++)
        told[i] = words[i].told;
    *count = WORD_COUNT;
    return told;
}

/* ---- a name that does not exist ------------------------------------------------------ */

#define NAMES_MAX 256

static struct str closest_of(struct str name, const struct str *names, size_t count)
{
    return suggest_one(name, names, count);
}

/* Keys of the table at `at` that are texts. */
static size_t names_in(lua_State *L, int at, struct str *out)
{
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, at) && count < NAMES_MAX) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING) {
            out[count].at = lua_tolstring(L, -1, &out[count].len);
            count++;
        }
    }
    return count;
}

/* __index of the words and of each library; upvalue 1: "'%s' is not …" or nil for words. */
static int missing_name(lua_State *L)
{
    struct str names[NAMES_MAX], name = {"?", 1};
    if (lua_type(L, 2) == LUA_TSTRING)
        name.at = lua_tolstring(L, 2, &name.len);
    struct str meant = closest_of(name, names, names_in(L, 1, names));
    const char *library = lua_tostring(L, lua_upvalueindex(1));
    char text[200];
    if (library)
        snprintf(text, sizeof(text), "there is no %s." STR_FMT, library, STR_ARG(str_cut(name, 60)));
    else
        snprintf(text, sizeof(text), "there is no word or global '" STR_FMT "'", STR_ARG(str_cut(name, 60)));
    if (!meant.len)
        return luaL_error(L, "%s", text);
    lua_pushlstring(L, meant.at, meant.len);
    return luaL_error(L, "%s (did you mean '%s'?)", text, lua_tostring(L, -1));
}

/* The table on top gets it as its last resort. */
static void complain_about_missing(lua_State *L, const char *library)
{
    lua_createtable(L, 0, 1);
    if (library)
        lua_pushstring(L, library);
    else
        lua_pushnil(L);
    lua_pushcclosure(L, missing_name, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

static int is_read_only(lua_State *L)
{
    return luaL_error(L, "'%s' is shared by all policies and can't be changed",
                      lua_tostring(L, lua_upvalueindex(1)));
}

/* Replaces the table on top by a userdata that reads from it and refuses writes. */
static void wrap_constant(lua_State *L, const char *name)
{
    lua_newuserdata(L, 1);
    lua_createtable(L, 0, 3);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_pushcclosure(L, is_read_only, 1);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

/* ---- native: what the Lua files of this room are given ---------------------------------- */

static const char *const mark_names[MARK_COUNT] = {
    [MARK_ARRAY] = "array", [MARK_OBJECT] = "object", [MARK_SET] = "set", [MARK_OUTCOME] = "outcome",
    [MARK_RULE] = "rule",   [MARK_TYPE] = "type",     [MARK_ID] = "id",   [MARK_DECLARATION] = "declaration",
    [MARK_CALL] = "call",
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

static int native_mark(lua_State *L)
{
    enum mark mark = mark_named(L, 2);
    lua_settop(L, 1);
    sandbox_set_mark(L, mark);
    return 1;
}

static int native_marked(lua_State *L)
{
    enum mark mark = lua_istable(L, 1) ? sandbox_mark(L, 1) : MARK_NONE;
    if (mark == MARK_NONE)
        lua_pushnil(L);
    else
        lua_pushstring(L, mark_names[mark]);
    return 1;
}

static int native_methods(lua_State *L)
{
    sandbox_push_mark(L, mark_named(L, 1));
    lua_pushvalue(L, 2);
    complain_about_missing(L, "rule");
    lua_setfield(L, -2, "__index");
    return 0;
}

static int native_constant(lua_State *L)
{
    const char *name = luaL_checkstring(L, 2);
    lua_pushvalue(L, 1);
    complain_about_missing(L, name);
    wrap_constant(L, name);
    return 1;
}

void words_push_kind(lua_State *L, int at)
{
    struct str text;
    switch (lua_type(L, at)) {
    case LUA_TNONE:
    case LUA_TNIL:
        lua_pushliteral(L, "nothing");
        break;
    case LUA_TSTRING:
        text.at = lua_tolstring(L, at, &text.len);
        text = str_cut(text, 40);
        lua_pushliteral(L, "\"");
        lua_pushlstring(L, text.at, text.len);
        lua_pushliteral(L, "\"");
        lua_concat(L, 3);
        break;
    case LUA_TNUMBER:
        lua_pushvalue(L, at);
        lua_tostring(L, -1);
        break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, at) ? "true" : "false");
        break;
    case LUA_TLIGHTUSERDATA:
        lua_pushliteral(L, "null");
        break;
    default:
        lua_pushfstring(L, "a %s", luaL_typename(L, at));
    }
}

static int native_kind(lua_State *L)
{
    lua_settop(L, 1);
    words_push_kind(L, 1);
    return 1;
}

static int native_closest(lua_State *L)
{
    struct str names[NAMES_MAX], name;
    size_t count = 0;
    name.at = luaL_checklstring(L, 1, &name.len);
    for (int i = 1; count < NAMES_MAX; i++) {
        lua_rawgeti(L, 2, i);
        if (lua_type(L, -1) != LUA_TSTRING)
            break;
        names[count].at = lua_tolstring(L, -1, &names[count].len);
        count++;
        lua_pop(L, 1);
    }
    struct str meant = closest_of(name, names, count);
    if (meant.len)
        lua_pushlstring(L, meant.at, meant.len);
    else
        lua_pushnil(L);
    return 1;
}

/* The line in the policy that is running: the first function up the stack that is none of this room's. False
 * where there is none, as after a tail call. */
static bool find_place(lua_State *L, lua_Debug *where)
{
    for (int level = 1; lua_getstack(L, level, where); level++) {
        lua_getinfo(L, "Sl", where);
        if (where->currentline > 0 && strcmp(where->source, WORDS_CHUNK) != 0)
            return true;
    }
    return false;
}

static int native_line(lua_State *L)
{
    lua_Debug where;
    lua_pushinteger(L, find_place(L, &where) ? where.currentline : 0);
    return 1;
}

static int native_complain(lua_State *L)
{
    lua_Debug where;
    const char *text = luaL_checkstring(L, 1);
    if (find_place(L, &where))
        lua_pushfstring(L, "%s:%d: %s", where.short_src, where.currentline, text);
    else
        lua_pushstring(L, text);
    return lua_error(L);
}

static int native_loading(lua_State *L)
{
    lua_pushboolean(L, sandbox_now(sandbox_of(L))->loading);
    return 1;
}

static int native_is_shape(lua_State *L)
{
    struct str name;
    name.at = luaL_checklstring(L, 1, &name.len);
    lua_pushboolean(L, shape_is_known(name));
    return 1;
}

static int native_shapes(lua_State *L)
{
    lua_pushstring(L, shape_names());
    return 1;
}

static const luaL_Reg natives[] = {{"mark", native_mark},       {"marked", native_marked},
                                   {"methods", native_methods}, {"constant", native_constant},
                                   {"kind", native_kind},       {"closest", native_closest},
                                   {"line", native_line},       {"complain", native_complain},
                                   {"loading", native_loading}, {"is_shape", native_is_shape},
                                   {"shapes", native_shapes},   {"time", word_time},
                                   {"day", word_day},           {NULL, NULL}};

/* ---- Lua's own -------------------------------------------------------------------------- */

/* No addresses: a text that a policy makes is the same on every worker and in every replay. */
static int word_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    switch (lua_type(L, 1)) {
    case LUA_TSTRING:
    case LUA_TNUMBER:
        lua_pushvalue(L, 1);
        lua_tostring(L, -1);
        break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, 1) ? "true" : "false");
        break;
    case LUA_TNIL:
        lua_pushliteral(L, "nil");
        break;
    case LUA_TLIGHTUSERDATA:
        lua_pushliteral(L, "null");
        break;
    default:
        lua_pushstring(L, luaL_typename(L, 1));
    }
    return 1;
}

static void open_libraries(lua_State *L)
{
    static const luaL_Reg libs[] = {{"", luaopen_base},
                                    {LUA_STRLIBNAME, luaopen_string},
                                    {LUA_TABLIBNAME, luaopen_table},
                                    {LUA_MATHLIBNAME, luaopen_math},
                                    {LUA_BITLIBNAME, luaopen_bit}};
    for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]); i++) {
        lua_pushcfunction(L, libs[i].func);
        lua_pushstring(L, libs[i].name);
        lua_call(L, 1, 0);
    }
}

/* Pushes a table of what policies may have of a library. */
static void push_library(lua_State *L, const struct library *library)
{
    lua_newtable(L);
    lua_getglobal(L, library->name);
    for (const char *const *name = library->functions; *name; name++) {
        lua_getfield(L, -1, *name);
        lua_setfield(L, -3, *name);
    }
    lua_pop(L, 1);
    for (const luaL_Reg *ours = library->ours; ours->name; ours++) {
        lua_pushcfunction(L, ours->func);
        lua_setfield(L, -2, ours->name);
    }
    if (strcmp(library->name, "table") == 0) {
        lua_getglobal(L, "unpack");
        lua_setfield(L, -2, "unpack");
    }
    complain_about_missing(L, library->name);
}

/* ("x"):find(…) goes through the metatable that all strings share. */
static void lock_strings(lua_State *L)
{
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

static void add_libraries(lua_State *L, int found)
{
    for (size_t i = 0; i < LIBRARY_COUNT; i++) {
        push_library(L, &libraries[i]);
        if (strcmp(libraries[i].name, "string") == 0)
            lock_strings(L);
        wrap_constant(L, libraries[i].name);
        lua_setfield(L, found, libraries[i].name);
    }
}

/* Each Lua file is called with the natives and returns its words; they are added to the table at `found`. */
static void run_lua_file(lua_State *L, const char *name, int found)
{
    struct str text = embedded_text(name);
    if (luaL_loadbufferx(L, text.at, text.len, WORDS_CHUNK, "t") != 0)
        lua_error(L);
    lua_newtable(L);
    luaL_setfuncs(L, natives, 0);
    lua_call(L, 1, 1);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, found);
    }
    lua_pop(L, 1);
}

/* Pushes the word; it must exist: the table above and the files must agree. */
static void push_word(lua_State *L, const struct word *word, int found)
{
    switch (word->origin) {
    case FROM_C:
        lua_pushcfunction(L, word->function);
        break;
    case FROM_STOCK:
        lua_getglobal(L, word->told.name);
        break;
    case FROM_VALUE:
        lua_pushlightuserdata(L, NULL);
        break;
    default:
        lua_getfield(L, found, word->told.name);
    }
    if (lua_isnil(L, -1))
        luaL_error(L, "the word '%s' is registered and nowhere defined", word->told.name);
}

/* The Lua files keep what they need by their environment; everybody else finds an empty one. */
static void forget_globals(lua_State *L)
{
    lua_newtable(L);
    lua_replace(L, LUA_GLOBALSINDEX);
}

void words_open(lua_State *L)
{
    open_libraries(L);
    call_table_open(L);
    lua_newtable(L);
    int found = lua_gettop(L);
    add_libraries(L, found);
    for (size_t i = 0; i < sizeof(lua_files) / sizeof(lua_files[0]); i++)
        run_lua_file(L, lua_files[i], found);
    lua_createtable(L, 0, (int)WORD_COUNT);
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (words[i].origin == FROM_METHOD)
            continue;
        push_word(L, &words[i], found);
        lua_setfield(L, -2, words[i].told.name);
    }
    complain_about_missing(L, NULL);
    forget_globals(L);
    lua_remove(L, found);
}
