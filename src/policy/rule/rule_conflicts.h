/*
 * Rules that contradict each other, themselves or the schema, and rules that
 * can never matter. Wrong is only what is so for certain: wherever it cannot
 * be told, as with two different predicates, it is merely strange. Only files
 * of this room include this header.
 */
#ifndef TOOLGATE_POLICY_RULE_RULE_CONFLICTS_H
#define TOOLGATE_POLICY_RULE_RULE_CONFLICTS_H

#include "policy/rule/rule.h"
#include "policy/rule/rule_schema.h"

struct policy;

struct rule_findings {
    struct rule_schema schema;
    bool normalises; /* a function changes the arguments after the rules */
    bool only_wrong; /* nobody wants to hear of what is strange */
    void *owner;
    void (*found)(void *owner, bool wrong, int line, struct str sentence); /* the sentence in schema.arena */
    bool (*is_late)(void *owner); /* asked between two rules: true ends the search */
};

/* What the policy has said of its arguments by now. */
struct rule_schema rule_facts_schema(const struct policy *policy, struct arena *arena);

void rules_find_conflicts(const struct rules *rules, const struct rule_findings *findings);

#endif
