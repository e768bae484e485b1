/*
 * What gateway { result = … } does to prompts and resources: secrets are masked and hidden characters
 * removed, as in results of tools; text that reads like an order to a model is reported in `_meta` and in the
 * log, since only the client can put a note beside it.
 */
#ifndef TOOLGATE_SERVER_PASSING_GUARD_H
#define TOOLGATE_SERVER_PASSING_GUARD_H

#include "json/value.h"
#include "policy/policy_set.h"

struct arena;
struct config;

/* Pattern sets (result/pattern_sets.h), of all gateways. */
struct passing_guard {
    unsigned enforced;
    unsigned shadowed; /* only told in the log */
};

struct passing_guard passing_guard_of(const struct policy_set *policies, const struct config *config);

/* The value as clients may see it; itself if nothing in it is masked. NULL: NULL. */
const struct json *passing_guard_mask(struct arena *arena, const struct passing_guard *guard,
                                      const struct json *value);
struct str passing_guard_mask_text(struct arena *arena, const struct passing_guard *guard, struct str text);

/* A sentence for the client if the value holds an order to a model and a gateway looks for them; else empty.
 */
struct str passing_guard_warning(struct arena *arena, const struct passing_guard *guard,
                                 const struct json *value);

/* What is found first in the value, for the log: "an order to a model (pattern ignore_previous) at
 * 'contents[0].text'". Empty: nothing. */
struct str passing_guard_find(struct arena *arena, unsigned sets, const struct json *value);

#endif
