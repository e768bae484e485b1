/*
 * A word that is not in this table does not exist for a policy: no io, os, ffi, jit,
 * debug, load, xpcall, newproxy, coroutine, getfenv, setfenv,
 * getmetatable, setmetatable, rawget, rawset. libraries.c says what of the
 * libraries there is.
 */
#include "policy/vocabulary/vocabulary.h"
#include "base/embedded.h"
#include "policy/call_table.h"
#include "policy/lua_modules.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/libraries.h"
#include "policy/vocabulary/builtins.h"
#include "policy/reference.h"
#include "sandbox/sandbox.h"
#include "sandbox/string_library.h"

#include <lauxlib.h>

enum origin { FROM_LUA, FROM_STOCK, FROM_C, FROM_LIBRARY, FROM_VALUE, FROM_METHOD };

struct word {
    struct vocabulary_word row;
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
    {{"tool", DECLARING, "tool \"name\" { … }",
      "Declares a tool's policy; the file returns it.",
      "fun(name: string): fun(fields: toolgate.Policy): toolgate.Declaration"}, FROM_LUA, NULL},
    {{"policy", DECLARING, "policy { tools = { \"write_*\", \"edit_file\" }, check = … }",
      "Declares a policy that lies over several tools, beside their own; the strictest verdict wins.",
      "fun(fields: toolgate.Guard): toolgate.Declaration"}, FROM_LUA, NULL},
    {{"gateway", DECLARING, "gateway { instructions = …, prepare_tools = function(defs, call) … end }",
      "Declares what holds for all tools; the file returns it.",
      "fun(fields: toolgate.Gateway): toolgate.Declaration"}, FROM_LUA, NULL},
    {{"json", DECLARING, "json \"file.json\"  or  json [[{…}]]",
      "JSON from a file beside the policy, or from the string itself; only while the policy loads.",
      "fun(file_or_text: string): table"}, FROM_C, word_json},
    {{"require", DECLARING, "local paths = require \"lib.paths\"",
      "What policies/lib/paths.lua returns, read-only and shared by all policies; only while the policy loads.",
      "fun(name: string): table"}, FROM_C, lua_modules_require},
    {{"params", DECLARING, "params { name = type, … }  or  params({ … }, { open = true })",
      "A JSON Schema without JSON: closed, and every field is required unless it is optional.",
      "fun(fields: table<string, toolgate.AnyType>, options?: toolgate.ParamsOptions): toolgate.Schema"}, FROM_LUA, NULL},
    {{"seen", DECLARING, "seen()  or  seen { look_up = \"…\", shape = \"uuid\", strict = true }",
      "Each id of this argument must come from an earlier result or from the user.",
      "fun(options?: toolgate.SeenOptions): toolgate.Id"}, FROM_LUA, NULL},
    {{"shape", DECLARING, "shape \"uuid\"  or  shape { prefix = \"evt_\" }",
      "Each id of this argument must have this format: uuid, integer, digits, hex, slug, email, url, or a prefix.",
      "fun(name: toolgate.ShapeName|{ prefix: string }): toolgate.Id"}, FROM_LUA, NULL},
    {{"null", DECLARING, "null",
      "JSON's null; it counts as true in a condition, so compare with it.",
      "toolgate.Null"}, FROM_VALUE, NULL},
    {{"array", DECLARING, "array { … }",
      "Marks a table as a JSON array, even when it is empty.",
      "fun(list?: any[]): any[]"}, FROM_LUA, NULL},

