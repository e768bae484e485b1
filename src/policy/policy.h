/*
 * A policy is what an operator says about one tool, in one Lua file: data
 * that C reads once at load (this struct), and pure functions that run in a
 * sandbox, bounded in time, memory and stack. Policies know nothing of
 * sockets, sessions' storage or other policies.
 */
#ifndef TOOLGATE_POLICY_POLICY_H
#define TOOLGATE_POLICY_POLICY_H

#include "base/err.h"
#include "json/value.h"
#include "schema/coerce.h"
#include "schema/problem.h"

#include <stdint.h>

struct arena;
struct exec_spec;
struct http_spec;
struct policy_set;

#define POLICY_DEADLINE_MS 50u    /* one hook of one call */
#define POLICY_MEMORY_KB   65536u /* all policies of a generation together */

enum policy_mode { POLICY_ENFORCE, POLICY_SHADOW, POLICY_OFF };
enum policy_effects { EFFECTS_UNDECLARED, EFFECTS_READ, EFFECTS_WRITE, EFFECTS_DESTRUCTIVE, EFFECTS_TOGGLE };
enum policy_unknown { UNKNOWN_PASS, UNKNOWN_DROP, UNKNOWN_REFUSE };

enum policy_hook { HOOK_PREPARE, HOOK_NORMALISE, HOOK_CHECK, HOOK_RUN, HOOK_RESULT, HOOK_COUNT };

#define POLICY_UNSET UINT32_MAX /* a count that the policy does not declare */

/* Where an argument holds an id, and what is demanded of it. */
struct policy_id {
    struct str path;    /* "ids", "items[].id" */
    struct str format;  /* a name that id_format.h knows, as "uuid" or "prefix:evt_"; empty: any */
    bool seen;          /* the id must come from an earlier result or from the user */
    struct str look_up; /* "call lookup_contact first", from seen{ look_up = … }; may be empty */
};

/* An example is data; gate/examples.h plays it through the one pipeline. */
struct policy_example {
    struct str name;
    int line;
    const struct json *args;
    const struct json *result, *seen, *history, *facts; /* NULL: not given */
    const struct json *becomes, *shows;
    struct str goal, user, gives, says, status; /* empty: not given */
    struct str called;                          /* the alias that it is called by; empty: its name */
    uint32_t turn;                              /* 0: not given */
};

/* How much may be used up: POLICY_UNSET or POLICY_COST_UNSET where nothing is said, 0 where there is to be no
 * limit. */
#define POLICY_COST_UNIT 1000000u /* costs are whole millionths of what the operator counts in */
#define POLICY_COST_MAX                                                                                      \
    100000000u /* of them that one call, or a limit, may name, in the operator's units                       \
                */
#define POLICY_COST_UNSET UINT64_MAX
#define POLICY_PACE_MAX_S 86400u /* loop.poll.every */
struct policy_limits {
    uint32_t calls_per_turn, calls_per_session, seconds_per_turn;
    uint64_t cost_per_turn, cost_per_session;
};
extern const struct policy_limits policy_limits_unset;

/* What becomes of a result that is too large for a model; result/compact.h does it. */
#define POLICY_COMPACT_BYTES 20000u /* where a policy names no budget */
#define POLICY_COMPACT_MIN   200u   /* bytes, or tokens: less leaves nothing to read */
struct policy_compact {
    bool on;
    uint32_t max_bytes, max_tokens; /* 0: none */
    const struct str *keep;         /* paths like gives_ids, or bare names of fields anywhere */
    size_t keep_count;
    const struct str *drop;
    size_t drop_count;
};

/* retry.again: what toolgate itself does about a failure that will pass. */
#define POLICY_RETRY_TIMES_MAX    5u
#define POLICY_RETRY_TIMES        2u
#define POLICY_RETRY_BACKOFF_MS   200u
#define POLICY_RETRY_WITHIN_MS    5000u
#define POLICY_RETRY_WITHIN_MAX_S 60u /* a client waits for it */
struct policy_retry {
    uint32_t times;      /* after the first try; 0: not at all */
    uint32_t backoff_ms; /* before the second try; doubled each time, a quarter more or less by chance */
    uint32_t within_ms;  /* after the first try began, no other begins */
};

