/* A walk over a document by its keywords: what is no subschema (enum, default, examples) is never looked
 * into. */
#include "schema/compile.h"

#include "schema/uri.h"

struct subschema *subschema_find(const struct compiler *c, const struct json *source)
{
    return map_get(c->places, (struct str){(const char *)&source, sizeof(source)});
}

static void put_token(struct buf *out, struct str token)
{
    for (size_t i = 0; i < token.len; i++)
        if (token.at[i] == '~')
            buf_text(out, "~0");
        else if (token.at[i] == '/')
            buf_text(out, "~1");
        else
            buf_byte(out, token.at[i]);
}

static void put_way(struct buf *out, const struct subschema *subschema)
{
    if (!subschema->parent) {
        buf_str(out, subschema->resource->uri);
        buf_byte(out, '#');
        return;
    }
    put_way(out, subschema->parent); /* as deep as SCHEMA_MAX_NESTING */
    buf_byte(out, '/');
    put_token(out, subschema->keyword);
    if (subschema->key.at) {
        buf_byte(out, '/');
        put_token(out, subschema->key);
    } else if (subschema->index >= 0) {
        buf_printf(out, "/%d", subschema->index);
    }
}

struct str subschema_pointer(struct arena *arena, const struct subschema *subschema)
{
    struct buf out = buf_in(arena);
    put_way(&out, subschema);
    return buf_view(&out);
}

static struct resource *resource_add(struct compiler *c, struct str uri, struct subschema *root,
                                     struct dialect dialect)
{
    struct resource *r = ARENA_NEW(c->arena, struct resource);
    *r = (struct resource){.uri = uri, .root = root, .dialect = dialect, .next = c->all_resources};
    c->all_resources = r;
    map_add(c->resources, r->uri, r);
    return r;
}

static void anchor_add(struct compiler *c, struct subschema *subschema, struct str name)
{
    struct resource *r = subschema->resource;
    if (!r->anchors)
        r->anchors = map_new(c->arena);
    map_add(r->anchors, name, subschema);
}

static void dynamic_add(struct compiler *c, struct subschema *subschema, struct str name)
{
    struct dynamic_anchor *a = ARENA_NEW(c->arena, struct dynamic_anchor);
    *a = (struct dynamic_anchor){.name = name, .subschema = subschema, .next = subschema->resource->dynamic};
    subschema->resource->dynamic = a;
}

/* $schema counts where a resource begins. */
static enum err own_dialect(struct compiler *c, const struct subschema *subschema, struct dialect *dialect)
{
    struct str uri = json_str(json_get_text(subschema->source, "$schema"));
    return uri.len ? dialect_find(c, uri, dialect) : OK;
}

static enum err take_id(struct compiler *c, struct subschema *subschema)
{
    struct str id = json_str(json_get_text(subschema->source, "$id")), fragment;
    struct resource *outer = subschema->resource;
    if (!id.at)
        return OK;
    struct str uri = uri_split(id, &fragment);
    if (uri.len) {
        struct dialect dialect = outer->dialect;
        enum err err = own_dialect(c, subschema, &dialect);
        if (err)
            return err;
        uri = uri_resolve(c->arena, outer->uri, uri);
        if (outer->root ==
            subschema) { /* a document that calls itself by another name than it was asked for */
            outer->uri = uri;
            map_add(c->resources, uri, outer);
        } else {
            subschema->resource = resource_add(c, uri, subschema, dialect);
        }
    }
    if (subschema->resource->dialect.draft == DRAFT_7 && fragment.len)
        anchor_add(c, subschema, fragment);
    return OK;
}

/* In draft-07 nothing beside a $ref counts, $id included. */
static bool is_bare_ref(const struct subschema *subschema)
{
    return subschema->resource->dialect.draft == DRAFT_7 &&
           json_is(json_get_text(subschema->source, "$ref"), JSON_STRING);
}

static enum err take_identity(struct compiler *c, struct subschema *subschema)
{
    enum err err = is_bare_ref(subschema) ? OK : take_id(c, subschema);
    enum draft draft = subschema->resource->dialect.draft;
    struct str anchor = json_str(json_get_text(subschema->source, "$anchor"));
    if (anchor.len && draft != DRAFT_7)
        anchor_add(c, subschema, anchor);
    struct str dynamic = json_str(json_get_text(subschema->source, "$dynamicAnchor"));
    if (dynamic.len && draft == DRAFT_2020) {
        anchor_add(c, subschema, dynamic);
        dynamic_add(c, subschema, dynamic);
    }
    bool recursive = json_is_true(json_get_text(subschema->source, "$recursiveAnchor"));
    if (recursive && draft == DRAFT_2019 && subschema->resource->root == subschema)
        dynamic_add(c, subschema, STR_LIT(""));
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
    return index_schema(c, subschema);
}

static enum err index_list(struct compiler *c, const struct subschema *parent, const struct json_member *b)
{
    enum err err = OK;
    for (uint32_t i = 0; i < b->value.len && !err; i++)
        err = index_child(c, parent, b->key, STR_NONE, (int32_t)i, &b->value.items[i]);
    return err;
}

static enum err index_map(struct compiler *c, const struct subschema *parent, const struct json_member *b,
                          bool names)
{
    enum err err = OK;
    for (uint32_t i = 0; i < b->value.len && !err; i++) {
        const struct json_member *child = &b->value.members[i];
        struct str key = child->key.at ? child->key : STR_LIT("");
        if (!(names && child->value.type == JSON_ARRAY))
            err = index_child(c, parent, b->key, key, -1, &child->value);
    }
    return err;
}

static enum err index_member(struct compiler *c, const struct subschema *parent, const struct json_member *b)
{
    const struct keyword *k = keyword_find(&parent->resource->dialect, b->key);
    enum keyword_holds holds = k ? k->holds : HOLDS_NONE;
    bool list = b->value.type == JSON_ARRAY;
    if (holds == HOLDS_ONE_OR_LIST)
        holds = list ? HOLDS_LIST : HOLDS_ONE;
    if (holds == HOLDS_ONE)
        return index_child(c, parent, b->key, STR_NONE, -1, &b->value);
    if (holds == HOLDS_LIST && list)
        return index_list(c, parent, b);
    if ((holds == HOLDS_MAP || holds == HOLDS_MAP_OR_NAMES) && b->value.type == JSON_OBJECT)
        return index_map(c, parent, b, holds == HOLDS_MAP_OR_NAMES);
    return OK;
}

static enum err check_limits(struct compiler *c, const struct subschema *subschema)
{
    if (subschema->source->type != JSON_OBJECT && subschema->source->type != JSON_BOOL)
        return err_set(
            c->why, ERR_SCHEMA, "expected a schema (an object or a boolean) at " STR_FMT ", found %s",
            STR_ARG(subschema_pointer(c->arena, subschema)), json_type_name(subschema->source->type));
    if (++c->subschemas > SCHEMA_MAX_SUBSCHEMAS)
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
    if (err || !map_add(c->places, (struct str){(const char *)&subschema->source, sizeof(subschema->source)},
                        subschema))
        return err;
    if (subschema->source->type == JSON_BOOL)
        return OK;
    err = take_identity(c, subschema);
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
    root->resource = *out = resource_add(c, uri, root, dialect);
    return index_schema(c, root);
}
