/*
 * Rules are data: a condition on the arguments, and what follows from it. C
 * evaluates them, except for predicates; each counts how often it changed or
 * refused something. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_RULE_H
#define TOOLGATE_POLICY_RULE_H

#include "json/value.h"
#include "schema/problem.h"

#include <lua.h>
#include <stdint.h>

struct arena;
struct buf;
struct arena_pool;

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

struct range {
    struct bound low, high;
};

struct predicate {
    struct str words;  /* its description */
    size_t test;       /* its index in rules.tests */
    const void *which; /* identifies the function */
    bool takes_call;   /* it has a third parameter */
};

/* Most conditions are values: what the others need is apart, as there may be many policies. */
struct rule_condition {
    struct str path;
    enum condition_kind kind;
    const struct json *values;
    size_t count;
    const struct range *range;         /* COND_NUMBERS, COND_TIMES; else NULL */
    const struct predicate *predicate; /* COND_PREDICATE; else NULL */
};

struct refusal {
    struct str code, message, hint;
};

/* What predicates need. Without it no predicate runs, and none holds. */
struct condition_tests {
    lua_State *L;
    const int *refs;
    const struct rule *rule; /* whose predicate runs, for its errors */
};

struct rule {
    const struct rule_condition *conditions; /* all of these, predicates last; none: always */
    size_t condition_count;
    const struct json *needs, *drops;      /* lists of names; NULL: none */
    const struct json *one_of, *exclusive; /* lists of such lists; NULL: none */
    const struct json *defaults;           /* an object; NULL: none */
    const struct refusal *refusal;         /* NULL: it does not refuse */
    struct str when; /* the condition in words, `when action is "by_ids"`; empty: always */
    struct str words;
    int line;
};

struct rules {
    struct rule *list;
    size_t count;
    uint64_t *hits;
    int *tests; /* references to predicates */
    size_t test_count;
};

/* The items of a list of a rule, which may be NULL. */
static inline uint32_t rule_items(const struct json *list)
{
    return list ? list->len : 0;
}
static inline struct str rule_name(const struct json *list, uint32_t i)
{
    return json_str(&list->items[i]);
}

/* It holds for this value (NULL: left out); predicates never do. */
bool condition_matches(const struct rule_condition *c, const struct json *value);
void condition_describe(struct buf *out, const struct rule_condition *c); /* limit is above 100 */

/* Reads the list of rules at `at` (nil: none), protected; errors begin with the line or "rules: ". */
void rule_read_all(lua_State *L, int at, const struct json *schema, struct arena *arena,
                   struct arena_pool *pool, struct rules *out);

/* The new arguments, `args` itself if nothing changed; adds problems. Rules with predicates need `tests` and
 * may raise Lua errors; without it they do not hold. */
const struct json *rule_apply_all(const struct rules *rules, const struct json *args, struct arena *arena,
                                  struct problems *problems, struct condition_tests *tests);

/* The first rule that refuses these arguments, or NULL. */
const struct rule *rule_find_refusal(const struct rules *rules, const struct json *args,
                                     struct condition_tests *tests);

/* Whether a rule looks at, demands, drops or fills in this argument. */
bool rule_any_names(const struct rules *rules, struct str argument);

#endif
