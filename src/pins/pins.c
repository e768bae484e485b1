/*
 * Keeping and accepting. Every change reads the file first, under the lock, so that two daemons on one folder
 * keep what the other has accepted.
 */
#include "pins/pins.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "pins/pins_internal.h"

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

/* The list moves when it grows, so the map has places in it. */
struct pin *pins_table_find(const struct pins_table *table, struct str upstream, struct str tool)
{
    struct arena *arena = arena_new();
    const size_t *place = map_get(table->by_key, pins_key(arena, upstream, tool));
    arena_free(arena);
    return place && table->list ? &table->list[*place] : NULL;
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
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 64;
        struct pin *longer = ARENA_ARRAY(table->arena, struct pin, capacity);
        if (table->list)
            memcpy(longer, table->list, table->count * sizeof(*longer));
        table->list = longer;
        table->capacity = capacity;
    }
    size_t *place = ARENA_NEW(table->arena, size_t);
    *place = table->count;
    table->list[table->count++] = copy;
    map_add(table->by_key, pins_key(table->arena, copy.upstream, copy.tool), place);
}

bool pins_table_has_upstream(const struct pins_table *table, struct str upstream)
{
    for (size_t i = 0; i < table->count; i++)
        if (str_eq(table->list[i].upstream, upstream))
            return true;
    return false;
}

/* Without those that were gone for long; the memory of replaced texts goes, too. */
static void compact_table(struct pins_table *table, struct str drop_upstream, struct str drop_tool)
{
    struct pins_table kept = pins_table_new();
    int64_t now = clock_wall_ms();
    for (size_t i = 0; i < table->count; i++) {
        const struct pin *pin = &table->list[i];
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

/* Another daemon may have pinned another text meanwhile: its pin stays. */
static void keep_first(struct pins *pins, const struct pins_review *review)
{
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = &review->entries[i];
        if (entry->state == PIN_FIRST && !pins_table_find(&pins->table, entry->upstream, entry->tool))
            put_entry(pins, entry);
    }
}

static bool was_reviewed(const struct pins_review *review, struct str upstream)
{
    for (size_t i = 0; i < review->count; i++)
        if (str_eq(review->entries[i].upstream, upstream))
            return true;
    return false;
}

static void note_vanished(struct pins *pins, const struct pins_review *review)
{
    int64_t now = clock_wall_ms();
    bool forget = false;
    for (size_t i = 0; i < pins->table.count; i++) {
        struct pin *pin = &pins->table.list[i];
        bool offered = pins_review_find(review, pin->upstream, pin->tool) != NULL;
        if (!offered && !was_reviewed(review, pin->upstream))
            continue; /* the server lists nothing at the moment */
        if (offered == !pin->gone_ms)
            continue;
        pin->gone_ms = offered ? 0 : now;
        pins->dirty = true;
    }
    for (size_t i = 0; i < pins->table.count; i++)
        forget |= pins->table.list[i].gone_ms && now - pins->table.list[i].gone_ms > PINS_FORGET_MS;
    if (!forget)
        return;
    compact_table(&pins->table, STR_NONE, STR_NONE);
    pins->dirty = true;
}

static void log_entry(const struct pin_entry *entry)
{
    log_event(
        entry->held ? LOG_ERROR : LOG_WARN, "pin_changed", LOG_STR("upstream", entry->upstream),
        LOG_STR("tool", str_cut(entry->tool, 128)), LOG_TEXT("state", pin_state_name(entry->state)),
        LOG_TEXT("effect", entry->held ? "it is neither listed nor callable" : "it is served all the same"),
        LOG_TEXT("do", "toolgate pins"));
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
        if (logged++ < PINS_LOGGED_MAX)
            log_entry(entry);
        else
            more++;
    }
    if (more)
        log_event(LOG_WARN, "pins_changed", LOG_NUM("more", more), LOG_TEXT("do", "toolgate pins"));
}

static bool was_lost(const struct pins_review *before, struct str upstream)
{
    for (size_t i = 0; before && i < before->lost_count; i++)
        if (str_eq(before->lost[i], upstream))
            return true;
    return false;
}

