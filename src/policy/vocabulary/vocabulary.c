/*
 * What is not in this table does not exist for a policy: no io, os, ffi, jit,
 * debug, load, require, xpcall, newproxy, coroutine, getfenv, setfenv,
 * getmetatable, setmetatable, rawget, rawset. libraries.c says what of the
 * libraries there is.
 */
#include "policy/vocabulary/vocabulary.h"
#include "base/embedded.h"
#include "policy/call_table.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/libraries.h"
#include "policy/vocabulary/builtins.h"
#include "policy/reference.h"
#include "sandbox/sandbox.h"
#include "sandbox/string_library.h"

#include <lauxlib.h>

enum origin { FROM_LUA, FROM_STOCK, FROM_C, FROM_LIBRARY, FROM_VALUE, FROM_METHOD };

struct word {
    struct vocabulary_word told;
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
    {.told = {.name = "tool", .group = DECLARING,
              .signature = "tool \"name\" { … }",
              .sentence = "Declares a tool's policy; the file returns it.",
              .type = "fun(name: string): fun(fields: toolgate.Policy): toolgate.Declaration"},
     .origin = FROM_LUA},
    {.told = {.name = "gateway", .group = DECLARING,
              .signature = "gateway { instructions = …, prepare_tools = function(defs, call) … end }",
              .sentence = "Declares what holds for all tools; the file returns it.",
              .type = "fun(fields: toolgate.Gateway): toolgate.Declaration"},
     .origin = FROM_LUA},
    {.told = {.name = "json", .group = DECLARING,
              .signature = "json \"file.json\"  or  json [[{…}]]",
              .sentence = "JSON from a file beside the policy, or from the text itself; only while the policy loads.",
              .type = "fun(file_or_text: string): table"},
     .origin = FROM_C, .function = word_json},
    {.told = {.name = "params", .group = DECLARING,
              .signature = "params { name = type, … }  or  params({ … }, { open = true })",
              .sentence = "A JSON Schema without JSON: closed, everything required that is not optional.",
              .type = "fun(fields: table<string, toolgate.AnyType>, options?: toolgate.ParamsOptions): toolgate.Schema"},
     .origin = FROM_LUA},
    {.told = {.name = "seen", .group = DECLARING,
              .signature = "seen()  or  seen { look_up = \"…\", shape = \"uuid\" }",
              .sentence = "Each id here must have come from an earlier result or from the user.",
              .type = "fun(options?: toolgate.SeenOptions): toolgate.Id"},
     .origin = FROM_LUA},
    {.told = {.name = "shape", .group = DECLARING,
              .signature = "shape \"uuid\"  or  shape { prefix = \"evt_\" }",
              .sentence = "Each id here must look like this, or it cannot be one: uuid, integer, digits, hex, slug, email, url, or a prefix.",
              .type = "fun(name: toolgate.ShapeName|{ prefix: string }): toolgate.Id"},
     .origin = FROM_LUA},
    {.told = {.name = "null", .group = DECLARING,
              .signature = "null",
              .sentence = "JSON's null; it counts as true in a condition, so compare with it.",
              .type = "toolgate.Null"},
     .origin = FROM_VALUE},
    {.told = {.name = "array", .group = DECLARING,
              .signature = "array { … }",
              .sentence = "Marks a table as a JSON array, even when it is empty.",
              .type = "fun(list?: any[]): any[]"},
     .origin = FROM_LUA},

