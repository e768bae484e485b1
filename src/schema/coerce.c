/*
 * Value by value: what the schema accepts is left alone; what it rejects is
 * read differently only if exactly one reading fits. Each reading is checked
 * against the value's own node, references and branches included, so it cannot
 * bypass a rule.
 */
#include "schema/coerce.h"

#include "schema/schema_node.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"

#include <strings.h>

#define STRING    TYPE_BIT(JSON_STRING)
#define ARRAY     TYPE_BIT(JSON_ARRAY)
#define OBJECT    TYPE_BIT(JSON_OBJECT)
#define NULL_TYPE TYPE_BIT(JSON_NULL)

const struct coerce_options coerce_options_all = {
    .json = true, .strings = true, .lists = true, .nulls = true, .enums = true, .floats = true};

struct coercer {
    struct pass pass;
    struct arena *arena;
    const struct coerce_options *options;
    unsigned depth;
    bool valid; /* inside a value that fits, where only the spelling of whole numbers changes */
};

static const struct json *coerce_value(struct coercer *c, const struct node *node, const struct json *v);

static bool accepts(struct coercer *c, const struct node *node, const struct json *v)
{
    return node_accepts(&c->pass, node, v, NULL) && !c->pass.too_complex;
}

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

static const struct json *respell(struct coercer *c, const struct node *node, const struct json *v)
{
    int64_t n;
    bool whole = (node->types & TYPES_NUMBER) == TYPE_INTEGER;
    if (!c->options->floats || !whole || !is_spelled_float(v) || !json_int(v, &n))
        return v;
    return json_keep(c->arena, json_integer(c->arena, n));
}

static bool same_word(struct str a, struct str b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/* The JSON that a string spells, if it is of one of these types; NULL: it is not. */
static const struct json *read_json(struct coercer *c, unsigned types, struct str text)
{
    struct json parsed;
    struct json_error error;
    if (json_parse(c->arena, text, NULL, &parsed, &error) != OK || !(types & type_bit_of(&parsed)))
        return NULL;
    return json_keep(c->arena, parsed);
}

static bool looks_like_container(struct str text)
{
    return text.len > 0 && (text.at[0] == '{' || text.at[0] == '[');
}

/* The one string among the choices that differs in case or outer space alone. */
static const struct json *read_choice(struct coercer *c, const struct node *node, struct str word)
{
    const struct json *found = NULL;
    struct in_place_nodes all;
    bool ambiguous = false;
    in_place_collect(&all, node, NULL, NULL);
    for (uint32_t i = 0; i < all.count; i++)
        for (uint16_t k = 0; k < all.nodes[i]->op_count && all.nodes[i]->ops[k].code == OP_CHOICES; k++) {
            const struct choices *choices = &all.nodes[i]->ops[k].choices;
            for (uint32_t n = 0; n < choices->count; n++) {
                const struct json *choice = choices->at[n];
                if (!json_is(choice, JSON_STRING) || !same_word(str_trim(json_str(choice)), word))
                    continue;
                ambiguous |= found && !json_equal(found, choice);
                found = choice;
            }
        }
    return found && !ambiguous && accepts(c, node, found) ? found : NULL;
}

/* A list of the value, where only a list fits. */
static const struct json *wrap(struct coercer *c, const struct node *node, const struct json *v)
{
    bool only_list = (node->types & ~NULL_TYPE) == ARRAY;
    if (!c->options->lists || !only_list || v->type == JSON_ARRAY || v->type == JSON_NULL)
        return v;
    if (v->type == JSON_STRING && looks_like_container(str_trim(json_str(v))))
        return v; /* misspelled JSON: wrapped, it would pass as one string */
    const struct json *list = coerce_value(c, node, json_keep(c->arena, json_array(v, 1)));
    return accepts(c, node, list) ? list : v;
}

static const struct json *coerce_string(struct coercer *c, const struct node *node, const struct json *v)
{
    struct str text = str_trim(json_str(v));
    const struct json *read = NULL;
    if (node->types & STRING) {
        read = c->options->enums ? read_choice(c, node, text) : NULL;
        return read ? read : wrap(c, node, v);
    }
    if (c->options->json && looks_like_container(text))
        read = read_json(c, node->types & (OBJECT | ARRAY), text);
    if (read)
        return coerce_value(c, node, read); /* its problems are reported inside it */
    bool truth = same_word(text, STR_LIT("true"));
    if (c->options->strings && (node->types & TYPE_BIT(JSON_BOOL)) &&
        (truth || same_word(text, STR_LIT("false"))))
        read = json_keep(c->arena, json_bool(truth));
    else if (c->options->strings && (read = read_json(c, node->types & TYPES_NUMBER, text)))
        read = respell(c, node, read);
    return read && accepts(c, node, read) ? read : wrap(c, node, v);
}

static const struct json *coerce_by_props(struct coercer *c, const struct props *props,
                                          const struct json_member *member, const struct json *v)
{
    const struct prop *p = props_find(props, member->key);
    bool described = p && p->node;
    if (described)
        v = coerce_value(c, p->node, v);
    for (uint32_t i = 0; i < props->pattern_count; i++)
        if (pass_matches(&c->pass, props->patterns[i].pattern, member->key)) {
            v = coerce_value(c, props->patterns[i].node, v);
            described = true;
        }
    return described || !props->rest ? v : coerce_value(c, props->rest, v);
}

/* A null that some part of the schema rejects, in a declared field that none requires. */
static bool is_needless_null(struct coercer *c, const struct in_place_nodes *all,
                             const struct json_member *member)
{
    bool refused = false;
    if (c->valid || !c->options->nulls || member->value.type != JSON_NULL)
        return false;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct prop *p = all->props[i] ? props_find(all->props[i], member->key) : NULL;
        if (p && p->required)
            return false;
        refused |= p && p->node && !accepts(c, p->node, &member->value);
    }
    return refused;
}

