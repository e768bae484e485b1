/*
 * What the gate decided about a call, as one record: the same in `_meta`, in the reply of toolgate/check and
 * in the decision log. What follows from the class of the outcome alone is a column of the one table in
 * verdict.c: to add a class, add its enum constant and its row.
 */
#ifndef TOOLGATE_GATE_VERDICT_H
#define TOOLGATE_GATE_VERDICT_H

#include "json/value.h"
#include "ledger/ledger.h"
#include "schema/problem.h"

struct id_fault;
struct json_out;
struct policy;
struct policy_id;
struct policy_outcome;
struct tool;

enum verdict_kind { VERDICT_PASS, VERDICT_REPAIR, VERDICT_WAIT, VERDICT_REFUSE, VERDICT_ASK, VERDICT_HALT };
#define VERDICT_KINDS (VERDICT_HALT + 1)

enum error_class {
    CLASS_OK,
    CLASS_PARTIAL_DATA,
    CLASS_SEMANTIC_GARBAGE,
    CLASS_SCHEMA_MISMATCH,
    CLASS_TRANSIENT,
    CLASS_TOOL_ERROR,
    CLASS_INVALID_ARGUMENTS,
    CLASS_FABRICATED_ID,
    CLASS_UNKNOWN_TOOL,
    CLASS_FORBIDDEN,
    CLASS_AGENT_RUNS_THIS,
    CLASS_RETRY_BUDGET,
    CLASS_LOOP,
    CLASS_POLICY_ERROR,
    CLASS_UNAVAILABLE,
    CLASS_NEED_USER_INPUT,
    CLASS_CANCELLED,
    CLASS_COUNT
};

struct error_class_info {
    const char *name;               /* on the wire */
    enum verdict_kind verdict;      /* the ledger and policies may turn a refusal into a halt */
    bool is_error;                  /* the client gets isError, the model gets feedback instead of a result */
    enum ledger_so_far admitted_as; /* how admit counts a call that stages 1 to 3 put in this class */
    enum ledger_class settled_as;   /* how settle counts a call that ends in this class */
    const char *coverage;           /* after a run, unless the policy states one; NULL: unknown */

    /* What the model reads: "NAME HEADLINE (code): detail", the problems, what the tool said and "Next:
     * NEXT", unless a policy gave a hint. A headline that is a whole sentence stands alone. feedback.c writes
     * more about some classes. */
    const char *headline, *next;
};

extern const struct error_class_info error_class_table[CLASS_COUNT];

static inline const struct error_class_info *error_class_info(enum error_class class)
{
    return &error_class_table[class];
}

/* OK, or ERR_NOT_FOUND if `name` is no class's wire name. */
enum err error_class_named(struct str name, enum error_class *out);

const char *verdict_name(enum verdict_kind kind); /* "pass", "repair", … */

#define VERDICT_NO_PROGRESS LEDGER_STUCK /* consecutive calls without a new result */

struct verdict {
    enum verdict_kind kind;
    enum error_class class;
    bool valid;                    /* the arguments, after coercion and normalise */
    struct str code, detail, hint; /* empty: none */
    struct problems problems;
    const struct json *suggest; /* arguments that the policy proposes to change; NULL: none */
    /* JSON Patch of what was changed in the arguments as sent; NULL or empty: nothing */
    const struct json *rewrites;
    uint32_t attempt; /* of a repair chain; 0: none */
    bool has_budget;  /* `attempts_left` counts */
    uint32_t attempts_left;
    uint32_t repeats;      /* identical calls with an identical result in a row */
    uint32_t at_once;      /* identical calls that were made together with this one */
    uint32_t no_progress;  /* consecutive calls without a new result; written from VERDICT_NO_PROGRESS on */
    uint32_t same_failure; /* failures in a row with this error; written from LEDGER_SAME_FAILURE_NOTED on */
    uint32_t failed_alike; /* failures of this call with this error, between which no write succeeded */
    int64_t after_s;       /* VERDICT_WAIT: seconds; -1: none */
    struct str coverage;   /* "SATISFIED" …; empty: unknown */
    const struct json *facts, *follow_up, *next_args, *choices; /* NULL: none */
    struct str approval;       /* VERDICT_ASK: the id by which an operator approves; empty: none */
    const char *no_approval;   /* why none exists; NULL: none was asked for */
    const struct str *notices; /* what the client sent without effect; written as `warnings`; NULL: nothing */
    size_t notice_count;
    struct str would;         /* modes shadow and off, anonymous sessions: the code that was not enforced */
    struct verdict *shadowed; /* of a mode, the whole decision with that code; NULL: none */
    size_t bytes_from, bytes_to; /* of a compacted result; 0: not compacted */
    double cost;                 /* of the call; -1: not stated */
    uint32_t tries;              /* how often toolgate ran the tool for this call; written from 2 on */
    struct str last_stderr;      /* what the tool's server wrote last: it died, or is not up; empty: none */
    bool final;                  /* the result ends the run */
    const char *engine;          /* the ledger engine that answered */
    const char *stage;           /* the one that decided; NULL: none */
    struct str by;               /* the file of several tools that decided; empty: none */

