/*
 * Mending, value by value: what the schema accepts is left alone, what it
 * refuses is read another branch_entry only if that is the one branch_entry that fits. Each
 * value's node is asked, references, branches and all, so that a reading can
 * never slip past a rule.
 */
#include "schema/coerce.h"

#include "schema/in_place_applicators.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"

#include <strings.h>

#define STRING  TYPE_BIT(JSON_STRING)
#define ARRAY   TYPE_BIT(JSON_ARRAY)
#define OBJECT  TYPE_BIT(JSON_OBJECT)
#define NOTHING TYPE_BIT(JSON_NULL)

const struct coerce_options coerce_options_all = {
    .json = true, .strings = true, .lists = true, .nulls = true, .enums = true, .floats = true};

struct mender {
    struct pass pass;
    struct arena *arena;
    const struct coerce_options *may;
    unsigned depth;
    bool valid; /* inside a value that fits: only the spelling of whole numbers is looked at */
};

static const struct json *mend(struct mender *m, const struct node *node, const struct json *v);

static bool accepts(struct mender *m, const struct node *node, const struct json *v)
{
    return node_accepts(&m->pass, node, v, NULL) && !m->pass.too_complex;
}

static const struct json *keep(struct mender *m, struct json v)
{
    struct json *kept = ARENA_NEW(m->arena, struct json);
    *kept = v;
    return kept;
}

/* ---- whole numbers ---- */

static bool is_spelled_float(const struct json *v)
{
    return v->type == JSON_NUMBER && v->integral &&
           (memchr(v->text, '.', v->len) || memchr(v->text, 'e', v->len) || memchr(v->text, 'E', v->len));
}

static bool holds_spelled_float(const struct json *v)
{
    bool found = is_spelled_float(v);
    for (uint32_t i = 0; v->type == JSON_ARRAY && i < v->len && !found; i++)
        found = holds_spelled_float(&v->items[i]);
    for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->len && !found; i++)
        found = holds_spelled_float(&v->members[i].value);
    return found;
}

static const struct json *respell(struct mender *m, const struct node *node, const struct json *v)
{
    int64_t n;
    bool whole = (node->types & TYPES_NUMBER) == TYPE_INTEGER;
    if (!m->may->floats || !whole || !is_spelled_float(v) || !json_int(v, &n))
        return v;
    return keep(m, json_integer(m->arena, n));
}

/* ---- strings that hold something else ---- */

static bool is_number_literal(struct str s)
{
    size_t n = s.len && s.at[0] == '-', digits = n;
    while (n < s.len && s.at[n] >= '0' && s.at[n] <= '9')
        n++;
    if (n == digits || (n - digits > 1 && s.at[digits] == '0'))
        return false;
    if (n < s.len && s.at[n] == '.') {
        for (digits = ++n; n < s.len && s.at[n] >= '0' && s.at[n] <= '9';)
            n++;
        if (n == digits)
            return false;
    }
    if (n < s.len && (s.at[n] | 32) == 'e') {
        n++;
        n += n < s.len && (s.at[n] == '+' || s.at[n] == '-');
        for (digits = n; n < s.len && s.at[n] >= '0' && s.at[n] <= '9';)
            n++;
        if (n == digits)
            return false;
    }
    return n == s.len;
}

static bool same_word(struct str a, struct str b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/* NULL: it reads as neither. */
static const struct json *read_scalar(struct mender *m, const struct node *node, struct str text)
{
    if ((node->types & TYPES_NUMBER) && is_number_literal(text))
        return respell(m, node, keep(m, json_literal(text)));
    bool truth = same_word(text, STR_LIT("true"));
    if ((node->types & TYPE_BIT(JSON_BOOL)) && (truth || same_word(text, STR_LIT("false"))))
        return keep(m, json_bool(truth));
    return NULL;
}

static bool looks_like_container(struct str text)
{
    return text.len > 0 && (text.at[0] == '{' || text.at[0] == '[');
}

/* The object or array a string spells, where one is wanted; NULL: none. */
static const struct json *read_container(struct mender *m, const struct node *node, struct str text)
{
    struct json parsed;
    struct json_error fault;
    if (!looks_like_container(text) || json_parse(m->arena, text, NULL, &parsed, &fault) != OK)
        return NULL;
    return node->types & type_bit_of(&parsed) ? keep(m, parsed) : NULL;
}

/* ---- enum values in other letters ---- */

static const struct json *find_choice(const struct in_place_nodes *all, struct str word, bool *twice)
{
    const struct json *found = NULL;
    for (uint32_t i = 0; i < all->count; i++)
        for (uint16_t k = 0; k < all->nodes[i]->op_count && all->nodes[i]->ops[k].code == OP_CHOICES; k++) {
            const struct choices *choices = &all->nodes[i]->ops[k].choices;
            for (uint32_t c = 0; c < choices->count; c++)
                if (choices->at[c]->type == JSON_STRING &&
                    same_word(str_trim(json_str(choices->at[c])), word)) {
                    *twice |= found && !json_equal(found, choices->at[c]);
                    found = choices->at[c];
                }
        }
    return found;
}

static const struct json *read_choice(struct mender *m, const struct node *node, struct str word)
{
    struct in_place_nodes all;
    bool twice = false;
    in_place_collect(&all, node);
    const struct json *found = find_choice(&all, word, &twice);
    return found && !twice && accepts(m, node, found) ? found : NULL;
}

/* ---- lists ---- */

static bool wants_only_list(const struct node *node)
{
    return (node->types & ~NOTHING) == ARRAY;
}

static const struct json *wrap(struct mender *m, const struct node *node, const struct json *v)
{
    if (!m->may->lists || !wants_only_list(node) || v->type == JSON_ARRAY || v->type == JSON_NULL)
        return v;
    if (v->type == JSON_STRING && looks_like_container(str_trim(json_str(v))))
        return v; /* a list or object spelled badly: wrapped it would only pass as what it isn't */
    const struct json *list = mend(m, node, keep(m, json_array(v, 1)));
    return accepts(m, node, list) ? list : v;
}

static const struct json *mend_string(struct mender *m, const struct node *node, const struct json *v)
{
    struct str text = str_trim(json_str(v));
    const struct json *read = NULL;
    if (node->types & STRING)
        read = m->may->enums ? read_choice(m, node, text) : NULL;
    else if (m->may->json && (node->types & (OBJECT | ARRAY)) && (read = read_container(m, node, text)))
        return mend(m, node, read); /* its own faults are better told inside it */
    else if (m->may->strings && (read = read_scalar(m, node, text)) && !accepts(m, node, read))
        read = NULL;
    return read ? read : wrap(m, node, v);
}

/* ---- objects ---- */

static const struct json *mend_by_props(struct mender *m, const struct props *props,
                                        const struct json_member *member, const struct json *v)
{
    const struct prop *p = props_find(props, member->key);
    bool described = p && p->node;
    if (described)
        v = mend(m, p->node, v);
    for (uint32_t i = 0; i < props->pattern_count; i++)
        if (pass_matches(&m->pass, props->patterns[i].pattern, member->key)) {
            v = mend(m, props->patterns[i].node, v);
            described = true;
        }
    return described || !props->rest ? v : mend(m, props->rest, v);
}

/* A null that some part of the schema refuses, in a declared field that none requires. */
static bool is_needless_null(struct mender *m, const struct in_place_nodes *all,
                             const struct json_member *member)
{
    bool refused = false;
    if (m->valid || !m->may->nulls || member->value.type != JSON_NULL)
        return false;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct prop *p = all->props[i] ? props_find(all->props[i], member->key) : NULL;
        if (p && p->required)
            return false;
        refused |= p && p->node && !accepts(m, p->node, &member->value);
    }
    return refused;
}

