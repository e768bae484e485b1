/*
 * The outcome classes of a call. Everything that depends on the class alone is a column of the one table in
 * error_class.c; to add a class, add its enum constant and its row.
 */
#ifndef TOOLGATE_GATE_ERROR_CLASS_H
#define TOOLGATE_GATE_ERROR_CLASS_H

#include "ledger/ledger.h"

struct feedback_writer;

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
     * NEXT", unless a policy gave a hint. A headline that is a whole sentence stands alone. `write` replaces
     * all of it. */
    const char *headline, *next;
    void (*write)(const struct feedback_writer *w);
};

extern const struct error_class_info error_class_table[CLASS_COUNT];

static inline const struct error_class_info *error_class_info(enum error_class class)
{
    return &error_class_table[class];
}

/* OK, or ERR_NOT_FOUND if `name` is no class's wire name. */
enum err error_class_named(struct str name, enum error_class *out);

#endif
