/* Walks a document by its keywords, so that values which only look like schemas (in enum, default, examples)
 * are never indexed. */
#include "schema/compile.h"

#include "schema/json_pointer.h"
#include "schema/uri.h"

static struct str address_of(const struct json *const *source)
{
    return (struct str){(const char *)source, sizeof(*source)};
}

struct subschema *subschema_find(const struct compiler *c, const struct json *source)
{
    return map_get(c->subschemas, address_of(&source));
}

const struct node *subschema_node(struct compiler *c, struct subschema *subschema)
{
    if (subschema->node)
        return subschema->node;
    struct node_entry *entry = ARENA_NEW(c->arena, struct node_entry);
    entry->subschema = subschema;
    entry->node.resource = subschema->resource;
    entry->node.source = subschema->source;
    struct str description = json_str(json_get_text(subschema->source, "description"));
    entry->node.description = arena_first_line(c->arena, description, PROBLEM_DESCRIPTION_MAX_BYTES);
    if (c->last)
        c->last->next = entry;
    else
        c->first = entry;
    c->last = entry;
    if (!c->todo)
        c->todo = entry;
    subschema->node = &entry->node;
    return subschema->node;
}

static void put_pointer(struct buf *out, const struct subschema *subschema)
{
    if (!subschema->parent) {
        buf_str(out, subschema->resource->uri);
        buf_byte(out, '#');
        return;
    }
    put_pointer(out, subschema->parent); /* as deep as SCHEMA_MAX_NESTING */
    json_pointer_put(out, subschema->keyword);
    if (subschema->key.at)
        json_pointer_put(out, subschema->key);
    else if (subschema->index >= 0)
        buf_printf(out, "/%d", subschema->index);
}

struct str subschema_pointer(struct arena *arena, const struct subschema *subschema)
{
    struct buf out = buf_in(arena);
    put_pointer(&out, subschema);
    return buf_view(&out);
}

static struct resource *add_resource(struct compiler *c, struct str uri, struct subschema *root,
                                     struct dialect dialect)
{
    struct resource *r = ARENA_NEW(c->arena, struct resource);
    *r = (struct resource){.uri = uri, .root = root, .dialect = dialect, .next = c->all_resources};
    c->all_resources = r;
    map_add(c->resources, r->uri, r);
    return r;
}

static void add_anchor(struct compiler *c, struct subschema *subschema, struct str name)
{
    struct resource *r = subschema->resource;
    if (!r->anchors)
        r->anchors = map_new(c->arena);
    map_add(r->anchors, name, subschema);
}

/* $schema counts only at the root of a resource. */
static enum err own_dialect(struct compiler *c, const struct subschema *subschema, struct dialect *dialect)
{
    struct str uri = json_str(json_get_text(subschema->source, "$schema"));
    struct dialect own;
    enum err err = uri.len ? dialect_find(c, uri, &own) : OK;
    if (err)
        return compile_fault(c, subschema->source, "$schema", STR_LIT("#"), err);
    if (uri.len)
        *dialect = own;
    return OK;
}

static enum err index_id(struct compiler *c, struct subschema *subschema, struct str id)
{
    struct resource *outer = subschema->resource;
    struct str fragment, uri = uri_split(id, &fragment);
    if (uri.len) {
        struct dialect dialect = outer->dialect;
        enum err err = own_dialect(c, subschema, &dialect);
        if (err)
            return err;
        uri = uri_resolve(c->arena, outer->uri, uri);
        if (outer->root == subschema) { /* the document's $id differs from the URI that led to it */
            outer->uri = uri;
            map_add(c->resources, uri, outer);
        } else {
            subschema->resource = add_resource(c, uri, subschema, dialect);
        }
    }
    if (subschema->resource->dialect.draft == DRAFT_7 && fragment.len)
        add_anchor(c, subschema, fragment);
    return OK;
}

/* $id and anchors, as far as the draft has them. In draft-07 $ref hides every keyword beside it. */
static enum err index_identity(struct compiler *c, struct subschema *subschema)
{
    const struct json *source = subschema->source;
    struct str id = json_str(json_get_text(source, "$id"));
    bool is_bare_ref =
        subschema->resource->dialect.draft == DRAFT_7 && json_is(json_get_text(source, "$ref"), JSON_STRING);
    enum err err = id.at && !is_bare_ref ? index_id(c, subschema, id) : OK;
    enum draft draft = subschema->resource->dialect.draft;
    struct str anchor = json_str(json_get_text(source, "$anchor"));
    if (anchor.len && draft != DRAFT_7)
        add_anchor(c, subschema, anchor);
    struct str dynamic = json_str(json_get_text(source, "$dynamicAnchor"));
    bool is_dynamic = dynamic.len && draft == DRAFT_2020;
    bool is_recursive = json_is_true(json_get_text(source, "$recursiveAnchor")) && draft == DRAFT_2019 &&
                        subschema->resource->root == subschema;
    if (is_dynamic)
        add_anchor(c, subschema, dynamic);
    if (is_dynamic || is_recursive) {
        struct dynamic_anchor *a = ARENA_NEW(c->arena, struct dynamic_anchor);
        *a = (struct dynamic_anchor){.name = is_dynamic ? dynamic : STR_LIT(""),
                                     .subschema = subschema,
                                     .next = subschema->resource->dynamic};
        subschema->resource->dynamic = a;
    }
    return err;
}

