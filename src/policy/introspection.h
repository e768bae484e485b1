/*
 * What a policy's rules and text tell to who looks for mistakes in it
 * (lint/): where things stand, which rules are strange, and which calls of
 * its words lack something. The text is read anew, so this is not for a
 * daemon.
 */
#ifndef TOOLGATE_POLICY_INTROSPECTION_H
#define TOOLGATE_POLICY_INTROSPECTION_H

#include "policy/policy.h"

struct policy_survey {
    const struct policy *policy;
    struct arena *arena;
    struct str text; /* empty where it cannot be read */
};

struct policy_survey policy_survey(const struct policy *policy, struct arena *arena);

/* The line of a field, in the table of `parent` where that is not NULL; 0 where it cannot be told. */
int survey_line(const struct policy_survey *survey, const char *parent, struct str name);

/* The line of tool "…" {; 1 where it cannot be told. */
int survey_tool_line(const struct policy_survey *survey);

typedef void survey_found(void *owner, int line, struct str sentence);

/* Rules that contradict each other or this schema, or can never matter. */
void survey_rules(const struct policy_survey *survey, const struct json *schema, survey_found *found,
                  void *owner);

/* Rules' own lines, in the order of rule_words. */
int survey_rule_line(const struct policy_survey *survey, size_t rule);

/* Rules that refuse without a hint. */
void survey_rules_without_hint(const struct policy_survey *survey, survey_found *found, void *owner);

/* Calls of refuse and garbage whose hint is left out, and problems in repair { … } without a path. Only what
 * is written out plainly is judged, so that nothing is said that is not so. `sentence` is the word. */
void survey_calls_without_hint(const struct policy_survey *survey, survey_found *found, void *owner);
void survey_problems_without_path(const struct policy_survey *survey, survey_found *found, void *owner);

#endif