struct policy {
    struct str name, file; /* file: as the operator knows it, e.g. "policies/get_events.lua" */
    struct str title, upstream, description, use_when, avoid_when;
    const struct exec_spec *exec;                            /* a command runs it; NULL: none */
    const struct http_spec *http;                            /* an HTTP endpoint; NULL: none */
    const struct json *schema, *output_schema, *annotations; /* NULL: left out */
    enum policy_effects effects;
    enum policy_mode mode;
    enum policy_unknown unknown;
    bool validate;   /* false: the schema is documentation only */
    bool envelopes;  /* results are read for what they say of themselves: result/failure_envelope.h */
    bool final;      /* its result ends the run */
    bool fails_open; /* on_policy_error = "open" */
    bool unknown_given, coerce_given, mode_given; /* otherwise the configuration's defaults apply */
    bool compact_given;                           /* likewise */
    struct policy_compact compact;
    struct policy_limits limits; /* of this tool's calls */
    uint64_t cost;               /* of one call; POLICY_COST_UNSET */
    uint32_t poll_every_ms;      /* loop.poll.every; 0: at any pace */
    struct coerce_options coerce;
    uint32_t repair, same_call, transient; /* retry = {…}; POLICY_UNSET */
    struct policy_retry retry;
    bool retry_given;
    bool idempotent, idempotent_given;              /* the same call twice is as good as once */
    uint32_t repeats, halt, across_turns, poll_max; /* loop = {…}; POLICY_UNSET */
    bool polls;
    bool wants_history, wants_facts; /* its source reads call.history / call.facts */
    const struct str *volatiles;     /* loop.volatile: arguments left out of the fingerprint */
    size_t volatile_count;
    const struct policy_id *ids;
    size_t id_count;
    const struct str *gives_ids; /* paths into results: "events[].id" */
    size_t gives_id_count;
    const struct str *aliases; /* names that the tool used to have */
    size_t alias_count;
    const struct str
        *redact; /* fields of results that nobody may read: paths like gives_ids, or bare names */
    size_t redact_count;
    const struct str *rule_words; /* each rule in words: "when action is by_ids: needs ids; drops limit" */
    size_t rule_count;
    const struct policy_example *examples;
    size_t example_count;
    bool hooks[HOOK_COUNT];   /* which functions it has */
    struct policy_code *code; /* rules and functions; policy/ only */
    struct policy_set *set;
};

/* What a hook may know of the call, a read-only snapshot: the Lua table `call`. */
struct policy_call {
    struct str tool, session, goal, step, user;
    uint32_t uid, turn, attempt;
    const struct json *history, *facts; /* NULL where the policy doesn't read them */
    void *owner;                        /* handed to `progress` and `log` */
    void (*progress)(void *owner, double progress, double total,
                     struct str message);                        /* NULL: nobody; total < 0: untold */
    void (*log)(void *owner, struct str level, struct str text); /* the same; level: an MCP log level */
};

/* What a hook said. One struct for all hooks: policy/outcome.c fills it from what Lua returned. */
enum policy_outcome_kind {
    OUTCOME_PASS,        /* pass */
    OUTCOME_REPAIR,      /* check: `problems` */
    OUTCOME_REFUSE,      /* check: code, detail, hint */
    OUTCOME_ASK,         /* check, result: question in detail, choices */
    OUTCOME_RETRY,       /* run: detail; ask the model to try again, spending its repair budget */
    OUTCOME_VALUE,       /* run: value, and content, metadata where it used tool_return{…} */
    OUTCOME_OK,          /* result: coverage, facts, follow_up */
    OUTCOME_PARTIAL,     /* result: code, detail, next_args, hint */
    OUTCOME_GARBAGE,     /* result: code, detail, hint */
    OUTCOME_BROKEN,      /* result: code, detail */
    OUTCOME_TRANSIENT,   /* result, run: detail, after_s */
    OUTCOME_FAILED,      /* result, run: code, detail, hint */
    OUTCOME_POLICY_ERROR /* the policy itself threw, ran out of time or memory, or returned nonsense: `why` */
};

struct policy_outcome {
    enum policy_outcome_kind kind;
    const struct json *args; /* normalise: the new arguments, the very same pointer where nothing changed */
    struct problems problems;
    struct str code, detail, hint, coverage;
    const struct json *suggest, *choices, *facts, *follow_up, *next_args, *value, *content, *metadata;
    int64_t after_s; /* -1: not told */
    double cost;     /* result: what the call really cost; -1: not told */
    struct why why;  /* OUTCOME_POLICY_ERROR: "policies/x.lua:12: …" */
};

/* ---- loading ------------------------------------------------------------ */

/* A file that stalled the process; quarantined for as long as its text is the same. */
struct policy_stall {
    struct str file;
    uint64_t text; /* hash_stable(…).low of it */
};

struct policy_set_options {
    uint32_t deadline_ms, memory_kb;   /* 0: the defaults above */
    const struct policy_stall *stalls; /* files that stalled the process before: loaded as broken */
    size_t stall_count;
};

/* Complaints, at least one about each file that is wrong; all files are read before the first is reported. */
struct policy_load_errors {
    struct arena *arena;
    struct str *list; /* "policies/x.lua:12: unknown field 'desciption' (did you mean 'description'?)" */
    size_t count;
};

/* Loads every *.lua in the folder but *_spec.lua (sorted by name), or the one file. NULL gives an empty set.
 * On ERR_POLICY or ERR_IO `faults` holds at least one line and `*out` is NULL. */
