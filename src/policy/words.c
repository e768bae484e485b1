/*
 * What is not in this table does not exist for a policy: no io, os, ffi, jit,
 * debug, load, require, xpcall, newproxy, coroutine, getfenv, setfenv,
 * getmetatable, setmetatable, rawget, rawset. libraries.c says what of the
 * libraries there is.
 */
#include "policy/words.h"
#include "base/embedded.h"
#include "policy/call_table.h"
#include "policy/libraries.h"
#include "policy/natives.h"
#include "policy/policy.h"
#include "policy/sandbox.h"

#include <lauxlib.h>

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

const struct policy_word *policy_words(size_t *count)
{
    static struct policy_word told[WORD_COUNT];
    for (size_t i = 0; i < WORD_COUNT; i++)
        told[i] = words[i].told;
    *count = WORD_COUNT;
    return told;
}

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

/* ---- all of them ------------------------------------------------------------------------- */

/* Each Lua file is called with the natives and returns its words; they are added to the table at `found`. */
static void run_lua_file(lua_State *L, const char *name, int found)
{
    struct str text = embedded_text(name);
    if (luaL_loadbufferx(L, text.at, text.len, NATIVES_CHUNK, "t") != 0)
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
    libraries_open(L);
    call_table_open(L);
    lua_newtable(L);
    int found = lua_gettop(L);
    libraries_add(L, found);
    for (size_t i = 0; i < sizeof(lua_files) / sizeof(lua_files[0]); i++)
        run_lua_file(L, lua_files[i], found);
    lua_createtable(L, 0, (int)WORD_COUNT);
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (words[i].origin == FROM_METHOD)
            continue;
        push_word(L, &words[i], found);
        lua_setfield(L, -2, words[i].told.name);
    }
    libraries_complain_about_missing(L, NULL);
    forget_globals(L);
    lua_remove(L, found);
}
