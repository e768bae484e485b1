/* Arguments and results are those of Lua 5.1. Patterns are matched as in LuaJIT, by backtracking, but with a
 * budget of steps: a hook cannot interrupt a C function, and in the stock matcher ('.-'):rep(4) .. 'b' on
 * 4,000 bytes never ends. tests/unit/sandbox/lua_pattern.c compares both on random pairs. Plain finds are
 * linear, and gsub within gsub stops before the C stack is full. rep checks its count, which LuaJIT misreads
 * above 2^31. format and tostring show a table or function by its type, as an address would differ on every
 * worker and in every replay. */
#include "sandbox/libraries.h"
#include "sandbox/freeze.h"
#include "sandbox/sandbox.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC         "^$*+?.([%-"
#define PATTERN_STEPS 1000000u /* for one find, match, gmatch or gsub, plus 32 a byte of the subject */
#define OPTION_DIGITS 2        /* of a width or precision: LuaJIT's own limit */

/* ---- the matcher ---- */

#define CAPTURES_MAX 32
#define DEPTH_MAX    200 /* as LuaJIT's own */

struct match {
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
    } capture[CAPTURES_MAX];
};

#define CAPTURE_UNFINISHED (-1)
#define CAPTURE_POSITION   (-2)

#define ESCAPE             '%'
#define STEPS_PER_CHECK    1024u /* between two checks of the deadline */
#define SET_BYTES_PER_STEP 8u    /* of [...]: a short one costs no more than any other character */

/* Never NULL: the analyzer does not know that of Lua's. */
static const char *text_argument(lua_State *L, int at, size_t *len)
{
    const char *text = luaL_checklstring(L, at, len);
    if (!text)
        abort();
    return text;
}

/* The caller handles a leading ^: the pattern passed to match begins after it. */
static void match_init(struct match *m, lua_State *L, const char *subject, size_t len, const char *pattern,
                       size_t pattern_len)
{
    m->L = L;
    m->subject = subject;
    m->end = subject + len;
    m->pattern = pattern;
    m->pattern_end = pattern + strnlen(pattern, pattern_len); /* a NUL ends a pattern, as in Lua 5.1 */
    m->steps = PATTERN_STEPS + 32 * (uint64_t)len;
    m->until_check = STEPS_PER_CHECK;
    m->depth = m->level = 0;
}

static void check_budget(struct match *m, uint64_t taken)
{
    if (m->steps <= taken)
        luaL_error(
            m->L, "the pattern takes too many steps on this text: make it simpler, with fewer of *, + and -");
    sandbox_check_deadline(m->L);
    m->steps -= taken;
    m->until_check = STEPS_PER_CHECK;
}

static void step(struct match *m)
{
    if (--m->until_check == 0)
        check_budget(m, STEPS_PER_CHECK);
}

/* A step for each byte that is examined at once: of a set, or of a capture that is compared. */
static void take_steps(struct match *m, size_t count)
{
    if (count < m->until_check)
        m->until_check -= (uint32_t)count;
    else
        check_budget(m, STEPS_PER_CHECK - m->until_check + (uint64_t)count);
}

/* The end of a match of p that begins at s, or NULL. Raises an error if the pattern is malformed or the
 * budget is used up. */
static const char *match(struct match *m, const char *s, const char *p);

static int is_nul(int c)
{
    return c == 0;
}

static bool in_class(int c, int class)
{
    static int (*const tests[])(int) = {
        ['a'] = isalpha, ['c'] = iscntrl, ['d'] = isdigit, ['g'] = isgraph,  ['l'] = islower, ['p'] = ispunct,
        ['s'] = isspace, ['u'] = isupper, ['w'] = isalnum, ['x'] = isxdigit, ['z'] = is_nul};
    size_t lower = (size_t) class | 32;
    if (lower >= sizeof(tests) / sizeof(tests[0]) || !tests[lower])
        return class == c;
    return (tests[lower](c) != 0) != (isupper(class) != 0);
}

