/*
 * The backtracking matcher of Lua 5.1 as in LuaJIT, with a step counter. A hook
 * cannot interrupt a C function, and in the stock matcher ('.-'):rep(4) .. 'b'
 * on 4,000 bytes never ends. tests/unit/sandbox/lua_pattern.c compares both on
 * random pairs.
 */
#include "sandbox/lua_pattern.h"
#include "sandbox/sandbox.h"

#include <string.h>

#define ESCAPE             '%'
#define STEPS_PER_CHECK    1024u /* between two checks of the deadline */
#define SET_BYTES_PER_STEP 8u    /* of [...]: a short one costs no more than any other character */

void lua_pattern_init(struct lua_pattern *m, lua_State *L, const char *subject, size_t len,
                      const char *pattern, size_t pattern_len)
{
    m->L = L;
    m->subject = subject;
    m->end = subject + len;
    m->pattern = pattern;
    m->pattern_end = pattern + strnlen(pattern, pattern_len); /* a NUL ends a pattern, as in Lua 5.1 */
    m->steps = SANDBOX_PATTERN_STEPS + 32 * (uint64_t)len;
    m->until_check = STEPS_PER_CHECK;
    m->depth = m->level = 0;
}

static void check_budget(struct lua_pattern *m, uint64_t taken)
{
    if (m->steps <= taken)
        luaL_error(
            m->L, "the pattern takes too many steps on this text: make it simpler, with fewer of *, + and -");
    sandbox_check_deadline(m->L);
    m->steps -= taken;
    m->until_check = STEPS_PER_CHECK;
}

static void step(struct lua_pattern *m)
{
    if (--m->until_check == 0)
        check_budget(m, STEPS_PER_CHECK);
}

/* A step for each byte that is examined at once: of a set, or of a capture that is compared. */
static void take_steps(struct lua_pattern *m, size_t count)
{
    if (count < m->until_check)
        m->until_check -= (uint32_t)count;
    else
        check_budget(m, STEPS_PER_CHECK - m->until_check + (uint64_t)count);
}

static bool is_between(int c, int low, int high)
{
    return c >= low && c <= high;
}

static bool is_alpha(int c)
{
    return is_between(c | 32, 'a', 'z');
}

static bool in_class(int c, int class)
{
    bool in;
    switch (class | 32) {
    case 'a':
        in = is_alpha(c);
        break;
    case 'c':
        in = c < 32 || c == 127;
        break;
    case 'd':
        in = is_between(c, '0', '9');
        break;
    case 'g':
        in = is_between(c, 33, 126);
        break;
    case 'l':
        in = is_between(c, 'a', 'z');
        break;
    case 'p':
        in = is_between(c, 33, 126) && !is_alpha(c) && !is_between(c, '0', '9');
        break;
    case 's':
        in = c == ' ' || is_between(c, 9, 13);
        break;
    case 'u':
        in = is_between(c, 'A', 'Z');
        break;
    case 'w':
        in = is_alpha(c) || is_between(c, '0', '9');
        break;
    case 'x':
        in = is_between(c, '0', '9') || is_between(c | 32, 'a', 'f');
        break;
    case 'z':
        in = c == 0;
        break;
    default:
        return class == c;
    }
    return is_between(class, 'A', 'Z') ? !in : in;
}

