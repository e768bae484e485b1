/*
 * What the gate decided, as one record: the same in `_meta`, in
 * toolgate/check, in the decision log and in replay.
 */
#ifndef TOOLGATE_GATE_VERDICT_H
#define TOOLGATE_GATE_VERDICT_H

#include "base/buf.h"
#include "gate/error_class.h"
#include "json/value.h"
#include "schema/problem.h"

const char *verdict_name(enum verdict_kind kind);

#define VERDICT_NO_PROGRESS LEDGER_STUCK /* calls in a row */

struct verdict {
    enum verdict_kind kind;
    enum error_class class;
    bool valid;                    /* the arguments, as they stand after mending */
    struct str code, detail, hint; /* empty where there is none */
    struct problems problems;
    const struct json *suggest;      /* arguments to change, as a policy proposed them; NULL: none */
    const struct json *rewrites;     /* JSON Patch array, NULL or empty: nothing was changed */
    uint32_t attempt, attempts_left; /* attempts_left: meaningful where has_budget */
    bool has_budget;
    uint32_t repeats;
    uint32_t no_progress; /* calls in a row that brought nothing new; told from VERDICT_NO_PROGRESS on */
    uint32_t spent;       /* of the same-call budget, this call included; for the feedback only */
    uint64_t used;        /* of the limit that `code` names; likewise */
    bool of_session;      /* it is the whole session's limit; likewise */
    int64_t after_s;      /* wait: seconds; -1 otherwise */
    struct str coverage;  /* "SATISFIED" …; empty: not told */
    const struct json *facts, *follow_up, *next_args, *choices; /* NULL: none */
    struct str would;            /* shadow mode, anonymous sessions: the code of what would have been said */
    struct str quoted;           /* the tool's own words, for the feedback only */
    bool quoted_is_policy;       /* `quoted` is what a policy says of the result */
    struct str warning;          /* ours, beside a result that is delivered all the same */
    struct str compact_note;     /* what was left out of a result that is too large; empty: nothing */
    size_t bytes_from, bytes_to; /* what of it a model would have read, and reads; 0: it was not too large */
    double cost;                 /* what the call really cost; -1: not told */
    uint32_t tries;              /* how often toolgate ran it for this call; told from the second on */
    bool blank;                  /* nothing at all of the result can be seen; for the advice only */
    bool final;                  /* the tool's result ends the run */
    const char *engine;          /* ledger engine that answered */
    const char *stage;           /* where it was decided: "known", "schema", … */
};

static inline bool verdict_is_decided(const struct verdict *verdict)
{
    return verdict->class != CLASS_OK;
}

/* Sets the class, the verdict that goes with it, and the strings, which are borrowed. */
void verdict_set(struct verdict *verdict, enum error_class class, struct str code, struct str detail,
                 struct str hint);

/* Takes back what was decided and found, for a tool in mode shadow or off. `remember` keeps the code of the
 * first error in `would`. What the ledger counted stays. */
void verdict_discard(struct verdict *verdict, struct arena *arena, bool remember);

/* The object of PROTOCOL.md: {"verdict":…,"valid":…,…}. */
void verdict_write(struct buf *out, const struct verdict *verdict);

/* Its JSON Schema, as text, for toolgate/schemas. */
struct str verdict_schema(void);
struct str coverage_schema(void);

#endif
