/*
 * Runs a pattern on a subject through every pattern function, ours and LuaJIT's,
 * in two states, and compares results and error messages. Only ours have a step
 * budget: the stock functions may never end. The unit test uses random pairs,
 * the fuzzer any bytes.
 */
#ifndef TOOLGATE_TESTS_PATTERN_PAIR_H
#define TOOLGATE_TESTS_PATTERN_PAIR_H

#include "sandbox/sandbox.h"
#include "sandbox/libraries.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

struct pattern_pair {
    struct str subject, pattern, replacement;
    int init, most; /* where find and match begin; how many gsub replaces */
};

/* Each driver gets s, p, r, i, n and returns one string. */
static const char *const pattern_drivers[] = {
    "return show(string.find(s, p, i))",
    "return show(string.find(s, p, i, true))",
    "return show(s:match(p, i))",
    "local t = {} for a, b, c in s:gmatch(p) do t[#t + 1] = show(a, b, c) if #t > 20 then break end end "
    "return table.concat(t, ';')",
    "return show(s:gsub(p, r))",
    "return show(s:gsub(p, r, n))",
    "return show(s:gsub(p, function(...) local a, b = ... "
    "if a == 'a' then return false end return b or select('#', ...) end, n))",
    "return show(s:gsub(p, { a = 'Z', ab = 1, b = false, [1] = 'one', [''] = '<>', c = n > 3 and {} }))",
};

#define PATTERN_DRIVERS (sizeof(pattern_drivers) / sizeof(pattern_drivers[0]))

/* Cases in which our error message has more words than LuaJIT's. */
static const char *const better_messages[][2] = {
    {"unbalanced pattern", "unbalanced pattern (%b takes two characters)"},
};

/* A list in the registry. */
static inline void load_pattern_drivers(lua_State *L)
{
    static const char show[] =
        "local function show(...) local t = {} for i = 1, select('#', ...) do local v = select(i, ...) "
        "t[i] = type(v):sub(1, 1) .. tostring(v) end return table.concat(t, ',') end ";
    lua_createtable(L, (int)PATTERN_DRIVERS, 0);
    for (size_t i = 0; i < PATTERN_DRIVERS; i++) {
        lua_pushfstring(L, "%s return function(s, p, r, i, n) %s end", show, pattern_drivers[i]);
        if (luaL_loadbuffer(L, lua_tostring(L, -1), lua_objlen(L, -1), "=driver") != 0)
            abort();
        lua_remove(L, -2);
        lua_call(L, 0, 1);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, LUA_REGISTRYINDEX, "pattern drivers");
}

/* Opens a sandbox with the stock libraries and our four functions in place, and loads the drivers. */
static inline void prepare_sandbox(lua_State *L, void *context)
{
    (void)context;
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, "_G");
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_getglobal(L, "string");
    for (int i = 0; i < 4; i++) { /* those with patterns come first */
        lua_pushcfunction(L, string_library[i].func);
        lua_setfield(L, -2, string_library[i].name);
    }
    load_pattern_drivers(L);
}

/* Pushes the driver's result or its error. */
static inline struct str pattern_result(lua_State *L, size_t driver, const struct pattern_pair *pair)
{
    struct str answer;
    lua_settop(L, 0);
    lua_getfield(L, LUA_REGISTRYINDEX, "pattern drivers");
    lua_rawgeti(L, -1, (int)driver + 1);
    lua_pushlstring(L, pair->subject.at, pair->subject.len);
    lua_pushlstring(L, pair->pattern.at, pair->pattern.len);
    lua_pushlstring(L, pair->replacement.at, pair->replacement.len);
    lua_pushinteger(L, pair->init);
    lua_pushinteger(L, pair->most);
    lua_pcall(L, 5, 1, 0);
    answer.at = lua_tolstring(L, -1, &answer.len);
    return answer;
}

static inline bool is_over_budget(struct str answer)
{
    return memmem(answer.at, answer.len, "too many steps", 14) ||
           memmem(answer.at, answer.len, "ran longer", 10);
}

/* An error begins with the driver's position, which is the same on both sides. */
static inline bool is_same_answer(struct str stock, struct str ours)
{
    if (str_eq(stock, ours))
        return true;
    for (size_t i = 0; i < sizeof(better_messages) / sizeof(better_messages[0]); i++) {
        size_t worse = strlen(better_messages[i][0]), better = strlen(better_messages[i][1]);
        if (stock.len >= worse && ours.len >= better && stock.len - worse == ours.len - better &&
            memcmp(stock.at, ours.at, stock.len - worse) == 0 &&
            memcmp(stock.at + stock.len - worse, better_messages[i][0], worse) == 0 &&
            memcmp(ours.at + ours.len - better, better_messages[i][1], better) == 0)
            return true;
    }
    return false;
}

static inline void show_text(const char *name, struct str s)
{
    fprintf(stderr, "  %s = \"", name);
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] >= 32 && s.at[i] < 127 && s.at[i] != '"' && s.at[i] != '\\')
            fputc(s.at[i], stderr);
        else
            fprintf(stderr, "\\%03u", (unsigned char)s.at[i]);
    fprintf(stderr, "\"\n");
}

/* True if both sides agree in all drivers; counts pairs that only our budget ended. */
static inline bool pattern_pair_agrees(lua_State *stock, lua_State *ours, const struct pattern_pair *pair,
                                       size_t *over_budget)
{
    for (size_t i = 0; i < PATTERN_DRIVERS; i++) {
        struct str mine = pattern_result(ours, i, pair), theirs;
        if (is_over_budget(mine)) {
            ++*over_budget;
            return true; /* the other drivers would exceed it, too */
        }
        theirs = pattern_result(stock, i, pair);
        if (is_same_answer(theirs, mine))
            continue;
        fprintf(stderr, "%s\n  i = %d, n = %d\n", pattern_drivers[i], pair->init, pair->most);
        show_text("s", pair->subject);
        show_text("p", pair->pattern);
        show_text("r", pair->replacement);
        show_text("LuaJIT", theirs);
        show_text("ours", mine);
        return false;
    }
    return true;
}

#endif
