/*
 * The memory of one sandbox: small blocks from chunks of its own, large ones
 * from malloc, and a cap over both. A request beyond the cap fails and is
 * counted; nothing here knows of Lua but the shape of its allocator.
 */
#ifndef TOOLGATE_POLICY_HEAP_H
#define TOOLGATE_POLICY_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_SMALL_BYTES 512u /* at most this comes from chunks */
#define HEAP_CHUNK_BYTES 32768u
#define HEAP_GRAIN_BYTES 16u
#define HEAP_CLASSES     (HEAP_SMALL_BYTES / HEAP_GRAIN_BYTES + 1u)

struct heap {
    size_t used, cap, slack; /* slack: beyond the cap, while garbage is being collected */
    uint64_t failures;
    struct heap_chunk *chunks;
    struct heap_large *large;
    char *at, *end; /* the rest of the newest chunk */
    struct heap_free *free[HEAP_CLASSES];
};

void heap_init(struct heap *heap, size_t cap);
void heap_clear(struct heap *heap); /* everything at once, whether or not Lua has given it back */

/* lua_Alloc; `heap` is a struct heap. */
void *heap_move(void *heap, void *block, size_t old_size, size_t new_size);

#endif
