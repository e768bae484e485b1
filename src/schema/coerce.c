/*
 * Value by value: what the schema accepts is left alone; what it rejects is read differently only if exactly
 * one reading fits. Each reading is checked against the value's own node, references and branches included,
 * so it cannot bypass a rule. A member that no schema declares is renamed if its name differs from exactly
 * one unused declared name only in case and separators, or else in a final s.
 */
#include "schema/coerce.h"
#include "schema/format.h"
#include "schema/schema_node.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/spelled.h"

#define STRING    TYPE_BIT(JSON_STRING)
#define ARRAY     TYPE_BIT(JSON_ARRAY)
#define BOOLEAN   TYPE_BIT(JSON_BOOL)
#define NULL_TYPE TYPE_BIT(JSON_NULL)

#define STEPS_OF_CONTAINER 60u
#define STEPS_OF_SCALAR    20u
#define SPLIT_MAX_PARTS    256u /* a text of more is not split */

struct coercer {
    struct pass pass;
    struct arena *arena;
    const struct coerce_options *options;
    unsigned depth; /* 1: at the arguments themselves */
    bool valid;     /* inside a value that fits, where only names and the spelling of whole numbers change */
    bool renames;   /* also walk values that fit: an open object may hold a misspelled name */
};

/* Returns the value itself, or the one other reading that the node accepts. */
static const struct json *coerce_value(struct coercer *c, const struct node *node, const struct json *v);

/* Whether only values of this type fit, and perhaps null. */
static bool takes_only(const struct node *node, unsigned type)
{
    return (node->types & ~NULL_TYPE) == type;
}

