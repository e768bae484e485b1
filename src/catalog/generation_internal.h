/* The struct behind a generation. Only generation.c and generation_build.c include this header. */
#ifndef TOOLGATE_CATALOG_GENERATION_INTERNAL_H
#define TOOLGATE_CATALOG_GENERATION_INTERNAL_H

#include "catalog/generation.h"

struct map;

struct generation {
    struct arena *arena;
    struct config config;
    struct policy_set *policies;
    struct tool_list **tool_lists; /* one per configured upstream, referenced; NULL entries: none yet */
    struct map *by_name;           /* names and aliases to tools */
    struct tool **tools;           /* sorted by name */
    size_t tool_count, tool_capacity;
    struct str hash;
    uint64_t number, list_hash;
    struct str *warnings;
    size_t warning_count;
    struct generation_cache cache;
    unsigned references;
};

#endif
