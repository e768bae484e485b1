/*
 * Ids in arguments and results: whether an argument can be an id at all, and whether an earlier result or the
 * user gave it. The model cannot repair an id that it made up; it has to look it up.
 */
#ifndef TOOLGATE_GATE_IDS_H
#define TOOLGATE_GATE_IDS_H

#include "catalog/tool.h"

struct id_fault {
    struct str path, got; /* got: as JSON */
    const char *wanted;   /* the expected format; NULL for an unseen id */
};

/* The first argument whose format is impossible; false: none exists. */
bool ids_find_malformed(struct arena *arena, const struct policy *policy, const struct json *args,
                        struct id_fault *fault);

/* The arguments that the policy marks with seen(), each value once. */
struct id_candidates {
    struct hash128 hashes[LEDGER_IDS_MAX];
    const struct json *values[LEDGER_IDS_MAX];
    const struct policy_id *from[LEDGER_IDS_MAX];
    size_t count;
    const struct policy_id *too_many; /* of these there were more than the ledger can be asked for; NULL */
};
/* Adds those of the policy. */
void ids_collect(struct arena *arena, const struct policy *policy, const struct json *args,
                 struct id_candidates *out);

/* The first candidate that neither an earlier result nor the goal contains, but for those of `except`, a set
 * of bits; NULL: none exists. */
const struct policy_id *ids_find_unseen(struct arena *arena, const struct id_candidates *candidates,
                                        const struct ledger_answer *answer, uint64_t except, struct str goal,
                                        struct id_fault *fault);

/* The id as JSON, cut if it is long. */
struct str ids_quoted(struct arena *arena, const struct json *id);

#define IDS_GOAL_MAX_BYTES 8192u /* of a goal; what is longer is not searched */

/* Whether the goal contains the id as a whole token, in any case: 5 in "order 5", not in "15" or "INV-5". */
bool ids_in_goal(struct str goal, struct str id);

/* The ids at the paths of `gives_ids`, in the arena; returns how many, at most LEDGER_GIVEN_IDS_MAX. */
size_t ids_in_result(struct arena *arena, const struct policy *policy, const struct json *result,
                     const struct hash128 **out);

/* The ledger's key of one id: "5" and 5 are the same id. */
static inline struct hash128 ids_hash(const struct json *id)
{
    return hash_stable((struct str){id->text, id->len});
}

#endif
