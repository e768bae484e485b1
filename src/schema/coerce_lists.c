/*
 * One value where a list is wanted, the items of a list, and a list of one
 * where a text is wanted. A text that may itself be a list ("a, b") is split
 * only where each part fits an enum or a format, and otherwise left alone.
 */
#include "schema/coercer.h"

#define SPLIT_MAX_PARTS 256u /* a text of more is not split */

struct text_list {
    struct json *parts; /* trimmed */
    uint32_t count;
    bool other_separator, empty_part;
};

/* Splits at commas, and at the other characters that texts separate items with. */
static struct text_list split(struct arena *arena, struct str text)
{
    struct text_list list = {0};
    list.parts = ARENA_ARRAY(arena, struct json, SPLIT_MAX_PARTS);
    for (size_t from = 0, at = 0; at <= text.len && list.count < SPLIT_MAX_PARTS; at++) {
        if (at < text.len && !memchr(",;|\n", text.at[at], 4))
            continue;
        struct str part = str_trim((struct str){text.at + from, at - from});
        list.other_separator |= at < text.len && text.at[at] != ',';
        list.empty_part |= part.len == 0;
        list.parts[list.count++] = json_string(part);
        from = at + 1;
    }
    return list;
}

static bool has_choices_or_format(const struct node *node)
{
    struct in_place_nodes all;
    in_place_collect(&all, node, NULL, NULL);
    for (uint32_t i = 0; i < all.count; i++)
        for (uint16_t k = 0; k < all.nodes[i]->op_count; k++)
            if (all.nodes[i]->ops[k].code == OP_CHOICES || all.nodes[i]->ops[k].code == OP_FORMAT)
                return true;
    return false;
}

/* The schema of the items of a list; NULL: none, or the list is a tuple. */
static const struct node *node_of_items(const struct node *node)
{
    struct in_place_nodes all;
    const struct node *items = NULL;
    in_place_collect(&all, node, NULL, NULL);
    for (uint32_t i = 0; i < all.count; i++) {
        if (all.items[i] && all.items[i]->items.prefix.count)
            return NULL;
        if (all.items[i] && all.items[i]->items.rest)
            items = all.items[i]->items.rest;
    }
    return items;
}

/* The items as a list that the node accepts, or NULL. */
static const struct json *list_of(struct coercer *c, const struct node *node, const struct json *items,
                                  uint32_t count)
{
    const struct json *list = coerce_value(c, node, json_keep(c->arena, json_array(items, count)));
    return coerce_accepts(c, node, list) ? list : NULL;
}

/* Text with quotes or tags around it is the rest of some syntax that was not read. */
static bool is_enclosed(struct str text)
{
    char first = text.at[0], last = text.at[text.len - 1];
    return (text.len > 1 && first == last && (first == '"' || first == '\'' || first == '`')) ||
           (first == '<' && last == '>');
}

static const struct json *list_of_text(struct coercer *c, const struct node *node, const struct json *v)
{
    struct str text = str_trim(json_str(v));
    const struct node *item = node_of_items(node);
    if (coerce_is_blank(text) || coerce_looks_like_json(text) || is_enclosed(text))
        return NULL;
    const struct json *whole = list_of(c, node, v, 1), *parts = NULL;
    struct text_list list = split(c->arena, text);
    if (list.count == 1)
        return whole;
    if (!item || !has_choices_or_format(item))
        return NULL;
    if (!list.other_separator && !list.empty_part && list.count < SPLIT_MAX_PARTS)
        parts = list_of(c, node, list.parts, list.count);
    return !parts ? whole : !whole ? parts : NULL;
}

/* {"item": […]} is how some models write the list itself. */
static bool is_list_in_object(const struct node *node, const struct json *v)
{
    if (v->type != JSON_OBJECT || v->len != 1 || v->members[0].value.type != JSON_ARRAY)
        return false;
    struct str key = v->members[0].key;
    const struct node *item = node_of_items(node);
    struct in_place_nodes all = {.count = 0};
    if (item)
        in_place_collect(&all, item, NULL, NULL);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.props[i] && props_find(all.props[i], key))
            return false;
    return same_word(key, STR_LIT("item")) || same_word(key, STR_LIT("items"));
}

const struct json *coerce_wrap(struct coercer *c, const struct node *node, const struct json *v)
{
    const struct json *list = NULL;
    if (!c->options->lists || !takes_only(node, ARRAY) || v->type == JSON_NULL || is_list_in_object(node, v))
        return v;
    list = v->type == JSON_STRING ? list_of_text(c, node, v) : list_of(c, node, v, 1);
    return list ? list : v;
}

const struct json *coerce_unwrap(struct coercer *c, const struct node *node, const struct json *v)
{
    if (!c->options->lists || !takes_only(node, STRING) || v->len != 1 || v->items[0].type != JSON_STRING)
        return v;
    const struct json *text = coerce_value(c, node, &v->items[0]);
    return coerce_accepts(c, node, text) ? text : v;
}

static const struct json *coerce_items(struct coercer *c, const struct node *node, const struct json *v,
                                       bool *wrapped)
{
    struct in_place_nodes *all = ARENA_NEW(c->arena, struct in_place_nodes);
    struct json *items = NULL;
    in_place_collect(all, node, v, &c->pass);
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json *item = &v->items[i];
        for (uint32_t k = 0; k < all->count; k++) {
            const struct node *item_node = all->items[k] ? op_item_node(all->items[k], i) : NULL;
            item = item_node ? coerce_value(c, item_node, item) : item;
        }
        *wrapped |= item->type == JSON_ARRAY && v->items[i].type != JSON_ARRAY;
        if (!items && item != &v->items[i]) {
            items = ARENA_ARRAY(c->arena, struct json, v->len);
            memcpy(items, v->items, v->len * sizeof(*items));
        }
        if (items)
            items[i] = *item;
    }
    return items ? json_keep(c->arena, json_array(items, v->len)) : v;
}

/* Whether the array may be the only item of a list of lists. */
static bool may_be_item(const struct node *node, const struct json *v)
{
    const struct node *item = node_of_items(node);
    bool holds_array = false;
    for (uint32_t i = 0; i < v->len; i++)
        holds_array |= v->items[i].type == JSON_ARRAY;
    return v->len > 0 && !holds_array && item && takes_only(item, ARRAY);
}

/* [255,255,255] for a list of lists is one list or three: it is read only if just one of the two fits. */
const struct json *coerce_array(struct coercer *c, const struct node *node, const struct json *v)
{
    bool wrapped = false, ignored = false;
    const struct json *items = coerce_items(c, node, v, &wrapped);
    if (c->valid || !c->options->lists || !may_be_item(node, v))
        return items;
    const struct json *outer = json_keep(c->arena, json_array(v, 1));
    const struct json *whole = coerce_items(c, node, outer, &ignored);
    if (!coerce_accepts(c, node, whole))
        return items;
    return wrapped ? v : whole;
}
