/*
 * A state for each definition. Names are compared within one upstream: what it offers now, what is pinned of
 * it, and what has vanished.
 */
#include "catalog/pins_review.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/suggest.h"
#include "json/build.h"
#include "json/canonical.h"
#include "json/write.h"
#include "catalog/pins_internal.h"

#include <stdio.h>

struct str pin_definition_text(struct arena *arena, const struct json *definition)
{
    /* Those that catalog/definition.c passes on, and the name. */
    static const char *const names[] = {"name",         "title",       "description", "inputSchema",
                                        "outputSchema", "annotations", "icons",       "_meta"};
    struct json_member members[sizeof(names) / sizeof(names[0])];
    struct buf text = buf_in(arena);
    size_t count = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct json *value = json_get_text(definition, names[i]);
        if (value)
            members[count++] = json_member(str_of(names[i]), *value);
    }
    struct json pinned = json_object(arena, members, count);
    json_canonical(&text, &pinned);
    return buf_view(&text);
}

struct pin_digest pin_digest_of(struct str text)
{
    uint8_t bytes[SHA256_BYTES];
    struct pin_digest digest;
    sha256(text, bytes);
    for (unsigned i = 0; i < PIN_DIGEST_DIGITS / 2; i++)
        snprintf(digest.hex + 2 * i, 3, "%02x", bytes[i]);
    return digest;
}

const char *pin_state_name(enum pin_state state)
{
    static const char *const names[] = {
        [PIN_ACCEPTED] = "accepted", [PIN_FIRST] = "first", [PIN_CHANGED] = "changed",
        [PIN_RENAMED] = "renamed",   [PIN_NEW] = "new",     [PIN_LOST] = "lost"};
    return names[state];
}

struct pins_review *pins_review_new(struct arena *arena, struct pins *pins, enum pins_mode mode)
{
    if (!pins || mode == PINS_OFF)
        return NULL;
    struct pins_review *review = ARENA_NEW(arena, struct pins_review);
    *review = (struct pins_review){.arena = arena, .pins = pins, .mode = mode, .by_key = map_new(arena)};
    pins_file_refresh(pins);
    return review;
}

void pins_review_open(struct pins_review *review, struct str upstream)
{
    review->first = review->count;
    review->upstream = upstream;
}

void pins_review_tool(struct pins_review *review, const struct json *definition)
{
    struct str tool = json_str(json_get_text(definition, "name"));
    struct str key = pins_key(review->arena, review->upstream, tool);
    if (!tool.len || map_get(review->by_key, key))
        return;
    review->entries = arena_grow(review->arena, review->entries, review->count, sizeof(*review->entries));
    struct arena *scratch = arena_new();
    size_t *place = ARENA_NEW(review->arena, size_t);
    *place = review->count;
    struct pin_entry *entry = &review->entries[review->count++];
    *entry = (struct pin_entry){.upstream = review->upstream,
                                .tool = tool,
                                .definition = definition,
                                .digest = pin_digest_of(pin_definition_text(scratch, definition))};
    map_add(review->by_key, key, place);
    arena_free(scratch);
}

struct pin_entry *pins_review_find(const struct pins_review *review, struct str upstream, struct str tool)
{
    const size_t *place = review ? pins_get(review->by_key, upstream, tool) : NULL;
    return place ? &review->entries[*place] : NULL;
}

struct pin_entry *pins_review_published(const struct pins_review *review, struct str name)
{
    for (size_t i = 0; i < review->count; i++)
        if (str_eq(review->entries[i].published, name))
            return &review->entries[i];
    return NULL;
}

/* ---- at the end of an upstream ----------------------------------------------------- */

/* The pins of this upstream that it offers no more, since the last week. */
static size_t vanished(const struct pins_review *review, struct arena *arena, const struct pin ***out)
{
    const struct pins_table *table = &review->pins->table;
    const struct pin **list = ARENA_ARRAY(arena, const struct pin *, table->count + 1);
    int64_t now = clock_wall_ms();
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct pin *pin = table->list[i];
        if (str_eq(pin->upstream, review->upstream) &&
            !(pin->gone_ms && now - pin->gone_ms > PINS_RENAME_MS) &&
            !pins_review_find(review, pin->upstream, pin->tool))
            list[count++] = pin;
    }
    *out = list;
    return count;
}

