/*
 * An object shares its budget among its members, the small ones first, so that
 * one huge field cannot displace the rest. A list keeps as many items as it
 * can, each down to its ids and titles, and fills up with whole ones: the
 * subject of the call, items with words of the goal, the newest.
 */
#include "result/compact_internal.h"

#include "base/arena.h"
#include "json/build.h"

#include <stdlib.h>

#define PART_LEAST_BYTES 64 /* a part that would get less is left out */

struct part {
    struct json value;
    int64_t size;
};

static struct part shrink(struct shrink_ctx *s, const struct compact_node *node, int64_t budget);

static void note_omission(struct shrink_ctx *s, enum compact_omission_kind kind,
                          const struct compact_node *at, uint64_t count, uint64_t of)
{
    struct str path = compact_node_path(s->arena, at);
    for (size_t i = 0; i < s->count; i++)
        if (s->omissions[i].kind == kind && str_eq(s->omissions[i].path, path)) {
            s->omissions[i].count += count;
            s->omissions[i].of += of;
            return;
        }
    if (s->count < COMPACT_OMISSIONS_MAX)
        s->omissions[s->count++] = (struct omission){kind, path, count, of};
    else
        s->more++;
}

enum extent { WHOLE, LEAST };

static struct part take(struct shrink_ctx *s, const struct compact_node *node, enum extent extent);

static struct json take_children(struct shrink_ctx *s, const struct compact_node *node, enum extent extent)
{
    struct json *items = ARENA_ARRAY(s->arena, struct json, node->count + 1);
    struct json_member *members = ARENA_ARRAY(s->arena, struct json_member, node->count + 1);
    bool is_array = node->value->type == JSON_ARRAY;
    size_t count = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct compact_node *child = &node->children[i];
        if (child->dropped)
            note_omission(s, OMITTED_FIELD, child, 1, 1);
        if (child->dropped || (extent == LEAST && !is_array && !child->kept && !child->leads))
            continue;
        struct json value = take(s, child, extent).value;
        items[count] = value;
        if (!is_array)
            members[count] = json_member(child->key, value);
        count++;
    }
    return is_array ? json_array(items, count) : json_object(s->arena, members, count);
}

static struct part cut(struct shrink_ctx *s, const struct compact_node *node, int64_t budget)
{
    struct str text = json_str(node->value);
    size_t left_out, most = budget > 2 ? (size_t)(budget - 2) * text.len / (node->size ? node->size : 1) : 0;
    struct str shown = compact_text(s->arena, s->rules, text, most, &left_out);
    if (left_out)
        note_omission(s, OMITTED_TEXT, node, left_out, text.len);
    return (struct part){json_string(shown), compact_string_size(shown)};
}

static struct part take(struct shrink_ctx *s, const struct compact_node *node, enum extent extent)
{
    bool least = extent == LEAST && node->least < node->size;
    if (compact_node_is_container(node))
        return (struct part){take_children(s, node, least ? LEAST : WHOLE), least ? node->least : node->size};
    if (least && node->value->type == JSON_STRING)
        return cut(s, node, node->least);
    return (struct part){*node->value, node->size};
}

static int by_size(const void *a, const void *b)
{
    const struct compact_node *x = *(const struct compact_node *const *)a,
                              *y = *(const struct compact_node *const *)b;
    return x->size != y->size ? (x->size > y->size) - (x->size < y->size) : (x > y) - (x < y);
}

/* Bytes that a member takes in any case; -1: it may go. */
static int64_t floor_of(const struct shrink_ctx *s, const struct compact_node *member)
{
    int64_t key = compact_string_size(member->key) + 2;
    if (s->items_only)
        return key + (compact_node_is_container(member) ? 2 : (int64_t)member->size);
    if (member->kept)
        return key + member->least;
    return member->leads ? key + member->floor : -1;
}

static struct part shrink_object(struct shrink_ctx *s, const struct compact_node *node, int64_t budget)
{
    const struct compact_node **order = ARENA_ARRAY(s->arena, const struct compact_node *, node->count + 1);
    struct json_member *members = ARENA_ARRAY(s->arena, struct json_member, node->count + 1);
    struct part *parts = ARENA_ARRAY(s->arena, struct part, node->count + 1);
    int64_t rest = budget - 2;
    size_t left = 0, count = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct compact_node *child = &node->children[i];
        int64_t floor = floor_of(s, child);
        parts[i].size = -1;
        if (child->dropped) {
            note_omission(s, OMITTED_FIELD, child, 1, 1);
            continue;
        }
        order[left++] = child;
        rest -= floor > 0 ? floor : 0;
    }
    qsort(order, left, sizeof(*order), by_size);
    for (size_t at = 0; left > 0; at++, left--) {
        const struct compact_node *child = order[at];
        int64_t floor = floor_of(s, child), key = compact_string_size(child->key) + 2,
                share = rest > 0 ? rest / (int64_t)left : 0;
        int64_t room = share + (floor > 0 ? floor : 0) - key;
        bool fits = room >= (int64_t)child->size;
        bool can_shrink = compact_node_is_container(child) || child->value->type == JSON_STRING;
        if (!fits && floor < 0 && (!can_shrink || room < PART_LEAST_BYTES)) {
            note_omission(s, OMITTED_FIELD, child, 1, 1);
            continue;
        }
        struct part *part = &parts[child - node->children];
        bool may_lose_items = !child->kept && child->floor < child->least;
        if (fits)
            *part = take(s, child, WHOLE);
        else if (!s->items_only && !may_lose_items && child->least < child->size &&
                 room <= (int64_t)child->least)
            *part = take(s, child, LEAST);
        else
            *part = shrink(s, child, room);
        rest -= part->size + key - (floor > 0 ? floor : 0);
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (parts[i].size >= 0)
            members[count++] = json_member(node->children[i].key, parts[i].value);
    return (struct part){json_object(s->arena, members, count), budget - rest};
}

