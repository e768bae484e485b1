/* The tree is built from the leaves up; before it, what the goal, the arguments and the policy ask for. */
#include "result/compact_internal.h"

#include "base/arena.h"
#include "base/buf.h"

#include <strings.h>

#define WORD_LEAST_BYTES 3u

static bool is_word_byte(unsigned char c)
{
    unsigned char lower = c | 32;
    return c >= 0x80 || (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9');
}

static const char *const common_words[] = {"the",  "and",  "for", "are",  "was", "has",  "have",   "with",
                                           "what", "when", "who", "how",  "did", "does", "that",   "this",
                                           "them", "from", "all", "any",  "you", "can",  "please", "show",
                                           "tell", "give", "get", "find", "list"};

/* The next word at or after *at, which moves behind it; empty at the end. */
static struct str next_word(struct str text, size_t *at)
{
    size_t from = *at;
    while (from < text.len && !is_word_byte((unsigned char)text.at[from]))
        from++;
    size_t end = from;
    while (end < text.len && is_word_byte((unsigned char)text.at[end]))
        end++;
    *at = end;
    return (struct str){text.at + from, end - from};
}

void compact_set_goal(struct compact_rules *rules, struct str goal, struct arena *arena)
{
    size_t at = 0;
    rules->goal_word_count = 0;
    for (struct str word;
         rules->goal_word_count < COMPACT_GOAL_WORDS_MAX && (word = next_word(goal, &at)).len;) {
        char *text = arena_alloc(arena, word.len);
        for (size_t i = 0; i < word.len; i++)
            text[i] = ascii_lower(word.at[i]);
        word.at = text;
        if (word.len > WORD_LEAST_BYTES && text[word.len - 1] == 's')
            word.len--; /* "invoices" finds "invoice" */
        if (word.len >= WORD_LEAST_BYTES && !STR_IS_ONE_OF(word, common_words))
            rules->goal_words[rules->goal_word_count++] = word;
    }
}

uint16_t compact_goal_words_in(const struct compact_rules *rules, struct str text)
{
    uint16_t found = 0;
    size_t at = 0;
    if (!rules->goal_word_count)
        return 0;
    for (struct str word; (word = next_word(text, &at)).len;)
        for (size_t i = 0; i < rules->goal_word_count; i++)
            if (word.len >= rules->goal_words[i].len &&
                strncasecmp(word.at, rules->goal_words[i].at, rules->goal_words[i].len) == 0)
                found |= (uint16_t)(1u << i);
    return found;
}

/* A result of a megabyte has tens of thousands of names: the lengths of these are known to the compiler. */
static bool ends_with_one_of(struct str s, const struct str *ends, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (s.len > ends[i].len && memcmp(s.at + s.len - ends[i].len, ends[i].at, ends[i].len) == 0)
            return true;
    return false;
}

static bool is_one_of(struct str s, const struct str *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(s, words[i]))
            return true;
    return false;
}

/* "id", "uuid", "event_id", "eventId", "ids", "flight_number": the names of ids and addresses. */
static bool is_id_name(struct str key)
{
    static const struct str ids[] = {STR("id"),     STR("ids"),  STR("uuid"), STR("key"),
                                     STR("number"), STR("code"), STR("sku"),  STR("slug"),
                                     STR("path"),   STR("url"),  STR("uri"),  STR("href"),
                                     STR("link"),   STR("isbn"), STR("doi"),  STR("email")};
    static const struct str ends[] = {STR("_id"),     STR("_ids"),   STR("Id"),    STR("Ids"),  STR("ID"),
                                      STR("_number"), STR("Number"), STR("_code"), STR("_url"), STR("_path")};
    return is_one_of(key, ids, sizeof(ids) / sizeof(*ids)) ||
           ends_with_one_of(key, ends, sizeof(ends) / sizeof(*ends));
}

/* "2026-05-01…", which sorts by time. */
static bool is_time(struct str s)
{
    static const char form[] = "dddd-dd-dd";
    if (s.len < sizeof(form) - 1 || s.len > 40)
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == 'd' ? s.at[i] < '0' || s.at[i] > '9' : s.at[i] != form[i])
            return false;
    return true;
}

static struct str scalar_text(const struct json *value)
{
    if (value->type == JSON_STRING || value->type == JSON_NUMBER)
        return (struct str){value->text, value->len};
    return STR_NONE;
}

static void add_argument_ids(struct compact_rules *rules, const struct json *value)
{
    struct str text = scalar_text(value);
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->len; i++)
        add_argument_ids(rules, &value->items[i]);
    if (text.len && rules->argument_id_count < COMPACT_ARGUMENT_IDS_MAX)
        rules->argument_ids[rules->argument_id_count++] = text;
}

