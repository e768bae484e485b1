/* Bump allocation in blocks; the first block of a finished arena is kept for the next. */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGN_BYTES 16u

struct block {
    struct block *older;
    size_t size; /* of the whole block, this header included */
};

/* Lives at the start of its own first block: a call's memory is one malloc, usually none. */
struct arena {
    struct block *newest;
    char *at, *end;
    size_t bytes;
};

static struct block *spares[ARENA_SPARE_BLOCKS];
static size_t spare_count, live_bytes, malloc_count;

static size_t aligned(size_t n)
{
    return (n + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
}

static struct block *block_new(size_t size)
{
    if (size == ARENA_FIRST_BLOCK_BYTES && spare_count > 0)
        return spares[--spare_count];
    struct block *b = malloc(size);
    if (!b) {
        fprintf(stderr, "toolgate: out of memory (%zu bytes more wanted, %zu held by calls)\n", size,
                live_bytes);
        abort();
    }
    malloc_count++;
    b->size = size;
    return b;
}

static void block_free(struct block *b)
{
    live_bytes -= b->size;
    if (b->size == ARENA_FIRST_BLOCK_BYTES && spare_count < ARENA_SPARE_BLOCKS)
        spares[spare_count++] = b;
    else
        free(b);
}

static void use_block(struct arena *arena, struct block *b, size_t taken)
{
    b->older = arena->newest;
    arena->newest = b;
    arena->at = (char *)b + taken;
    arena->end = (char *)b + b->size;
    arena->bytes += b->size;
    live_bytes += b->size;
}

struct arena *arena_new(void)
{
    struct block *b = block_new(ARENA_FIRST_BLOCK_BYTES);
    struct arena *arena = (struct arena *)((char *)b + aligned(sizeof(*b)));
    *arena = (struct arena){0};
    use_block(arena, b, aligned(sizeof(*b)) + aligned(sizeof(*arena)));
    return arena;
}

void arena_free(struct arena *arena)
{
    if (!arena)
        return;
    struct block *b = arena->newest; /* the arena itself dies with its oldest block */
    while (b) {
        struct block *older = b->older;
        block_free(b);
        b = older;
    }
}

/* Blocks double with the arena, so that n bytes cost O(log n) mallocs. */
static void grow(struct arena *arena, size_t wanted)
{
    size_t size = arena->bytes;
    while (size < wanted + aligned(sizeof(struct block)))
        size *= 2;
    use_block(arena, block_new(size), aligned(sizeof(struct block)));
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size = aligned(size ? size : 1);
    if (size > (size_t)(arena->end - arena->at))
        grow(arena, size);
    void *p = arena->at;
    arena->at += size;
    return p;
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    void *p = arena_alloc(arena, size);
    memset(p, 0, size);
    return p;
}

struct str arena_dup(struct arena *arena, struct str s)
{
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len)
        memcpy(copy, s.at, s.len);
    copy[s.len] = '\0';
    return (struct str){copy, s.len};
}

struct str arena_join(struct arena *arena, const struct str *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    char *text = arena_alloc(arena, len + 1), *at = text;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len)
            memcpy(at, parts[i].at, parts[i].len);
        at += parts[i].len;
    }
    *at = '\0';
    return (struct str){text, len};
}

/* Written where the arena goes on, which is where the text would go: mostly it fits, and is formatted once.
 */
struct str arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t room = (size_t)(arena->end - arena->at);
    char *text = arena->at;
    size_t n = (size_t)vsnprintf(text, room, format, args);
    if (n < room) {
        arena->at += aligned(n + 1);
    } else {
        text = arena_alloc(arena, n + 1);
        vsnprintf(text, n + 1, format, again);
    }
    va_end(again);
    return (struct str){text, n};
}

struct str arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str s = arena_vprintf(arena, format, args);
    va_end(args);
    return s;
}

size_t arena_bytes(const struct arena *arena)
{
    return arena->bytes;
}

size_t arena_live_bytes(void)
{
    return live_bytes;
}

size_t arena_malloc_count(void)
{
    return malloc_count;
}

struct str arena_truncate(struct arena *arena, struct str text, size_t max)
{
    const struct str ellipsis = STR_LIT("…");
    if (text.len <= max)
        return text;
    return ARENA_JOIN(arena, str_cut(text, max > ellipsis.len ? max - ellipsis.len : 0), ellipsis);
}

struct str arena_first_line(struct arena *arena, struct str text, size_t max)
{
    text = str_trim(text);
    const char *newline = text.len ? memchr(text.at, '\n', text.len) : NULL;
    if (newline)
        text.len = (size_t)(newline - text.at);
    return arena_truncate(arena, str_trim(text), max);
}