static bool same_word(struct str a, struct str b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

static bool coerce_accepts(struct coercer *c, const struct node *node, const struct json *v)
{
    c->pass.remarks.local_times = false;
    bool ok = node_accepts(&c->pass, node, v);
    if (!ok && c->pass.remarks.local_times)
        ok = node_accepts_local_times(&c->pass, node, v);
    return ok && !c->pass.too_complex;
}

/* The other reading, if there is one and the node accepts it; else NULL. */
static const struct json *if_accepted(struct coercer *c, const struct node *node, const struct json *read)
{
    return read && coerce_accepts(c, node, read) ? read : NULL;
}

/* ---- names that are spelled otherwise ---- */

#define NAME_MAX_BYTES 64u /* a longer name is compared with none */
#define RENAMES_MAX    64u /* undeclared members of one object; with more, it is a map in all but name */

struct spelling {
    char at[NAME_MAX_BYTES]; /* without separators */
    size_t len;
};

/* A separator between two digits stays: v1_1 is not v11. */
static bool spell(struct str name, struct spelling *out)
{
    out->len = 0;
    if (name.len > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        bool inside = i > 0 && i + 1 < name.len;
        bool numeric = inside && ascii_is_digit(name.at[i - 1]) && ascii_is_digit(name.at[i + 1]);
        if (!memchr("_- .", name.at[i], 4))
            out->at[out->len++] = name.at[i];
        else if (numeric)
            out->at[out->len++] = '_';
    }
    return out->len > 0;
}

enum likeness { NOT_ALIKE, BUT_FOR_S, BUT_FOR_CASE }; /* case, and separators */

static enum likeness compare(struct str sent, struct str declared)
{
    struct spelling a, b;
    if (!spell(sent, &a) || !spell(declared, &b))
        return NOT_ALIKE;
    const struct spelling *longer = a.len > b.len ? &a : &b;
    size_t len = a.len < b.len ? a.len : b.len;
    bool plural = longer->len == len + 1 && (longer->at[len] | 32) == 's';
    /* One letter keeps its case: -i is not -I. */
    bool same = len == 1 ? a.at[0] == b.at[0] : strncasecmp(a.at, b.at, len) == 0;
    if ((longer->len != len && !plural) || !same)
        return NOT_ALIKE;
    return plural ? BUT_FOR_S : BUT_FOR_CASE;
}

bool schema_names_alike(struct str one, struct str other)
{
    return compare(one, other) != NOT_ALIKE;
}

static bool is_open(const struct node *rest)
{
    return rest && !json_is_false(rest->source);
}

struct renames {
    struct coercer *c;
    const struct json *object;
    bool open;    /* says additionalProperties: true itself */
    bool certain; /* `scope` has what applies to any names */
    const struct in_place_nodes *scope;
    uint32_t count;
    struct undeclared {
        uint32_t at;
        struct str meant; /* empty: no declared name, or more than one */
    } list[RENAMES_MAX];
};

/* The schemas of every branch; false for a map. No name of these is undeclared. */
static bool collect_declared(struct in_place_nodes *declared, const struct node *node, bool *open)
{
    bool properties = false;
    *open = false;
    in_place_collect(declared, node, NULL, NULL);
    for (uint32_t i = 0; i < declared->count; i++) {
        const struct props *props = declared->props[i];
        const struct node *node_here = declared->nodes[i];
        for (uint16_t k = 0; k < node_here->op_count; k++)
            if (node_here->ops[k].code == OP_UNEVALUATED_PROPERTIES && is_open(node_here->ops[k].node))
                return false;
        if (props && (props->pattern_count || node_is_map_values(props->rest)))
            return false;
        properties |= props && props->declared;
        *open |= props && is_open(props->rest);
    }
    return properties && declared->count < IN_PLACE_NODES_MAX;
}

/* The one declared name that is as much alike; empty: none, several, or one that the object uses. */
static struct str name_alike(const struct in_place_nodes *declared, const struct json *object,
                             struct str sent, enum likeness likeness, bool *several)
{
    struct str found = STR_NONE;
    for (uint32_t i = 0; i < declared->count; i++) {
        const struct props *props = declared->props[i];
        for (uint32_t k = 0; props && k < props->declared; k++) {
            struct str name = props->list[k].key;
            if ((found.at && str_eq(found, name)) || compare(sent, name) != likeness)
                continue;
            *several |= found.at || json_get(object, name);
            found = name;
        }
    }
    return *several ? STR_NONE : found;
}

/* The undeclared members and what they mean. In a function of its own, as the nodes need not stay on the
 * stack while values are coerced. False: none means anything. */
static __attribute__((noinline)) bool find_undeclared(struct renames *r, const struct node *node)
{
    struct in_place_nodes declared __attribute__((uninitialized));
    bool any = false;
    uint64_t names = 0;
    r->count = 0;
    if (!collect_declared(&declared, node, &r->open))
        return false;
    for (uint32_t i = 0; i < declared.count; i++)
        names += declared.props[i] ? declared.props[i]->declared : 0;
    for (uint32_t i = 0; i < r->object->len; i++) {
        struct str key = r->object->members[i].key;
        bool several = false;
        if (in_place_prop(&declared, key))
            continue;
        /* Each declared name is compared with the one that was sent, perhaps twice. */
        if (r->count == RENAMES_MAX || !pass_spend(&r->c->pass, 10 + names))
            return false;
        struct str meant = name_alike(&declared, r->object, key, BUT_FOR_CASE, &several);
        if (!meant.at && !several)
            meant = name_alike(&declared, r->object, key, BUT_FOR_S, &several);
        r->list[r->count++] = (struct undeclared){i, meant};
        any |= meant.at != NULL;
    }
    return any;
}

/* The value as the property's schemas take it, or NULL. Of branches that only may apply, one must take it,
 * and what it becomes is left to the branch that then applies. An object that says additionalProperties: true
 * below the arguments holds data of its own, unless it lacks a required field. */
static const struct json *fit(struct renames *r, struct str name, const struct json *value)
{
    struct coercer *c = r->c;
    bool outer = c->valid, all_fit = true, one_fits = false, required = false;
    const struct json *read = value;
    c->valid = false;
    for (uint32_t i = 0; i < r->scope->count; i++) {
        const struct prop *p = r->scope->props[i] ? props_find(r->scope->props[i], name) : NULL;
        required |= p && p->required;
        if (!p || !p->node)
            continue;
        const struct json *here = coerce_value(c, p->node, r->certain ? read : value);
        bool fits = coerce_accepts(c, p->node, here);
        all_fit &= fits;
        one_fits |= fits;
        read = r->certain ? here : value;
    }
    c->valid = outer;
    bool data = r->open && !required && c->depth > 1;
    return one_fits && !data && (all_fit || !r->certain) ? read : NULL;
}

/* Whose names count: those of the branches that certainly apply, or of any branch. */
enum name_scope { NAMES_THAT_APPLY, NAMES_OF_ANY_BRANCH };

/* The object with each undeclared name replaced by the one unused declared name that it spells. *misspelled
 * (may be NULL): whether there is such a name, whatever became of it. */
static const struct json *coerce_names(struct coercer *c, const struct node *node, const struct json *v,
                                       enum name_scope scope, bool *misspelled)
{
    struct renames r __attribute__((uninitialized));
    struct in_place_nodes nodes __attribute__((uninitialized));
    struct json_member *members = NULL;
    r.c = c;
    r.object = v;
    r.certain = scope == NAMES_THAT_APPLY;
    r.scope = &nodes;
    bool any = find_undeclared(&r, node);
    if (misspelled)
        *misspelled = any;
    if (!any)
        return v;
    in_place_collect(&nodes, node, r.certain ? v : NULL, &c->pass);
    for (uint32_t i = 0; i < r.count; i++) {
        const struct undeclared *u = &r.list[i];
        uint32_t alike = 0; /* undeclared members that mean the same name, this one among them */
        for (uint32_t k = 0; k < r.count && u->meant.at; k++)
            alike += r.list[k].meant.at && str_eq(r.list[k].meant, u->meant);
        const struct json *value = alike == 1 ? fit(&r, u->meant, &v->members[u->at].value) : NULL;
        if (!value)
            continue;
        if (!members) {
            members = ARENA_ARRAY(c->arena, struct json_member, v->len);
            memcpy(members, v->members, v->len * sizeof(*members));
        }
        members[u->at] = json_member(u->meant, *value);
    }
    return members ? json_keep(c->arena, json_object(c->arena, members, v->len)) : v;
}

/* ---- numbers ---- */

/* A whole number with a point or an exponent. */
static bool is_spelled_float(const struct json *v)
{
    return v->type == JSON_NUMBER && v->integral &&
           (memchr(v->text, '.', v->len) || memchr(v->text, 'e', v->len) || memchr(v->text, 'E', v->len));
}

static bool holds_spelled_float(const struct json *v)
{
    if (v->type < JSON_ARRAY)
        return is_spelled_float(v);
    bool found = false;
    for (uint32_t i = 0; i < v->len && !found; i++) {
        const struct json *child = json_child(v, i);
        found = (child->type == JSON_NUMBER || child->type >= JSON_ARRAY) && holds_spelled_float(child);
    }
    return found;
}

/* A whole number without point or exponent, if the node takes only whole numbers. */
static const struct json *respell(struct coercer *c, const struct node *node, const struct json *v)
{
    int64_t n;
    bool whole = (node->types & TYPES_NUMBER) == TYPE_INTEGER;
    if (!c->options->floats || !whole || !is_spelled_float(v) || !json_int(v, &n))
        return v;
    return json_keep(c->arena, json_integer(c->arena, n));
}

/* ---- strings that spell something else ---- */

static const struct json *coerce_wrap(struct coercer *c, const struct node *node, const struct json *v);

/* "", "None" and "null" mean that no value was given. */
static bool is_blank(struct str text)
{
    return text.len == 0 || str_is(text, "None") || str_is(text, "null");
}

/* Text that begins as JSON or a code fence does. It is read as JSON or not at all. */
static bool looks_like_json(struct str text)
{
    return text.len > 0 && (text.at[0] == '{' || text.at[0] == '[' || str_starts(text, "```"));
}

/* The number that a text spells; "1e99" is no whole number that anybody writes. */
static const struct json *read_number(struct coercer *c, const struct node *node, struct str text)
{
    struct json parsed;
    struct json_error error;
    int64_t n;
    unsigned types = node->types & TYPES_NUMBER;
    if (!types || json_parse(c->arena, text, NULL, &parsed, &error) != OK || !(types & type_bit_of(&parsed)))
        return NULL;
    if (types == TYPE_INTEGER && is_spelled_float(&parsed) && !json_int(&parsed, &n))
        return NULL;
    return respell(c, node, json_keep(c->arena, parsed));
}

/* How a word is like one of the choices, the closest first. */
enum { CHOICE_EXACT, CHOICE_FOLDED, CHOICE_SPELLED, LIKENESSES_OF_CHOICE };

/* The one string among the choices that differs in outer space alone, or else in case too, or else in
 * separators (in-progress, "In Progress"). `cased`: the case that was sent means something. */
static const struct json *read_choice(struct coercer *c, const struct node *node, struct str word, bool cased)
{
    struct {
        const struct json *one; /* NULL: none */
        bool ambiguous;
    } found[LIKENESSES_OF_CHOICE] = {{NULL}};
    struct in_place_nodes all;
    in_place_collect(&all, node, NULL, NULL);
    for (uint32_t i = 0; i < all.count; i++)
        for (uint16_t k = 0; k < all.nodes[i]->op_count && all.nodes[i]->ops[k].code == OP_CHOICES; k++) {
            const struct choices *choices = &all.nodes[i]->ops[k].choices;
            if (!pass_spend(&c->pass, choices->count))
                return NULL;
            for (uint32_t n = 0; n < choices->count; n++) {
                const struct json *choice = choices->at[n];
                struct str text = str_trim(json_str(choice));
                if (choice->type != JSON_STRING ||
                    (!same_word(text, word) && compare(word, text) != BUT_FOR_CASE))
                    continue;
                unsigned alike = !same_word(text, word)        ? CHOICE_SPELLED
                                 : cased && str_eq(text, word) ? CHOICE_EXACT
                                                               : CHOICE_FOLDED;
                found[alike].ambiguous |= found[alike].one && !json_equal(found[alike].one, choice);
                found[alike].one = choice;
            }
        }
    for (unsigned i = 0; i < LIKENESSES_OF_CHOICE; i++)
        if (found[i].one)
            return found[i].ambiguous ? NULL : if_accepted(c, node, found[i].one);
    return NULL;
}

/* "yes" and "1" mean true only where nothing but a boolean fits: beside a number, "1" is the number. */
static const struct json *read_boolean(struct coercer *c, const struct node *node, struct str word)
{
    static const struct {
        struct str word;
        bool truth, plain; /* plain: JSON's own word */
    } words[] = {{STR("true"), true, true}, {STR("false"), false, true}, {STR("yes"), true, false},
                 {STR("no"), false, false}, {STR("1"), true, false},     {STR("0"), false, false}};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words) && (node->types & BOOLEAN); i++)
        if (same_word(word, words[i].word)) {
            bool may = words[i].plain ? c->options->strings : c->options->words && takes_only(node, BOOLEAN);
            return may ? json_keep(c->arena, json_bool(words[i].truth)) : NULL;
        }
    return NULL;
}

