/*
 * A value as a tree, built from the leaves up, that knows the size of each part and what the goal, the
 * arguments and the policy ask to keep; and how it is shortened. An object shares its budget among its
 * members, the small ones first, so that one huge field cannot displace the rest. A list keeps as many items
 * as it can, each down to its ids and titles, and fills up with whole ones: the subject of the call, items
 * with words of the goal, the newest.
 */
#include "result/compact.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"

#include <stdlib.h>
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

/* For each k how many of the id's first bytes are also the last of its first k. */
static const uint16_t *restarts_of(struct arena *arena, struct str id)
{
    uint16_t *restart = ARENA_ARRAY(arena, uint16_t, id.len + 1);
    for (size_t i = 1, k = 0; i < id.len; i++) {
        while (k && id.at[i] != id.at[k])
            k = restart[k];
        k += id.at[i] == id.at[k];
        restart[i + 1] = (uint16_t)k;
    }
    return restart;
}

static void add_argument_ids(struct compact_rules *rules, const struct json *value)
{
    struct str text = scalar_text(value);
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->len; i++)
        add_argument_ids(rules, &value->items[i]);
    if (text.len && text.len <= COMPACT_ID_MAX_BYTES && rules->argument_id_count < COMPACT_ARGUMENT_IDS_MAX)
        rules->argument_ids[rules->argument_id_count++] =
            (struct compact_id){text, restarts_of(rules->arena, text)};
}

struct compact_rules compact_rules_of(struct arena *arena, const struct tool *tool, const struct json *args,
                                      struct str goal)
{
    struct compact_rules rules = {
        .arena = arena, .tool = tool, .keys = ARENA_ARRAY(arena, struct compact_key, COMPACT_KEYS)};
    size_t at = 0;
    for (struct str word;
         rules.goal_word_count < COMPACT_GOAL_WORDS_MAX && (word = next_word(goal, &at)).len;) {
        char *text = arena_copy(arena, word);
        for (size_t i = 0; i < word.len; i++)
            text[i] = ascii_lower(text[i]);
        word.at = text;
        if (word.len > WORD_LEAST_BYTES && text[word.len - 1] == 's')
            word.len--; /* "invoices" finds "invoice" */
        if (word.len >= WORD_LEAST_BYTES && !STR_IS_ONE_OF(word, common_words))
            rules.goal_words[rules.goal_word_count++] = word;
    }
    for (uint32_t i = 0; json_is(args, JSON_OBJECT) && i < args->len; i++)
        if (is_id_name(args->members[i].key))
            add_argument_ids(&rules, &args->members[i].value);
    return rules;
}

/* By Knuth, Morris and Pratt where it stands somewhere: an agent and a server together choose both texts, and
 * one may be full of the beginnings of the other. */
static bool stands_alone_in(struct str text, const struct compact_id *id)
{
    if (text.len < id->text.len || !memmem(text.at, text.len, id->text.at, id->text.len))
        return false;
    for (size_t i = 0, k = 0; i < text.len; i++) {
        while (k && (k == id->text.len || text.at[i] != id->text.at[k]))
            k = id->restart[k];
        k += text.at[i] == id->text.at[k];
        if (k < id->text.len)
            continue;
        size_t from = i + 1 - k;
        if ((!from || !is_word_byte((unsigned char)text.at[from - 1])) &&
            (i + 1 == text.len || !is_word_byte((unsigned char)text.at[i + 1])))
            return true;
    }
    return false;
}

bool compact_has_argument_id(const struct compact_rules *rules, struct str text)
{
    for (size_t i = 0; i < rules->argument_id_count; i++)
        if (stands_alone_in(text, &rules->argument_ids[i]))
            return true;
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

/* "events[].raw"; of a long path no more than a note shows: a list names its own once for each item. */
static struct str node_path(struct arena *arena, const struct compact_node *node)
{
    struct buf out = buf_in(arena);
    const struct compact_node *steps[256];
    size_t depth = 0;
    for (; node->parent && depth < 256; node = node->parent)
        steps[depth++] = node;
    while (depth-- && out.len <= COMPACT_PATH_MAX_BYTES) {
        bool item = steps[depth]->parent->value->type == JSON_ARRAY;
        if (!item && out.len)
            buf_byte(&out, '.');
        buf_str(&out, item ? STR_LIT("[]") : str_cut(steps[depth]->key, COMPACT_PATH_MAX_BYTES));
    }
    return str_cut(buf_view(&out), COMPACT_PATH_MAX_BYTES);
}

static bool is_container(const struct compact_node *node)
{
    return node->value->type == JSON_ARRAY || node->value->type == JSON_OBJECT;
}

uint32_t compact_string_size(struct str text)
{
    size_t size = text.len + 2;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool is_short =
            c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f';
        size += is_short ? 1 : c < ' ' ? 5 : 0;
    }
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

static void build(const struct compact_rules *rules, struct compact_node *node);

static const struct compact_key *key_at(const struct compact_rules *rules, struct str key, size_t place)
{
    struct compact_key *known = &rules->keys[place % COMPACT_KEYS];
    if (!known->size || !str_eq(known->key, key))
        *known = (struct compact_key){key, compact_string_size(key), compact_is_identifying_key(key)};
    return known;
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
            least += child->least + 1 + child->key_size;
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
            floor += (child->kept ? child->least : child->floor) + 1 + child->key_size;
    }
    return floor > 2 ? floor - 1 : node->least;
}

