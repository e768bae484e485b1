/*
 * Keeping and accepting. Every change reads the file first, under the lock, so that two daemons on one folder
 * keep what the other has accepted.
 */
#include "catalog/pins.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "catalog/pins_internal.h"

#include <stdlib.h>

/* ---- the table -------------------------------------------------------------- */

struct str pins_key(struct arena *arena, struct str upstream, struct str tool)
{
    return arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(upstream), STR_ARG(tool));
}

struct pins_table pins_table_new(void)
{
    struct arena *arena = arena_new();
    return (struct pins_table){.arena = arena, .by_key = map_new(arena)};
}

void *pins_get(const struct map *map, struct str upstream, struct str tool)
{
    struct arena *arena = arena_new();
    void *found = map_get(map, pins_key(arena, upstream, tool));
    arena_free(arena);
    return found;
}

struct pin *pins_table_find(const struct pins_table *table, struct str upstream, struct str tool)
{
    return pins_get(table->by_key, upstream, tool);
}

void pins_table_put(struct pins_table *table, const struct pin *pin)
{
    struct pin copy = {.upstream = arena_dup(table->arena, pin->upstream),
                       .tool = arena_dup(table->arena, pin->tool),
                       .text = arena_dup(table->arena, pin->text),
                       .digest = pin->digest,
                       .gone_ms = pin->gone_ms};
    struct pin *old = pins_table_find(table, pin->upstream, pin->tool);
    if (old) {
        *old = copy;
        return;
    }
    table->list = arena_grow(table->arena, table->list, table->count, sizeof(*table->list));
    struct pin *added = table->list[table->count++] = ARENA_NEW(table->arena, struct pin);
    *added = copy;
    map_add(table->by_key, pins_key(table->arena, copy.upstream, copy.tool), added);
}

/* Without those that were gone for long; the memory of replaced texts goes, too. */
static void compact_table(struct pins_table *table, struct str drop_upstream, struct str drop_tool)
{
    struct pins_table kept = pins_table_new();
    int64_t now = clock_wall_ms();
    for (size_t i = 0; i < table->count; i++) {
        const struct pin *pin = table->list[i];
        bool dropped = str_eq(pin->upstream, drop_upstream) && str_eq(pin->tool, drop_tool);
        if (!dropped && !(pin->gone_ms && now - pin->gone_ms > PINS_FORGET_MS))
            pins_table_put(&kept, pin);
    }
    arena_free(table->arena);
    *table = kept;
}

struct pins *pins_new(const char *path, const char *witness_path)
{
    struct pins *pins = calloc(1, sizeof(*pins));
    if (!pins)
        abort();
    pins->path = path;
    pins->witness = witness_path;
    pins->table = pins_table_new();
    pins_file_refresh(pins);
    return pins;
}

void pins_free(struct pins *pins)
{
    if (!pins)
        return;
    arena_free(pins->table.arena);
    free(pins);
}

const char *pins_path(const struct pins *pins)
{
    return pins->path;
}

/* ---- a generation went live ----------------------------------------------------- */

static void put_entry(struct pins *pins, const struct pin_entry *entry)
{
    struct arena *arena = arena_new();
    const struct pin pin = {.upstream = entry->upstream,
                            .tool = entry->tool,
                            .text = pin_definition_text(arena, entry->definition),
                            .digest = entry->digest};
    pins_table_put(&pins->table, &pin);
    pins->dirty = true;
    arena_free(arena);
}

static void note_vanished(struct pins *pins, const struct pins_review *review)
{
    int64_t now = clock_wall_ms();
    bool forget = false;
    for (size_t i = 0; i < pins->table.count; i++) {
        struct pin *pin = pins->table.list[i];
        bool offered = pins_review_find(review, pin->upstream, pin->tool) != NULL, listed = offered;
        for (size_t k = 0; !listed && k < review->count; k++)
            listed = str_eq(review->entries[k].upstream, pin->upstream);
        if (listed && offered != !pin->gone_ms) { /* else the server lists nothing at the moment */
            pin->gone_ms = offered ? 0 : now;
            pins->dirty = true;
        }
        forget |= pin->gone_ms && now - pin->gone_ms > PINS_FORGET_MS;
    }
    if (!forget)
        return;
    compact_table(&pins->table, STR_NONE, STR_NONE);
    pins->dirty = true;
}