static const struct json *mend_object(struct mender *m, const struct node *node, const struct json *v)
{
    struct in_place_nodes *all = ARENA_NEW(m->arena, struct in_place_nodes);
    struct json_member *members = NULL;
    uint32_t count = 0;
    in_place_collect_for(all, node, v, &m->pass);
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json_member *member = &v->members[i];
        const struct json *value = &member->value;
        bool drop = is_needless_null(m, all, member);
        for (uint32_t k = 0; k < all->count && !drop; k++)
            if (all->props[k])
                value = mend_by_props(m, all->props[k], member, value);
        if (!members && (drop || value != &member->value)) {
            members = ARENA_ARRAY(m->arena, struct json_member, v->len);
            memcpy(members, v->members, i * sizeof(*members));
        }
        if (members && !drop)
            members[count] = (struct json_member){member->key, *value};
        count += !drop;
    }
    return members ? keep(m, json_object(m->arena, members, count)) : v;
}

/* ---- arrays ---- */

static const struct json *mend_item(struct mender *m, const struct in_place_nodes *all, uint32_t at,
                                    const struct json *v)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const struct op *op = all->items[i];
        if (!op)
            continue;
        const struct node *node = at < op->items.prefix.count ? op->items.prefix.at[at] : op->items.rest;
        if (node)
            v = mend(m, node, v);
    }
    return v;
}

static const struct json *mend_array(struct mender *m, const struct node *node, const struct json *v)
{
    struct in_place_nodes *all = ARENA_NEW(m->arena, struct in_place_nodes);
    struct json *items = NULL;
    in_place_collect_for(all, node, v, &m->pass);
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json *item = mend_item(m, all, i, &v->items[i]);
        if (!items && item != &v->items[i]) {
            items = ARENA_ARRAY(m->arena, struct json, v->len);
            memcpy(items, v->items, v->len * sizeof(*items));
        }
        if (items)
            items[i] = *item;
    }
    return items ? keep(m, json_array(items, v->len)) : v;
}

/* ---- any value ---- */

static const struct json *mend_by_type(struct mender *m, const struct node *node, const struct json *v)
{
    bool fits = node->types & type_bit_of(v);
    switch ((enum json_type)v->type) {
    case JSON_STRING:
        return m->valid ? v : mend_string(m, node, v);
    case JSON_NUMBER:
        return fits ? respell(m, node, v) : wrap(m, node, v);
    case JSON_OBJECT:
        return fits ? mend_object(m, node, v) : wrap(m, node, v);
    case JSON_ARRAY:
        return fits ? mend_array(m, node, v) : v;
    case JSON_BOOL:
        return fits ? v : wrap(m, node, v);
    case JSON_NULL:
        break;
    }
    return v;
}

static const struct json *mend(struct mender *m, const struct node *node, const struct json *v)
{
    if (m->pass.too_complex || m->depth == JSON_MAX_DEPTH)
        return v;
    bool outer = m->valid;
    m->valid = outer || accepts(m, node, v);
    m->depth++;
    const struct json *mended = v;
    if (!m->valid || (m->may->floats && holds_spelled_float(v)))
        mended = mend_by_type(m, node, v);
    m->depth--;
    m->valid = outer;
    return mended;
}

const struct json *schema_coerce(const struct schema *schema, const struct json *instance,
                                 const struct coerce_options *switches, struct arena *arena)
{
    struct mender m = {.pass = pass_begin(schema), .arena = arena, .may = switches};
    if (switches->floats && !switches->json && !switches->strings && !switches->lists && !switches->nulls &&
        !switches->enums && !holds_spelled_float(instance))
        return instance;
    const struct json *mended = mend(&m, schema->root, instance);
    return m.pass.too_complex ? instance : mended;
}