    {.told = {.name = "when", .group = RULES,
              .signature = "when { argument = value, other = { value, value }, third = above(100) }",
              .sentence = "Begins a rule that holds where each argument has the value, one of the list, or is what the condition says.",
              .type = "fun(condition: table<string, any>): toolgate.Rule"},
     .origin = FROM_LUA},
    {.told = {.name = "above", .group = RULES,
              .signature = "when { limit = above(100) }",
              .sentence = "The argument is greater than this number, or later than this time; the bound itself is not.",
              .type = "fun(bound: number|string): toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "below", .group = RULES,
              .signature = "when { limit = below(0) }",
              .sentence = "The argument is less than this number, or earlier than this time; the bound itself is not.",
              .type = "fun(bound: number|string): toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "at_least", .group = RULES,
              .signature = "when { start = at_least(\"2026-05-01\") }",
              .sentence = "The argument is this number or greater, this time or later.",
              .type = "fun(bound: number|string): toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "at_most", .group = RULES,
              .signature = "when { limit = at_most(10) }",
              .sentence = "The argument is this number or less, this time or earlier.",
              .type = "fun(bound: number|string): toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "between", .group = RULES,
              .signature = "when { limit = between(1, 10) }",
              .sentence = "The argument is in this range of numbers or times, both bounds included.",
              .type = "fun(low: number, high: number): toolgate.Condition\n"
                      "fun(low: string, high: string): toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "given", .group = RULES,
              .signature = "when { start = given }",
              .sentence = "The argument is there, and not null.",
              .type = "toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "absent", .group = RULES,
              .signature = "when { query = absent }",
              .sentence = "The argument is left out, or null.",
              .type = "toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "none_of", .group = RULES,
              .signature = "when { mode = none_of { \"draft\", \"spam\" } }",
              .sentence = "The argument is given, and is none of these values.",
              .type = "fun(...: any): toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "is", .group = RULES,
              .signature = "when { day = is(\"on a weekend\", function(value, args) … end) }",
              .sentence = "The argument is given, and the pure function says yes of it; the words say what it is then.",
              .type = "fun(words: string, test: fun(value: any, args: table): any): toolgate.Condition"},
     .origin = FROM_LUA},
    {.told = {.name = "always", .group = RULES,
              .signature = "always : defaults { page = 1 }",
              .sentence = "Begins a rule that always holds.",
              .type = "toolgate.Rule"},
     .origin = FROM_LUA},
    {.told = {.name = "needs", .group = RULES,
              .signature = "rule : needs \"start, end\"",
              .sentence = "These arguments are required.",
              .type = "fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule"},
     .origin = FROM_METHOD},
    {.told = {.name = "drops", .group = RULES,
              .signature = "rule : drops \"limit\"",
              .sentence = "These arguments mean nothing here and are taken out.",
              .type = "fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule"},
     .origin = FROM_METHOD},
    {.told = {.name = "defaults", .group = RULES,
              .signature = "rule : defaults { limit = 50 }",
              .sentence = "Values for arguments that are left out.",
              .type = "fun(self: toolgate.Rule, values: table<string, any>): toolgate.Rule"},
     .origin = FROM_METHOD},
    {.told = {.name = "refuses", .group = RULES,
              .signature = "rule : refuses(code, message, hint)  or  rule : refuses \"message\"",
              .sentence = "Such a call is refused.",
              .type = "fun(self: toolgate.Rule, code: string, message: string, hint?: string): toolgate.Rule\n"
                      "fun(self: toolgate.Rule, message: string): toolgate.Rule"},
     .origin = FROM_METHOD},
    {.told = {.name = "needs_one_of", .group = RULES,
              .signature = "needs_one_of { \"id\", \"query\" }  or  rule : needs_one_of { … }",
              .sentence = "At least one of these arguments is required.",
              .type = "fun(...: string|string[]): toolgate.Rule\n"
                      "fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule"},
     .origin = FROM_LUA},
    {.told = {.name = "exclusive", .group = RULES,
              .signature = "exclusive { \"id\", \"name\" }  or  rule : exclusive { … }",
              .sentence = "At most one of these arguments may be given.",
              .type = "fun(...: string|string[]): toolgate.Rule\n"
                      "fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule"},
     .origin = FROM_LUA},