/* What waited before with the same text was logged then. */
static void log_pending(const struct pins_review *review, const struct pins_review *before)
{
    size_t logged = 0, more = 0;
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = &review->entries[i], *old;
        old = before ? pins_review_find(before, entry->upstream, entry->tool) : NULL;
        bool known = old && pin_is_pending(old) && pin_digest_equal(&old->digest, &entry->digest) &&
                     old->held == entry->held;
        if (!pin_is_pending(entry) || known)
            continue;
        if (logged++ >= PINS_LOGGED_MAX) {
            more++;
            continue;
        }
        log_event(entry->held ? LOG_ERROR : LOG_WARN, "pin_changed", LOG_STR("upstream", entry->upstream),
                  LOG_STR("tool", str_cut(entry->tool, 128)), LOG_TEXT("state", pin_state_name(entry->state)),
                  LOG_TEXT("effect",
                           entry->held ? "it is neither listed nor callable" : "it is served all the same"),
                  LOG_TEXT("do", "toolgate pins"));
    }
    if (more)
        log_event(LOG_WARN, "pins_changed", LOG_NUM("more", more), LOG_TEXT("do", "toolgate pins"));
}

static void log_lost(const struct pins *pins, const struct pins_review *review,
                     const struct pins_review *before)
{
    bool holds = review->mode == PINS_CHANGES || review->mode == PINS_ALL;
    for (size_t i = 0; i < review->lost_count; i++) {
        bool known = false;
        for (size_t k = 0; before && k < before->lost_count; k++)
            known |= str_eq(before->lost[k], review->lost[i]);
        if (!known)
            log_event(
                LOG_ERROR, "pins_lost", LOG_STR("upstream", review->lost[i]), LOG_TEXT("file", pins->path),
                LOG_STR("why", review->lost_why),
                LOG_TEXT("effect", holds ? "none of its tools is listed until it is accepted"
                                         : "its tools are trusted as if they were used for the first time"),
                LOG_TEXT("do", "restore the file and restart, or: toolgate pins"));
    }
}

void pins_commit(struct pins *pins, const struct pins_review *review, const struct pins_review *before)
{
    struct why why;
    if (!pins || !review)
        return;
    log_lost(pins, review, before);
    log_pending(review, before);
    int lock = pins_file_lock(pins, &why);
    if (lock >= 0)
        pins_file_refresh(pins);
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = &review->entries[i];
        /* Another daemon may have pinned another text in the meantime: its pin stays. */
        if (entry->state == PIN_FIRST && !pins_table_find(&pins->table, entry->upstream, entry->tool))
            put_entry(pins, entry);
    }
    note_vanished(pins, review);
    if (pins->dirty && (lock < 0 || pins_file_write(pins, &why) != OK))
        log_event(LOG_ERROR, "pins_not_written", LOG_TEXT("why", why.text),
                  LOG_TEXT("effect", "after a restart these definitions are not known"));
    pins_file_unlock(lock);
}

/* ---- accept ------------------------------------------------------------------------ */

enum err pins_accept(struct pins *pins, const struct pins_review *review, struct str tool, struct str digest,
                     size_t *count, struct why *why)
{
    bool all = str_is(tool, "*");
    const char *slash = tool.len ? memchr(tool.at, '/', tool.len) : NULL; /* an upstream's name has none */
    const struct pin_entry *only = NULL;
    *count = 0;
    if (!all && slash)
        only = pins_review_find(review, (struct str){tool.at, (size_t)(slash - tool.at)},
                                str_from(tool, (size_t)(slash - tool.at) + 1));
    if (!all && !only)
        only = pins_review_published(review, tool);
    if (!all && !only)
        return err_set(why, ERR_NOT_FOUND,
                       "no upstream offers a tool '" STR_FMT "': `toolgate pins` lists them",
                       STR_ARG(str_cut(tool, 128)));
    struct pin_digest shown = only ? only->digest : pins_review_digest(review);
    if (!str_is(digest, shown.hex))
        return err_set(why, ERR_PARSE,
                       "%s " STR_FMT
                       " has the digest %s now, not this one: see what it is with `toolgate pins`, and "
                       "accept that",
                       only ? "tool" : "what waits,", STR_ARG(str_cut(tool, 128)), shown.hex);
    if (only && !pin_is_pending(only))
        return OK;
    int lock = pins_file_lock(pins, why);
    if (lock < 0)
        return ERR_IO;
    pins_file_refresh(pins);
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = &review->entries[i];
        if (!pin_is_pending(entry) || (only && entry != only))
            continue;
        if (entry->state == PIN_RENAMED) /* the vanished tool that it replaces is gone for good */
            compact_table(&pins->table, entry->upstream, entry->was_tool);
        put_entry(pins, entry);
        log_event(LOG_INFO, "pin_accepted", LOG_STR("upstream", entry->upstream),
                  LOG_STR("tool", str_cut(entry->tool, 128)), LOG_TEXT("digest", entry->digest.hex));
        ++*count;
    }
    enum err err = pins_file_write(pins, why);
    pins_file_unlock(lock);
    return err;
}
