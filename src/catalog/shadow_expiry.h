/*
 * Modes "shadow" that were to end by a date, and have not. From that date on nothing is enforced that was
 * not: refusing calls overnight that nobody has reviewed does more harm than waiting, if everybody hears of
 * it.
 */
#ifndef TOOLGATE_CATALOG_SHADOW_EXPIRY_H
#define TOOLGATE_CATALOG_SHADOW_EXPIRY_H

#include "base/str.h"

#include <stdint.h>

struct arena;
struct generation;
struct policy;

#define SHADOW_EXPIRY_DAY_MS 86400000

struct shadow_expiry {
    const struct policy *policy; /* NULL: the defaults of the configuration */
    struct str file;
    struct str sentence; /* what is wrong, and the fix; the file is not in it */
};

/* Those whose date has come at `now_ms` (since 1970); at 00:00 UTC it has. `out` lives in the arena; its
 * texts as long as both that and the generation. */
size_t shadow_expired(const struct generation *generation, int64_t now_ms, struct arena *arena,
                      struct shadow_expiry **out);

#endif