/* One past the single-character class that begins at p. */
static const char *class_end(struct match *m, const char *p)
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
static bool in_set(struct match *m, int c, const char *p, const char *end)
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
            if (c >= (unsigned char)p[-2] && c <= (unsigned char)*p)
                return found;
        } else if ((unsigned char)*p == c) {
            return found;
        }
    }
    return !found;
}

static bool matches_one(struct match *m, const char *s, const char *p, const char *end)
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

static const char *match_balance(struct match *m, const char *s, const char *p)
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

static const char *expand_most(struct match *m, const char *s, const char *p, const char *end)
{
    ptrdiff_t n = 0;
    while (matches_one(m, s + n, p, end))
        n++;
    for (; n >= 0; n--) {
        step(m);
        const char *found = match(m, s + n, end + 1);
        if (found)
            return found;
    }
    return NULL;
}

static const char *expand_least(struct match *m, const char *s, const char *p, const char *end)
{
    for (;;) {
        const char *found = match(m, s, end + 1);
        if (found)
            return found;
        if (!matches_one(m, s, p, end))
            return NULL;
        s++;
    }
}

static const char *start_capture(struct match *m, const char *s, const char *p, ptrdiff_t what)
{
    if (m->level >= CAPTURES_MAX)
        luaL_error(m->L, "too many captures");
    m->capture[m->level].at = s;
    m->capture[m->level++].len = what;
    const char *found = match(m, s, p);
    if (!found)
        m->level--;
    return found;
}