    /* Only for the feedback. */
    const struct json *changes;        /* JSON Patch of the arguments' members; NULL or empty: none */
    const struct arguments *arguments; /* how they were read as a whole; NULL: they were not */
    struct str quoted;                 /* the tool's own words */
    struct str data;             /* what a failed tool sent beside them, JSON or a text; empty: nothing */
    bool keeps_blocks;           /* a failed tool's pictures and links go out with the feedback */
    bool quoted_is_policy;       /* `quoted` comes from the policy's result hook instead */
    struct str warning;          /* ours, beside a result that is delivered */
    struct str compact_note;     /* what was left out of the result; empty: nothing */
    bool blank;                  /* nothing in the result is visible */
    enum ledger_came_of came_of; /* of the same call before */
    bool may_insist;             /* invalid arguments: the same call, made again, is let through once */
    struct str last_error;       /* its text, if it failed; empty: not known */
    bool ran;                    /* the tool ran, with any outcome */
    bool session_limit;          /* `code` names a limit of the whole session, not of the tool */
    uint64_t limit_used;         /* calls, seconds or cost used of it */
    uint32_t asked;              /* this call in a row, whose result says that something is under way */
    uint32_t same_calls;         /* made of the same-call budget, with this call */
    bool as_sent; /* a failure, whose result and `isError: false` the client gets as they were sent */
};

static inline bool verdict_is_decided(const struct verdict *verdict)
{
    return verdict->class != CLASS_OK;
}

/* The client gets feedback in place of the result. */
static inline bool verdict_replaces_result(const struct verdict *verdict)
{
    return error_class_info(verdict->class)->is_error && !verdict->as_sent;
}

/* Sets the class, the verdict that goes with it, and the strings, which are borrowed. */
void verdict_set(struct verdict *verdict, enum error_class class, struct str code, struct str detail,
                 struct str hint);

/* Fills in the detail and the hint that are missing; both are borrowed. */
void verdict_describe(struct verdict *verdict, struct str detail, struct str hint);

/* Adds a sentence to those that the model reads beside the result. */
void verdict_warn(struct verdict *verdict, struct arena *arena, struct str sentence);

struct verdict *verdict_copy(struct arena *arena, const struct verdict *verdict);

/* Takes back what was decided and found, for a tool in mode shadow or off. `remember` keeps the code of the
 * first error in `would`, and the whole of it in `shadowed`. What the ledger counted stays. */
void verdict_discard(struct verdict *verdict, struct arena *arena, bool remember);

/* Writes "verdict":…,"valid":…,"error_class":…,… as docs/protocol.md describes it, into an open object. */
void verdict_write(struct json_out *out, const struct verdict *verdict);

/* The JSON Schemas of a verdict and of a coverage, for toolgate/schemas; never freed. */
struct str verdict_schema(void);
struct str coverage_schema(void);

/* ---- what arguments, ids, the ledger and policy hooks report: each function reads one source and knows
 * nothing of the call; the stages in call*.c decide when to use it. Strings are borrowed. ---- */

void verdict_log_policy_error(struct str tool, const char *why); /* `policy_error tool=… why=…` */

/* A hook that raised an error or exceeded its limits; logs it. */
void verdict_from_policy_error(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                               const char *why);

/* The code of a policy_error where the tool has run and its result hook failed: the result is withheld. */
#define VERDICT_RESULT_UNCHECKED "result_unchecked"

/* The same for a hook that the call can do without: with on_policy_error = "open" it only logs. */
void verdict_from_broken_hook(struct verdict *verdict, const struct tool *tool, const struct policy *policy,
                              struct arena *arena, const char *why);

/* `policy`: the one that checked them; NULL: none. */
void verdict_from_arguments(struct verdict *verdict, const struct tool *tool, const struct policy *policy,
                            struct arena *arena, const struct arguments *args);

/* An id of impossible format. */
void verdict_from_malformed_id(struct verdict *verdict, struct arena *arena, const struct id_fault *fault);

/* A call has more ids that must have been seen than can be looked up at once. */
void verdict_from_many_ids(struct verdict *verdict, struct arena *arena, const struct policy_id *id);

/* An id that no result and no goal contains: fabricated if `certain`, else to be looked up. */
void verdict_from_unseen_id(struct verdict *verdict, struct arena *arena, const struct id_fault *fault,
                            const struct policy_id *id, bool certain);

/* The ledger's answer to admit; invalid arguments keep their problems. */
void verdict_from_ledger(struct verdict *verdict, const struct ledger_answer *answer);

/* The ledger's answer to settle: attempts, repeats and the time to wait. */
void verdict_from_settle(struct verdict *verdict, const struct ledger_answer *settled, bool ran);

/* What a hook has decided: a pass, a value and a policy error leave the verdict as it is. */
void verdict_from_hook(struct verdict *verdict, struct arena *arena, const struct policy_outcome *outcome);

#endif
