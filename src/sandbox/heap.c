/* A chunk holds blocks of one size, in steps of 16 bytes. Lua passes a block's size when it frees it, and a
 * chunk is aligned to its own size, so small blocks need no header. An empty chunk can serve any other size,
 * so a policy that fills the memory with one size after the other uses no more than the cap. Large blocks
 * come from malloc, where the sanitizer sees an overrun, and are in a list, so that all can be freed without
 * asking Lua. */
#include "sandbox/heap.h"

#include <stdlib.h>
#include <string.h>

struct freed_block {
    struct freed_block *next;
};

struct heap_chunk {
    union {
        LIST_ENTRY(heap_chunk) partial;
        SLIST_ENTRY(heap_chunk) empty;
    };
    struct freed_block *free;
    uint32_t used;        /* blocks */
    uint32_t first_fresh; /* offset from which on no block was ever used */
    uint32_t block_bytes;
    bool is_partial; /* in that list */
};

struct heap_region {
    SLIST_ENTRY(heap_region) next;
};

/* Precedes each large block; 16 bytes, the alignment of blocks. */
struct heap_large {
    LIST_ENTRY(heap_large) all;
};

#define FIRST_OFFSET                                                                                         \
    ((sizeof(struct heap_chunk) + HEAP_GRAIN_BYTES - 1) / HEAP_GRAIN_BYTES * HEAP_GRAIN_BYTES)

void heap_init(struct heap *heap, size_t cap)
{
    *heap = (struct heap){.cap = cap};
}

void heap_clear(struct heap *heap)
{
    for (struct heap_region *region; (region = SLIST_FIRST(&heap->regions));) {
        SLIST_REMOVE_HEAD(&heap->regions, next);
        free(region);
    }
    for (struct heap_large *block; (block = LIST_FIRST(&heap->large));) {
        LIST_REMOVE(block, all);
        free(block);
    }
    *heap = (struct heap){.cap = heap->cap};
}

static size_t class_of(size_t size)
{
    return (size + HEAP_GRAIN_BYTES - 1) / HEAP_GRAIN_BYTES;
}

static bool may_hold(const struct heap *heap, size_t more)
{
    return heap->held + more <= heap->cap + heap->gc_slack + HEAP_SLACK_BYTES;
}

/* The chunk that contains the address. */
static struct heap_chunk *chunk_of(void *block)
{
    return (struct heap_chunk *)((char *)block - (uintptr_t)block % HEAP_CHUNK_BYTES);
}

static void make_partial(struct heap *heap, struct heap_chunk *chunk)
{
    LIST_INSERT_HEAD(&heap->partial[class_of(chunk->block_bytes)], chunk, partial);
    chunk->is_partial = true;
}

static void *alloc_small(struct heap *heap, size_t size)
{
    struct heap_chunk *chunk = LIST_FIRST(&heap->partial[class_of(size)]);
    if (!chunk) {
        if (!may_hold(heap, HEAP_CHUNK_BYTES))
            return NULL;
        if (SLIST_EMPTY(&heap->empty)) {
            struct heap_region *region = malloc((HEAP_REGION_CHUNKS + 1) * (size_t)HEAP_CHUNK_BYTES);
            if (!region)
                return NULL;
            SLIST_INSERT_HEAD(&heap->regions, region, next);
            char *at = (char *)chunk_of((char *)(region + 1) + HEAP_CHUNK_BYTES - 1);
            for (size_t i = HEAP_REGION_CHUNKS; i-- > 0;)
                SLIST_INSERT_HEAD(&heap->empty, (struct heap_chunk *)(at + i * HEAP_CHUNK_BYTES), empty);
        }
        chunk = SLIST_FIRST(&heap->empty);
        SLIST_REMOVE_HEAD(&heap->empty, empty);
        heap->held += HEAP_CHUNK_BYTES;
        *chunk = (struct heap_chunk){.block_bytes = (uint32_t)(class_of(size) * HEAP_GRAIN_BYTES),
                                     .first_fresh = FIRST_OFFSET};
        make_partial(heap, chunk);
    }
    void *block = chunk->free;
    if (block) {
        chunk->free = chunk->free->next;
    } else {
        block = (char *)chunk + chunk->first_fresh;
        chunk->first_fresh += chunk->block_bytes;
    }
    chunk->used++;
    if (!chunk->free && chunk->first_fresh + chunk->block_bytes > HEAP_CHUNK_BYTES) {
        LIST_REMOVE(chunk, partial);
        chunk->is_partial = false;
    }
    return block;
}

static void free_small(struct heap *heap, void *block)
{
    struct heap_chunk *chunk = chunk_of(block);
    struct freed_block *freed = block;
    freed->next = chunk->free;
    chunk->free = freed;
    if (--chunk->used == 0) {
        if (chunk->is_partial)
            LIST_REMOVE(chunk, partial);
        SLIST_INSERT_HEAD(&heap->empty, chunk, empty);
        heap->held -= HEAP_CHUNK_BYTES;
    } else if (!chunk->is_partial) {
        make_partial(heap, chunk);
    }
}

/* `block` NULL: a new one. On failure the old one stays. */
static void *realloc_large(struct heap *heap, void *block, size_t old_size, size_t size)
{
    struct heap_large *old = block ? (struct heap_large *)block - 1 : NULL;
    if (size > old_size && !may_hold(heap, size - old_size))
        return NULL;
    if (old)
        LIST_REMOVE(old, all);
    struct heap_large *moved = realloc(old, sizeof(*moved) + size);
    heap->held += moved ? size - old_size : 0;
    if (moved || old)
        LIST_INSERT_HEAD(&heap->large, moved ? moved : old, all);
    return moved ? moved + 1 : NULL;
}

static void free_block(struct heap *heap, void *block, size_t size)
{
    heap->used -= size;
    if (size <= HEAP_SMALL_BYTES) {
        free_small(heap, block);
        return;
    }
    heap->held -= size;
    LIST_REMOVE((struct heap_large *)block - 1, all);
    free((struct heap_large *)block - 1);
}

static void *fail(struct heap *heap)
{
    heap->failures++;
    return NULL;
}

void *heap_realloc(void *ud, void *block, size_t old_size, size_t new_size)
{
    struct heap *heap = ud;
    if (new_size == 0) {
        if (block)
            free_block(heap, block, old_size);
        return NULL;
    }
    size_t held = block ? old_size : 0;
    bool was_small = held <= HEAP_SMALL_BYTES, is_small = new_size <= HEAP_SMALL_BYTES;
    if (block && was_small && is_small && class_of(old_size) == class_of(new_size)) {
        heap->used += new_size - old_size;
        return block;
    }
    if (new_size > held && heap->used + (new_size - held) > heap->cap + heap->gc_slack)
        return fail(heap);
    if (block && !was_small && !is_small) {
        void *moved = realloc_large(heap, block, old_size, new_size);
        heap->used += moved ? new_size - old_size : 0;
        return moved ? moved : fail(heap);
    }
    void *fresh = is_small ? alloc_small(heap, new_size) : realloc_large(heap, NULL, 0, new_size);
    if (!fresh)
        return fail(heap);
    heap->used += new_size;
    if (block) {
        memcpy(fresh, block, old_size < new_size ? old_size : new_size);
        free_block(heap, block, old_size);
    }
    return fresh;
}
