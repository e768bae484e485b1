/*
 * The memory of one sandbox: small blocks from chunks of its own, large ones
 * from malloc, and a cap over both. A request beyond the cap fails and is
 * counted; nothing here knows of Lua but the shape of its allocator.
 */
#ifndef TOOLGATE_SANDBOX_HEAP_H
#define TOOLGATE_SANDBOX_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_SMALL_BYTES   512u /* at most this comes from chunks */
#define HEAP_CHUNK_BYTES   16384u
#define HEAP_GRAIN_BYTES   16u
#define HEAP_CLASSES       (HEAP_SMALL_BYTES / HEAP_GRAIN_BYTES + 1u)
#define HEAP_BEGUN_BYTES   (HEAP_CLASSES * HEAP_CHUNK_BYTES) /* one chunk of each size may be nearly empty */
#define HEAP_REGION_CHUNKS 15u                               /* are asked of malloc together */

struct heap {
    size_t used, cap, slack; /* slack: beyond the cap, while garbage is being collected */
    size_t held; /* large blocks and chunks in use: at most HEAP_BEGUN_BYTES beyond the cap, however blocks of
                    different sizes take turns */
    uint64_t failures;
    struct heap_chunk *room[HEAP_CLASSES]; /* chunks of that size with a free block */
    struct heap_chunk *spare;              /* empty ones, for any size */
    struct heap_region *regions;
    struct heap_large *large;
};

void heap_init(struct heap *heap, size_t cap);
void heap_clear(struct heap *heap); /* everything at once, whether or not Lua has given it back */

/* lua_Alloc; `heap` is a struct heap. */
void *heap_realloc(void *heap, void *block, size_t old_size, size_t new_size);

#endif