/* The subject of the call, items with most words of the goal, the newest, the first. */
static int by_worth(const void *a, const void *b)
{
    const struct compact_node *x = *(const struct compact_node *const *)a,
                              *y = *(const struct compact_node *const *)b;
    if (x->entity != y->entity)
        return x->entity ? -1 : 1;
    if (x->goal_words != y->goal_words) {
        int hits = __builtin_popcount(y->goal_words) - __builtin_popcount(x->goal_words);
        if (hits)
            return hits;
    }
    int newer = str_cmp(y->time, x->time);
    return newer ? newer : (x > y) - (x < y);
}

enum shown { SHOWN_NOT, SHOWN_LEAST, SHOWN_WHOLE };

struct listing {
    const struct compact_node *node, **order;
    size_t count;
    uint8_t *shown; /* enum shown, by place in the list */
    int64_t rest;
};

/* As many as fit, each at its least; the subject of the call whole. */
static void choose(const struct shrink_ctx *s, struct listing *l, int64_t room)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct compact_node *item = l->order[i];
        int64_t whole = (int64_t)item->size + 1, least = (s->items_only ? item->size : item->least) + 1;
        enum shown shown = (item->entity && whole <= l->rest) || least == whole ? SHOWN_WHOLE : SHOWN_LEAST;
        int64_t cost = shown == SHOWN_WHOLE ? whole : least;
        if (cost > (item->entity ? l->rest : room))
            continue;
        l->shown[item - l->node->children] = (uint8_t)shown;
        l->rest -= cost;
        room -= cost;
    }
}

static void fill_up(const struct shrink_ctx *s, struct listing *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct compact_node *item = l->order[i];
        uint8_t *shown = &l->shown[item - l->node->children];
        int64_t more = (int64_t)item->size - (s->items_only ? item->size : item->least);
        if (*shown == SHOWN_NOT && (int64_t)item->size + 1 <= l->rest) {
            *shown = SHOWN_WHOLE;
            l->rest -= (int64_t)item->size + 1;
        } else if (*shown == SHOWN_LEAST && more <= l->rest) {
            *shown = SHOWN_WHOLE;
            l->rest -= more;
        }
    }
}

static struct part emit(struct shrink_ctx *s, struct listing *l, int64_t budget)
{
    struct json *items = ARENA_ARRAY(s->arena, struct json, l->node->count + 1);
    size_t count = 0, brief = 0;
    int64_t size = 2;
    for (uint32_t i = 0; i < l->node->count; i++) {
        if (l->shown[i] == SHOWN_NOT)
            continue;
        struct part part = take(s, &l->node->children[i], l->shown[i] == SHOWN_WHOLE ? WHOLE : LEAST);
        brief += l->shown[i] == SHOWN_LEAST;
        items[count++] = part.value;
        size += part.size + 1;
    }
    if (!count && l->count && !s->items_only) { /* one shortened item is better than none */
        struct part part = shrink(s, l->order[0], budget - 2);
        items[count++] = part.value;
        size += part.size;
    }
    if (count < l->count)
        note_omission(s, OMITTED_ITEMS, l->node, l->count - count, l->count);
    if (brief)
        note_omission(s, OMITTED_DETAIL, l->node, brief, count);
    return (struct part){json_array(items, count), size};
}

static struct part shrink_array(struct shrink_ctx *s, const struct compact_node *node, int64_t budget)
{
    struct listing l = {.node = node,
                        .order = ARENA_ARRAY(s->arena, const struct compact_node *, node->count + 1),
                        .shown = arena_alloc(s->arena, node->count + 1),
                        .rest = budget - 2};
    memset(l.shown, SHOWN_NOT, node->count + 1);
    for (uint32_t i = 0; i < node->count; i++)
        if (!node->children[i].dropped)
            l.order[l.count++] = &node->children[i];
    qsort(l.order, l.count, sizeof(*l.order), by_worth);
    choose(s, &l, s->items_only ? l.rest : l.rest * 2 / 3);
    fill_up(s, &l);
    return emit(s, &l, budget);
}

static struct part shrink(struct shrink_ctx *s, const struct compact_node *node, int64_t budget)
{
    if ((int64_t)node->size <= budget)
        return take(s, node, WHOLE);
    if (node->value->type == JSON_OBJECT)
        return shrink_object(s, node, budget);
    if (node->value->type == JSON_ARRAY)
        return shrink_array(s, node, budget);
    if (node->value->type == JSON_STRING && !s->items_only)
        return cut(s, node, budget);
    return take(s, node, WHOLE);
}

struct json compact_shrink(struct shrink_ctx *s, const struct compact_node *root, size_t budget)
{
    s->count = s->more = 0;
    return shrink(s, root, (int64_t)budget).value;
}