    {{"when", RULES, "when { argument = value, other = { value, value }, third = above(100) }",
      "Begins a rule that holds if each argument has the value, has one of the list, or meets the condition.",
      "fun(condition: table<string, any>): toolgate.Rule"}, FROM_LUA, NULL},
    {{"above", RULES, "when { limit = above(100) }",
      "The argument is greater than this number, or later than this time; the bound itself is not.",
      "fun(bound: number|string): toolgate.Condition"}, FROM_LUA, NULL},
    {{"below", RULES, "when { limit = below(0) }",
      "The argument is less than this number, or earlier than this time; the bound itself is not.",
      "fun(bound: number|string): toolgate.Condition"}, FROM_LUA, NULL},
    {{"at_least", RULES, "when { start = at_least(\"2026-05-01\") }",
      "The argument is this number or greater, this time or later.",
      "fun(bound: number|string): toolgate.Condition"}, FROM_LUA, NULL},
    {{"at_most", RULES, "when { limit = at_most(10) }",
      "The argument is this number or less, this time or earlier.",
      "fun(bound: number|string): toolgate.Condition"}, FROM_LUA, NULL},
    {{"between", RULES, "when { limit = between(1, 10) }",
      "The argument is in this range of numbers or times, both bounds included.",
      "fun(low: number, high: number): toolgate.Condition\n"
      "fun(low: string, high: string): toolgate.Condition"}, FROM_LUA, NULL},
    {{"given", RULES, "when { start = given }",
      "The argument is given, and not null.",
      "toolgate.Condition"}, FROM_LUA, NULL},
    {{"absent", RULES, "when { query = absent }",
      "The argument is left out, or null.",
      "toolgate.Condition"}, FROM_LUA, NULL},
    {{"none_of", RULES, "when { mode = none_of { \"draft\", \"spam\" } }",
      "The argument is given, and is none of these values.",
      "fun(...: any): toolgate.Condition"}, FROM_LUA, NULL},
    {{"is", RULES, "when { day = is(\"on a weekend\", function(value, args) … end) }",
      "The argument is given, and the pure function returns true; the words describe this for the model.",
      "fun(words: string, test: fun(value: any, args: table, call: toolgate.Call): any): toolgate.Condition"}, FROM_LUA, NULL},
    {{"always", RULES, "always : defaults { page = 1 }",
      "Begins a rule that always holds.",
      "toolgate.Rule"}, FROM_LUA, NULL},
    {{"needs", RULES, "rule : needs \"start, end\"",
      "These arguments are required.",
      "fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule"}, FROM_METHOD, NULL},
    {{"drops", RULES, "rule : drops \"limit\"",
      "These arguments are removed.",
      "fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule"}, FROM_METHOD, NULL},
    {{"defaults", RULES, "rule : defaults { limit = 50 }",
      "Values for arguments that are left out.",
      "fun(self: toolgate.Rule, values: table<string, any>): toolgate.Rule"}, FROM_METHOD, NULL},
    {{"refuses", RULES, "rule : refuses(code, message, hint)  or  rule : refuses \"message\"",
      "The call is refused.",
      "fun(self: toolgate.Rule, code: string, message: string, hint?: string): toolgate.Rule\n"
      "fun(self: toolgate.Rule, message: string): toolgate.Rule"}, FROM_METHOD, NULL},
    {{"needs_one_of", RULES, "needs_one_of { \"id\", \"query\" }  or  rule : needs_one_of { … }",
      "At least one of these arguments is required.",
      "fun(...: string|string[]): toolgate.Rule\n"
      "fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule"}, FROM_LUA, NULL},
    {{"exclusive", RULES, "exclusive { \"id\", \"name\" }  or  rule : exclusive { … }",
      "At most one of these arguments may be given.",
      "fun(...: string|string[]): toolgate.Rule\n"
      "fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule"}, FROM_LUA, NULL},

