/*
 * What the model reads. On an error: a header, one line per problem, the tool's intent and parameters, and
 * what to do next. Beside a result: notes.
 */
#ifndef TOOLGATE_GATE_FEEDBACK_H
#define TOOLGATE_GATE_FEEDBACK_H

#include "catalog/tool.h"
#include "gate/verdict.h"

#define FEEDBACK_QUOTE_MAX_BYTES  8192u  /* of a tool's question, and of an error of before */
#define FEEDBACK_DETAIL_MAX_BYTES 400u   /* of the verdict's detail */
#define FEEDBACK_DATA_MAX_BYTES   16384u /* of an unusable result */
#define FEEDBACK_PARAMETERS_MAX   24u    /* shown with their shape */
#define FEEDBACK_NAMES_MAX        40u    /* of other parameters */
#define FEEDBACK_SHAPE_MAX_BYTES  80u    /* of a parameter whose shape a problem shows already */
#define FEEDBACK_REWRITES_MAX     8u     /* changed arguments that are named one by one */
#define FEEDBACK_INTENT_MAX_BYTES 240u   /* of a tool: its first sentences */

struct feedback {
    const struct verdict *verdict;
    const struct tool *tool;       /* NULL: unknown */
    struct str name;               /* the tool's present name, or as the model called an unknown one */
    struct str alias;              /* as the model called it, if that is an alias; else empty */
    const struct str *suggestions; /* for an unknown tool: names that are close */
    size_t suggestion_count;
    size_t name_count; /* of all tools, if they are few; the suggestions are the first of them */

    /* Written: what the verdict says, too, a sentence each; empty: nothing. */
    struct str detail; /* what is wrong */
    struct str hint;   /* what to do next */

    struct arena *arena; /* while it is written */
    struct buf out;
};

/* For a class that is an error; see the table in verdict.c. */
struct str feedback_text(struct arena *arena, struct feedback *feedback);

/* Notes beside a result; empty: none exist. */
struct str feedback_advice(struct arena *arena, struct feedback *feedback);

/* ---- feedback_budget.c ---- */

struct budget {
    const char *what; /* "it may be called 10 times this turn, and 10 calls were made" */
    const char *next; /* a sentence */
};
/* Of the ledger's `code`. */
struct budget feedback_budget(const struct feedback *feedback, struct str code);
/* After such a pause a poll does not count. */
unsigned feedback_poll_wait_s(const struct tool *tool);

#endif
