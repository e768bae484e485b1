/*
 * Size classes of 16 bytes with free lists: what a policy's tables and
 * strings need. Lua tells every block's size when it gives it back, so small
 * blocks carry no header. Large blocks are malloc's, so that an overrun of
 * one is seen by the sanitizer, and in a list, so that all can be given back
 * at once without asking Lua.
 */
#include "policy/heap.h"

#include <stdlib.h>
#include <string.h>

struct heap_chunk {
    struct heap_chunk *next;
    char *pad; /* keeps blocks on 16 bytes */
};

struct heap_free {
    struct heap_free *next;
};

/* Before each large block; 16 bytes, as blocks begin on 16. */
struct heap_large {
    struct heap_large *next, **place; /* place: what points here */
};

void heap_init(struct heap *heap, size_t cap)
{
    *heap = (struct heap){.cap = cap};
}

void heap_clear(struct heap *heap)
{
    while (heap->chunks) {
        struct heap_chunk *next = heap->chunks->next;
        free(heap->chunks);
        heap->chunks = next;
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

static void *take_small(struct heap *heap, size_t size)
{
    size_t class = class_of(size), bytes = class * HEAP_GRAIN_BYTES;
    struct heap_free *found = heap->free[class];
    if (found) {
        heap->free[class] = found->next;
        return found;
    }
    if ((size_t)(heap->end - heap->at) < bytes) {
        struct heap_chunk *chunk = malloc(HEAP_CHUNK_BYTES);
        if (!chunk)
            return NULL;
        chunk->next = heap->chunks;
        heap->chunks = chunk;
        heap->at = (char *)(chunk + 1);
        heap->end = (char *)chunk + HEAP_CHUNK_BYTES;
    }
    void *block = heap->at;
    heap->at += bytes;
    return block;
}

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
    struct heap_large *block = malloc(sizeof(*block) + size);
    return block ? link_large(heap, block) : NULL;
}

static void *resize_large(struct heap *heap, void *at, size_t size)
{
    struct heap_large *block = unlink_large(at), *fresh = realloc(block, sizeof(*block) + size);
    void *linked = link_large(heap, fresh ? fresh : block);
    return fresh ? linked : NULL;
}

static void give_back(struct heap *heap, void *block, size_t size)
{
    heap->used -= size;
    if (size > HEAP_SMALL_BYTES) {
        free(unlink_large(block));
        return;
    }
    struct heap_free *freed = block;
    freed->next = heap->free[class_of(size)];
    heap->free[class_of(size)] = freed;
}

void *heap_move(void *ud, void *block, size_t old_size, size_t new_size)
{
    struct heap *heap = ud;
    if (new_size == 0) {
        if (block)
            give_back(heap, block, old_size);
        return NULL;
    }
    if (block && class_of(old_size) == class_of(new_size) && new_size <= HEAP_SMALL_BYTES) {
        heap->used += new_size - old_size;
        return block;
    }
    size_t held = block ? old_size : 0;
    if (new_size > held && heap->used + (new_size - held) > heap->cap + heap->slack) {
        heap->failures++;
        return NULL;
    }
    void *fresh;
    if (block && old_size > HEAP_SMALL_BYTES && new_size > HEAP_SMALL_BYTES) {
        fresh = resize_large(heap, block, new_size);
        heap->used += fresh ? new_size - old_size : 0;
        heap->failures += !fresh;
        return fresh;
    }
    fresh = new_size > HEAP_SMALL_BYTES ? take_large(heap, new_size) : take_small(heap, new_size);
    if (!fresh) {
        heap->failures++;
        return NULL;
    }
    heap->used += new_size;
    if (block) {
        memcpy(fresh, block, old_size < new_size ? old_size : new_size);
        give_back(heap, block, old_size);
    }
    return fresh;
}