/* A date or time with a space for the T, without seconds, or with an offset without its colon; a URI with
 * characters that a browser encodes. */
static const struct json *read_format(struct coercer *c, const struct node *node, struct str text)
{
    struct in_place_nodes all;
    const struct json *read = NULL;
    in_place_collect(&all, node, NULL, NULL);
    for (uint32_t i = 0; i < all.count && !read; i++)
        for (uint16_t k = 0; k < all.nodes[i]->op_count && !read; k++) {
            const struct op *op = &all.nodes[i]->ops[k];
            struct str said = op->code == OP_FORMAT ? format_respell(c->arena, op->format, text) : STR_NONE;
            read = said.len ? if_accepted(c, node, json_keep(c->arena, json_string(said))) : NULL;
        }
    return read;
}

/* An object or a list that the text spells, however oddly, or the one object where a list of objects is
 * wanted. A text that was cut off spells nothing. */
static const struct json *read_container(struct coercer *c, const struct node *node, struct str text)
{
    struct json spelled;
    if (!c->options->json || !looks_like_json(text) ||
        json_read_spelled(c->arena, text, &spelled, NULL) != JSON_SPELLED || spelled.type < JSON_ARRAY)
        return NULL;
    const struct json *read = json_keep(c->arena, spelled);
    if (node->types & type_bit_of(read))
        return coerce_value(c, node, read); /* its problems are reported inside it */
    const struct json *list = read->type == JSON_OBJECT ? coerce_wrap(c, node, read) : read;
    return list != read ? list : NULL;
}

