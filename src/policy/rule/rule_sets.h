/*
 * Which arguments a rule holds for, as sets: whether two of them have some in
 * common, and whether one lies within another. Predicates are known by their
 * function only: two different ones may hold together, or never. Only files
 * of this room include this header.
 */
#ifndef TOOLGATE_POLICY_RULE_RULE_SETS_H
#define TOOLGATE_POLICY_RULE_RULE_SETS_H

#include "policy/rule/rule.h"
#include "policy/rule/rule_schema.h"

enum certainty { SURELY_NOT, PERHAPS, SURELY };

#define SETS_MAX 4 /* rules, or conditions on one argument, that are looked at together */

/* Is there a value that all of these conditions on one argument take, and that the schema allows. */
enum certainty conditions_meet(const struct rule_schema *s, const struct rule_condition *const *list,
                               size_t count);

/* Are there arguments for which all of these rules hold; `given`: and that is there, empty: whatever is. */
enum certainty rules_meet(const struct rule_schema *s, const struct rule *const *list, size_t count,
                          struct str given);

/* Does `wide` surely hold wherever `narrow` does. */
bool rule_lies_within(const struct rule_schema *s, const struct rule *narrow, const struct rule *wide);

#endif
