/*
 * Memory of one call or one generation: allocated in a row, freed whole.
 * An arena never returns NULL. What a peer can size is bounded before it gets
 * here (message, nodes, depth), so running out means the machine is out of
 * memory, and that ends the process with a line that says so.
 */
#ifndef TOOLGATE_BASE_ARENA_H
#define TOOLGATE_BASE_ARENA_H

#include "base/str.h"

#include <stdarg.h>

struct arena;

#define ARENA_FIRST_BLOCK_BYTES 16384u /* what a call usually needs, kept for the next one */
#define ARENA_SPARE_BLOCKS      64u    /* first blocks kept for reuse instead of freed */

struct arena *arena_new(void);
void arena_free(struct arena *arena); /* NULL is fine */

/* Uninitialised, aligned for any type. Size 0 gives a valid unique pointer. */
void *arena_alloc(struct arena *arena, size_t size) __attribute__((malloc, alloc_size(2), returns_nonnull));
void *arena_zalloc(struct arena *arena, size_t size) __attribute__((malloc, alloc_size(2), returns_nonnull));

/* A copy with a NUL after it, so that `.at` may be handed to C functions too. */
struct str arena_dup(struct arena *arena, struct str s);
struct str arena_join(struct arena *arena, const struct str *parts, size_t count); /* NUL-terminated too */
struct str arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct str arena_vprintf(struct arena *arena, const char *format, va_list args);

/* Bytes held by this arena, and by all arenas of the process. */
size_t arena_bytes(const struct arena *arena);
size_t arena_live_bytes(void);

/* How often any arena had to ask malloc for a block: tests count with it. */
size_t arena_malloc_count(void);

/* The text, or of a longer one its beginning and "…": at most `max` bytes with that. */
struct str arena_truncate(struct arena *arena, struct str text, size_t max);
/* The same of its first line, without space around it: somebody else's description within a sentence of ours.
 */
struct str arena_first_line(struct arena *arena, struct str text, size_t max);

/* ARENA_JOIN(arena, STR_LIT("got "), got): a sentence of few parts, without printf's price. */
#define ARENA_JOIN(arena, ...)                                                                               \
    arena_join((arena), (const struct str[]){__VA_ARGS__},                                                   \
               sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

#define ARENA_NEW(arena, type)          ((type *)arena_zalloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_zalloc((arena), (count) * sizeof(type)))

#endif