    {{"str", PARAMS, "str  or  str \"Title\"  or  str { min = 1, max = 80, pattern = \"^[a-z]+$\", \"Title\" }",
      "A string.",
      "fun(spec?: string|toolgate.TextOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"int", PARAMS, "int { min = 1, max = 100, \"How many\" }",
      "A whole number.",
      "fun(spec?: string|toolgate.NumberOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"num", PARAMS, "num { over = 0, \"Price\" }",
      "A number; over and under exclude the bound, min and max include it, step is what it is a multiple of.",
      "fun(spec?: string|toolgate.NumberOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"bool", PARAMS, "bool \"Whether to send\"",
      "true or false.",
      "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"list", PARAMS, "list(str, \"Tags\")  or  list { uuid, \"Members\", min = 1, unique = true }",
      "A list of one type.",
      "fun(type: toolgate.AnyType, description?: string|toolgate.ListOptions): toolgate.Type\n"
      "fun(spec: toolgate.ListOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"object", PARAMS, "object({ street = str, city = str }, \"Where to\")",
      "An object with these fields, closed.",
      "fun(fields: table<string, toolgate.AnyType>, description?: string|toolgate.TypeOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"enum", PARAMS, "enum({ \"open\", \"done\" }, \"State\")",
      "One of these values.",
      "fun(values: any[], description?: string|toolgate.TypeOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"uuid", PARAMS, "uuid \"Project\"",
      "Text in the form of a UUID.",
      "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"datetime", PARAMS, "datetime \"When it is due\"",
      "A string: an ISO 8601 date and time with its zone.",
      "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"email", PARAMS, "email \"Whom to ask\"",
      "A string: an email address.",
      "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"uri", PARAMS, "uri \"Where it is\"",
      "A string: a URI.",
      "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"optional", PARAMS, "optional(str \"Note\")  or  optional(int, 1)",
      "Optional; the second argument is the default that the schema names.",
      "fun(type: toolgate.AnyType, default?: any): toolgate.Type"}, FROM_LUA, NULL},

    {{"repair", DECIDING, "repair { path = \"end\", code = \"before_start\", message = \"…\", suggest = … }  or  repair { {…}, {…} }",
      "The model must correct the arguments: one problem, or several.",
      "fun(problem: toolgate.Problem|toolgate.Problem[]|string): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"refuse", DECIDING, "refuse(code, message, hint)",
      "The call is refused.",
      "fun(code: string, message: string, hint?: string): toolgate.Outcome\n"
      "fun(message: string): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"ask", DECIDING, "ask(question, { choice, … })",
      "The user must decide.",
      "fun(question: string, choices?: any[]): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"retry", DECIDING, "retry(message, hint)",
      "From run or result: the model should try again with other arguments; spends its repair budget.",
      "fun(message: string, hint?: string): toolgate.Outcome"}, FROM_LUA, NULL},

    {{"tool_return", RUNNING, "tool_return { value = …, content = { … }, metadata = { … } }",
      "From run: a value with MCP content blocks, or with metadata for the agent's program alone.",
      "fun(fields: toolgate.ToolReturn): toolgate.Outcome"}, FROM_LUA, NULL},

    {{"ok", JUDGING, "ok { coverage = \"SATISFIED\", facts = { … }, follow_up = { tool = …, args = { … } } }",
      "The result is good.",
      "fun(fields?: toolgate.Ok|toolgate.Coverage): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"partial", JUDGING, "partial(code, detail, next_args, hint)",
      "The result is incomplete; next_args fetch the rest.",
      "fun(code: string, detail: string, next_args?: table, hint?: string): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"garbage", JUDGING, "garbage(code, detail, hint)",
      "The result is well-formed but useless.",
      "fun(code: string, detail: string, hint?: string): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"broken", JUDGING, "broken(code, detail)",
      "The tool is broken: another call does not help.",
      "fun(code: string, detail: string): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"transient", JUDGING, "transient(detail, after_seconds)",
      "The failure is temporary.",
      "fun(detail: string, after_seconds?: number): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"need_user", JUDGING, "need_user(question, { choice, … })",
      "The user must decide before the agent continues.",
      "fun(question: string, choices?: any[]): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"failed", JUDGING, "failed(code, detail, hint)",
      "The tool reported an error.",
      "fun(code: string, detail: string, hint?: string): toolgate.Outcome\n"
      "fun(detail: string): toolgate.Outcome"}, FROM_LUA, NULL},
    {{"newest", JUDGING, "newest(list, field)  or  newest(list, field, call.goal)",
      "The item whose field is the latest time or the greatest number, and its position; with a goal, only of the "
      "items that share most of its words.",
      "fun(list: any[], field: string, goal?: string): any, integer?"}, FROM_LUA, NULL},

    {{"wants_all", HELPING, "wants_all(call.goal)",
      "Whether the user asks for everything (all, every, everyone, entire, …), and not for all-day or not all.",
      "fun(goal?: string): boolean"}, FROM_LUA, NULL},
    {{"time", HELPING, "time(\"2026-05-01T00:00:00Z\")",
      "Seconds since 1970 of an ISO 8601 time or date; nil for any other string.",
      "fun(text: any): number?"}, FROM_C, word_time},
    {{"date", HELPING, "date(\"2026-05-01T10:00:00Z\")  or  date(seconds)  or, in params, date \"The day\"",
      "The day of a time as \"2026-05-01\", in UTC; nil for any other string. In params: a string, an ISO 8601 date.",
      "fun(time: string|number): string?\n"
      "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"}, FROM_LUA, NULL},
    {{"duration", HELPING, "duration(\"PT1H30M\")  or  duration(\"90m\")",
      "Seconds of an ISO 8601 or short duration (weeks, days, hours, minutes, seconds); nil for any other string.",
      "fun(text: any): number?"}, FROM_C, word_duration},
    {{"url", HELPING, "url(\"https://example.com:8080/a?b=c#d\")",
      "A table with scheme, host, port, path, query, fragment, user; nil for any other string.",
      "fun(text: any): toolgate.Url?"}, FROM_C, word_url},
    {{"host_in", HELPING, "host_in(url_or_host, { \"example.com\", \"*.example.org\" })",
      "Whether the host is one of these; *. stands for any subdomain, not for the domain itself.",
      "fun(url_or_host: string, hosts: string[]): boolean"}, FROM_C, word_host_in},
    {{"glob", HELPING, "glob(\"reports/*.pdf\", path)",
      "Whether the string matches the pattern: * is any run of characters, ? is one.",
      "fun(pattern: string, text: string): boolean"}, FROM_C, word_glob},
    {{"set", HELPING, "set { \"a\", \"b\" }",
      "A set: set[x] is true for its members.",
      "fun(...: any): table<any, boolean?>"}, FROM_LUA, NULL},

    {{"assert", LUAS, "assert(value, message)",
      "Raises the message if value is false or nil.",
      "fun(value: any, message?: any, ...: any): any"}, FROM_STOCK, NULL},
    {{"error", LUAS, "error(message)",
      "Ends the hook with an error; the call fails as policy_error.",
      "fun(message: any, level?: integer)"}, FROM_STOCK, NULL},
    {{"ipairs", LUAS, "ipairs(list)",
      "Iterates positions 1, 2, 3, …",
      "fun(list: any[]): (fun(list: any[], at: integer): integer, any), any[], integer"}, FROM_STOCK, NULL},
    {{"next", LUAS, "next(table, key)",
      "The next key and value.",
      "fun(table: table, key?: any): any, any"}, FROM_STOCK, NULL},
    {{"pairs", LUAS, "pairs(table)",
      "Iterates all keys.",
      "fun(table: table): (fun(table: table, key?: any): any, any), table"}, FROM_STOCK, NULL},
    {{"pcall", LUAS, "pcall(f, …)",
      "Calls f and catches its errors, but not the end of the deadline.",
      "fun(f: function, ...: any): boolean, any"}, FROM_C, sandbox_pcall},
    {{"select", LUAS, "select(n, …)",
      "The arguments from the n-th on, or their number for \"#\".",
      "fun(n: integer|\"#\", ...: any): any"}, FROM_STOCK, NULL},
    {{"tonumber", LUAS, "tonumber(text, base)",
      "The number, or nil.",
      "fun(value: any, base?: integer): number?"}, FROM_STOCK, NULL},
    {{"tostring", LUAS, "tostring(value)",
      "The value as a string.",
      "fun(value: any): string"}, FROM_C, string_library_tostring},
    {{"type", LUAS, "type(value)",
      "\"nil\", \"boolean\", \"number\", \"string\", \"table\", \"function\", \"userdata\".",
      "fun(value: any): \"nil\"|\"boolean\"|\"number\"|\"string\"|\"table\"|\"function\"|\"userdata\""}, FROM_STOCK, NULL},
    {{"unpack", LUAS, "unpack(list)",
      "The items as separate values.",
      "fun(list: any[], from?: integer, to?: integer): any"}, FROM_STOCK, NULL},
    {{"string", LUAS, "string.find, match, gmatch, gsub, format, rep, sub, lower, upper, len, byte, char, reverse",
      "Strings; pattern functions end after a bounded number of steps.",
      NULL}, FROM_LIBRARY, NULL},
    {{"table", LUAS, "table.concat, insert, remove, sort, unpack",
      "Lists.",
      NULL}, FROM_LIBRARY, NULL},
    {{"math", LUAS, "math.floor, ceil, abs, min, max, sqrt, huge, …",
      "Numbers; nothing random, so that a replay gives the same result.",
      NULL}, FROM_LIBRARY, NULL},
    {{"bit", LUAS, "bit.band, bor, bxor, bnot, lshift, rshift, …",
      "Bits of 32-bit numbers.",
      NULL}, FROM_LIBRARY, NULL},
};
/* clang-format on */

#define READ_ANNOTATIONS "read_annotations"
#define WORD_COUNT       (sizeof(words) / sizeof(words[0]))

static const char *const lua_files[] = {"policy/conditions.lua",  "policy/declare.lua",  "policy/params.lua",
                                        "policy/annotations.lua", "policy/outcomes.lua", "policy/goal.lua",
                                        "policy/helpers.lua"};

const struct vocabulary_word *vocabulary_words(size_t *count)
{
    static struct vocabulary_word rows[WORD_COUNT];
    for (size_t i = 0; i < WORD_COUNT; i++)
        rows[i] = words[i].row;
    *count = WORD_COUNT;
    return rows;
}

/* Each Lua file is called with the builtins and the words so far, and returns its own; they are added to the
 * table at `found`. */
static void run_lua_file(lua_State *L, const char *name, int found)
{
    struct str text = embedded_text(name);
    if (luaL_loadbufferx(L, text.at, text.len, SANDBOX_BUILTINS_CHUNK, "t") != 0)
        lua_error(L);
    lua_newtable(L);
    luaL_setfuncs(L, builtins, 0);
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

/* Pushes the word; the table above and the Lua files must agree. */
static void push_word(lua_State *L, const struct word *word, int found)
{
    switch (word->origin) {
    case FROM_C:
        lua_pushcfunction(L, word->function);
        break;
    case FROM_STOCK:
        lua_getglobal(L, word->row.name);
        break;
    case FROM_VALUE:
        lua_pushlightuserdata(L, NULL);
        break;
    default:
        lua_getfield(L, found, word->row.name);
    }
    if (lua_isnil(L, -1))
        luaL_error(L, "the word '%s' is registered but not defined", word->row.name);
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
    for (size_t i = 0; i < sizeof(lua_files) / sizeof(lua_files[0]); i++)
        run_lua_file(L, lua_files[i], found);
    lua_createtable(L, 0, (int)WORD_COUNT);
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (words[i].origin == FROM_METHOD)
            continue;
        push_word(L, &words[i], found);
        lua_setfield(L, -2, words[i].row.name);
    }
    libraries_guard_missing(L, NULL);
    lua_getfield(L, found, READ_ANNOTATIONS); /* no word: for declare_annotations.c */
    lua_setfield(L, LUA_REGISTRYINDEX, READ_ANNOTATIONS);
    /* The Lua files keep the stock functions in their environment; policies find an empty one. */
    lua_newtable(L);
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_remove(L, found);
}
