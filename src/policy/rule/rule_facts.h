/*
 * What can be known of a policy's rules without a call: their lines, words
 * and the arguments they name, and what is wrong or strange about them. What
 * is surely wrong is an error when the policy loads; the rest is for lint.
 */
#ifndef TOOLGATE_POLICY_RULE_RULE_FACTS_H
#define TOOLGATE_POLICY_RULE_RULE_FACTS_H

#include "base/str.h"

struct arena;
struct policy;

struct rule_mention {
    struct str name;
    const char *as; /* "when", "needs", "drops", "defaults", "needs_one_of", "exclusive" */
};

struct rule_fact {
    int line; /* in the policy's file */
    struct str words;
    bool refuses;
    bool has_predicate; /* what it holds for, only Lua knows */
    const struct rule_mention *mentions;
    size_t mention_count;
};

struct rule_suspicion {
    int line;
    struct str sentence; /* what is strange, and what to do about it */
};

struct rule_facts {
    const struct rule_fact *rules;
    size_t count;
    const struct rule_suspicion *suspicions; /* in the order of the rules */
    size_t suspicion_count;
};

/* Everything lives in the arena or in the policy. */
void policy_rule_facts(const struct policy *policy, struct arena *arena, struct rule_facts *out);

#endif
