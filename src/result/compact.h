/*
 * Compaction: a result that exceeds the tool's byte or token budget loses
 * fields and items. Ids, titles, the newest items, and what the goal or the
 * arguments name stay; a note reports what was left out and how to get it. A
 * structured result still matches its output schema, or stays whole. The
 * caller leaves errors out.
 */
#ifndef TOOLGATE_RESULT_COMPACT_H
#define TOOLGATE_RESULT_COMPACT_H

#include "result/result.h"
#include "catalog/tool.h"

struct compaction {
    bool done;            /* `result` replaces the tool's */
    struct result result; /* with new content and structured */
    size_t from, to;      /* bytes that a model reads */
    struct str note;      /* for the model: what was left out, or why nothing could be */
};

/* False if the result is within the budget: `out` is then the result itself, and nothing is allocated. */
bool compact_result(struct arena *arena, const struct tool *tool, const struct json *args, struct str goal,
                    const struct result *result, struct compaction *out);

#endif
