/*
 * Bump allocation in blocks that double in size, all of them 16 KiB times a power of two. First blocks of
 * freed arenas are kept in a small pool, so that a call usually needs no malloc, and of each larger size one
 * block: half the time of a message of a megabyte would go to the kernel, for pages that it takes back in
 * between.
 */
#include "base/arena.h"

#include "base/alloc.h"
#include "base/hash.h"

#define ALIGN_BYTES 8u

struct block {
    struct block *older;
    size_t size; /* of the whole block, this header included */
};

/* Stored at the start of its own first block. */
struct arena {
    struct block *newest;
    char *next, *end;
    size_t bytes;
};

static struct {
    struct block *newest;
    size_t count;
} spares[1 + ARENA_LARGE_SPARES]; /* [i]: of 16 KiB << i */
static size_t large_spare_bytes, live_bytes, malloc_count;

static size_t aligned(size_t n)
{
    return (n + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
}

/* The place in `spares` of a block of this size; behind it: it is not kept. */
static size_t spare_place(size_t size)
{
    return (size_t)__builtin_ctzl(size / ARENA_FIRST_BLOCK_BYTES);
}

static struct block *spare_taken(size_t size)
{
    size_t i = spare_place(size);
    struct block *b = i <= ARENA_LARGE_SPARES ? spares[i].newest : NULL;
    if (!b)
        return NULL;
    spares[i].newest = b->older;
    spares[i].count--;
    large_spare_bytes -= i ? size : 0;
    return b;
}

static bool spare_kept(struct block *b)
{
    size_t i = spare_place(b->size);
    if (i > ARENA_LARGE_SPARES || spares[i].count == (i ? 1 : ARENA_SPARE_BLOCKS))
        return false;
    b->older = spares[i].newest;
    spares[i].newest = b;
    spares[i].count++;
    large_spare_bytes += i ? b->size : 0;
    return true;
}

static struct block *block_new(size_t size)
{
    struct block *b = spare_taken(size);
    if (b)
        return b;
    b = malloc(size);
    if (!b)
        alloc_failed("%zu more bytes needed, arenas hold %zu", size, live_bytes);
    malloc_count++;
    b->size = size;
    return b;
}

static void add_block(struct arena *arena, struct block *b, size_t taken)
{
    b->older = arena->newest;
    arena->newest = b;
    arena->next = (char *)b + taken;
    arena->end = (char *)b + b->size;
    arena->bytes += b->size;
    live_bytes += b->size;
}

struct arena *arena_new(void)
{
    struct block *b = block_new(ARENA_FIRST_BLOCK_BYTES);
    struct arena *arena = (struct arena *)((char *)b + aligned(sizeof(*b)));
    *arena = (struct arena){0};
    add_block(arena, b, aligned(sizeof(*b)) + aligned(sizeof(*arena)));
    return arena;
}

void arena_free(struct arena *arena)
{
    struct block *b = arena ? arena->newest : NULL; /* the arena itself is freed with its oldest block */
    while (b) {
        struct block *older = b->older;
        live_bytes -= b->size;
        if (!spare_kept(b))
            free(b);
        b = older;
    }
}

size_t arena_large_spare_bytes(void)
{
    return large_spare_bytes;
}

void arena_free_large_spares(void)
{
    for (size_t i = 1; i <= ARENA_LARGE_SPARES; i++)
        if (spares[i].count)
            free(spare_taken(ARENA_FIRST_BLOCK_BYTES << i));
}

/* Separate, so that its stack frame costs the usual allocation nothing. Blocks double with the arena: n bytes
 * cost O(log n) mallocs. */
static __attribute__((noinline)) void *alloc_in_new_block(struct arena *arena, size_t size)
{
    size_t block = ARENA_FIRST_BLOCK_BYTES;
    while (block < arena->bytes || block < size + aligned(sizeof(struct block)))
        block *= 2;
    add_block(arena, block_new(block), aligned(sizeof(struct block)));
    void *p = arena->next;
    arena->next += size;
    return p;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    char *p = arena->next;
    size = aligned(size ? size : 1);
    if (size > (size_t)(arena->end - p))
        return alloc_in_new_block(arena, size);
    arena->next = p + size;
    return p;
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
}

char *arena_copy(struct arena *arena, struct str s)
{
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len)
        memcpy(copy, s.at, s.len);
    copy[s.len] = '\0';
    return copy;
}

struct str arena_dup(struct arena *arena, struct str s)
{
    return (struct str){arena_copy(arena, s), s.len};
}

struct str arena_join(struct arena *arena, const struct str *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    char *joined = arena_alloc(arena, len + 1), *at = joined;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len)
            memcpy(at, parts[i].at, parts[i].len);
        at += parts[i].len;
    }
    *at = '\0';
    return (struct str){joined, len};
}

/* Formats into the free end of the newest block, where most strings fit, and only then allocates. */
struct str arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t free_bytes = (size_t)(arena->end - arena->next);
    char *out = arena->next;
    size_t len = (size_t)vsnprintf(out, free_bytes, format, args);
    if (len < free_bytes) {
        arena->next += aligned(len + 1);
    } else {
        out = arena_alloc(arena, len + 1);
        vsnprintf(out, len + 1, format, again);
    }
    va_end(again);
    return (struct str){out, len};
}

struct str arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str s = arena_vprintf(arena, format, args);
    va_end(args);
    return s;
}

struct arena_pool *arena_pool_new(struct arena *arena)
{
    struct arena_pool *pool = ARENA_NEW(arena, struct arena_pool);
    pool->arena = arena;
    return pool;
}

/* `end`: 1 for a NUL behind the bytes; such copies have slots of their own. Two slots a hash, the last one
 * used first, so that no two that repeat evict each other for ever. */
static const char *keep(struct arena_pool *pool, struct str bytes, size_t end)
{
    struct str *slots = &pool->last[hash_seeded(bytes) * 4 % ARENA_POOL_SLOTS + 2 * end], other = slots[1];
    if (slots->at && str_eq(*slots, bytes))
        return slots->at;
    slots[1] = slots[0];
    if (!other.at || !str_eq(other, bytes)) {
        char *copy = arena_alloc(pool->arena, bytes.len + end);
        if (bytes.len)
            memcpy(copy, bytes.at, bytes.len);
        memset(copy + bytes.len, 0, end);
        other = (struct str){copy, bytes.len};
    }
    slots[0] = other;
    return other.at;
}

const void *arena_pool_keep(struct arena_pool *pool, const void *bytes, size_t len)
{
    return keep(pool, (struct str){bytes, len}, 0);
}

struct str arena_pool_dup(struct arena_pool *pool, struct str s)
{
    return (struct str){keep(pool, s, 1), s.len};
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

struct str arena_truncate(struct arena *arena, struct str s, size_t max)
{
    const struct str ellipsis = STR_LIT("…");
    if (s.len <= max)
        return s;
    return ARENA_JOIN(arena, str_cut(s, max > ellipsis.len ? max - ellipsis.len : 0), ellipsis);
}

struct str arena_first_line(struct arena *arena, struct str s, size_t max)
{
    s = str_trim(s);
    return arena_truncate(arena, str_trim(str_split(&s, '\n')), max);
}
