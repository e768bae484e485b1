/*
 * The memory of one sandbox: small blocks from chunks of its own, large ones
 * from malloc, and a cap on both. An allocation beyond the cap fails and is
 * counted. It implements lua_Alloc and depends on nothing else of Lua.
 *
 * Measured instead of it, with 1,000 policies loaded: a capped realloc makes a
 * hook 90% and a whole call 8% slower, LuaJIT's own allocator with a cap 5% and
 * 13%; both use more memory.
 */
#ifndef TOOLGATE_SANDBOX_HEAP_H
#define TOOLGATE_SANDBOX_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define HEAP_SMALL_BYTES   512u /* blocks up to this size are in chunks */
#define HEAP_CHUNK_BYTES   16384u
#define HEAP_GRAIN_BYTES   16u
#define HEAP_CLASSES       (HEAP_SMALL_BYTES / HEAP_GRAIN_BYTES + 1u)
#define HEAP_SLACK_BYTES   (HEAP_CLASSES * HEAP_CHUNK_BYTES) /* one chunk of each class may be nearly empty */
#define HEAP_REGION_CHUNKS 15u                               /* allocated together */

struct heap {
    size_t used, cap, gc_slack; /* gc_slack: allowed beyond the cap during a garbage collection */
    size_t held;                /* chunks and large blocks in use: at most HEAP_SLACK_BYTES beyond the cap */
    uint64_t failures;
    LIST_HEAD(, heap_chunk) partial[HEAP_CLASSES]; /* chunks of that class with a free block */
    SLIST_HEAD(, heap_chunk) empty;                /* chunks for any class */
    SLIST_HEAD(, heap_region) regions;
    LIST_HEAD(, heap_large) large;
};

void heap_init(struct heap *heap, size_t cap);
void heap_clear(struct heap *heap); /* frees all blocks, also those that Lua still uses */

/* lua_Alloc; `heap` is a struct heap. */
void *heap_realloc(void *heap, void *block, size_t old_size, size_t new_size);

#endif