static void add_child(const struct compact_rules *rules, struct compact_node *node,
                      struct compact_node *child)
{
    const struct policy_compact *budget = &rules->tool->compact;
    const struct policy *policy = rules->tool->policy;
    bool is_member = node->value->type == JSON_OBJECT;
    const struct compact_key *key =
        is_member ? key_at(rules, child->key, (size_t)(child - node->children)) : NULL;
    child->parent = node;
    child->key_size = is_member ? key->size + 1 : 0;
    child->dropped = rules->drops && is_named(child, budget->drop, budget->drop_count, true);
    if (child->dropped)
        return;
    bool named = is_named(child, budget->keep, budget->keep_count, true) ||
                 (policy && is_named(child, policy->gives_ids, policy->gives_id_count, false));
    build(rules, child);
    /* Ids, titles and times identify a thing and take little. */
    struct str text = scalar_text(child->value);
    child->kept =
        named || (key && key->key.len && !is_container(child) && (key->identifies || is_time(text)));
    node->leads |= named || child->leads;
    node->goal_words |= child->goal_words;
    node->size += child->size + 1;
    if (!is_member)
        return;
    node->size += child->key_size;
    /* An object is identified by its own members. */
    bool may_be_id = text.len && rules->argument_id_count && (is_id_name(child->key) || child->kept);
    for (size_t i = 0; may_be_id && i < rules->argument_id_count; i++)
        node->entity |= str_eq(rules->argument_ids[i].text, text);
    if (child->value->type == JSON_STRING && is_time(text) &&
        (!node->time.len || str_cmp(text, node->time) > 0))
        node->time = text;
}

static void build(const struct compact_rules *rules, struct compact_node *node)
{
    const struct json *v = node->value;
    bool is_array = v->type == JSON_ARRAY;
    node->size = 2;
    switch (v->type) {
    case JSON_STRING:
        /* A string that was sent without escapes is not read. */
        node->size = v->raw_len == v->len + 2 ? v->raw_len : compact_string_size(json_str(v));
        node->goal_words = compact_goal_words_in(rules, json_str(v));
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        node->count = v->len;
        node->children = ARENA_ARRAY(rules->arena, struct compact_node, v->len + 1);
        for (uint32_t i = 0; i < v->len; i++) {
            node->children[i] = (struct compact_node){.value = json_child(v, i),
                                                      .key = is_array ? STR_NONE : v->members[i].key};
            add_child(rules, node, &node->children[i]);
        }
        node->size -= node->size > 2; /* the last comma */
        break;
    case JSON_NUMBER:
        node->size = v->len;
        break;
    default:
        node->size = json_is_false(v) ? 5 : 4;
    }
    node->least = least_of(node);
    node->floor = floor_of(node);
}

struct compact_node *compact_tree(const struct compact_rules *rules, const struct json *value)
{
    struct compact_node *root = ARENA_NEW(rules->arena, struct compact_node);
    root->value = value;
    build(rules, root);
    return root;
}

/* ---- shortening ---- */

#define PART_LEAST_BYTES 64 /* a part that would get less is left out */

struct part {
    struct json value;
    int64_t size;
};

static struct part shrink(struct shrink_ctx *s, const struct compact_node *node, int64_t budget);

