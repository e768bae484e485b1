/*
 * An arena holds the memory of one call or one generation: bump allocation,
 * freed as a whole. It never returns NULL. Everything a peer can size is
 * bounded earlier (message, nodes, depth), so an allocation that fails means
 * the machine is out of memory, and the process ends with a message.
 */
#ifndef TOOLGATE_BASE_ARENA_H
#define TOOLGATE_BASE_ARENA_H

#include "base/str.h"

#include <stdarg.h>

struct arena;

#define ARENA_FIRST_BLOCK_BYTES 16384u /* enough for most calls */
#define ARENA_SPARE_BLOCKS      64u    /* freed first blocks kept for reuse */
#define ARENA_LARGE_SPARES      11u    /* sizes from 32 KiB to 32 MiB of which one freed block is kept, too */

struct arena *arena_new(void);
void arena_free(struct arena *arena); /* accepts NULL */

/* Uninitialised, aligned for pointers and numbers of 64 bits: of two sizes, one wastes nothing. Size 0
 * returns a valid unique pointer. */
void *arena_alloc(struct arena *arena, size_t size) __attribute__((malloc, alloc_size(2), returns_nonnull));
void *arena_zalloc(struct arena *arena, size_t size) __attribute__((malloc, alloc_size(2), returns_nonnull));

/* The strings that these return end with a NUL, so `.at` may be passed to C functions. */
struct str arena_dup(struct arena *arena, struct str s);
/* The same bytes and a NUL, for the caller to change. */
char *arena_copy(struct arena *arena, struct str s);
struct str arena_join(struct arena *arena, const struct str *parts, size_t count);
struct str arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct str arena_vprintf(struct arena *arena, const char *format, va_list args);

/* Copies of what repeats: equal bytes are kept once, as long as the pool remembers them. It knows the last
 * of each hash only, so that bytes that never repeat cost nothing. */
#define ARENA_POOL_SLOTS 1024u
struct arena_pool {
    struct arena *arena;
    struct str last[ARENA_POOL_SLOTS];
};
struct arena_pool *arena_pool_new(struct arena *arena);
const void *arena_pool_keep(struct arena_pool *pool, const void *bytes, size_t len);
struct str arena_pool_dup(struct arena_pool *pool, struct str s); /* ends with a NUL, as those above */

/* Bytes held by this arena, and by all arenas of the process. */
size_t arena_bytes(const struct arena *arena);
size_t arena_live_bytes(void);

/* Bytes of the freed larger blocks that are kept, at most 64 MiB; and their return to the system, for when no
 * large message came for a while. */
size_t arena_large_spare_bytes(void);
void arena_free_large_spares(void);

/* How many blocks all arenas have requested from malloc, for tests. */
size_t arena_malloc_count(void);

/* The string itself, or its beginning and "…" if it is longer than `max` bytes. */
struct str arena_truncate(struct arena *arena, struct str s, size_t max);
/* The first line without surrounding white space, truncated in the same way: for quoting in a sentence of
 * ours. */
struct str arena_first_line(struct arena *arena, struct str s, size_t max);

/* ARENA_JOIN(arena, STR_LIT("got "), got) joins a few strings without the cost of printf. */
#define ARENA_JOIN(arena, ...)                                                                               \
    arena_join((arena), (const struct str[]){__VA_ARGS__},                                                   \
               sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

/* Zeroed where the size is known: the compiler then needs no call of memset. */
#define ARENA_NEW(arena, type)          ((type *)memset(arena_alloc((arena), sizeof(type)), 0, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_zalloc((arena), (count) * sizeof(type)))

/* A list with room for one more element after its `count` of `size` bytes: `list` itself, or a copy with
 * twice the room when the count has reached a power of two. Lists that only grow by this need no capacity. */
static inline void *arena_grow(struct arena *arena, void *list, size_t count, size_t size)
{
    if (count & (count - 1))
        return list;
    void *longer = arena_zalloc(arena, (count ? 2 * count : 1) * size);
    return count ? memcpy(longer, list, count * size) : longer;
}

#endif
