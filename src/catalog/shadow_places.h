/*
 * Where mode shadow is declared: in policies, and in the defaults of the configuration. `toolgate shadow`
 * names the line that ends it.
 */
#ifndef TOOLGATE_CATALOG_SHADOW_PLACES_H
#define TOOLGATE_CATALOG_SHADOW_PLACES_H

#include "base/str.h"

#include <stddef.h>

struct arena;
struct generation;

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
