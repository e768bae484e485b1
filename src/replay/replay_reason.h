/* Why a call was refused, in the words by which a report groups: the failing keyword, the path, the sentence.
 */
#ifndef TOOLGATE_REPLAY_REPLAY_REASON_H
#define TOOLGATE_REPLAY_REPLAY_REASON_H

#include "gate/verdict.h"

struct arena;

/* The keyword that failed, where arguments are invalid; else the verdict's code, or its class. */
struct str replay_reason_code(const struct verdict *verdict);

/* Of the first problem, without indexes; empty: there is none. */
struct str replay_reason_path(struct arena *arena, const struct verdict *verdict);

/* "limit: must be at most 50, got 80". */
struct str replay_reason_of(struct arena *arena, const struct problem *problem);

/* The same of the first problem; of a verdict without problems its detail. */
struct str replay_reason_text(struct arena *arena, const struct verdict *verdict);

/* items[3].name as items[].name: what is wrong is the same. */
struct str replay_reason_without_indexes(struct arena *arena, struct str path);

#endif
