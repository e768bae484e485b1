/*
 * One condition of a rule on one argument: values, what is none of some
 * values, a range of numbers or times, given, left out, or a predicate in
 * Lua. All but the last are decided in C. Only files of this room include
 * this header.
 */
#ifndef TOOLGATE_POLICY_RULE_RULE_CONDITION_H
#define TOOLGATE_POLICY_RULE_RULE_CONDITION_H

#include "json/value.h"

#include <lua.h>

struct arena;
struct buf;

enum condition_kind {
    COND_VALUES,    /* any of `values` */
    COND_NONE_OF,   /* given, and none of `values` */
    COND_NUMBERS,   /* a number between `low` and `high` */
    COND_TIMES,     /* a text that is a time between them */
    COND_GIVEN,     /* there, and not null */
    COND_ABSENT,    /* left out, or null */
    COND_PREDICATE, /* given, and what the predicate says */
    COND_KINDS
};

/* One end of a range; `value` NULL: it has none. */
struct bound {
    const struct json *value; /* a number, or a time's text */
    double seconds;           /* COND_TIMES: the same as seconds since 1970 */
    bool open;                /* the bound itself is outside */
};

struct rule_condition {
    struct str path;
    enum condition_kind kind;
    const struct json *values;
    size_t count;
    struct bound low, high;
    struct str words;  /* COND_PREDICATE: what the value is then */
    size_t test;       /* COND_PREDICATE: which of the policy's predicates */
    const void *which; /* COND_PREDICATE: the same for conditions that share one function */
};

/* What predicates need: NULL where none may run, and none of them holds then. */
struct condition_tests {
    lua_State *L;
    const int *refs;
    const struct json *args;
    const struct rule *rule; /* whose predicate runs: named where it throws */
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

/* Does it hold for this value (NULL: left out). May raise Lua errors where there are tests. */
bool condition_holds(const struct rule_condition *c, const struct json *value, struct condition_tests *tests);

/* The same for conditions that are no predicates. */
bool condition_matches(const struct rule_condition *c, const struct json *value);

/* limit is above 100 */
void condition_describe(struct buf *out, const struct rule_condition *c);

#endif