enum err policy_set_load(const char *folder, const struct policy_set_options *options,
                         struct policy_set **out, struct policy_load_errors *faults);

/* The same for source texts (tests, `toolgate new`): name is what error messages call the file. */
enum err policy_set_load_string(struct str name, struct str source, const struct policy_set_options *options,
                                struct policy_set **out, struct policy_load_errors *faults);
void policy_set_free(struct policy_set *policies);

/* policy_set_load in steps, for a loop that has others to serve meanwhile: begin, step until it says false,
 * end. `faults` and the stalls in `options` are borrowed until then. */
struct policy_set_loader;
struct policy_set_loader *policy_set_load_begin(const char *folder, const struct policy_set_options *options,
                                                struct policy_load_errors *faults);
bool policy_set_load_step(struct policy_set_loader *loading); /* one file; false: there are no more */
enum err policy_set_load_end(struct policy_set_loader *loading, struct policy_set **out);

size_t policy_set_count(const struct policy_set *policies);
const struct policy *policy_set_at(const struct policy_set *policies, size_t index);
const struct policy *policy_set_find(const struct policy_set *policies, struct str tool); /* NULL: none */

/* Files that are quarantined: those of options.stalls that are here with the same text. */
const struct policy_stall *policy_set_stalls(const struct policy_set *policies, size_t *count);
bool policy_set_has_gateway(const struct policy_set *policies); /* a gateway{…} file with prepare_tools */
struct str policy_set_gateway_file(const struct policy_set *policies);
struct str
policy_set_instructions(const struct policy_set *policies); /* gateway{ instructions = … }; may be empty */

/* Hash over all file names and texts, for the generation's. */
uint64_t policy_set_hash(const struct policy_set *policies);

/* ---- hooks; each is bounded, none does I/O, all texts of the outcome live in `arena` ---------------------
 */

/* Rules, then normalise(args, call). outcome->kind: NOTHING, REPAIR or BROKE; outcome->args is set on
 * NOTHING. */
void policy_normalise(const struct policy *policy, const struct policy_call *call, const struct json *args,
                      struct arena *arena, struct policy_outcome *outcome);

/* What the rules alone would demand of arguments that the schema has refused already, so that the model hears
 * everything at once; changes nothing and counts no hits. */
void policy_rules_explain(const struct policy *policy, const struct json *args, struct problems *problems);

/* Its rules or normalise made good arguments bad, as `complaint` says: "policies/x.lua:12: the rule 'when …'
 * changed the arguments against the schema: …". Counted among its faults. */
typedef bool policy_schema_accepts(void *owner, const struct json *args);
struct str policy_report_schema_violation(const struct policy *policy, const struct json *args,
                                          policy_schema_accepts *accepts, void *owner, struct str complaint,
                                          struct arena *arena);

void policy_check(const struct policy *policy, const struct policy_call *call, const struct json *args,
                  struct arena *arena, struct policy_outcome *outcome);
void policy_run(const struct policy *policy, const struct policy_call *call, const struct json *args,
                struct arena *arena, struct policy_outcome *outcome);
void policy_judge(const struct policy *policy, const struct policy_call *call, const struct json *args,
                  const struct json *result, struct arena *arena, struct policy_outcome *outcome);

/* prepare(def, call): OUTCOME_PASS with outcome->value the definition to show, or NULL there to hide the
 * tool. */
void policy_prepare(const struct policy *policy, const struct policy_call *call,
                    const struct json *definition, struct arena *arena, struct policy_outcome *outcome);

/* gateway{ prepare_tools }: an array of definitions in, one out (outcome->value; NULL hides all). */
void policy_set_prepare_tools(struct policy_set *policies, const struct policy_call *call,
                              const struct json *definitions, struct arena *arena,
                              struct policy_outcome *outcome);

/* NULL where `value` has the shape, else what is expected in words: "a UUID (e.g. '…')". */
const char *id_format_mismatch(struct str format, const struct json *value);

/* How often each rule fired, in the order of rule_words. */
const uint64_t *policy_rule_hits(const struct policy *policy);

/* How often its hooks broke, and how they did last; NULL where none has. The gateway's: prepare_tools. */
struct policy_failures {
    uint64_t count;
    struct why last;
};
const struct policy_failures *policy_failures(const struct policy *policy);
const struct policy_failures *policy_set_gateway_failures(const struct policy_set *policies);

/* What has been tried and will not be again: a quarter of what a policy takes. */
void policy_set_free_examples(struct policy_set *policies);

/* Hits and faults start at zero again: what the examples hit at load is nobody's traffic. */
void policy_set_reset_counters(struct policy_set *policies);

/* ---- configuration file: one Lua table, in a sandbox of its own -----------------------------------------
 */

/* Runs a Lua file that returns a table of plain data; functions in it are refused. */
enum err lua_config_read(const char *path, struct arena *arena, struct json *out, struct why *why);

#endif
