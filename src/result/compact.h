/*
 * A result that is too large for a model, made small enough by fields and
 * items: ids, titles, the newest, what the goal's words hit and what the call
 * asked about stay; what went is said, and how to get it. Structured results
 * still match their output schema, or are left whole. Errors never come here.
 */
#ifndef TOOLGATE_RESULT_COMPACT_H
#define TOOLGATE_RESULT_COMPACT_H

#include "result/result.h"
#include "catalog/tool.h"

struct compacted {
    bool done;            /* the result below stands for the tool's */
    struct result result; /* content and structured; the rest as it was */
    size_t from, to;      /* bytes that a model reads */
    struct str note;      /* for the model: what was left out, or why nothing could be; empty: it fits */
};

/* False where the result is within the budget: nothing is done then, and nothing allocated. */
bool compact_result(struct arena *arena, const struct tool *tool, const struct json *args, struct str goal,
                    const struct result *result, struct compacted *out);

#endif