static const char *end_capture(struct match *m, const char *s, const char *p)
{
    int at = m->level - 1;
    while (at >= 0 && m->capture[at].len != CAPTURE_UNFINISHED)
        at--;
    if (at < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->capture[at].len = s - m->capture[at].at;
    const char *found = match(m, s, p);
    if (!found)
        m->capture[at].len = CAPTURE_UNFINISHED;
    return found;
}

static const char *match_capture(struct match *m, const char *s, int digit)
{
    int at = digit - '1';
    if (at < 0 || at >= m->level || m->capture[at].len == CAPTURE_UNFINISHED)
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
static const char *match_here(struct match *m, const char *s, const char *p)
{
    for (;;) {
        step(m);
        if (p >= m->pattern_end)
            return s;
        if (*p == '(')
            return p[1] == ')' ? start_capture(m, s, p + 2, CAPTURE_POSITION)
                               : start_capture(m, s, p + 1, CAPTURE_UNFINISHED);
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
        if (*p == ESCAPE && ascii_is_digit(p[1])) {
            if (!(s = match_capture(m, s, p[1])))
                return NULL;
            p += 2;
            continue;
        }
        const char *end = class_end(m, p), *found;
        switch (end < m->pattern_end ? *end : 0) {
        case '?':
            if (matches_one(m, s, p, end) && (found = match(m, s + 1, end + 1)))
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

static const char *match(struct match *m, const char *s, const char *p)
{
    if (++m->depth > DEPTH_MAX)
        luaL_error(m->L, "pattern too complex");
    const char *found = match_here(m, s, p);
    m->depth--;
    return found;
}

/* ---- the functions ---- */

static void push_capture(struct match *m, int at, const char *s, const char *e)
{
    if (at >= m->level) {
        if (at != 0)
            luaL_error(m->L, "invalid capture index");
        lua_pushlstring(m->L, s, (size_t)(e - s)); /* no captures: the whole match */
        return;
    }
    ptrdiff_t len = m->capture[at].len;
    if (len == CAPTURE_UNFINISHED)
        luaL_error(m->L, "unfinished capture");
    if (len == CAPTURE_POSITION)
        lua_pushinteger(m->L, m->capture[at].at - m->subject + 1);
    else
        lua_pushlstring(m->L, m->capture[at].at, (size_t)len);
}

static int push_captures(struct match *m, const char *s, const char *e)
{
    int count = m->level == 0 && s ? 1 : m->level;
    luaL_checkstack(m->L, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(m, i, s, e);
    return count;
}

static int find_or_match(lua_State *L, bool find)
{
    size_t len, plen;
    const char *s = text_argument(L, 1, &len), *p = text_argument(L, 2, &plen);
    lua_Integer init = luaL_optinteger(L, 3, 1); /* 1-based; negative: from the end */
    init = init < 0 ? init + (lua_Integer)len : init - 1;
    init = init < 0 ? 0 : init > (lua_Integer)len ? (lua_Integer)len : init;
    bool magic = false;
    for (size_t i = 0; find && !magic && i < plen; i++)
        magic = p[i] && strchr(MAGIC, p[i]);
    if (find && (lua_toboolean(L, 4) || !magic)) {
        const char *found = memmem(s + init, len - (size_t)init, p, plen);
        if (!found) {
            lua_pushnil(L);
            return 1;
        }
        lua_pushinteger(L, found - s + 1);
        lua_pushinteger(L, found - s + (lua_Integer)plen);
        return 2;
    }
    struct match m;
    match_init(&m, L, s, len, p, plen);
    bool anchored = plen > 0 && *p == '^';
    for (const char *at = s + init; at <= m.end; at++) {
        m.level = m.depth = 0;
        const char *end = match(&m, at, p + anchored);
        if (end && !find)
            return push_captures(&m, at, end);
        if (end) {
            lua_pushinteger(L, at - s + 1);
            lua_pushinteger(L, end - s);
            return push_captures(&m, NULL, NULL) + 2;
        }
        if (anchored)
            break;
    }
    lua_pushnil(L);
    return 1;
}

static int string_find(lua_State *L)
{
    return find_or_match(L, true);
}

static int string_match(lua_State *L)
{
    return find_or_match(L, false);
}

/* The iterator. Upvalues: subject, pattern, offset of the next search. */
int string_library_gmatch_step(lua_State *L)
{
    size_t len, plen;
    const char *s = lua_tolstring(L, lua_upvalueindex(1), &len),
               *p = lua_tolstring(L, lua_upvalueindex(2), &plen);
    struct match m;
    match_init(&m, L, s, len, p, plen);
    for (const char *at = s + lua_tointeger(L, lua_upvalueindex(3)); at <= m.end; at++) {
        m.level = m.depth = 0;
        const char *end = match(&m, at, p);
        if (!end)
            continue;
        lua_pushinteger(L, end - s + (end == at)); /* after an empty match, one further */
        lua_replace(L, lua_upvalueindex(3));
        return push_captures(&m, at, end);
    }
    return 0;
}

static int string_gmatch(lua_State *L)
{
    luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, string_library_gmatch_step, 3);
    return 1;
}

/* A replacement string: expands %0 to %9 and %%. */
static void add_text(struct match *m, luaL_Buffer *b, const char *s, const char *e)
{
    size_t len;
    const char *news = lua_tolstring(m->L, 3, &len);
    for (size_t i = 0; i < len; i++) {
        if (news[i] != '%' || ++i == len) {
            if (i < len)
                luaL_addchar(b, news[i]);
            else
                luaL_addchar(b, '\0');
        } else if (news[i] < '0' || news[i] > '9') {
            luaL_addchar(b, news[i]);
        } else {
            sandbox_check_deadline(m->L); /* an empty one adds nothing, so that memory does not end it */
            if (news[i] == '0')
                lua_pushlstring(m->L, s, (size_t)(e - s));
            else
                push_capture(m, news[i] - '1', s, e);
            luaL_addvalue(b);
        }
    }
}

static void add_replacement(struct match *m, luaL_Buffer *b, const char *s, const char *e)
{
    lua_State *L = m->L;
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION:
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(m, s, e), 1);
        break;
    case LUA_TTABLE:
        push_capture(m, 0, s, e);
        lua_gettable(L, 3);
        break;
    default:
        add_text(m, b, s, e);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        lua_pushlstring(L, s, (size_t)(e - s));
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    luaL_addvalue(b);
}

static int string_gsub(lua_State *L)
{
    size_t len, plen;
    const char *s = text_argument(L, 1, &len), *p = text_argument(L, 2, &plen);
    proxy_unwrap(L, 3);
    int type = lua_type(L, 3);
    if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TFUNCTION && type != LUA_TTABLE)
        return luaL_argerror(L, 3, "string/function/table expected");
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)len + 1), count = 0;
    bool anchored = plen > 0 && *p == '^';
    struct match m;
    luaL_Buffer b;
    sandbox_check_stack(L, "gsub");
    match_init(&m, L, s, len, p, plen);
    luaL_buffinit(L, &b);
    while (count < most) {
        m.level = m.depth = 0;
        const char *end = match(&m, s, p + anchored);
        if (end) {
            count++;
            add_replacement(&m, &b, s, end);
        }
        if (end && end > s)
            s = end;
        else if (s < m.end)
            luaL_addchar(&b, *s++);
        else
            break;
        if (anchored)
            break;
    }
    luaL_addlstring(&b, s, (size_t)(m.end - s));
    luaL_pushresult(&b);
    lua_pushinteger(L, count);
    return 2;
}

/* Upvalue 1 is the stock function; its arguments are checked already. */
static int call_stock(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int string_rep(lua_State *L)
{
    size_t len, between = 0, most = sandbox_memory_bytes(L);
    text_argument(L, 1, &len);
    double count = luaL_checknumber(L, 2);
    if (!lua_isnoneornil(L, 3))
        luaL_checklstring(L, 3, &between);
    luaL_argcheck(L, count == count, 2, "a count expected, got nan");
    if (count <= 0 || len + between == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (count * (double)(len + between) > (double)most) {
        lua_pushfstring(L, "%f", count * (double)(len + between));
        return luaL_error(L,
                          "string.rep: out of memory: %s bytes asked for, and all policies together may use "
                          "%d KB (config limits.policy_kb)",
                          lua_tostring(L, -1), (int)(most / 1024));
    }
    return call_stock(L);
}

/* Pushes the type name of a value that has no string form. */
static void push_type(lua_State *L, int at)
{
    if (lua_type(L, at) == LUA_TLIGHTUSERDATA)
        lua_pushliteral(L, "null");
    else
        lua_pushstring(L, proxy_is(L, at) ? "table" : luaL_typename(L, at));
}

/* Checks the option at `form`, after its %, and the argument at `at`; returns the option's letter. The stock
 * function's errors would not name the function and line that the policy called. */
static const char *check_option(lua_State *L, const char *form, int at)
{
    const char *begin = form;
    form += strspn(form, "-+ #0");
    form += strspn(form, "0123456789") <= OPTION_DIGITS ? strspn(form, "0123456789") : 0;
    if (*form == '.')
        form += 1 + (strspn(form + 1, "0123456789") <= OPTION_DIGITS ? strspn(form + 1, "0123456789") : 0);
    if (*form == 'p')
        luaL_error(L, "string.format: %%p would show an address: use %%s");
    if (*form == '\0' || !strchr("cdiuoxXeEfgGaAqs", *form)) {
        lua_pushlstring(L, begin, strnlen(begin, (size_t)(form - begin) + 1));
        luaL_error(L, "string.format: no such option: '%%%s'", lua_tostring(L, -1));
    }
    if (*form == 's' || *form == 'q')
        luaL_checkany(L, at);
    else
        luaL_checknumber(L, at);
    return form;
}

static int string_format(lua_State *L)
{
    size_t len;
    const char *form = text_argument(L, 1, &len), *end = form + len;
    for (int at = 2; (form = memchr(form, '%', (size_t)(end - form))); form++) {
        if (*++form == '%')
            continue;
        form = check_option(L, form, at);
        int type = lua_type(L, at);
        if (type != LUA_TSTRING && type != LUA_TNUMBER && type != LUA_TBOOLEAN && type != LUA_TNIL) {
            push_type(L, at);
            lua_replace(L, at);
        }
        at++;
    }
    return call_stock(L);
}

const luaL_Reg string_library[] = {{"find", string_find}, {"match", string_match}, {"gmatch", string_gmatch},
                                   {"gsub", string_gsub}, {"rep", string_rep},     {"format", string_format},
                                   {NULL, NULL}};

int string_library_tostring(lua_State *L)
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
    default:
        push_type(L, 1);
    }
    return 1;
}
