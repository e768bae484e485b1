/* Each kind of condition: when it holds, and how it is described. */
#include "policy/rule/rule_condition.h"
#include "policy/call_table.h"
#include "base/buf.h"
#include "json/write.h"
#include "sandbox/bridge.h"
#include "policy/vocabulary/vocabulary.h"

#include <lauxlib.h>

/* A side is how the value compares with a bound: -1 below, 0 equal, 1 above. */
static bool is_within(const struct rule_condition *c, int low_side, int high_side)
{
    return (!c->low.value || low_side > 0 || (low_side == 0 && !c->low.open)) &&
           (!c->high.value || high_side < 0 || (high_side == 0 && !c->high.open));
}

bool condition_matches(const struct rule_condition *c, const struct json *value)
{
    const struct bound *low = &c->low, *high = &c->high;
    double t;
    switch (c->kind) {
    case COND_VALUES:
        return condition_has_value(c, value);
    case COND_NONE_OF:
        return condition_is_given(value) && !condition_has_value(c, value);
    case COND_NUMBERS:
        return json_is(value, JSON_NUMBER) &&
               is_within(c, low->value ? json_number_cmp(value, low->value) : 0,
                         high->value ? json_number_cmp(value, high->value) : 0);
    case COND_TIMES:
        return json_is(value, JSON_STRING) && word_time_parse(json_str(value), &t) &&
               is_within(c, (t > low->seconds) - (t < low->seconds),
                         (t > high->seconds) - (t < high->seconds));
    case COND_GIVEN:
        return condition_is_given(value);
    case COND_ABSENT:
        return !condition_is_given(value);
    case COND_PREDICATE:
        return false;
    }
    return false;
}

/* The predicate receives values of its own, which it may change without effect. */
static bool call_predicate(const struct rule_condition *c, const struct json *value,
                           struct condition_tests *tests)
{
    lua_State *L = tests->L;
    luaL_checkstack(L, 4, "rules nested too deep");
    lua_rawgeti(L, LUA_REGISTRYINDEX, tests->refs[c->test]);
    bridge_push(L, value);
    bridge_push(L, tests->args);
    if (c->takes_call)
        call_table_push(L);
    lua_call(L, c->takes_call ? 3 : 2, 1);
    bool holds = lua_toboolean(L, -1);
    if (lua_istable(L, -1) || lua_isuserdata(L, -1))
        luaL_error(L, "is(\"%s\") returned a table or null: expected true or false", c->words.at);
    lua_pop(L, 1);
    return holds;
}

bool condition_holds(const struct rule_condition *c, const struct json *value, struct condition_tests *tests)
{
    if (c->kind != COND_PREDICATE)
        return condition_matches(c, value);
    return tests && condition_is_given(value) && call_predicate(c, value, tests);
}

static void describe_range(struct buf *out, const struct rule_condition *c)
{
    bool times = c->kind == COND_TIMES;
    if (c->low.value) {
        buf_text(out, c->low.open ? (times ? "after " : "above ") : (times ? "at or after " : "at least "));
        json_write(out, c->low.value);
    }
    if (c->low.value && c->high.value)
        buf_text(out, " and ");
    if (c->high.value) {
        buf_text(out, c->high.open ? (times ? "before " : "below ") : (times ? "at or before " : "at most "));
        json_write(out, c->high.value);
    }
}

void condition_describe(struct buf *out, const struct rule_condition *c)
{
    static const char *const one[] = {[COND_VALUES] = "", [COND_NONE_OF] = "given and not "};
    static const char *const many[] = {[COND_VALUES] = "one of ", [COND_NONE_OF] = "given and none of "};
    buf_str(out, c->path);
    buf_text(out, " is ");
    switch (c->kind) {
    case COND_VALUES:
    case COND_NONE_OF:
        buf_text(out, c->count > 1 ? many[c->kind] : one[c->kind]);
        for (size_t i = 0; i < c->count; i++) {
            buf_text(out, i ? ", " : "");
            json_write(out, &c->values[i]);
        }
        break;
    case COND_NUMBERS:
    case COND_TIMES:
        describe_range(out, c);
        break;
    case COND_GIVEN:
    case COND_ABSENT:
        buf_text(out, c->kind == COND_GIVEN ? "given" : "left out");
        break;
    case COND_PREDICATE:
        buf_str(out, c->words);
    }
}
