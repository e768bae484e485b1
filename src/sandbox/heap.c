/*
 * Chunks hold blocks of one size each, in steps of 16 bytes. Lua tells every
 * block's size when it gives it back, and a chunk lies at a multiple of its
 * own size, so small blocks carry no header. A chunk whose last block comes back
 * serves any other size: a policy that fills the memory with blocks of one
 * size after the other takes no more than one that fills it once. Large blocks
 * are malloc's, so that an overrun of one is seen by the sanitizer, and in a
 * list, so that all can be given back at once without asking Lua.
 */
#include "sandbox/heap.h"

#include <stdlib.h>
#include <string.h>

struct heap_free {
    struct heap_free *next;
};

struct heap_chunk {
    struct heap_chunk *next, *before; /* in `room` or `spare`; neither where it is full */
    struct heap_free *free;           /* given back */
    uint32_t used, fresh;             /* blocks; the offset behind which none was ever given out */
    uint32_t bytes;                   /* a block's */
    bool in_room;
};

struct heap_region {
    struct heap_region *next;
};

/* Before each large block; 16 bytes, as blocks begin on 16. */
struct heap_large {
    struct heap_large *next, **place; /* place: what points here */
};

#define FIRST_OFFSET                                                                                         \
    ((sizeof(struct heap_chunk) + HEAP_GRAIN_BYTES - 1) / HEAP_GRAIN_BYTES * HEAP_GRAIN_BYTES)

void heap_init(struct heap *heap, size_t cap)
{
    *heap = (struct heap){.cap = cap};
}

void heap_clear(struct heap *heap)
{
    while (heap->regions) {
        struct heap_region *next = heap->regions->next;
        free(heap->regions);
        heap->regions = next;
    }
    while (heap->large) {
        struct heap_large *next = heap->large->next;
        free(heap->large);
        heap->large = next;
    }
    *heap = (struct heap){.cap = heap->cap};
}

static size_t class_of(size_t size)
{
    return (size + HEAP_GRAIN_BYTES - 1) / HEAP_GRAIN_BYTES;
}

/* ---- chunks ------------------------------------------------------------------------ */

/* The one that the block lies in. */
static struct heap_chunk *chunk_of(void *block)
{
    return (struct heap_chunk *)((char *)block - (uintptr_t)block % HEAP_CHUNK_BYTES);
}

static void enter_room(struct heap *heap, struct heap_chunk *chunk)
{
    struct heap_chunk **first = &heap->room[class_of(chunk->bytes)];
    chunk->before = NULL;
    chunk->next = *first;
    if (*first)
        (*first)->before = chunk;
    *first = chunk;
    chunk->in_room = true;
}

static void leave_room(struct heap *heap, struct heap_chunk *chunk)
{
    if (chunk->before)
        chunk->before->next = chunk->next;
    else
        heap->room[class_of(chunk->bytes)] = chunk->next;
    if (chunk->next)
        chunk->next->before = chunk->before;
    chunk->in_room = false;
}

static bool may_hold(const struct heap *heap, size_t more)
{
    return heap->held + more <= heap->cap + heap->slack + HEAP_BEGUN_BYTES;
}

/* Chunks from malloc, all spare. */
static void new_region(struct heap *heap)
{
    struct heap_region *region = malloc((HEAP_REGION_CHUNKS + 1) * (size_t)HEAP_CHUNK_BYTES);
    if (!region)
        return;
    region->next = heap->regions;
    heap->regions = region;
    char *at = (char *)chunk_of((char *)(region + 1) + HEAP_CHUNK_BYTES - 1);
    for (size_t i = HEAP_REGION_CHUNKS; i-- > 0;) {
        struct heap_chunk *chunk = (struct heap_chunk *)(at + i * HEAP_CHUNK_BYTES);
        chunk->next = heap->spare;
        heap->spare = chunk;
    }
}

static struct heap_chunk *new_chunk(struct heap *heap, uint32_t bytes)
{
    if (!may_hold(heap, HEAP_CHUNK_BYTES))
        return NULL;
    if (!heap->spare)
        new_region(heap);
    struct heap_chunk *chunk = heap->spare;
    if (!chunk)
        return NULL;
    heap->spare = chunk->next;
    heap->held += HEAP_CHUNK_BYTES;
    *chunk = (struct heap_chunk){.bytes = bytes, .fresh = FIRST_OFFSET};
    enter_room(heap, chunk);
    return chunk;
}