static const struct json *coerce_string(struct coercer *c, const struct node *node, const struct json *v)
{
    struct str text = str_trim(json_str(v));
    const struct json *read = NULL;
    if (node->types & STRING) {
        read = c->options->enums ? read_choice(c, node, text, true) : NULL;
        if (!read && c->options->strings)
            read = read_format(c, node, text);
        return read ? read : v;
    }
    read = read_container(c, node, text);
    if (read)
        return read;
    read = read_boolean(c, node, text);
    bool is_null = str_is(text, "null") || str_is(text, "None");
    if (!read && is_null && c->options->words && (node->types & NULL_TYPE))
        read = json_keep(c->arena, json_null());
    if (!read && c->options->strings)
        read = read_number(c, node, text);
    read = if_accepted(c, node, read);
    return read ? read : coerce_wrap(c, node, v);
}

/* A number or a boolean that the node rejects. A number keeps its digits as they were sent: 1.10 is "1.10".
 */
static const struct json *coerce_plain(struct coercer *c, const struct node *node, const struct json *v)
{
    struct str digits = {v->text, v->len};
    const struct json *read = NULL;
    if (v->type == JSON_BOOL && takes_only(node, STRING)) {
        struct str word = v->truth ? STR_LIT("true") : STR_LIT("false");
        read = c->options->words ? read_choice(c, node, word, false) : NULL;
        if (!read && c->options->strings)
            read = if_accepted(c, node, json_keep(c->arena, json_string(word)));
    } else if (v->type == JSON_NUMBER && c->options->strings && takes_only(node, STRING))
        read = if_accepted(c, node, json_keep(c->arena, json_string(digits)));
    else if (v->type == JSON_NUMBER && v->integral && takes_only(node, BOOLEAN))
        read = if_accepted(c, node, read_boolean(c, node, digits));
    return read ? read : coerce_wrap(c, node, v);
}