void compact_set_argument_ids(struct compact_rules *rules, const struct json *arguments)
{
    rules->argument_id_count = 0;
    for (uint32_t i = 0; json_is(arguments, JSON_OBJECT) && i < arguments->len; i++)
        if (is_id_name(arguments->members[i].key))
            add_argument_ids(rules, &arguments->members[i].value);
}

bool compact_has_argument_id(const struct compact_rules *rules, struct str text)
{
    for (size_t i = 0; i < rules->argument_id_count; i++) {
        struct str id = rules->argument_ids[i];
        const char *at = id.len ? text.at : NULL;
        for (size_t left = text.len; at && (at = memmem(at, left, id.at, id.len)); at++) {
            const char *end = at + id.len;
            bool begins = at == text.at || !is_word_byte((unsigned char)at[-1]);
            if (begins && (end == text.at + text.len || !is_word_byte((unsigned char)*end)))
                return true;
            left = (size_t)(text.at + text.len - at) - 1;
        }
    }
    return false;
}

bool compact_is_identifying_key(struct str key)
{
    static const struct str titles[] = {STR("name"),   STR("title"), STR("subject"), STR("label"),
                                        STR("status"), STR("state"), STR("type"),    STR("kind")};
    static const struct str ends[] = {STR("_name"), STR("_title")};
    return is_id_name(key) || is_one_of(key, titles, sizeof(titles) / sizeof(*titles)) ||
           ends_with_one_of(key, ends, sizeof(ends) / sizeof(*ends));
}

/* Each name from the node to the root must match the end of the remaining path. */
static bool has_path(const struct compact_node *node, struct str path)
{
    for (; node->parent; node = node->parent) {
        bool item = node->parent->value->type == JSON_ARRAY;
        struct str part = item ? STR_LIT("[]") : node->key;
        if (path.len < part.len || memcmp(path.at + path.len - part.len, part.at, part.len) != 0)
            return false;
        path.len -= part.len;
        if (!item && path.len && path.at[path.len - 1] == '.')
            path.len--;
        else if (!item && path.len)
            return false;
    }
    return path.len == 0;
}

/* By one of the paths, or if `bare` by a name anywhere. */
static bool is_named(const struct compact_node *node, const struct str *paths, size_t count, bool bare)
{
    for (size_t i = 0; i < count; i++) {
        if (!paths[i].len)
            continue;
        bool is_path = memchr(paths[i].at, '.', paths[i].len) || memchr(paths[i].at, '[', paths[i].len);
        if (bare && !is_path ? node->key.len && str_eq(node->key, paths[i]) : has_path(node, paths[i]))
            return true;
    }
    return false;
}

struct str compact_node_path(struct arena *arena, const struct compact_node *node)
{
    struct buf out = buf_in(arena);
    const struct compact_node *steps[256];
    size_t depth = 0;
    for (; node->parent && depth < 256; node = node->parent)
        steps[depth++] = node;
    while (depth--) {
        bool item = steps[depth]->parent->value->type == JSON_ARRAY;
        if (!item && out.len)
            buf_byte(&out, '.');
        buf_str(&out, item ? STR_LIT("[]") : steps[depth]->key);
    }
    return buf_view(&out);
}

bool compact_node_is_container(const struct compact_node *node)
{
    return node->value->type == JSON_ARRAY || node->value->type == JSON_OBJECT;
}

