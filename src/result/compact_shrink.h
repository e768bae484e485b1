/*
 * One value made smaller, part by part, to a number of bytes. What stays is
 * chosen by what compact_tree.h knows of each part; what goes is remembered,
 * so that it can be said. Only compact.c includes this header.
 */
#ifndef TOOLGATE_RESULT_COMPACT_SHRINK_H
#define TOOLGATE_RESULT_COMPACT_SHRINK_H

#include "result/compact_tree.h"

#define COMPACT_PATH_MAX_BYTES 80u /* of a place that is named: what names it is the tool's */
#define COMPACT_OMISSIONS_MAX  8u  /* places that are named; the rest are counted */

enum compact_omission_kind { OMITTED_ITEMS, OMITTED_DETAIL, OMITTED_FIELD, OMITTED_TEXT };

struct omission {
    enum compact_omission_kind kind;
    struct str path;
    uint64_t count, of; /* items or bytes that went, of so many */
};

struct shrink_ctx {
    struct arena *arena;
    const struct compact_rules *rules;
    bool items_only; /* whole items go, and nothing else: for a schema that allows no less */
    struct omission omissions[COMPACT_OMISSIONS_MAX];
    size_t count, more;
};

/* At most about `budget` bytes, where that can be had. */
struct json compact_shrink(struct shrink_ctx *s, const struct node *root, size_t budget);

void compact_note_omission(struct shrink_ctx *s, enum compact_omission_kind kind, const struct node *at,
                           uint64_t count, uint64_t of);

#endif
