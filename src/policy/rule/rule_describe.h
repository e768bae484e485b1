/* What a rule demands, in words: for the tool's description and for problems. Only files of this room include
 * this header. */
#ifndef TOOLGATE_POLICY_RULE_RULE_DESCRIBE_H
#define TOOLGATE_POLICY_RULE_RULE_DESCRIBE_H

#include "policy/rule/rule.h"

/* Fills rule->when and rule->words. */
void rule_describe(struct arena *arena, struct rule *rule);

/* is missing when action is "by_ids" — provide a value */
struct str rule_describe_missing(struct arena *arena, const struct rule *rule);
/* at least one of 'id', 'query' is required — provide one */
struct str rule_describe_none_of(struct arena *arena, const struct rule *rule,
                                 const struct rule_names *names);
/* can't be given together with 'calendar_id' — remove one of the two */
struct str rule_describe_exclusive(struct arena *arena, const struct rule *rule, struct str first);

#endif