/*
 * ---- lists ----
 *
 * One value where a list is wanted, the items of a list, and a list of one where a text is wanted. A text
 * that may itself be a list ("a, b") is split only where each part fits an enum or a format, and otherwise
 * left alone.
 */

struct text_list {
    struct json *parts; /* trimmed, of those between commas */
    uint32_t count;
    bool other_separator, empty_part;
};

static struct text_list split(struct arena *arena, struct str text)
{
    static const char *const others[] = {";", "|", "\n", "\t", "、", "，", "；"};
    struct text_list list = {.count = 1};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        list.other_separator |= memmem(text.at, text.len, others[i], strlen(others[i])) != NULL;
    for (size_t i = 0; i < text.len && list.count < SPLIT_MAX_PARTS; i++)
        list.count += text.at[i] == ',';
    list.parts = ARENA_ARRAY(arena, struct json, list.count);
    for (uint32_t i = 0; i < list.count; i++) {
        struct str part = str_trim(str_split(&text, ','));
        list.empty_part |= part.len == 0;
        list.parts[i] = json_string(part);
    }
    return list;
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
    return if_accepted(c, node, coerce_value(c, node, json_keep(c->arena, json_array(items, count))));
}
static const struct json *list_of_text(struct coercer *c, const struct node *node, const struct json *v)
{
    struct str text = str_trim(json_str(v));
    const struct node *item = node_of_items(node);
    if (is_blank(text) || looks_like_json(text))
        return NULL;
    /* Text with quotes or tags around it is the rest of some syntax that was not read. */
    char first = text.at[0], last = text.at[text.len - 1];
    if ((text.len > 1 && first == last && memchr("\"'`", first, 3)) || (first == '<' && last == '>'))
        return NULL;
    const struct json *whole = list_of(c, node, v, 1), *parts = NULL;
    struct text_list list = split(c->arena, text);
    if (list.count == 1 && !list.other_separator)
        return whole;
    struct in_place_nodes all = {.count = 0};
    bool limited = false; /* to an enum or a format */
    if (item)
        in_place_collect(&all, item, NULL, NULL);
    for (uint32_t i = 0; i < all.count; i++)
        for (uint16_t k = 0; k < all.nodes[i]->op_count; k++)
            limited |= all.nodes[i]->ops[k].code == OP_CHOICES || all.nodes[i]->ops[k].code == OP_FORMAT;
    if (!limited)
        return NULL;
    if (list.count > 1 && list.count < SPLIT_MAX_PARTS && !list.other_separator && !list.empty_part)
        parts = list_of(c, node, list.parts, list.count);
    return !parts ? whole : !whole ? parts : NULL;
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
        struct str key = v->members[i].key;
        for (uint32_t k = 0; k < all.count; k++)
            declares |= all.props[k] && all.props[k]->declared;
        known |= in_place_prop(&all, key) != NULL;
        indexes &= key.len > 0;
        for (size_t k = 0; k < key.len; k++)
            indexes &= ascii_is_digit(key.at[k]);
    }
    if (declares)
        return known;
    struct str only = v->len == 1 && v->members[0].value.type == JSON_ARRAY ? v->members[0].key : STR_NONE;
    bool wrapper = same_word(only, STR_LIT("item")) || same_word(only, STR_LIT("items"));
    return v->len > 0 && !wrapper && !indexes;
}