/* One past the single-character class that begins at p. */
static const char *class_end(struct lua_pattern *m, const char *p)
{
    if (*p++ == ESCAPE) {
        if (p >= m->pattern_end)
            luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    if (p[-1] != '[')
        return p;
    const char *open = p;
    if (*p == '^')
        p++;
    do { /* a ']' directly after the bracket is a member */
        if (p >= m->pattern_end)
            luaL_error(m->L, "malformed pattern (missing ']')");
        if (*p++ == ESCAPE && p < m->pattern_end)
            p++;
    } while (p >= m->pattern_end || *p != ']');
    take_steps(m, (size_t)(p - open) / SET_BYTES_PER_STEP);
    return p + 1;
}

/* `end` is the bracket that closes the set. */
static bool in_set(struct lua_pattern *m, int c, const char *p, const char *end)
{
    bool found = true;
    take_steps(m, (size_t)(end - p) / SET_BYTES_PER_STEP);
    if (p[1] == '^') {
        found = false;
        p++;
    }
    while (++p < end) {
        if (*p == ESCAPE) {
            p++;
            if (in_class(c, (unsigned char)*p))
                return found;
        } else if (p[1] == '-' && p + 2 < end) {
            p += 2;
            if (is_between(c, (unsigned char)p[-2], (unsigned char)*p))
                return found;
        } else if ((unsigned char)*p == c) {
            return found;
        }
    }
    return !found;
}

static bool matches_one(struct lua_pattern *m, const char *s, const char *p, const char *end)
{
    step(m);
    if (s >= m->end)
        return false;
    int c = (unsigned char)*s;
    switch (*p) {
    case '.':
        return true;
    case ESCAPE:
        return in_class(c, (unsigned char)p[1]);
    case '[':
        return in_set(m, c, p, end - 1);
    default:
        return (unsigned char)*p == c;
    }
}

static const char *match_balance(struct lua_pattern *m, const char *s, const char *p)
{
    if (p + 1 >= m->pattern_end)
        luaL_error(m->L, "unbalanced pattern (%%b takes two characters)");
    if (s >= m->end || *s != *p)
        return NULL;
    char opens = *p, closes = p[1];
    for (int depth = 1; ++s < m->end;) {
        step(m);
        if (*s == closes) {
            if (--depth == 0)
                return s + 1;
        } else if (*s == opens) {
            depth++;
        }
    }
    return NULL;
}

static const char *expand_most(struct lua_pattern *m, const char *s, const char *p, const char *end)
{
    ptrdiff_t n = 0;
    while (matches_one(m, s + n, p, end))
        n++;
    for (; n >= 0; n--) {
        step(m);
        const char *found = lua_pattern_match(m, s + n, end + 1);
        if (found)
            return found;
    }
    return NULL;
}

static const char *expand_least(struct lua_pattern *m, const char *s, const char *p, const char *end)
{
    for (;;) {
        const char *found = lua_pattern_match(m, s, end + 1);
        if (found)
            return found;
        if (!matches_one(m, s, p, end))
            return NULL;
        s++;
    }
}

static const char *start_capture(struct lua_pattern *m, const char *s, const char *p, ptrdiff_t what)
{
    if (m->level >= LUA_PATTERN_MAX_CAPTURES)
        luaL_error(m->L, "too many captures");
    m->capture[m->level].at = s;
    m->capture[m->level++].len = what;
    const char *found = lua_pattern_match(m, s, p);
    if (!found)
        m->level--;
    return found;
}

static const char *end_capture(struct lua_pattern *m, const char *s, const char *p)
{
    int at = m->level - 1;
    while (at >= 0 && m->capture[at].len != LUA_PATTERN_CAPTURE_UNFINISHED)
        at--;
    if (at < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->capture[at].len = s - m->capture[at].at;
    const char *found = lua_pattern_match(m, s, p);
    if (!found)
        m->capture[at].len = LUA_PATTERN_CAPTURE_UNFINISHED;
    return found;
}

static const char *match_capture(struct lua_pattern *m, const char *s, int digit)
{
    int at = digit - '1';
    if (at < 0 || at >= m->level || m->capture[at].len == LUA_PATTERN_CAPTURE_UNFINISHED)
        luaL_error(m->L, "invalid capture index");
    ptrdiff_t len = m->capture[at].len;
    if (len < 0) /* a position capture never matches, as in the stock matcher */
        return NULL;
    if (m->end - s < len)
        return NULL;
    take_steps(m, (size_t)len);
    return memcmp(m->capture[at].at, s, (size_t)len) == 0 ? s + len : NULL;
}

/* Matches the rest of the pattern; loops instead of recursing in tail position. */
static const char *match_here(struct lua_pattern *m, const char *s, const char *p)
{
    for (;;) {
        step(m);
        if (p >= m->pattern_end)
            return s;
        if (*p == '(')
            return p[1] == ')' ? start_capture(m, s, p + 2, LUA_PATTERN_CAPTURE_POSITION)
                               : start_capture(m, s, p + 1, LUA_PATTERN_CAPTURE_UNFINISHED);
        if (*p == ')')
            return end_capture(m, s, p + 1);
        if (*p == '$' && p + 1 == m->pattern_end)
            return s == m->end ? s : NULL;
        if (*p == ESCAPE && p[1] == 'b') {
            if (!(s = match_balance(m, s, p + 2)))
                return NULL;
            p += 4;
            continue;
        }
        if (*p == ESCAPE && p[1] == 'f') {
            p += 2;
            if (*p != '[')
                luaL_error(m->L, "missing '[' after '%%f' in pattern");
            const char *end = class_end(m, p);
            int before = s == m->subject ? 0 : (unsigned char)s[-1],
                here = s < m->end ? (unsigned char)*s : 0;
            if (in_set(m, before, p, end - 1) || !in_set(m, here, p, end - 1))
                return NULL;
            p = end;
            continue;
        }
        if (*p == ESCAPE && is_between(p[1], '0', '9')) {
            if (!(s = match_capture(m, s, p[1])))
                return NULL;
            p += 2;
            continue;
        }
        const char *end = class_end(m, p), *found;
        switch (end < m->pattern_end ? *end : 0) {
        case '?':
            if (matches_one(m, s, p, end) && (found = lua_pattern_match(m, s + 1, end + 1)))
                return found;
            p = end + 1;
            continue;
        case '*':
            return expand_most(m, s, p, end);
        case '+':
            return matches_one(m, s, p, end) ? expand_most(m, s + 1, p, end) : NULL;
        case '-':
            return expand_least(m, s, p, end);
        default:
            if (!matches_one(m, s, p, end))
                return NULL;
            s++;
            p = end;
        }
    }
}

const char *lua_pattern_match(struct lua_pattern *m, const char *s, const char *p)
{
    if (++m->depth > LUA_PATTERN_MAX_DEPTH)
        luaL_error(m->L, "pattern too complex");
    const char *found = match_here(m, s, p);
    m->depth--;
    return found;
}
