/*
 * What the model reads when a call does not simply pass: a header, one line a
 * problem, the tool's intent and valid parameters, and what to do next with
 * the attempts left. Text from a tool is data here: quoted and cut.
 */
#ifndef TOOLGATE_GATE_FEEDBACK_H
#define TOOLGATE_GATE_FEEDBACK_H

#include "catalog/generation.h"
#include "gate/verdict.h"

#define FEEDBACK_QUOTE_MAX_BYTES       8192u  /* of a tool's own message, where it is a text */
#define FEEDBACK_PASSING_MAX_BYTES     1024u  /* of one that will be nothing in a while */
#define FEEDBACK_DATA_MAX_BYTES        16384u /* of a garbage result, of an error that is JSON */
#define FEEDBACK_PARAMETERS_MAX        24u
#define FEEDBACK_REWRITES_MAX          8u   /* changes to the arguments that are named one by one */
#define FEEDBACK_DESCRIPTION_MAX_BYTES 160u /* of a tool or a parameter */

struct feedback {
    const struct verdict *verdict;
    const struct tool *tool;       /* NULL: unknown */
    struct str name;               /* as the model called it, or as it is called now */
    struct str called;             /* the alias that the model used; empty: none */
    const struct str *suggestions; /* names of tools that may have been meant */
    size_t suggestion_count;
};

struct str feedback_text(struct arena *arena, const struct feedback *feedback);

/* Notes beside a result that passes; empty where there is nothing to say. */
struct str feedback_advice(struct arena *arena, const struct feedback *feedback);

#endif