static const struct json *coerce_object(struct coercer *c, const struct node *node, const struct json *v)
{
    struct in_place_nodes *all = ARENA_NEW(c->arena, struct in_place_nodes);
    struct json_member *members = NULL;
    uint32_t count = 0;
    in_place_collect(all, node, v, &c->pass);
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json_member *member = &v->members[i];
        const struct json *value = &member->value;
        bool drop = is_needless_null(c, all, member);
        for (uint32_t k = 0; k < all->count && !drop; k++)
            if (all->props[k])
                value = coerce_by_props(c, all->props[k], member, value);
        if (!members && (drop || value != &member->value)) {
            members = ARENA_ARRAY(c->arena, struct json_member, v->len);
            memcpy(members, v->members, i * sizeof(*members));
        }
        if (members && !drop)
            members[count] = (struct json_member){member->key, *value};
        count += !drop;
    }
    return members ? json_keep(c->arena, json_object(c->arena, members, count)) : v;
}

static const struct json *coerce_array(struct coercer *c, const struct node *node, const struct json *v)
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
        if (!items && item != &v->items[i]) {
            items = ARENA_ARRAY(c->arena, struct json, v->len);
            memcpy(items, v->items, v->len * sizeof(*items));
        }
        if (items)
            items[i] = *item;
    }
    return items ? json_keep(c->arena, json_array(items, v->len)) : v;
}

static const struct json *coerce_by_type(struct coercer *c, const struct node *node, const struct json *v)
{
    bool fits = node->types & type_bit_of(v);
    switch ((enum json_type)v->type) {
    case JSON_STRING:
        return c->valid ? v : coerce_string(c, node, v);
    case JSON_NUMBER:
        return fits ? respell(c, node, v) : wrap(c, node, v);
    case JSON_OBJECT:
        return fits ? coerce_object(c, node, v) : wrap(c, node, v);
    case JSON_ARRAY:
        return fits ? coerce_array(c, node, v) : v;
    case JSON_BOOL:
        return fits ? v : wrap(c, node, v);
    case JSON_NULL:
        break;
    }
    return v;
}

static const struct json *coerce_value(struct coercer *c, const struct node *node, const struct json *v)
{
    if (c->pass.too_complex || c->depth == JSON_MAX_DEPTH)
        return v;
    bool outer = c->valid;
    c->valid = outer || accepts(c, node, v);
    c->depth++;
    const struct json *coerced = v;
    if (!c->valid || (c->options->floats && holds_spelled_float(v)))
        coerced = coerce_by_type(c, node, v);
    c->depth--;
    c->valid = outer;
    return coerced;
}

const struct json *schema_coerce(const struct schema *schema, const struct json *instance,
                                 const struct coerce_options *options, struct arena *arena)
{
    struct coercer c = {.pass = pass_begin(schema), .arena = arena, .options = options};
    if (options->floats && !options->json && !options->strings && !options->lists && !options->nulls &&
        !options->enums && !holds_spelled_float(instance))
        return instance;
    const struct json *coerced = coerce_value(&c, schema->root, instance);
    return c.pass.too_complex ? instance : coerced;
}
