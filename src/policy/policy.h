/* A policy is what an operator declares about one tool in one Lua file. C reads it once at load into this
 * struct; its functions are in policy_hooks.h. Policies know nothing of sockets, of how sessions are stored,
 * or of each other. */
#ifndef TOOLGATE_POLICY_POLICY_H
#define TOOLGATE_POLICY_POLICY_H

#include "base/err.h"
#include "json/value.h"
#include "schema/coerce.h"

#include <stdint.h>

struct exec_spec;
struct http_spec;
struct policy_set;

enum policy_mode { POLICY_ENFORCE, POLICY_SHADOW, POLICY_OFF };
enum policy_effects { EFFECTS_UNDECLARED, EFFECTS_READ, EFFECTS_WRITE, EFFECTS_DESTRUCTIVE, EFFECTS_TOGGLE };
/* What the schema of the runner of the tool decides. "learn" is "strict" until a model insists (ledger.h). */
enum policy_schema_mode { SCHEMA_MODE_UNSET, SCHEMA_STRICT, SCHEMA_LEARN, SCHEMA_ADVISE };

enum policy_unknown { UNKNOWN_PASS, UNKNOWN_DROP, UNKNOWN_REFUSE };
enum policy_formats { FORMATS_LENIENT, FORMATS_STRICT }; /* lenient: a date-time may lack its time zone */
enum policy_hook { HOOK_PREPARE, HOOK_NORMALISE, HOOK_CHECK, HOOK_RUN, HOOK_RESULT, HOOK_COUNT };

#define POLICY_UNSET UINT32_MAX /* a count that the policy does not declare */

/* An argument that holds an id. */
struct policy_id {
    struct str path;    /* "ids", "items[].id" */
    struct str format;  /* a name that id_format.h knows, as "uuid" or "prefix:evt_"; empty: any */
    bool seen;          /* the id must come from an earlier result or from the user */
    bool strict;        /* and if the model insists, the user is asked */
    struct str look_up; /* "call lookup_contact first", from seen{ look_up = … }; may be empty */
};

/* An example is data; gate/examples.h runs it through the pipeline. */
struct policy_example {
    struct str name;
    int line;
    const struct json *args;
    const struct json *result, *seen, *history, *facts, *context; /* NULL: not given */
    const struct json *becomes, *shows;
    struct str goal, user, gives, says, status; /* empty: not given */
    struct str called;                          /* the alias that the model calls; empty: the tool's name */
    struct str again;                           /* what the same call gives when it is made once more */
    struct str tool;                            /* of a policy for several tools: which one */
    uint32_t turn;                              /* 0: not given */
};

/* Limits: POLICY_UNSET or POLICY_COST_UNSET if not declared, 0 for no limit. */
#define POLICY_COST_UNIT  1000000u   /* costs are whole millionths of the operator's unit */
#define POLICY_COST_MAX   100000000u /* in the operator's unit, for one call or one limit */
#define POLICY_COST_UNSET UINT64_MAX
#define POLICY_PACE_MAX_S 86400u /* loop.poll.every */
struct policy_limits {
    uint32_t calls_per_turn, calls_per_session, seconds_per_turn;
    uint64_t cost_per_turn, cost_per_session;
};
extern const struct policy_limits policy_limits_unset;

/* rate = { "10/minute", by = "user" }: at most `count` calls in any `window_s` seconds. */
#define POLICY_RATES_MAX      4u
#define POLICY_RATE_COUNT_MAX 1000000u
struct policy_rate {
    uint32_t count, window_s;
};
enum policy_rate_by { RATE_BY_SESSION, RATE_BY_USER, RATE_BY_TOOL }; /* whose calls count together */

/* loop.compare and loop.same_failure. */
#define POLICY_SAME_FAILURE_MAX 31u /* failures in a row: a session remembers the last 32 calls */
enum policy_compare { COMPARE_UNSET, COMPARE_RESULT, COMPARE_ARGUMENTS };
enum policy_same_failure { SAME_FAILURE_NOTE = -2, SAME_FAILURE_REFUSE, SAME_FAILURE_UNSET }; /* or a count */

/* How result/compact.h shortens a result that is too large for a model. */
#define POLICY_COMPACT_BYTES 20000u /* if the policy names no budget */
#define POLICY_COMPACT_MIN   200u   /* bytes or tokens */
struct policy_compact {
    bool on;
    uint32_t max_bytes, max_tokens; /* 0: none */
    const struct str *keep;         /* paths like gives_ids, or names of fields anywhere */
    size_t keep_count;
    const struct str *drop;
    size_t drop_count;
};

/* retry.again: what toolgate itself does after a transient failure. */
#define POLICY_RETRY_TIMES_MAX    5u
#define POLICY_RETRY_TIMES        2u
#define POLICY_RETRY_BACKOFF_MS   200u
#define POLICY_RETRY_WITHIN_MS    5000u
#define POLICY_RETRY_WITHIN_MAX_S 60u /* the client waits for it */
#define POLICY_RETRY_NEVER                                                                                   \
    "the pause before the second try (backoff, %g s) is longer than all tries may take (within, %g s), so "  \
    "that nothing is tried again: change one of the two"