/* A list of the value if only a list fits. */
static const struct json *coerce_wrap(struct coercer *c, const struct node *node, const struct json *v)
{
    const struct json *list = NULL;
    if (!c->options->lists || !takes_only(node, ARRAY) || v->type == JSON_NULL)
        return v;
    list = v->type == JSON_STRING ? list_of_text(c, node, v) : list_of(c, node, v, 1);
    if (list && list->items[0].type == JSON_OBJECT && !is_item(c, node, &list->items[0]))
        return v;
    return list ? list : v;
}

/* The walk over the items or members of a value. */
struct children {
    struct coercer *c;
    const struct node *node;
    struct in_place_nodes all;
    bool wrapped; /* an item became a list */
};

/* A null or blank that some part of the schema rejects, in a declared field that none requires. It stays if a
 * misspelling of the same field was sent too, because then either could have been meant. */
static __attribute__((noinline)) bool is_needless(const struct children *w, const struct json *object,
                                                  const struct json_member *member)
{
    struct coercer *c = w->c;
    bool refused = false, null = member->value.type == JSON_NULL;
    bool blank = member->value.type == JSON_STRING && is_blank(str_trim(json_str(&member->value)));
    if (c->valid || !(null ? c->options->nulls : blank && c->options->words))
        return false;
    for (uint32_t i = 0; i < w->all.count; i++) {
        const struct prop *p = w->all.props[i] ? props_find(w->all.props[i], member->key) : NULL;
        if (p && p->required)
            return false;
        refused |= p && p->node && !coerce_accepts(c, p->node, &member->value);
    }
    struct in_place_nodes declared __attribute__((uninitialized));
    bool open, misspelled = false;
    bool names = refused && collect_declared(&declared, w->node, &open);
    for (uint32_t i = 0; names && i < object->len && !misspelled; i++) {
        struct str sent = object->members[i].key;
        misspelled = compare(sent, member->key) && !in_place_prop(&declared, sent);
    }
    return refused && !misspelled;
}

static const struct json *coerce_child(void *walk, const struct json *v, uint32_t i, struct str *key)
{
    struct children *w = walk;
    const struct json *child = json_child(v, i), *value = child;
    const struct node *next;
    bool in_list = v->type == JSON_ARRAY;
    for (uint32_t k = 0; k < w->all.count; k++) {
        struct props_cursor at = {0};
        if (in_list && w->all.items[k] && (next = op_item_node(w->all.items[k], i)))
            value = coerce_value(w->c, next, value);
        while (!in_list && w->all.props[k] &&
               (next = props_next_node(&w->c->pass, w->all.props[k], *key, &at)))
            value = coerce_value(w->c, next, value);
    }
    w->wrapped |= value->type == JSON_ARRAY && child->type != JSON_ARRAY;
    return !in_list && value == child && is_needless(w, v, &v->members[i]) ? NULL : value;
}

static const struct json *coerce_children(struct coercer *c, const struct node *node, const struct json *v,
                                          bool *wrapped)
{
    struct children *w = ARENA_NEW(c->arena, struct children);
    w->c = c;
    w->node = node;
    in_place_collect(&w->all, node, v, &c->pass);
    const struct json *read = json_map(c->arena, v, coerce_child, w);
    if (wrapped)
        *wrapped = w->wrapped;
    return read;
}

/* [255,255,255] for a list of lists is one list or three: it is read only if just one of the two fits. */
static const struct json *coerce_array(struct coercer *c, const struct node *node, const struct json *v)
{
    bool wrapped, holds_array = false;
    const struct json *items = coerce_children(c, node, v, &wrapped);
    for (uint32_t i = 0; i < v->len; i++)
        holds_array |= v->items[i].type == JSON_ARRAY;
    if (c->valid || !c->options->lists || holds_array || !v->len)
        return items;
    const struct node *item = node_of_items(node);
    if (!item || !takes_only(item, ARRAY))
        return items;
    const struct json *outer = json_keep(c->arena, json_array(v, 1));
    const struct json *whole = coerce_children(c, node, outer, NULL);
    if (!coerce_accepts(c, node, whole))
        return items;
    return wrapped ? v : whole;
}

/* ---- the walk ---- */