    {.told = {.name = "str", .group = PARAMS,
              .signature = "str  or  str \"Title\"  or  str { min = 1, max = 80, pattern = \"^[a-z]+$\", \"Title\" }",
              .sentence = "Text.",
              .type = "fun(spec?: string|toolgate.TextOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "int", .group = PARAMS,
              .signature = "int { min = 1, max = 100, \"How many\" }",
              .sentence = "A whole number.",
              .type = "fun(spec?: string|toolgate.NumberOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "num", .group = PARAMS,
              .signature = "num { over = 0, \"Price\" }",
              .sentence = "A number; over and under exclude the bound, min and max include it, step is what it is a multiple of.",
              .type = "fun(spec?: string|toolgate.NumberOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "bool", .group = PARAMS,
              .signature = "bool \"Whether to send\"",
              .sentence = "true or false.",
              .type = "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "list", .group = PARAMS,
              .signature = "list(str, \"Tags\")  or  list { uuid, \"Members\", min = 1, unique = true }",
              .sentence = "A list of one type.",
              .type = "fun(type: toolgate.AnyType, description?: string|toolgate.ListOptions): toolgate.Type\n"
                      "fun(spec: toolgate.ListOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "object", .group = PARAMS,
              .signature = "object({ street = str, city = str }, \"Where to\")",
              .sentence = "An object with these fields, closed.",
              .type = "fun(fields: table<string, toolgate.AnyType>, description?: string|toolgate.TypeOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "enum", .group = PARAMS,
              .signature = "enum({ \"open\", \"done\" }, \"State\")",
              .sentence = "One of these values.",
              .type = "fun(values: any[], description?: string|toolgate.TypeOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "uuid", .group = PARAMS,
              .signature = "uuid \"Project\"",
              .sentence = "Text in the form of a UUID.",
              .type = "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "datetime", .group = PARAMS,
              .signature = "datetime \"When it is due\"",
              .sentence = "Text: an ISO 8601 date and time with its zone.",
              .type = "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "email", .group = PARAMS,
              .signature = "email \"Whom to ask\"",
              .sentence = "Text: an email address.",
              .type = "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "uri", .group = PARAMS,
              .signature = "uri \"Where it is\"",
              .sentence = "Text: a URI.",
              .type = "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "optional", .group = PARAMS,
              .signature = "optional(str \"Note\")  or  optional(int, 1)",
              .sentence = "May be left out; the second argument is the default that the schema tells.",
              .type = "fun(type: toolgate.AnyType, default?: any): toolgate.Type"},
     .origin = FROM_LUA},

    {.told = {.name = "repair", .group = DECIDING,
              .signature = "repair { path = \"end\", code = \"before_start\", message = \"…\", suggest = … }  or  repair { {…}, {…} }",
              .sentence = "The model should change the arguments: one problem, or several.",
              .type = "fun(problem: toolgate.Problem|toolgate.Problem[]|string): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "refuse", .group = DECIDING,
              .signature = "refuse(code, message, hint)",
              .sentence = "This call may not be made.",
              .type = "fun(code: string, message: string, hint?: string): toolgate.Outcome\n"
                      "fun(message: string): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "ask", .group = DECIDING,
              .signature = "ask(question, { choice, … })",
              .sentence = "The user must decide.",
              .type = "fun(question: string, choices?: any[]): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "retry", .group = DECIDING,
              .signature = "retry(message, hint)",
              .sentence = "From run: the model should try again with other arguments; spends its repair budget.",
              .type = "fun(message: string, hint?: string): toolgate.Outcome"},
     .origin = FROM_LUA},

    {.told = {.name = "tool_return", .group = RUNNING,
              .signature = "tool_return { value = …, content = { … }, metadata = { … } }",
              .sentence = "From run: a value with MCP content blocks, or with metadata for the agent's program alone.",
              .type = "fun(fields: toolgate.ToolReturn): toolgate.Outcome"},
     .origin = FROM_LUA},

    {.told = {.name = "ok", .group = JUDGING,
              .signature = "ok { coverage = \"SATISFIED\", facts = { … }, follow_up = { tool = …, args = { … } } }",
              .sentence = "The result is what was asked for.",
              .type = "fun(fields?: toolgate.Ok|toolgate.Coverage): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "partial", .group = JUDGING,
              .signature = "partial(code, detail, next_args, hint)",
              .sentence = "There is more; next_args gets it.",
              .type = "fun(code: string, detail: string, next_args?: table, hint?: string): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "garbage", .group = JUDGING,
              .signature = "garbage(code, detail, hint)",
              .sentence = "The result is well formed and means nothing.",
              .type = "fun(code: string, detail: string, hint?: string): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "broken", .group = JUDGING,
              .signature = "broken(code, detail)",
              .sentence = "The tool is broken: asking again does not help.",
              .type = "fun(code: string, detail: string): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "transient", .group = JUDGING,
              .signature = "transient(detail, after_seconds)",
              .sentence = "It will work later.",
              .type = "fun(detail: string, after_seconds?: number): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "need_user", .group = JUDGING,
              .signature = "need_user(question, { choice, … })",
              .sentence = "Only the user can go on.",
              .type = "fun(question: string, choices?: any[]): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "failed", .group = JUDGING,
              .signature = "failed(code, detail, hint)",
              .sentence = "The tool says that it could not.",
              .type = "fun(code: string, detail: string, hint?: string): toolgate.Outcome\n"
                      "fun(detail: string): toolgate.Outcome"},
     .origin = FROM_LUA},
    {.told = {.name = "newest", .group = JUDGING,
              .signature = "newest(list, field)",
              .sentence = "The item whose field is the latest time or the greatest number, and its position.",
              .type = "fun(list: any[], field: string): any, integer?"},
     .origin = FROM_LUA},

