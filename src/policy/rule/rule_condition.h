/*
 * A condition of a rule on one argument. All kinds but predicates are decided
 * in C. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_RULE_RULE_CONDITION_H
#define TOOLGATE_POLICY_RULE_RULE_CONDITION_H

#include "json/value.h"

#include <lua.h>

struct arena;
struct buf;

enum condition_kind {
    COND_VALUES,   /* any of `values` */
    COND_NONE_OF,  /* given, and none of `values` */
    COND_NUMBERS,  /* a number between `low` and `high` */
    COND_TIMES,    /* a string that is a time between them */
    COND_GIVEN,    /* given, and not null */
    COND_ABSENT,   /* left out, or null */
    COND_PREDICATE /* given, and the Lua function returns true */
};

/* One end of a range; `value` NULL: it has none. */
struct bound {
    const struct json *value; /* a number, or a time as a string */
    double seconds;           /* COND_TIMES: the same as seconds since 1970 */
    bool open;                /* the bound itself is outside */
};

struct rule_condition {
    struct str path;
    enum condition_kind kind;
    const struct json *values;
    size_t count;
    struct bound low, high;
    struct str words;  /* COND_PREDICATE: its description */
    size_t test;       /* COND_PREDICATE: its index in rules.tests */
    const void *which; /* COND_PREDICATE: identifies the function */
    bool takes_call;   /* COND_PREDICATE: it has a third parameter */
};

/* What predicates need. Without it no predicate runs, and none holds. */
struct condition_tests {
    lua_State *L;
    const int *refs;
    const struct json *args;
    const struct rule *rule; /* whose predicate runs, for its errors */
};

/* null is what some models send for "nothing". */
static inline bool condition_is_given(const struct json *value)
{
    return value && value->type != JSON_NULL;
}

/* Most conditions are values, and in every call. */
static inline bool condition_has_value(const struct rule_condition *c, const struct json *value)
{
    for (size_t i = 0; value && i < c->count; i++)
        if (json_equal(value, &c->values[i]))
            return true;
    return false;
}

/* It holds for this value (NULL: left out). Raises Lua errors of predicates. */
bool condition_holds(const struct rule_condition *c, const struct json *value, struct condition_tests *tests);

/* The same without predicates, which never match. */
bool condition_matches(const struct rule_condition *c, const struct json *value);

/* limit is above 100 */
void condition_describe(struct buf *out, const struct rule_condition *c);

#endif
