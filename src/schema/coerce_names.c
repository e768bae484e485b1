/*
 * Names of members that no property declares, and that differ only in case and
 * separators, or else in a final s, from exactly one declared name that the
 * object does not use. Only in objects that declare their properties: the keys
 * of a map are data.
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

enum likeness { NOT_ALIKE, BUT_FOR_S, BUT_FOR_CASE }; /* case, and separators */

static enum likeness compare(struct str sent, struct str declared)
{
    struct spelling a, b;
    if (!spell(sent, &a) || !spell(declared, &b))
        return NOT_ALIKE;
    const struct spelling *longer = a.len > b.len ? &a : &b;
    size_t len = a.len < b.len ? a.len : b.len;
    bool plural = longer->len == len + 1 && (longer->at[len] | 32) == 's';
    if ((longer->len != len && !plural) || !same_spelling(&a, &b, len))
        return NOT_ALIKE;
    return plural ? BUT_FOR_S : BUT_FOR_CASE;
}

bool schema_names_alike(struct str one, struct str other)
{
    return compare(one, other) != NOT_ALIKE;
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
    bool open;    /* says additionalProperties: true itself */
    bool certain; /* `scope` has what applies whatever the names are */
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
        if (has_map_keywords(declared->nodes[i]))
            return false;
        properties |= props && props->declared;
        *open |= props && is_open(props->rest);
    }
    return properties && declared->count < IN_PLACE_NODES_MAX;
}

static bool is_declared(const struct in_place_nodes *nodes, struct str name)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->props[i] && props_find(nodes->props[i], name))
            return true;
    return false;
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

static struct str name_meant(const struct in_place_nodes *declared, const struct json *object,
                             struct str sent)
{
    bool several = false;
    struct str name = name_alike(declared, object, sent, BUT_FOR_CASE, &several);
    return name.at || several ? name : name_alike(declared, object, sent, BUT_FOR_S, &several);
}

/* Each declared name is compared with the one that was sent, perhaps twice. */
static bool spend_comparison(struct coercer *c, const struct in_place_nodes *declared)
{
    uint64_t names = 0;
    for (uint32_t i = 0; i < declared->count; i++)
        names += declared->props[i] ? declared->props[i]->declared : 0;
    return pass_spend(&c->pass, 10 + names);
}

/* The undeclared members and what they mean. In a function of its own, as the nodes need not stay on the
 * stack while values are coerced. False: none means anything. */
static __attribute__((noinline)) bool find_undeclared(struct renames *r, const struct node *node)
{
    struct in_place_nodes declared __attribute__((uninitialized));
    bool any = false;
    r->count = 0;
    if (!collect_declared(&declared, node, &r->open))
        return false;
    for (uint32_t i = 0; i < r->object->len; i++) {
        struct str key = r->object->members[i].key;
        if (is_declared(&declared, key))
            continue;
        if (r->count == RENAMES_MAX || !spend_comparison(r->c, &declared))
            return false;
        struct str meant = name_meant(&declared, r->object, key);
        r->list[r->count++] = (struct undeclared){i, meant};
        any |= meant.at != NULL;
    }
    return any;
}

/* No other undeclared member means the same name. */
static bool is_alone(const struct renames *r, uint32_t which)
{
    struct str meant = r->list[which].meant;
    for (uint32_t i = 0; i < r->count && meant.at; i++)
        if (i != which && r->list[i].meant.at && str_eq(r->list[i].meant, meant))
            return false;
    return meant.at != NULL;
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

const struct json *coerce_names(struct coercer *c, const struct node *node, const struct json *v,
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
        const struct json *value = is_alone(&r, i) ? fit(&r, u->meant, &v->members[u->at].value) : NULL;
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

bool coerce_names_misspelled(const struct node *node, const struct json *v, struct str declared_name)
{
    struct in_place_nodes declared __attribute__((uninitialized));
    bool open;
    if (!collect_declared(&declared, node, &open))
        return false;
    for (uint32_t i = 0; i < v->len; i++)
        if (compare(v->members[i].key, declared_name) && !is_declared(&declared, v->members[i].key))
            return true;
    return false;
}