    {.told = {.name = "wants_all", .group = HELPING,
              .signature = "wants_all(call.goal)",
              .sentence = "Whether the user's words ask for everything there is (all, every, everyone, entire, …).",
              .type = "fun(goal?: string): boolean"},
     .origin = FROM_LUA},
    {.told = {.name = "time", .group = HELPING,
              .signature = "time(\"2026-05-01T00:00:00Z\")",
              .sentence = "Seconds since 1970 of an ISO 8601 time or date; nil for any other text.",
              .type = "fun(text: any): number?"},
     .origin = FROM_C, .function = word_time},
    {.told = {.name = "date", .group = HELPING,
              .signature = "date(\"2026-05-01T10:00:00Z\")  or  date(seconds)  or, in params, date \"The day\"",
              .sentence = "The day of a time as \"2026-05-01\", in UTC; nil for any other text. In params: text, an ISO 8601 date.",
              .type = "fun(time: string|number): string?\n"
                      "fun(spec?: string|toolgate.TypeOptions): toolgate.Type"},
     .origin = FROM_LUA},
    {.told = {.name = "duration", .group = HELPING,
              .signature = "duration(\"PT1H30M\")  or  duration(\"90m\")",
              .sentence = "Seconds of an ISO 8601 or short duration (weeks, days, hours, minutes, seconds); nil for any other text.",
              .type = "fun(text: any): number?"},
     .origin = FROM_C, .function = word_duration},
    {.told = {.name = "url", .group = HELPING,
              .signature = "url(\"https://example.com:8080/a?b=c#d\")",
              .sentence = "A table with scheme, host, port, path, query, fragment, user; nil for any other text.",
              .type = "fun(text: any): toolgate.Url?"},
     .origin = FROM_C, .function = word_url},
    {.told = {.name = "host_in", .group = HELPING,
              .signature = "host_in(url_or_host, { \"example.com\", \"*.example.org\" })",
              .sentence = "Whether the host is one of these; *. stands for any subdomain, not for the domain itself.",
              .type = "fun(url_or_host: string, hosts: string[]): boolean"},
     .origin = FROM_C, .function = word_host_in},
    {.told = {.name = "glob", .group = HELPING,
              .signature = "glob(\"reports/*.pdf\", path)",
              .sentence = "Whether the text fits the pattern: * is any run of characters, ? is one.",
              .type = "fun(pattern: string, text: string): boolean"},
     .origin = FROM_C, .function = word_glob},
    {.told = {.name = "set", .group = HELPING,
              .signature = "set { \"a\", \"b\" }",
              .sentence = "A table for asking: set[x] is true for its members.",
              .type = "fun(...: any): table<any, boolean?>"},
     .origin = FROM_LUA},

