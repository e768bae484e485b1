/*
 * A state for each definition. Names are compared within one upstream: what it offers now, what is pinned of
 * it, and what has vanished.
 */
#include "catalog/pins_internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/suggest.h"
#include "json/write.h"

#define PINS_RENAME_MS    604800000ll /* a new name within a week of a vanished one may be the same tool */
#define PINS_RENAMED_MAX  64u   /* of one upstream that are compared with the tools that have vanished … */
#define PINS_COMPARED_MAX 1000u /* … of which these many, the last */

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
    pins_refresh(pins);
    return review;
}

void pins_review_add(struct pins_review *review, struct str upstream, struct str tool,
                     const struct json *definition)
{
    struct str key = pin_key(review->arena, upstream, tool);
    if (!tool.len || map_get(review->by_key, key))
        return;
    review->entries = arena_grow(review->arena, review->entries, review->count, sizeof(*review->entries));
    struct arena *scratch = arena_new();
    struct pin_entry *entry = review->entries[review->count++] = ARENA_NEW(review->arena, struct pin_entry);
    *entry = (struct pin_entry){.upstream = upstream,
                                .tool = tool,
                                .definition = definition,
                                .digest = pin_digest_of(pin_definition_text(scratch, definition))};
    map_add(review->by_key, key, entry);
    arena_free(scratch);
}

struct pin_entry *pins_review_find(const struct pins_review *review, struct str upstream, struct str tool)
{
    return review ? pin_get(review->by_key, upstream, tool) : NULL;
}

/* ---- at the end of an upstream ----------------------------------------------------- */

/* The pins of tools that this upstream stopped offering in the last week. */
static size_t vanished(const struct pins_review *review, struct str upstream, struct arena *arena,
                       const struct pin ***out)
{
    const struct pins_table *table = &review->pins->table;
    const struct pin **list = ARENA_ARRAY(arena, const struct pin *, table->count + 1);
    int64_t now = clock_wall_ms();
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct pin *pin = table->list[i];
        if (str_eq(pin->upstream, upstream) && pin->text.len &&
            !(pin->gone_ms && now - pin->gone_ms > PINS_RENAME_MS) &&
            !pins_review_find(review, pin->upstream, pin->tool))
            list[count++] = pin;
    }
    *out = list;
    return count;
}

/* The vanished tool that a new name most likely stands for: shown beside it, and given up when it is
 * accepted. Of many new names, the later ones get any of them. */
static const struct pin *renamed_from(struct str tool, size_t nth, const struct pin *const *gone,
                                      size_t count)
{
    const struct pin *best = gone[nth % count];
    unsigned score = suggest_score(tool, best->tool);
    size_t first = count > PINS_COMPARED_MAX ? count - PINS_COMPARED_MAX : 0;
    for (size_t i = nth < PINS_RENAMED_MAX ? first : count; i < count; i++) {
        unsigned other = suggest_score(tool, gone[i]->tool);
        if (other > score) {
            best = gone[i];
            score = other;
        }
    }
    return best;
}

/* What was accepted, of which the table may have another text soon. */
static void set_was(struct arena *arena, struct pin_entry *entry, const struct pin *pin)
{
    entry->was_tool = arena_dup(arena, pin->tool);
    entry->was_text = arena_dup(arena, pin->text);
    entry->was_digest = pin->digest;
}

static void judge(struct pins_review *review, struct pin_entry *entry, bool first_use, bool lost,
                  const struct pin *const *gone, size_t gone_count)
{
    const struct pin *pin = pins_find(review->pins, entry->upstream, entry->tool);
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
    if (entry->state == PIN_RENAMED)
        pin = renamed_from(entry->tool, review->renamed++, gone, gone_count);
    if (pin)
        set_was(review->arena, entry, pin);
    if (!pin_is_pending(entry))
        return;
    entry->held = review->mode != PINS_WARN;
    review->pending++;
    review->held += entry->held;
}

void pins_review_close(struct pins_review *review, struct str upstream)
{
    struct arena *arena = arena_new();
    const struct pins *pins = review->pins;
    const struct pin **gone = NULL;
    bool first_use = true;
    for (size_t i = 0; i < pins->table.count; i++)
        first_use &= !str_eq(pins->table.list[i]->upstream, upstream);
    /* An upstream that has no pins yet is trusted on first use, unless it had some once. */
    bool lost = first_use && (pins->broken || pins_had(pins, upstream));
    /* A resource comes and goes with what it names. */
    bool renames = !str_glob(STR_LIT("*:resources"), upstream);
    size_t gone_count = renames ? vanished(review, upstream, arena, &gone) : 0;
    const struct pin_entry marker = {
        .upstream = upstream, .tool = STR_LIT("*"), .digest = pin_digest_of(STR_NONE)};
    if (first_use && review->count == review->first && memchr(upstream.at, ':', upstream.len)) {
        review->empty = arena_grow(review->arena, review->empty, review->empty_count, sizeof(*review->empty));
        review->empty[review->empty_count++] = marker;
    }
    if (lost && review->count > review->first) {
        review->lost = arena_grow(review->arena, review->lost, review->lost_count, sizeof(*review->lost));
        review->lost[review->lost_count++] = upstream;
        review->lost_why =
            pins->broken ? arena_dup(review->arena, str_of(pins->why.text))
                         : STR_LIT("it is missing, or has none of this upstream, which had pins before");
    }
    review->renamed = 0;
    for (size_t i = review->first; i < review->count; i++)
        judge(review, review->entries[i], first_use, lost, gone, gone_count);
    review->first = review->count;
    arena_free(arena);
}

struct pins_review *pins_review_join(struct arena *arena, const struct pins_review *a,
                                     const struct pins_review *b)
{
    if (!a || !b)
        return NULL;
    struct pins_review *both = ARENA_NEW(arena, struct pins_review);
    *both = *a;
    both->entries = ARENA_ARRAY(arena, struct pin_entry *, a->count + b->count + PIN_TEXTS_MAX);
    both->lost = ARENA_ARRAY(arena, struct str, a->lost_count + b->lost_count);
    for (size_t i = 0; i < a->count + b->count; i++)
        both->entries[i] = i < a->count ? a->entries[i] : b->entries[i - a->count];
    for (size_t i = 0; i < a->lost_count + b->lost_count; i++)
        both->lost[i] = i < a->lost_count ? a->lost[i] : b->lost[i - a->lost_count];
    both->count += b->count;
    both->lost_count += b->lost_count;
    both->pending += b->pending;
    both->held += b->held;
    for (size_t i = 0; i < PIN_TEXTS_MAX; i++) {
        const struct pin_entry *text = &a->pins->texts[i].entry;
        const struct pin *pin = pins_find(a->pins, text->upstream, text->tool);
        if (!a->pins->texts[i].arena || (pin && pin_digest_equal(&pin->digest, &text->digest)))
            continue;
        struct pin_entry *entry = both->entries[both->count++] = ARENA_NEW(arena, struct pin_entry);
        *entry = *text;
        if (pin)
            set_was(arena, entry, pin);
        both->pending++;
    }
    return both;
}

static struct str pending_text(const struct pins_review *review, struct buf *text)
{
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = review->entries[i];
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