const struct coerce_options coerce_options_all = {.json = true,
                                                  .strings = true,
                                                  .lists = true,
                                                  .nulls = true,
                                                  .enums = true,
                                                  .floats = true,
                                                  .names = true,
                                                  .words = true,
                                                  .wrapped = true};

/* Names first, since a member's name selects the schema of its value. The names of a branch that only may
 * apply are tried if the object fits in no other way. */
static const struct json *coerce_object(struct coercer *c, const struct node *node, const struct json *v)
{
    bool names = c->options->names && (!c->valid || c->renames), misspelled = false;
    const struct json *named = names ? coerce_names(c, node, v, NAMES_THAT_APPLY, &misspelled) : v;
    const struct json *coerced = coerce_children(c, node, named, NULL);
    if (!misspelled || coerce_accepts(c, node, coerced))
        return coerced;
    if (c->valid)
        return v;
    named = coerce_names(c, node, v, NAMES_OF_ANY_BRANCH, NULL);
    const struct json *other = named == v ? v : coerce_children(c, node, named, NULL);
    return coerce_accepts(c, node, other) ? other : coerced;
}

static const struct json *coerce_by_type(struct coercer *c, const struct node *node, const struct json *v)
{
    bool fits = node->types & type_bit_of(v);
    const struct json *text = NULL;
    switch ((enum json_type)v->type) {
    case JSON_STRING:
        return c->valid ? v : coerce_string(c, node, v);
    case JSON_BOOL:
        return c->valid ? v : coerce_plain(c, node, v);
    case JSON_NUMBER:
        return fits ? respell(c, node, v) : coerce_plain(c, node, v);
    case JSON_OBJECT:
        return fits ? coerce_object(c, node, v) : coerce_wrap(c, node, v);
    case JSON_ARRAY:
        if (fits)
            return coerce_array(c, node, v);
        /* The text in a list of one, if only a text fits. */
        if (c->options->lists && takes_only(node, STRING) && v->len == 1 && v->items[0].type == JSON_STRING)
            text = if_accepted(c, node, coerce_value(c, node, &v->items[0]));
        return text ? text : v;
    case JSON_NULL:
        break;
    }
    return v;
}

static const struct json *coerce_value(struct coercer *c, const struct node *node, const struct json *v)
{
    if (c->pass.too_complex || c->depth == JSON_MAX_DEPTH)
        return v;
    bool outer = c->valid, container = v->type >= JSON_ARRAY;
    c->valid = outer || coerce_accepts(c, node, v);
    c->depth++;
    const struct json *coerced = v;
    bool reads = !c->valid || c->renames;
    if (!reads && c->options->floats) /* asked again at each level, so it is counted */
        reads = (!container || pass_spend(&c->pass, STEPS_OF_BYTES(4 * (uint64_t)v->raw_len))) &&
                holds_spelled_float(v);
    /* Reading a value in another way allocates, parses and compares names. A null or boolean has no length.
     */
    uint64_t steps = container ? STEPS_OF_CONTAINER + STEPS_OF_PLACES(v->len) : STEPS_OF_SCALAR + v->len / 4;
    if (reads && pass_spend(&c->pass, steps))
        coerced = coerce_by_type(c, node, v);
    c->depth--;
    c->valid = outer;
    return coerced;
}

const struct json *schema_coerce(const struct schema *schema, const struct json *instance,
                                 const struct coerce_options *options, struct arena *arena,
                                 struct schema_work *work)
{
    static const struct coerce_options only_floats = {.floats = true};
    if (memcmp(options, &only_floats, sizeof(only_floats)) == 0 && !holds_spelled_float(instance))
        return instance;
    struct coercer c = {.pass = pass_begin(schema, work), .arena = arena, .options = options};
    const struct json *coerced = coerce_value(&c, schema->root, instance);
    return c.pass.too_complex ? instance : coerced;
}

const struct json *schema_coerce_names(const struct schema *schema, const struct json *instance,
                                       const struct coerce_options *options, struct arena *arena,
                                       struct schema_work *work)
{
    struct coerce_options without_floats = *options;
    without_floats.floats = false;
    struct coercer c = {
        .pass = pass_begin(schema, work), .arena = arena, .options = &without_floats, .renames = true};
    if (!options->names)
        return instance;
    const struct json *named = coerce_value(&c, schema->root, instance);
    if (c.pass.too_complex)
        return instance;
    struct schema_remarks ignored;
    return schema_inspect(schema, named, &ignored, work) == SCHEMA_VALID ? named : instance;
}