static void log_lost(const struct pins *pins, const struct pins_review *review,
                     const struct pins_review *before)
{
    bool holds = review->mode == PINS_CHANGES || review->mode == PINS_ALL;
    for (size_t i = 0; i < review->lost_count; i++)
        if (!was_lost(before, review->lost[i]))
            log_event(
                LOG_ERROR, "pins_lost", LOG_STR("upstream", review->lost[i]), LOG_TEXT("file", pins->path),
                LOG_STR("why", review->lost_why),
                LOG_TEXT("effect", holds ? "none of its tools is listed until it is accepted"
                                         : "its tools are trusted as if they were used for the first time"),
                LOG_TEXT("do", "restore the file and restart, or: toolgate pins"));
}

static void save(struct pins *pins)
{
    struct why why;
    if (pins->dirty && pins_file_write(pins, &why) != OK)
        log_event(LOG_ERROR, "pins_not_written", LOG_TEXT("why", why.text),
                  LOG_TEXT("effect", "after a restart these definitions are not known"));
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
    keep_first(pins, review);
    note_vanished(pins, review);
    if (lock >= 0)
        save(pins);
    else if (pins->dirty)
        log_event(LOG_ERROR, "pins_not_written", LOG_TEXT("why", why.text),
                  LOG_TEXT("effect", "after a restart these definitions are not known"));
    pins_file_unlock(lock);
}

/* ---- accept ------------------------------------------------------------------------ */

static struct pin_entry *find_entry(const struct pins_review *review, struct str tool)
{
    for (size_t i = 0; i < review->count; i++) {
        struct pin_entry *entry = &review->entries[i];
        bool prefixed = tool.len == entry->upstream.len + 1 + entry->tool.len &&
                        str_eq(str_cut(tool, entry->upstream.len), entry->upstream) &&
                        tool.at[entry->upstream.len] == '/' &&
                        str_eq(str_from(tool, entry->upstream.len + 1), entry->tool);
        if (prefixed)
            return entry;
    }
    return pins_review_published(review, tool);
}

/* The vanished tool that a renamed one replaces is gone for good. */
static void take_entry(struct pins *pins, const struct pin_entry *entry)
{
    if (entry->state == PIN_RENAMED)
        compact_table(&pins->table, entry->upstream, entry->was_tool);
    put_entry(pins, entry);
    log_event(LOG_INFO, "pin_accepted", LOG_STR("upstream", entry->upstream),
              LOG_STR("tool", str_cut(entry->tool, 128)), LOG_TEXT("digest", entry->digest.hex));
}

static enum err check_digest(const struct pins_review *review, struct str tool, const struct pin_entry *entry,
                             struct str digest, struct why *why)
{
    struct pin_digest shown = entry ? entry->digest : pins_review_digest(review);
    if (str_is(digest, shown.hex))
        return OK;
    return err_set(why, ERR_PARSE,
                   "%s " STR_FMT
                   " has the digest %s now, not this one: see what it is with `toolgate pins`, and "
                   "accept that",
                   entry ? "tool" : "what waits,", STR_ARG(str_cut(tool, 128)), shown.hex);
}

static enum err store(struct pins *pins, const struct pins_review *review, const struct pin_entry *only,
                      size_t *count, struct why *why)
{
    int lock = pins_file_lock(pins, why);
    if (lock < 0)
        return ERR_IO;
    pins_file_refresh(pins);
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = &review->entries[i];
        if (!pin_is_pending(entry) || (only && entry != only))
            continue;
        take_entry(pins, entry);
        ++*count;
    }
    enum err err = pins_file_write(pins, why);
    pins_file_unlock(lock);
    return err;
}

enum err pins_accept(struct pins *pins, const struct pins_review *review, struct str tool, struct str digest,
                     size_t *count, struct why *why)
{
    bool all = str_is(tool, "*");
    const struct pin_entry *entry = all ? NULL : find_entry(review, tool);
    *count = 0;
    if (!all && !entry)
        return err_set(why, ERR_NOT_FOUND,
                       "no upstream offers a tool '" STR_FMT "': `toolgate pins` lists them",
                       STR_ARG(str_cut(tool, 128)));
    enum err err = check_digest(review, tool, entry, digest, why);
    if (err || (entry && !pin_is_pending(entry)))
        return err;
    return store(pins, review, entry, count, why);
}
