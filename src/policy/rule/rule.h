/*
 * Rules are data: a condition on the arguments, and what follows from it. C
 * evaluates them, except for predicates; each counts how often it changed or
 * refused something. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_RULE_RULE_H
#define TOOLGATE_POLICY_RULE_RULE_H

#include "policy/rule/rule_condition.h"
#include "schema/problem.h"

#include <stdint.h>

struct arena;

struct rule_names {
    const struct str *list;
    size_t count;
};

struct rule {
    const struct rule_condition *conditions; /* all of these, predicates last; none: always */
    size_t condition_count;
    struct rule_names needs, drops;
    const struct json *defaults; /* an object; NULL: none */
    const struct rule_names *one_of, *exclusive;
    size_t one_of_count, exclusive_count;
    bool refuses;
    struct str code, message, hint; /* of the refusal */
    struct str when;                /* the condition in words, `when action is "by_ids"`; empty: always */
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

/* Reads the list of rules at `at` (nil: none), inside a protected call; errors begin with the line or "rules:
 * ". */
void rule_read_all(lua_State *L, int at, const struct json *schema, struct arena *arena, struct rules *out);

/* The new arguments, `args` itself if nothing changed; adds problems. Rules with predicates need `tests` and
 * may raise Lua errors; without it they do not hold. */
const struct json *rule_apply_all(const struct rules *rules, const struct json *args, struct arena *arena,
                                  struct problems *problems, struct condition_tests *tests);

/* The first rule that refuses these arguments, or NULL. */
const struct rule *rule_find_refusal(const struct rules *rules, const struct json *args,
                                     struct condition_tests *tests);

/* Adds the problems that rule_apply_all would add. Nothing is counted, and rules with predicates are left
 * out, as a predicate may rely on valid arguments. */
void rule_explain_all(const struct rules *rules, const struct json *args, struct problems *problems);

#endif