    {.told = {.name = "assert", .group = LUAS,
              .signature = "assert(value, message)",
              .sentence = "Raises the message where value is false or nil.",
              .type = "fun(value: any, message?: any, ...: any): any"},
     .origin = FROM_STOCK},
    {.told = {.name = "error", .group = LUAS,
              .signature = "error(message)",
              .sentence = "Ends the hook with an error; the call fails as policy_error.",
              .type = "fun(message: any, level?: integer)"},
     .origin = FROM_STOCK},
    {.told = {.name = "ipairs", .group = LUAS,
              .signature = "ipairs(list)",
              .sentence = "Iterates positions 1, 2, 3, …",
              .type = "fun(list: any[]): (fun(list: any[], at: integer): integer, any), any[], integer"},
     .origin = FROM_STOCK},
    {.told = {.name = "next", .group = LUAS,
              .signature = "next(table, key)",
              .sentence = "The next key and value.",
              .type = "fun(table: table, key?: any): any, any"},
     .origin = FROM_STOCK},
    {.told = {.name = "pairs", .group = LUAS,
              .signature = "pairs(table)",
              .sentence = "Iterates all keys.",
              .type = "fun(table: table): (fun(table: table, key?: any): any, any), table"},
     .origin = FROM_STOCK},
    {.told = {.name = "pcall", .group = LUAS,
              .signature = "pcall(f, …)",
              .sentence = "Calls f and catches its errors; a spent deadline it does not catch.",
              .type = "fun(f: function, ...: any): boolean, any"},
     .origin = FROM_STOCK},
    {.told = {.name = "select", .group = LUAS,
              .signature = "select(n, …)",
              .sentence = "The arguments from the n-th on, or their number for \"#\".",
              .type = "fun(n: integer|\"#\", ...: any): any"},
     .origin = FROM_STOCK},
    {.told = {.name = "tonumber", .group = LUAS,
              .signature = "tonumber(text, base)",
              .sentence = "The number, or nil.",
              .type = "fun(value: any, base?: integer): number?"},
     .origin = FROM_STOCK},
    {.told = {.name = "tostring", .group = LUAS,
              .signature = "tostring(value)",
              .sentence = "The text of a value.",
              .type = "fun(value: any): string"},
     .origin = FROM_C, .function = string_library_tostring},
    {.told = {.name = "type", .group = LUAS,
              .signature = "type(value)",
              .sentence = "\"nil\", \"boolean\", \"number\", \"string\", \"table\", \"function\", \"userdata\".",
              .type = "fun(value: any): \"nil\"|\"boolean\"|\"number\"|\"string\"|\"table\"|\"function\"|\"userdata\""},
     .origin = FROM_STOCK},
    {.told = {.name = "unpack", .group = LUAS,
              .signature = "unpack(list)",
              .sentence = "The items as separate values.",
              .type = "fun(list: any[], from?: integer, to?: integer): any"},
     .origin = FROM_STOCK},
    {.told = {.name = "string", .group = LUAS,
              .signature = "string.find, match, gmatch, gsub, format, rep, sub, lower, upper, len, byte, char, reverse",
              .sentence = "Text; pattern functions count their steps and end."},
     .origin = FROM_LIBRARY},
    {.told = {.name = "table", .group = LUAS,
              .signature = "table.concat, insert, remove, sort, unpack",
              .sentence = "Lists."},
     .origin = FROM_LIBRARY},
    {.told = {.name = "math", .group = LUAS,
              .signature = "math.floor, ceil, abs, min, max, sqrt, huge, …",
              .sentence = "Numbers; nothing random, so that a replay says the same."},
     .origin = FROM_LIBRARY},
    {.told = {.name = "bit", .group = LUAS,
              .signature = "bit.band, bor, bxor, bnot, lshift, rshift, …",
              .sentence = "Bits of 32-bit numbers."},
     .origin = FROM_LIBRARY},
};
/* clang-format on */

#define READ_ANNOTATIONS "read_annotations"
#define WORD_COUNT       (sizeof(words) / sizeof(words[0]))

static const char *const lua_files[] = {"policy/conditions.lua", "policy/declare.lua",
                                        "policy/params.lua",     "policy/annotations.lua",
                                        "policy/outcomes.lua",   "policy/helpers.lua"};

const struct vocabulary_word *vocabulary_words(size_t *count)
{
    static struct vocabulary_word told[WORD_COUNT];
    for (size_t i = 0; i < WORD_COUNT; i++)
        told[i] = words[i].told;
    *count = WORD_COUNT;
    return told;
}

/* ---- all of them ------------------------------------------------------------------------- */

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

void vocabulary_push_annotations(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, READ_ANNOTATIONS);
}

/* The Lua files keep what they need by their environment; everybody else finds an empty one. */
static void forget_globals(lua_State *L)
{
    lua_newtable(L);
    lua_replace(L, LUA_GLOBALSINDEX);
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
        lua_setfield(L, -2, words[i].told.name);
    }
    libraries_guard_missing(L, NULL);
    lua_getfield(L, found, READ_ANNOTATIONS); /* no word: for declare_annotations.c */
    lua_setfield(L, LUA_REGISTRYINDEX, READ_ANNOTATIONS);
    forget_globals(L);
    lua_remove(L, found);
}