uint32_t compact_string_size(struct str text)
{
    static const uint8_t more[256] = {
        ['"'] = 1,  ['\\'] = 1, ['\n'] = 1, ['\t'] = 1, ['\r'] = 1, [0x00] = 5, [0x01] = 5,
        [0x02] = 5, [0x03] = 5, [0x04] = 5, [0x05] = 5, [0x06] = 5, [0x07] = 5, [0x08] = 5,
        [0x0b] = 5, [0x0c] = 5, [0x0e] = 5, [0x0f] = 5, [0x10] = 5, [0x11] = 5, [0x12] = 5,
        [0x13] = 5, [0x14] = 5, [0x15] = 5, [0x16] = 5, [0x17] = 5, [0x18] = 5, [0x19] = 5,
        [0x1a] = 5, [0x1b] = 5, [0x1c] = 5, [0x1d] = 5, [0x1e] = 5, [0x1f] = 5};
    size_t size = text.len + 2;
    for (size_t i = 0; i < text.len; i++)
        size += more[(unsigned char)text.at[i]];
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

struct tree_builder {
    struct arena *arena;
    const struct compact_rules *rules;
    bool drops;
};

static void build(const struct tree_builder *b, struct compact_node *node);

/* An object is identified by its own members. */
static void identify(struct compact_node *object, const struct compact_node *member,
                     const struct compact_rules *rules)
{
    struct str text = scalar_text(member->value);
    bool may_be_id = text.len && rules->argument_id_count && (is_id_name(member->key) || member->kept);
    for (size_t i = 0; may_be_id && i < rules->argument_id_count; i++)
        object->entity |= str_eq(rules->argument_ids[i], text);
    if (member->value->type == JSON_STRING && is_time(text) &&
        (!object->time.len || str_cmp(text, object->time) > 0))
        object->time = text;
}

/* Of an object its kept members must stay; an object without any stays whole or goes. */
static uint32_t least_of(const struct compact_node *node)
{
    bool is_object = node->value->type == JSON_OBJECT;
    uint32_t least = 2;
    if (node->value->type == JSON_STRING)
        return node->size < COMPACT_KEPT_TEXT_BYTES ? node->size : COMPACT_KEPT_TEXT_BYTES;
    bool is_item = node->parent && node->parent->value->type == JSON_ARRAY; /* a list within a list */
    if (!is_object && !(node->value->type == JSON_ARRAY && (node->leads || is_item)))
        return node->size;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct compact_node *child = &node->children[i];
        if (!child->dropped && (!is_object || child->kept || child->leads))
            least += child->least + 1 + (is_object ? compact_string_size(child->key) + 1 : 0);
    }
    return least > 2 ? least - 1 : node->size;
}

/* A long list of items that each keep an id would exceed any budget, so its items may go. */
static uint32_t floor_of(const struct compact_node *node)
{
    uint32_t floor = 2;
    if (node->value->type == JSON_ARRAY && node->leads)
        return floor;
    for (uint32_t i = 0; node->value->type == JSON_OBJECT && i < node->count; i++) {
        const struct compact_node *child = &node->children[i];
        if (!child->dropped && (child->kept || child->leads))
            floor += (child->kept ? child->least : child->floor) + 1 + compact_string_size(child->key) + 1;
    }
    return floor > 2 ? floor - 1 : node->least;
}

static void add_child(const struct tree_builder *b, struct compact_node *node, struct compact_node *child)
{
    const struct compact_rules *r = b->rules;
    child->parent = node;
    child->dropped = b->drops && is_named(child, r->drop, r->drop_count, true);
    if (child->dropped)
        return;
    bool named = is_named(child, r->keep, r->keep_count, true) ||
                 is_named(child, r->gives_ids, r->gives_id_count, false);
    build(b, child);
    /* Ids, titles and times identify a thing and take little. */
    child->kept = named || (child->key.len && !compact_node_is_container(child) &&
                            (compact_is_identifying_key(child->key) || is_time(scalar_text(child->value))));
    node->leads |= named || child->leads;
    node->goal_words |= child->goal_words;
    node->size +=
        child->size + 1 + (node->value->type == JSON_OBJECT ? compact_string_size(child->key) + 1 : 0);
    if (node->value->type == JSON_OBJECT)
        identify(node, child, r);
}

static void build(const struct tree_builder *b, struct compact_node *node)
{
    const struct json *v = node->value;
    bool is_array = v->type == JSON_ARRAY;
    node->size = 2;
    switch (v->type) {
    case JSON_STRING:
        node->size = compact_string_size(json_str(v));
        node->goal_words = compact_goal_words_in(b->rules, json_str(v));
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        node->count = v->len;
        node->children = ARENA_ARRAY(b->arena, struct compact_node, v->len + 1);
        for (uint32_t i = 0; i < v->len; i++) {
            node->children[i] = (struct compact_node){.value = is_array ? &v->items[i] : &v->members[i].value,
                                                      .key = is_array ? STR_NONE : v->members[i].key};
            add_child(b, node, &node->children[i]);
        }
        node->size -= node->size > 2; /* the last comma */
        break;
    case JSON_NUMBER:
        node->size = v->len;
        break;
    default:
        node->size = v->type == JSON_BOOL && !v->truth ? 5 : 4;
    }
    node->least = least_of(node);
    node->floor = floor_of(node);
}

struct compact_node *compact_tree(struct arena *arena, const struct compact_rules *rules,
                                  const struct json *value, bool drops)
{
    struct tree_builder b = {arena, rules, drops};
    struct compact_node *root = ARENA_NEW(arena, struct compact_node);
    root->value = value;
    build(&b, root);
    return root;
}