static void drop_chunk(struct heap *heap, struct heap_chunk *chunk)
{
    leave_room(heap, chunk);
    chunk->next = heap->spare;
    heap->spare = chunk;
    heap->held -= HEAP_CHUNK_BYTES;
}

/* ---- small blocks -------------------------------------------------------------------- */

static void *take_small(struct heap *heap, size_t size)
{
    struct heap_chunk *chunk = heap->room[class_of(size)];
    if (!chunk && !(chunk = new_chunk(heap, (uint32_t)(class_of(size) * HEAP_GRAIN_BYTES))))
        return NULL;
    void *block = chunk->free;
    if (block) {
        chunk->free = chunk->free->next;
    } else {
        block = (char *)chunk + chunk->fresh;
        chunk->fresh += chunk->bytes;
    }
    chunk->used++;
    if (!chunk->free && chunk->fresh + chunk->bytes > HEAP_CHUNK_BYTES)
        leave_room(heap, chunk);
    return block;
}

static void give_back_small(struct heap *heap, void *block)
{
    struct heap_chunk *chunk = chunk_of(block);
    struct heap_free *freed = block;
    freed->next = chunk->free;
    chunk->free = freed;
    if (!chunk->in_room)
        enter_room(heap, chunk);
    if (--chunk->used == 0)
        drop_chunk(heap, chunk);
}

/* ---- large ones ------------------------------------------------------------------------ */

static void *link_large(struct heap *heap, struct heap_large *block)
{
    block->next = heap->large;
    block->place = &heap->large;
    if (block->next)
        block->next->place = &block->next;
    heap->large = block;
    return block + 1;
}

static struct heap_large *unlink_large(void *at)
{
    struct heap_large *block = (struct heap_large *)at - 1;
    *block->place = block->next;
    if (block->next)
        block->next->place = block->place;
    return block;
}

static void *take_large(struct heap *heap, size_t size)
{
    struct heap_large *block = may_hold(heap, size) ? malloc(sizeof(*block) + size) : NULL;
    heap->held += block ? size : 0;
    return block ? link_large(heap, block) : NULL;
}

static void *resize_large(struct heap *heap, void *at, size_t old_size, size_t size)
{
    if (size > old_size && !may_hold(heap, size - old_size))
        return NULL;
    struct heap_large *block = unlink_large(at), *fresh = realloc(block, sizeof(*block) + size);
    void *linked = link_large(heap, fresh ? fresh : block);
    heap->held += fresh ? size - old_size : 0;
    return fresh ? linked : NULL;
}

/* ---- any --------------------------------------------------------------------------------- */

static void give_back(struct heap *heap, void *block, size_t size)
{
    heap->used -= size;
    if (size <= HEAP_SMALL_BYTES) {
        give_back_small(heap, block);
        return;
    }
    heap->held -= size;
    free(unlink_large(block));
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
            give_back(heap, block, old_size);
        return NULL;
    }
    size_t held = block ? old_size : 0;
    bool was_small = held <= HEAP_SMALL_BYTES, is_small = new_size <= HEAP_SMALL_BYTES;
    if (block && was_small && is_small && class_of(old_size) == class_of(new_size)) {
        heap->used += new_size - old_size;
        return block;
    }
    if (new_size > held && heap->used + (new_size - held) > heap->cap + heap->slack)
        return fail(heap);
    if (block && !was_small && !is_small) {
        void *moved = resize_large(heap, block, old_size, new_size);
        heap->used += moved ? new_size - old_size : 0;
        return moved ? moved : fail(heap);
    }
    void *fresh = is_small ? take_small(heap, new_size) : take_large(heap, new_size);
    if (!fresh)
        return fail(heap);
    heap->used += new_size;
    if (block) {
        memcpy(fresh, block, old_size < new_size ? old_size : new_size);
        give_back(heap, block, old_size);
    }
    return fresh;
}
