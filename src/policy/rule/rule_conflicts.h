/*
 * Certain contradictions among the rules of a policy: arguments and values
 * that its schema cannot have, and opposite demands under one condition. Only
 * files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_RULE_RULE_CONFLICTS_H
#define TOOLGATE_POLICY_RULE_RULE_CONFLICTS_H

#include "policy/rule/rule.h"

struct policy;

/* Called during the search; the sentence lives in the arena. `certain`: an error at load; else only lint
 * reports it. */
typedef void rule_conflicts_report(void *owner, bool certain, int line, struct str sentence);

/* `schema` NULL: the policy's own. Ends early at the deadline of a running sandbox. */
void rule_conflicts_find(const struct policy *policy, const struct json *schema, struct arena *arena,
                         rule_conflicts_report *report, void *owner);

#endif
