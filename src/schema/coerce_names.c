/*
 * Names of members that no property declares, and that differ only in case,
 * separators or a final s from exactly one declared name that the object does
 * not use. Only in objects that declare their properties: the keys of a map are
 * data.
 */
#include "schema/coercer.h"

#define NAME_MAX_BYTES 64u /* a longer name is compared with none */
#define RENAMES_MAX    64u /* undeclared members of one object; with more, it is a map in all but name */

struct spelling {
    char at[NAME_MAX_BYTES]; /* without separators */
    size_t len;
};

static bool is_separator(char c)
{
    return c == '_' || c == '-' || c == ' ' || c == '.';
}

/* A separator between two digits stays: v1_1 is not v11. */
static bool spell(struct str name, struct spelling *out)
{
    out->len = 0;
    if (name.len > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        bool inside = i > 0 && i + 1 < name.len;
        bool numeric = inside && ascii_is_digit(name.at[i - 1]) && ascii_is_digit(name.at[i + 1]);
        if (!is_separator(name.at[i]))
            out->at[out->len++] = name.at[i];
        else if (numeric)
            out->at[out->len++] = '_';
    }
    return out->len > 0;
}

/* One letter keeps its case: -i is not -I. */
static bool same_spelling(const struct spelling *a, const struct spelling *b, size_t len)
{
    return len == 1 ? a->at[0] == b->at[0] : strncasecmp(a->at, b->at, len) == 0;
}

static bool spells(struct str sent, struct str declared)
{
    struct spelling a, b;
    if (!spell(sent, &a) || !spell(declared, &b))
        return false;
    const struct spelling *longer = a.len > b.len ? &a : &b;
    size_t len = a.len < b.len ? a.len : b.len;
    bool plural = longer->len == len + 1 && (longer->at[len] | 32) == 's';
    return (longer->len == len || plural) && same_spelling(&a, &b, len);
}

bool schema_names_alike(struct str one, struct str other)
{
    return spells(one, other);
}

static bool is_open(const struct node *rest)
{
    return rest && !(rest->source->type == JSON_BOOL && !rest->source->truth);
}

static bool has_map_keywords(const struct node *node)
{
    for (uint16_t i = 0; i < node->op_count; i++) {
        const struct op *op = &node->ops[i];
        if (op->code == OP_PROPERTIES &&
            (op->props->pattern_count ||
             (op->props->rest && is_open(op->props->rest) && op->props->rest->source->type == JSON_OBJECT &&
              op->props->rest->source->len)))
            return true;
        if (op->code == OP_UNEVALUATED_PROPERTIES && is_open(op->node))
            return true;
    }
    return false;
}

struct renames {
    struct coercer *c;
    const struct json *object;
    struct in_place_nodes declared; /* of every branch: no name of these is undeclared */
    struct in_place_nodes scope;    /* those whose names may be meant */
    bool certain;                   /* they apply, whatever the names */
    bool open;                      /* says additionalProperties: true itself */
};

/* False for a map. */
static bool begin(struct renames *r, struct coercer *c, const struct node *node, const struct json *v)
{
    bool properties = false;
    r->c = c;
    r->object = v;
    r->open = false;
    in_place_collect(&r->declared, node, NULL, NULL);
    for (uint32_t i = 0; i < r->declared.count; i++) {
        const struct props *props = r->declared.props[i];
        if (has_map_keywords(r->declared.nodes[i]))
            return false;
        properties |= props && props->declared;
        r->open |= props && is_open(props->rest);
    }
    return properties && r->declared.count < IN_PLACE_NODES_MAX;
}

static bool is_declared(const struct in_place_nodes *nodes, struct str name)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->props[i] && props_find(nodes->props[i], name))
            return true;
    return false;
}

/* The one declared name that is spelled so; empty: none, several, or one that the object uses. */
static struct str meant_by(const struct renames *r, struct str sent)
{
    struct str found = STR_NONE;
    for (uint32_t i = 0; i < r->declared.count; i++) {
        const struct props *props = r->declared.props[i];
        for (uint32_t k = 0; props && k < props->declared; k++) {
            struct str name = props->list[k].key;
            if (!spells(sent, name) || (found.at && str_eq(found, name)))
                continue;
            if (found.at || json_get(r->object, name))
                return STR_NONE;
            found = name;
        }
    }
    return found;
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
    for (uint32_t i = 0; i < r->scope.count; i++) {
        const struct prop *p = r->scope.props[i] ? props_find(r->scope.props[i], name) : NULL;
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

const struct json *coerce_names(struct coercer *c, const struct node *node, const struct json *v,
                                enum name_scope scope)
{
    struct renames *r = ARENA_NEW(c->arena, struct renames);
    uint32_t at[RENAMES_MAX], count = 0;
    struct str meant[RENAMES_MAX];
    struct json_member *members = NULL;
    if (!begin(r, c, node, v))
        return v;
    for (uint32_t i = 0; i < v->len; i++) {
        if (is_declared(&r->declared, v->members[i].key))
            continue;
        if (count == RENAMES_MAX)
            return v;
        at[count] = i;
        meant[count++] = meant_by(r, v->members[i].key);
    }
    r->certain = scope == NAMES_THAT_APPLY;
    if (count)
        in_place_collect(&r->scope, node, r->certain ? v : NULL, &c->pass);
    for (uint32_t i = 0; i < count; i++) {
        bool alone = meant[i].at != NULL;
        for (uint32_t k = 0; k < count && alone; k++)
            alone = k == i || !meant[k].at || !str_eq(meant[k], meant[i]);
        const struct json *value = alone ? fit(r, meant[i], &v->members[at[i]].value) : NULL;
        if (!value)
            continue;
        if (!members) {
            members = ARENA_ARRAY(c->arena, struct json_member, v->len);
            memcpy(members, v->members, v->len * sizeof(*members));
        }
        members[at[i]] = json_member(meant[i], *value);
    }
    return members ? json_keep(c->arena, json_object(c->arena, members, v->len)) : v;
}

bool coerce_names_misspelled(struct coercer *c, const struct node *node, const struct json *v,
                             struct str declared)
{
    struct renames *r = ARENA_NEW(c->arena, struct renames);
    if (!begin(r, c, node, v))
        return false;
    for (uint32_t i = 0; i < v->len; i++)
        if (spells(v->members[i].key, declared) && !is_declared(&r->declared, v->members[i].key))
            return true;
    return false;
}
