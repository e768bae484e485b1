/*
 * One value where a list is wanted, the items of a list, and a list of one
 * where a text is wanted. A text that may itself be a list ("a, b") is split
 * only where each part fits an enum or a format, and otherwise left alone.
 */
#include "schema/coercer.h"

#define SPLIT_MAX_PARTS 256u /* a text of more is not split */

struct text_list {
    struct json *parts; /* trimmed, of those between commas */
    uint32_t count;
    bool other_separator, empty_part;
};

/* What texts separate items with, apart from commas. */
static bool has_other_separator(struct str text)
{
    static const char *const separators[] = {";", "|", "\n", "\t", "、", "，", "；"};
    for (size_t i = 0; i < sizeof(separators) / sizeof(*separators); i++)
        if (memmem(text.at, text.len, separators[i], strlen(separators[i])))
            return true;
    return false;
}

static struct text_list split(struct arena *arena, struct str text)
{
    struct text_list list = {.count = 1, .other_separator = has_other_separator(text)};
    for (size_t i = 0; i < text.len && list.count < SPLIT_MAX_PARTS; i++)
        list.count += text.at[i] == ',';
    list.parts = ARENA_ARRAY(arena, struct json, list.count);
    for (uint32_t i = 0; i < list.count; i++) {
        const char *comma = text.len ? memchr(text.at, ',', text.len) : NULL;
        size_t len = comma ? (size_t)(comma - text.at) : text.len;
        struct str part = str_trim((struct str){text.at, len});
        list.empty_part |= part.len == 0;
        list.parts[i] = json_string(part);
        text = str_from(text, len + 1);
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
    if (list.count == 1 && !list.other_separator)
        return whole;
    if (!item || !has_choices_or_format(item))
        return NULL;
    if (list.count > 1 && list.count < SPLIT_MAX_PARTS && !list.other_separator && !list.empty_part)
        parts = list_of(c, node, list.parts, list.count);
    return !parts ? whole : !whole ? parts : NULL;
}

static bool is_index(struct str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (!ascii_is_digit(key.at[i]))
            return false;
    return key.len > 0;
}

/* Whether an object is an item: it has a field that items declare. Where they declare none it may be any
 * object but a list in disguise: {"item": […]} and {"0": …} are how some models write the list itself. */
static bool is_item(struct coercer *c, const struct node *list, const struct json *v)
{
    const struct node *item = node_of_items(list);
    struct in_place_nodes all = {.count = 0};
    bool declares = false, known = false, indexes = v->len > 0;
    if (item) {
        v = coerce_names(c, item, v, NAMES_THAT_APPLY, NULL);
        in_place_collect(&all, item, NULL, NULL);
    }
    for (uint32_t i = 0; i < v->len; i++) {
        for (uint32_t k = 0; k < all.count; k++) {
            declares |= all.props[k] && all.props[k]->declared;
            known |= all.props[k] && props_find(all.props[k], v->members[i].key);
        }
        indexes &= is_index(v->members[i].key);
    }
    if (declares)
        return known;
    struct str only = v->len == 1 && v->members[0].value.type == JSON_ARRAY ? v->members[0].key : STR_NONE;
    bool wrapper = same_word(only, STR_LIT("item")) || same_word(only, STR_LIT("items"));
    return v->len > 0 && !wrapper && !indexes;
}

const struct json *coerce_wrap(struct coercer *c, const struct node *node, const struct json *v)
{
    const struct json *list = NULL;
    if (!c->options->lists || !takes_only(node, ARRAY) || v->type == JSON_NULL)
        return v;
    list = v->type == JSON_STRING ? list_of_text(c, node, v) : list_of(c, node, v, 1);
    if (list && list->items[0].type == JSON_OBJECT && !is_item(c, node, &list->items[0]))
        return v;
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
