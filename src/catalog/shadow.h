/* Where mode shadow is declared: in policies, and in the defaults of the configuration. */
#ifndef TOOLGATE_CATALOG_SHADOW_H
#define TOOLGATE_CATALOG_SHADOW_H

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct generation;
struct policy;

#define SHADOW_EXPIRY_DAY_MS 86400000

/* A mode "shadow" that was to end by a date, and has not. From that date on nothing is enforced that was
 * not: refusing calls overnight that no operator has reviewed does more harm than waiting, as long as status,
 * log and doctor report it. */
struct shadow_expiry {
    const struct policy *policy; /* NULL: the defaults of the configuration */
    struct str file;
    struct str sentence; /* what is wrong, and the fix; the file is not in it */
};

/* Those whose date has come at `now_ms` (since 1970); at 00:00 UTC it has. `out` lives in the arena; its
 * texts as long as both that and the generation. */
size_t shadow_expired(const struct generation *generation, int64_t now_ms, struct arena *arena,
                      struct shadow_expiry **out);

/* `toolgate shadow` names the line that ends the mode. */
struct shadow_place {
    struct str file;
    unsigned line;   /* of `mode = "shadow"`; 0: it is computed */
    bool is_default; /* of the configuration: the mode of all tools but `tools`, whose policies declare theirs
                      */
    const struct str *tools; /* else: those whose mode it is, perhaps beside another policy's */
    size_t tool_count;
};

/* Without those that have no tool yet. In the arena; their texts live as long as the generation. */
size_t shadow_places(const struct generation *generation, struct arena *arena, struct shadow_place **out);

#endif
