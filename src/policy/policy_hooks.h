/* The hooks of a policy, run for one call. Each is bounded in time and memory and does no I/O; a policy
 * without the hook passes. Everything in an outcome lives in the arena of the call. */
#ifndef TOOLGATE_POLICY_POLICY_HOOKS_H
#define TOOLGATE_POLICY_POLICY_HOOKS_H

#include "policy/policy.h"
#include "schema/problem.h"

struct arena;

/* What the hooks of one call took. */
struct policy_time {
    uint32_t ran, late; /* hooks; late: past the configuration's limit */
};

/* What a hook knows of the call, a read-only snapshot: the Lua table `call`. */
struct policy_call {
    struct str tool, session, goal, step, user;
    uint32_t uid, turn, attempt, no_progress;
    uint32_t most_ms; /* for the hook, if that is less than the configuration's limit; 0: that limit */
    struct policy_time *time;           /* counted there; NULL: nowhere */
    const struct json *history, *facts; /* NULL if the policy does not read them */
    const struct json *context;         /* what the agent says of this call; NULL: nothing */
    void *owner;                        /* of the two callbacks, which run inside policy_run */
    /* NULL: no caller wants progress; total < 0: unknown */
    void (*progress)(void *owner, double progress, double total, struct str message);
    /* NULL: no caller wants messages; level: one of MCP's */
    void (*log)(void *owner, struct str level, struct str text);
};

enum policy_outcome_kind {
    OUTCOME_PASS,
    OUTCOME_REPAIR,      /* normalise, check, run: `problems` */
    OUTCOME_REFUSE,      /* check, run: code, detail, hint */
    OUTCOME_ASK,         /* check, run, result: question in detail, choices */
    OUTCOME_RETRY,       /* run, result: detail; the model tries again, which spends its repair budget */
    OUTCOME_VALUE,       /* run: value; content and metadata from tool_return{…} */
    OUTCOME_OK,          /* result: coverage, facts, follow_up, cost */
    OUTCOME_PARTIAL,     /* result: code, detail, next_args, hint */
    OUTCOME_GARBAGE,     /* result: code, detail, hint */
    OUTCOME_BROKEN,      /* result: code, detail */
    OUTCOME_TRANSIENT,   /* run, result: detail, after_s */
    OUTCOME_FAILED,      /* run, result: code, detail, hint */
    OUTCOME_POLICY_ERROR /* the policy failed, exceeded a limit, or returned nonsense: `why` */
};

struct policy_outcome {
    enum policy_outcome_kind kind;
    const struct json *args; /* normalise: the new arguments; the same pointer if nothing changed */
    struct problems problems;
    struct str code, detail, hint, coverage;
    const struct json *suggest, *choices, *facts, *follow_up, *next_args, *value, *content, *metadata;
    int64_t after_s; /* -1: unknown */
    double cost;     /* the actual cost of the call; -1: unknown */
    struct why why;  /* OUTCOME_POLICY_ERROR: "policies/x.lua:12: …" */
};

/* One function for each hook; an outcome of a policy without it is PASS. normalise begins with the rules:
 * PASS with outcome->args, REPAIR or POLICY_ERROR. prepare: PASS with the definition to show as
 * outcome->value; NULL there hides the tool. Of the gateway (policy_set_gateway) it is prepare_tools: an
 * array of definitions in, one out; NULL hides all. */
void policy_normalise(const struct policy *policy, const struct policy_call *call, const struct json *args,
                      struct arena *arena, struct policy_outcome *outcome);
void policy_check(const struct policy *policy, const struct policy_call *call, const struct json *args,
                  struct arena *arena, struct policy_outcome *outcome);
void policy_run(const struct policy *policy, const struct policy_call *call, const struct json *args,
                struct arena *arena, struct policy_outcome *outcome);
void policy_judge(const struct policy *policy, const struct policy_call *call, const struct json *args,
                  const struct json *result, struct arena *arena, struct policy_outcome *outcome);
void policy_prepare(const struct policy *policy, const struct policy_call *call,
                    const struct json *definition, struct arena *arena, struct policy_outcome *outcome);

/* A failure instead of prepare, as the hooks of the list have used all of their `most_ms`. */
void policy_prepare_late(const struct policy *policy, uint32_t most_ms, struct arena *arena,
                         struct policy_outcome *outcome);

/* Adds what the rules demand of arguments that the schema has refused already, so that the model reads all
 * problems at once. Rules with predicates are left out, as these may rely on valid arguments; nothing is
 * counted. */
void policy_rules_explain(const struct policy *policy, const struct json *args, struct problems *problems);

/* Whether the policy's rules or ids are about the argument that the path begins with. */
bool policy_names_argument(const struct policy *policy, struct str path);

/* Each argument that `field` ("rules", "ids", "loop.volatile", "check") of the policy is about, with its line
 * (0: not known); not those that a rule only drops or fills in, which a server need not declare. */
typedef void policy_argument(void *owner, const char *field, int line, struct str path);
void policy_each_argument(const struct policy *policy, policy_argument *see, void *owner);

/* The rules or normalise made valid arguments invalid. Adds a failure, and returns its text:
 * "policies/x.lua:12: the rule 'when …' changed the arguments against the schema: …". */
typedef bool policy_schema_accepts(void *owner, const struct json *args);
struct str policy_report_schema_violation(const struct policy *policy, const struct json *args,
                                          policy_schema_accepts *accepts, void *owner, struct str problem,
                                          struct arena *arena);

/* The line of a rule; whether it refuses without saying what to do instead. */
int policy_rule_line(const struct policy *policy, size_t rule);
bool policy_rule_lacks_hint(const struct policy *policy, size_t rule);

/* Certain contradictions among the rules of a policy: arguments and values that its schema cannot have, and
 * opposite demands under one condition. `schema` NULL: the policy's own. Ends early at the deadline of a
 * running sandbox. `certain`: an error at load, else only lint reports it. The sentence is in the arena. */
typedef void policy_conflict(void *owner, bool certain, int line, struct str sentence);
void policy_rule_conflicts(const struct policy *policy, const struct json *schema, struct arena *arena,
                           policy_conflict *report, void *owner);

#endif