static void note_omission(struct shrink_ctx *s, enum compact_omission_kind kind,
                          const struct compact_node *at, uint64_t count, uint64_t of)
{
    struct str path = node_path(s->rules->arena, at);
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

enum extent { NOTHING, LEAST, WHOLE };

static struct part take(struct shrink_ctx *s, const struct compact_node *node, enum extent extent);

static struct json take_children(struct shrink_ctx *s, const struct compact_node *node, enum extent extent)
{
    struct json *items = ARENA_ARRAY(s->rules->arena, struct json, node->count + 1);
    struct json_member *members = ARENA_ARRAY(s->rules->arena, struct json_member, node->count + 1);
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
    return is_array ? json_array(items, count) : json_object(s->rules->arena, members, count);
}

static struct part cut(struct shrink_ctx *s, const struct compact_node *node, int64_t budget)
{
    struct str text = json_str(node->value);
    size_t left_out, most = budget > 2 ? (size_t)(budget - 2) * text.len / (node->size ? node->size : 1) : 0;
    struct str shown = compact_text(s->rules->arena, s->rules, text, most, &left_out);
    if (left_out)
        note_omission(s, OMITTED_TEXT, node, left_out, text.len);
    return (struct part){json_string(shown), compact_string_size(shown)};
}

static struct part take(struct shrink_ctx *s, const struct compact_node *node, enum extent extent)
{
    bool least = extent == LEAST && node->least < node->size;
    if (is_container(node))
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
static int64_t member_floor(const struct shrink_ctx *s, const struct compact_node *member)
{
    int64_t key = member->key_size + 1;
    if (s->items_only)
        return key + (is_container(member) ? 2 : (int64_t)member->size);
    if (member->kept)
        return key + member->least;
    return member->leads ? key + member->floor : -1;
}

static struct part shrink_object(struct shrink_ctx *s, const struct compact_node *node, int64_t budget)
{
    const struct compact_node **order =
        ARENA_ARRAY(s->rules->arena, const struct compact_node *, node->count + 1);
    struct json_member *members = ARENA_ARRAY(s->rules->arena, struct json_member, node->count + 1);
    struct part *parts = ARENA_ARRAY(s->rules->arena, struct part, node->count + 1);
    int64_t rest = budget - 2;
    size_t left = 0, count = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct compact_node *child = &node->children[i];
        int64_t floor = member_floor(s, child);
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
        int64_t floor = member_floor(s, child), key = child->key_size + 1,
                share = rest > 0 ? rest / (int64_t)left : 0;
        int64_t room = share + (floor > 0 ? floor : 0) - key;
        bool fits = room >= (int64_t)child->size;
        bool can_shrink = is_container(child) || child->value->type == JSON_STRING;
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
    return (struct part){json_object(s->rules->arena, members, count), budget - rest};
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

/* As many items as fit, each at its least, the subject of the call whole; then whole ones, as far as there is
 * room. */
static struct part shrink_array(struct shrink_ctx *s, const struct compact_node *node, int64_t budget)
{
    const struct compact_node **order =
        ARENA_ARRAY(s->rules->arena, const struct compact_node *, node->count + 1);
    uint8_t *shown = arena_alloc(s->rules->arena, node->count + 1); /* enum extent, by place in the list */
    struct json *items = ARENA_ARRAY(s->rules->arena, struct json, node->count + 1);
    size_t left = 0, count = 0, brief = 0;
    int64_t rest = budget - 2, room = rest * 2 / 3, all = 0, size = 2;
    memset(shown, NOTHING, node->count + 1);
    for (uint32_t i = 0; i < node->count; i++)
        if (!node->children[i].dropped) {
            order[left++] = &node->children[i];
            all += node->children[i].least + 1;
        }
    if (s->items_only || all <= rest) /* else a third is for whole ones */
        room = rest;
    qsort(order, left, sizeof(*order), by_worth);
    for (size_t i = 0; i < left; i++) {
        const struct compact_node *item = order[i];
        int64_t whole = (int64_t)item->size + 1, least = (s->items_only ? item->size : item->least) + 1;
        bool is_whole = (item->entity && whole <= rest) || least == whole;
        int64_t cost = is_whole ? whole : least;
        if (cost > (item->entity ? rest : room))
            continue;
        shown[item - node->children] = is_whole ? WHOLE : LEAST;
        rest -= cost;
        room -= cost;
    }
    for (size_t i = 0; i < left; i++) {
        const struct compact_node *item = order[i];
        uint8_t *now = &shown[item - node->children];
        int64_t more = (int64_t)item->size - (s->items_only ? item->size : item->least);
        int64_t cost = *now == NOTHING ? (int64_t)item->size + 1 : more;
        if (*now == WHOLE || cost > rest)
            continue;
        *now = WHOLE;
        rest -= cost;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        if (shown[i] == NOTHING)
            continue;
        struct part part = take(s, &node->children[i], (enum extent)shown[i]);
        brief += shown[i] == LEAST;
        items[count++] = part.value;
        size += part.size + 1;
    }
    if (!count && left && !s->items_only) { /* one shortened item is better than none */
        struct part part = shrink(s, order[0], budget - 2);
        items[count++] = part.value;
        size += part.size;
    }
    if (count < left)
        note_omission(s, OMITTED_ITEMS, node, left - count, left);
    if (brief)
        note_omission(s, OMITTED_DETAIL, node, brief, count);
    return (struct part){json_array(items, count), size};
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
