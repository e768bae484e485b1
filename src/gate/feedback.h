/*
 * What the model reads. On an error: a header, one line per problem, the tool's intent and parameters, and
 * what to do next. Beside a result: notes.
 */
#ifndef TOOLGATE_GATE_FEEDBACK_H
#define TOOLGATE_GATE_FEEDBACK_H

#include "catalog/tool.h"
#include "gate/verdict.h"

#define FEEDBACK_QUOTE_MAX_BYTES       8192u  /* of a tool's own message */
#define FEEDBACK_TRANSIENT_MAX_BYTES   1024u  /* of the message of a transient failure */
#define FEEDBACK_DATA_MAX_BYTES        16384u /* of an unusable result, and of a message that is JSON */
#define FEEDBACK_PARAMETERS_MAX        24u
#define FEEDBACK_REWRITES_MAX          8u   /* changed arguments that are named one by one */
#define FEEDBACK_DESCRIPTION_MAX_BYTES 160u /* of a tool or a parameter */

struct feedback {
    const struct verdict *verdict;
    const struct tool *tool;       /* NULL: unknown */
    struct str name;               /* the tool's present name, or as the model called an unknown one */
    struct str alias;              /* as the model called it, if that is an alias; else empty */
    const struct str *suggestions; /* for an unknown tool: names that are close */
    size_t suggestion_count;
};

/* For a class that is an error; see the table in error_class.c. */
struct str feedback_text(struct arena *arena, const struct feedback *feedback);

/* Notes beside a result; empty: there are none. */
struct str feedback_advice(struct arena *arena, const struct feedback *feedback);

#endif