/* An upstream that has no pins yet is trusted on first use, unless it had some once. */
static bool is_lost(struct pins_review *review, bool *first_use)
{
    struct pins *pins = review->pins;
    *first_use = true;
    for (size_t i = 0; i < pins->table.count; i++)
        *first_use &= !str_eq(pins->table.list[i]->upstream, review->upstream);
    if (!*first_use || pins->broken)
        return *first_use;
    struct arena *arena = arena_new();
    bool known = pins_file_has_line(pins_file_witness(pins, arena), review->upstream);
    arena_free(arena);
    return known;
}

static void judge(struct pins_review *review, struct pin_entry *entry, bool first_use, bool lost,
                  const struct pin *const *gone, size_t gone_count)
{
    const struct pin *pin = pins_table_find(&review->pins->table, entry->upstream, entry->tool);
    bool holds = review->mode == PINS_CHANGES || review->mode == PINS_ALL;
    if (pin && pin_digest_equal(&pin->digest, &entry->digest))
        return;
    if (pin)
        entry->state = PIN_CHANGED;
    else if (lost && holds)
        entry->state = PIN_LOST;
    else if (gone_count && !first_use)
        entry->state = PIN_RENAMED;
    else
        entry->state = review->mode == PINS_ALL && !first_use ? PIN_NEW : PIN_FIRST;
    /* The vanished tool that the new name most likely stands for: shown beside it, and given up when it is
     * accepted. */
    for (size_t i = 0; entry->state == PIN_RENAMED && i < gone_count; i++)
        if (!pin || suggest_score(entry->tool, gone[i]->tool) > suggest_score(entry->tool, pin->tool))
            pin = gone[i];
    if (pin) {
        entry->was_tool = arena_dup(review->arena, pin->tool);
        entry->was_text = arena_dup(review->arena, pin->text);
        entry->was_digest = pin->digest;
    }
    if (!pin_is_pending(entry))
        return;
    entry->held = review->mode != PINS_WARN;
    review->pending++;
    review->held += entry->held;
}

void pins_review_close(struct pins_review *review)
{
    struct arena *arena = arena_new();
    const struct pin **gone;
    bool first_use, lost = is_lost(review, &first_use);
    size_t gone_count = vanished(review, arena, &gone);
    if (lost && review->count > review->first) {
        review->lost = arena_grow(review->arena, review->lost, review->lost_count, sizeof(*review->lost));
        review->lost[review->lost_count++] = review->upstream;
        review->lost_why =
            review->pins->broken
                ? arena_dup(review->arena, str_of(review->pins->why.text))
                : STR_LIT("it is missing, or has none of this upstream, which had pins before");
    }
    for (size_t i = review->first; i < review->count; i++)
        judge(review, &review->entries[i], first_use, lost, gone, gone_count);
    arena_free(arena);
}

static struct str pending_text(const struct pins_review *review, struct buf *text)
{
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = &review->entries[i];
        if (!pin_is_pending(entry))
            continue;
        json_write_string(text, entry->upstream);
        json_write_string(text, entry->tool);
        buf_printf(text, " %s %d %d\n", entry->digest.hex, (int)entry->state, entry->held);
    }
    return buf_view(text);
}

struct pin_digest pins_review_digest(const struct pins_review *review)
{
    struct buf text = {0};
    struct pin_digest digest = pin_digest_of(pending_text(review, &text));
    buf_clear(&text);
    return digest;
}

uint64_t pins_review_hash(const struct pins_review *review)
{
    struct buf text = {0};
    if (!review)
        return 0;
    for (size_t i = 0; i < review->lost_count; i++)
        buf_printf(&text, "lost " STR_FMT "\n", STR_ARG(review->lost[i]));
    uint64_t hash = hash_stable(pending_text(review, &text)).low;
    buf_clear(&text);
    return hash;
}
