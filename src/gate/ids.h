/*
 * Ids in arguments and results: their shape, and whether anybody has ever
 * seen them. An invented id is the one fault that trying again cannot mend.
 */
#ifndef TOOLGATE_GATE_IDS_H
#define TOOLGATE_GATE_IDS_H

#include "catalog/tool.h"

/* The first id whose shape is impossible: where, what it is, what was wanted; false where all fit. */
struct id_fault {
    struct str path, got; /* got: as JSON */
    const char *wanted;
};
bool ids_find_malformed(struct arena *arena, const struct policy *policy, const struct json *args,
                        struct id_fault *fault);

/* Ids that must have been seen before (`seen()` in the policy). */
struct id_candidates {
    struct hash128 hashes[LEDGER_IDS_MAX];
    const struct json *values[LEDGER_IDS_MAX];
    const struct policy_id *from[LEDGER_IDS_MAX];
    size_t count;
};
void ids_collect(const struct policy *policy, const struct json *args, struct id_candidates *out);

/* The first candidate that neither an earlier result nor the user's own words gave; NULL where all are known.
 */
const struct policy_id *ids_find_unseen(struct arena *arena, const struct id_candidates *candidates,
                                        const struct ledger_answer *answer, struct str goal,
                                        struct id_fault *fault);

/* Ids that a result gives, at the paths of `gives_ids`; returns how many, at most LEDGER_GIVEN_IDS_MAX. */
size_t ids_in_result(struct arena *arena, const struct policy *policy, const struct json *result,
                     const struct hash128 **out);

/* The ledger's key of one id: "5" and 5 are the same id. */
struct hash128 ids_hash(const struct json *id);

#endif
