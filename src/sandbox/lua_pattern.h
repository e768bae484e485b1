/*
 * Matches Lua patterns with a budget of steps: the semantics of string.find, but
 * a pattern that would run for hours raises an error. Private to src/sandbox.
 */
#ifndef TOOLGATE_SANDBOX_LUA_PATTERN_H
#define TOOLGATE_SANDBOX_LUA_PATTERN_H

#include <lua.h>
#include <stdint.h>

#define LUA_PATTERN_MAX_CAPTURES 32
#define LUA_PATTERN_MAX_DEPTH    200 /* as LuaJIT's own */

struct lua_pattern {
    lua_State *L;
    const char *subject, *end; /* the end of the subject */
    const char *pattern_end;
    const char *pattern; /* for error messages */
    uint64_t steps;      /* left after the next check of the deadline */
    uint32_t until_check;
    int depth, level;
    struct {
        const char *at;
        ptrdiff_t len; /* or one of the two constants below */
    } capture[LUA_PATTERN_MAX_CAPTURES];
};

#define LUA_PATTERN_CAPTURE_UNFINISHED (-1)
#define LUA_PATTERN_CAPTURE_POSITION   (-2)

/* The caller handles a leading ^: the pattern passed to lua_pattern_match begins after it. */
void lua_pattern_init(struct lua_pattern *m, lua_State *L, const char *subject, size_t len,
                      const char *pattern, size_t pattern_len);

/* The end of a match of p that begins at s, or NULL. Raises a Lua error if the pattern is malformed or the
 * budget is used up. */
const char *lua_pattern_match(struct lua_pattern *m, const char *s, const char *p);

#endif
