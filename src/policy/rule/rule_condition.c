/* Each kind of condition: when it holds, and how it is said. */
#include "policy/rule/rule_condition.h"
#include "base/buf.h"
#include "json/write.h"
#include "sandbox/bridge.h"
#include "policy/vocabulary/vocabulary.h"

#include <lauxlib.h>

/* ---- when it holds --------------------------------------------------------------------- */

static bool is_none(const struct rule_condition *c, const struct json *value)
{
    return condition_is_given(value) && !condition_has_value(c, value);
}

/* `side` is how the value compares with the bound: -1 below, 0 equal, 1 above. */
static bool is_within(const struct bound *low, int low_side, const struct bound *high, int high_side)
{
    return (!low->value || low_side > 0 || (low_side == 0 && !low->open)) &&
           (!high->value || high_side < 0 || (high_side == 0 && !high->open));
}

static bool is_number_within(const struct rule_condition *c, const struct json *value)
{
    if (!json_is(value, JSON_NUMBER))
        return false;
    int low = c->low.value ? json_number_cmp(value, c->low.value) : 0;
    int high = c->high.value ? json_number_cmp(value, c->high.value) : 0;
    return is_within(&c->low, low, &c->high, high);
}

static int side_of(double t, const struct bound *bound)
{
    return (t > bound->seconds) - (t < bound->seconds);
}

static bool is_time_within(const struct rule_condition *c, const struct json *value)
{
    double t;
    return json_is(value, JSON_STRING) && word_time_parse(json_str(value), &t) &&
           is_within(&c->low, side_of(t, &c->low), &c->high, side_of(t, &c->high));
}

static bool is_given(const struct rule_condition *c, const struct json *value)
{
    (void)c;
    return condition_is_given(value);
}

static bool is_absent(const struct rule_condition *c, const struct json *value)
{
    (void)c;
    return !condition_is_given(value);
}

bool condition_matches(const struct rule_condition *c, const struct json *value)
{
    static bool (*const holds[COND_KINDS])(const struct rule_condition *c, const struct json *value) = {
        [COND_NONE_OF] = is_none, [COND_NUMBERS] = is_number_within, [COND_TIMES] = is_time_within,
        [COND_GIVEN] = is_given,  [COND_ABSENT] = is_absent,
    };
    if (c->kind == COND_VALUES)
        return condition_has_value(c, value);
    return holds[c->kind] && holds[c->kind](c, value);
}

/* Each gets values of its own, so that what it does to them nobody sees. */
static bool says_yes(const struct rule_condition *c, const struct json *value, struct condition_tests *tests)
{
    lua_State *L = tests->L;
    luaL_checkstack(L, 4, "rules nested too deep");
    lua_rawgeti(L, LUA_REGISTRYINDEX, tests->refs[c->test]);
    bridge_push(L, value);
    bridge_push(L, tests->args);
    lua_call(L, 2, 1);
    bool yes = lua_toboolean(L, -1);
    if (lua_istable(L, -1) || lua_isuserdata(L, -1))
        luaL_error(L, "is(\"%s\") returned a table or null: expected true or false", c->words.at);
    lua_pop(L, 1);
    return yes;
}

bool condition_holds(const struct rule_condition *c, const struct json *value, struct condition_tests *tests)
{
    if (c->kind != COND_PREDICATE)
        return condition_matches(c, value);
    return tests && condition_is_given(value) && says_yes(c, value, tests);
}

/* ---- in words ------------------------------------------------------------------------------ */

static void add_values(struct buf *out, const struct rule_condition *c)
{
    for (size_t i = 0; i < c->count; i++) {
        buf_text(out, i ? ", " : "");
        json_write(out, &c->values[i]);
    }
}

static void say_values(struct buf *out, const struct rule_condition *c)
{
    buf_text(out, c->count > 1 ? "one of " : "");
    add_values(out, c);
}

static void say_none_of(struct buf *out, const struct rule_condition *c)
{
    buf_text(out, c->count > 1 ? "given and none of " : "given and not ");
    add_values(out, c);
}

static void say_bound(struct buf *out, const char *words, const struct bound *bound)
{
    buf_text(out, words);
    json_write(out, bound->value);
}

static void say_range(struct buf *out, const struct rule_condition *c)
{
    bool times = c->kind == COND_TIMES;
    if (c->low.value)
        say_bound(out, c->low.open ? (times ? "after " : "above ") : (times ? "at or after " : "at least "),
                  &c->low);
    if (c->low.value && c->high.value)
        buf_text(out, " and ");
    if (c->high.value)
        say_bound(out, c->high.open ? (times ? "before " : "below ") : (times ? "at or before " : "at most "),
                  &c->high);
}

static void say_given(struct buf *out, const struct rule_condition *c)
{
    buf_text(out, c->kind == COND_GIVEN ? "given" : "left out");
}

static void say_is(struct buf *out, const struct rule_condition *c)
{
    buf_str(out, c->words);
}

void condition_describe(struct buf *out, const struct rule_condition *c)
{
    static void (*const say[COND_KINDS])(struct buf * out, const struct rule_condition *c) = {
        [COND_VALUES] = say_values, [COND_NONE_OF] = say_none_of, [COND_NUMBERS] = say_range,
        [COND_TIMES] = say_range,   [COND_GIVEN] = say_given,     [COND_ABSENT] = say_given,
        [COND_PREDICATE] = say_is,
    };
    buf_str(out, c->path);
    buf_text(out, " is ");
    say[c->kind](out, c);
}