static enum err index_schema(struct compiler *c, struct subschema *subschema);

static enum err index_child(struct compiler *c, const struct subschema *parent, struct str keyword,
                            struct str key, int32_t index, const struct json *source)
{
    struct subschema *subschema = ARENA_NEW(c->arena, struct subschema);
    *subschema = (struct subschema){.source = source,
                                    .resource = parent->resource,
                                    .parent = parent,
                                    .keyword = keyword,
                                    .key = key,
                                    .index = index,
                                    .nesting = parent->nesting + 1};
    static const struct json anything = {.type = JSON_BOOL, .truth = true};
    enum err err = index_schema(c, subschema);
    bool is_schema = source->type == JSON_OBJECT || source->type == JSON_BOOL;
    if (!err || is_schema || !c->faults)
        return err;
    struct str pointer = subschema_pointer(c->arena, subschema);
    const struct json **address = ARENA_NEW(c->arena, const struct json *);
    *address = source;
    subschema->source = &anything;
    map_add(c->subschemas, address_of(address), subschema);
    return compile_fault(c, source, NULL, pointer, err);
}

static enum err index_member(struct compiler *c, const struct subschema *parent, const struct json_member *m)
{
    const struct keyword *k = keyword_find(c, &parent->resource->dialect, m->key);
    enum keyword_holds holds = k ? k->holds : HOLDS_NONE;
    bool is_list = m->value.type == JSON_ARRAY, is_map = m->value.type == JSON_OBJECT;
    enum err err = OK;
    if (c->faults && !is_map && holds == HOLDS_MAP && !k->compile) { /* $defs: nothing else reads them */
        err_set(c->why, ERR_SCHEMA, "expected an object of schemas, found %s",
                json_type_name((enum json_type)m->value.type));
        return compile_fault(c, parent->source, k->name, subschema_pointer(c->arena, parent), ERR_SCHEMA);
    }
    if (holds == HOLDS_ONE || (holds == HOLDS_ONE_OR_LIST && !is_list))
        return index_child(c, parent, m->key, STR_NONE, -1, &m->value);
    if (is_list && (holds == HOLDS_LIST || holds == HOLDS_ONE_OR_LIST))
        for (uint32_t i = 0; i < m->value.len && !err; i++)
            err = index_child(c, parent, m->key, STR_NONE, (int32_t)i, &m->value.items[i]);
    if (is_map && (holds == HOLDS_MAP || holds == HOLDS_MAP_OR_NAMES))
        for (uint32_t i = 0; i < m->value.len && !err; i++) {
            const struct json_member *child = &m->value.members[i];
            struct str key = child->key.at ? child->key : STR_LIT("");
            if (holds == HOLDS_MAP || child->value.type != JSON_ARRAY)
                err = index_child(c, parent, m->key, key, -1, &child->value);
        }
    return err;
}

static enum err check_limits(struct compiler *c, const struct subschema *subschema)
{
    if (subschema->source->type != JSON_OBJECT && subschema->source->type != JSON_BOOL)
        return err_set(
            c->why, ERR_SCHEMA, "expected a schema (an object or a boolean) at " STR_FMT ", found %s",
            STR_ARG(subschema_pointer(c->arena, subschema)), json_type_name(subschema->source->type));
    if (++c->subschema_count > SCHEMA_MAX_SUBSCHEMAS)
        return err_set(c->why, ERR_LIMIT, "expected at most %u subschemas, found more; split the schema",
                       SCHEMA_MAX_SUBSCHEMAS);
    if (subschema->nesting > SCHEMA_MAX_NESTING)
        return err_set(c->why, ERR_LIMIT,
                       "expected subschemas to nest at most %u deep, found deeper; use $ref",
                       SCHEMA_MAX_NESTING);
    return OK;
}

static enum err index_schema(struct compiler *c, struct subschema *subschema)
{
    enum err err = check_limits(c, subschema);
    if (err || !map_add(c->subschemas, address_of(&subschema->source), subschema))
        return err;
    if (subschema->source->type == JSON_BOOL)
        return OK;
    err = index_identity(c, subschema);
    for (uint32_t i = 0; i < subschema->source->len && !err; i++)
        err = index_member(c, subschema, &subschema->source->members[i]);
    return err;
}

enum err subschema_index(struct compiler *c, const struct json *source, struct resource *resource,
                         struct subschema **out)
{
    struct subschema *subschema = ARENA_NEW(c->arena, struct subschema);
    *subschema = (struct subschema){.source = source, .resource = resource, .index = -1};
    enum err err = index_schema(c, subschema);
    *out = err ? NULL : subschema;
    return err;
}

enum err subschema_index_document(struct compiler *c, const struct json *document, struct str uri,
                                  struct resource **out)
{
    struct subschema *root = ARENA_NEW(c->arena, struct subschema);
    *root = (struct subschema){.source = document, .index = -1};
    struct str standard = c->options && c->options->default_dialect
                              ? str_of(c->options->default_dialect)
                              : STR_LIT("https://json-schema.org/draft/2020-12/schema");
    struct dialect dialect;
    enum err err = dialect_find(c, standard, &dialect);
    if (!err)
        err = own_dialect(c, root, &dialect);
    if (err)
        return err;
    root->resource = *out = add_resource(c, uri, root, dialect);
    return index_schema(c, root);
}