struct policy_retry {
    uint32_t times;      /* after the first try; 0: none */
    uint32_t backoff_ms; /* before the second try; doubles each time, and varies at random by a quarter */
    uint32_t within_ms;  /* after the first try began, no other begins */
};

/* What a source reads of `call` that changes with the session. */
struct policy_wants {
    bool history, facts; /* call.history, call.facts */
    bool progress;       /* call.turn, call.step, call.no_progress */
};

/* Pattern sets of gateway { check = …, result = … }; result/pattern_sets.h looks for them. */
enum pattern_set { PATTERN_SET_SECRETS = 1, PATTERN_SET_INSTRUCTIONS = 2, PATTERN_SET_HIDDEN = 4 };

/* What these find is taken out of a result; the others mark it. */
#define PATTERN_SETS_MASKING ((unsigned)(PATTERN_SET_SECRETS | PATTERN_SET_HIDDEN))

struct policy_failures {
    uint64_t count;
    struct why last;
};

/* args.NAME in the function `check`. */
struct argument_read {
    struct str name;
    int line;
};

struct policy {
    struct str name, file;    /* file: as the operator knows it, "policies/get_events.lua" */
    const struct str *guards; /* policy{ tools = … }: names and globs; then `name` is that of the file */
    size_t guard_count;       /* 0: the policy of the one tool `name` */
    const struct str *except; /* of a gateway: tools that it does not guard */
    size_t except_count;
    size_t position; /* in its set */
    struct str title, upstream, description, use_when, avoid_when;
    const struct exec_spec *exec;                            /* a command runs the tool; NULL: none */
    const struct http_spec *http;                            /* an HTTP endpoint; NULL: none */
    const struct json *schema, *output_schema, *annotations; /* NULL: not declared */
    enum policy_effects effects;
    enum policy_mode mode;
    unsigned mode_line; /* of `mode = "shadow"`; 0: it is not declared, or computed */
    enum policy_unknown unknown;
    enum policy_formats formats;
    enum policy_schema_mode schema_mode;
    int fails_open; /* on_policy_error: 0 closed, 1 open */
    enum policy_compare compare;
    int same_failure; /* enum policy_same_failure, or a count */
    enum policy_rate_by rate_by;
    int hook_lines[HOOK_COUNT];
    struct policy_retry retry;
    uint32_t poll_every_ms;                         /* loop.poll.every; 0: at any pace */
    uint32_t repair, same_call, transient;          /* retry = {…}; POLICY_UNSET */
    uint32_t repeats, halt, across_turns, poll_max; /* loop = {…}; POLICY_UNSET */
    uint8_t check_sets, result_sets;                /* of a gateway: pattern_set bits */
    bool validate;                                  /* false: the schema is documentation only */
    bool envelopes; /* results may report their own failure: result/failure_envelope.h */
    bool final;     /* its result ends the run */
    bool unknown_given, formats_given, coerce_given, mode_given, compact_given, retry_given, idempotent_given;
    bool idempotent; /* the same call twice has the effect of one */
    struct coerce_options coerce;
    struct coerce_options coerce_named; /* those that the policy turns on by name, or all by coerce = true */
    bool polls, polls_given;
    struct policy_wants wants;
    bool hooks[HOOK_COUNT];  /* which functions it has */
    bool quarantined;        /* it does not run, as it stalled the process: only its names were read */
    struct str shadow_until; /* "2026-12-01": when mode shadow was to end; empty: not declared */
    const struct time_zone *timezone; /* of date-times that lack one; NULL: not declared */
    struct policy_compact compact;
    struct policy_limits limits;
    uint64_t cost; /* of one call; POLICY_COST_UNSET */
    struct policy_rate rates[POLICY_RATES_MAX];
    size_t rate_count;
    const struct str *volatiles; /* loop.volatile: arguments left out of the fingerprint */
    size_t volatile_count;
    const struct str *volatile_results; /* loop.volatile_result: fields of results, as in redact */
    size_t volatile_result_count;
    const struct policy_id *ids; /* sorted by path */
    size_t id_count;
    const struct str *gives_ids; /* paths into results: "events[].id" */
    size_t gives_id_count;
    const struct str *aliases; /* former names of the tool */
    size_t alias_count;
    const struct str *redact; /* fields of results: paths like gives_ids, or names anywhere */
    size_t redact_count;
    const struct argument_read *check_reads; /* by its own function, not by one of a module */
    size_t check_read_count;
    const uint64_t *rule_hits; /* how often each changed or refused something */
    size_t rule_count;
    const struct policy_example *examples;
    size_t example_count;
    struct str instructions;          /* of gateway{…} */
    struct policy_failures *failures; /* of its functions; NULL: none */
    uint64_t source_hash;     /* of its text and of the modules that it may require, wherever the file lies */
    struct policy_code *code; /* rules and functions; this room only */
    struct policy_set *set;
};

/* Sets the default of every field that is not 0. */
void policy_init(struct policy *policy);

/* A rule in words: "when action is \"by_ids\": 'ids' is required; 'limit' is dropped". */
struct str policy_rule_words(const struct policy *policy, size_t rule);

/* Its `tools` name the tool. */
bool policy_guards(const struct policy *policy, struct str tool);

/* It lies over several tools, beside their own policies. */
static inline bool policy_is_overlay(const struct policy *policy)
{
    return policy->guard_count > 0;
}

#endif
