/* A walk over a document by its keywords: what is no subschema (enum, default, examples) is never looked
 * into. */
#include "schema/compile.h"

#include "schema/uri.h"

struct place *subschema_find(const struct compiler *c, const struct json *source)
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

static void put_way(struct buf *out, const struct place *place)
{
    if (!place->parent) {
        buf_str(out, place->resource->uri);
        buf_byte(out, '#');
        return;
    }
    put_way(out, place->parent); /* as deep as SCHEMA_MAX_NESTING */
    buf_byte(out, '/');
    put_token(out, place->keyword);
    if (place->key.at) {
        buf_byte(out, '/');
        put_token(out, place->key);
    } else if (place->index >= 0) {
        buf_printf(out, "/%d", place->index);
    }
}

struct str subschema_pointer(struct arena *arena, const struct place *place)
{
    struct buf out = buf_in(arena);
    put_way(&out, place);
    return buf_view(&out);
}

static struct resource *resource_add(struct compiler *c, struct str uri, struct place *root,
                                     struct dialect dialect)
{
    struct resource *r = ARENA_NEW(c->arena, struct resource);
    *r = (struct resource){.uri = uri, .root = root, .dialect = dialect, .next = c->all_resources};
    c->all_resources = r;
    map_add(c->resources, r->uri, r);
    return r;
}

static void anchor_add(struct compiler *c, struct place *place, struct str name)
{
    struct resource *r = place->resource;
    if (!r->anchors)
        r->anchors = map_new(c->arena);
    map_add(r->anchors, name, place);
}

static void dynamic_add(struct compiler *c, struct place *place, struct str name)
{
    struct dynamic_anchor *a = ARENA_NEW(c->arena, struct dynamic_anchor);
    *a = (struct dynamic_anchor){.name = name, .place = place, .next = place->resource->dynamic};
    place->resource->dynamic = a;
}

/* $schema counts where a resource begins. */
static enum err own_dialect(struct compiler *c, const struct place *place, struct dialect *dialect)
{
    struct str uri = json_str(json_get_text(place->source, "$schema"));
    return uri.len ? dialect_find(c, uri, dialect) : OK;
}

static enum err take_id(struct compiler *c, struct place *place)
{
    struct str id = json_str(json_get_text(place->source, "$id")), fragment;
    struct resource *outer = place->resource;
    if (!id.at)
        return OK;
    struct str uri = uri_split(id, &fragment);
    if (uri.len) {
        struct dialect dialect = outer->dialect;
        enum err err = own_dialect(c, place, &dialect);
        if (err)
            return err;
        uri = uri_resolve(c->arena, outer->uri, uri);
        if (outer->root == place) { /* a document that calls itself by another name than it was asked for */
            outer->uri = uri;
            map_add(c->resources, uri, outer);
        } else {
            place->resource = resource_add(c, uri, place, dialect);
        }
    }
    if (place->resource->dialect.draft == DRAFT_7 && fragment.len)
        anchor_add(c, place, fragment);
    return OK;
}

/* In draft-07 nothing beside a $ref counts, $id included. */
static bool is_bare_ref(const struct place *place)
{
    return place->resource->dialect.draft == DRAFT_7 &&
           json_is(json_get_text(place->source, "$ref"), JSON_STRING);
}

static enum err take_identity(struct compiler *c, struct place *place)
{
    enum err err = is_bare_ref(place) ? OK : take_id(c, place);
    enum draft draft = place->resource->dialect.draft;
    struct str anchor = json_str(json_get_text(place->source, "$anchor"));
    if (anchor.len && draft != DRAFT_7)
        anchor_add(c, place, anchor);
    struct str dynamic = json_str(json_get_text(place->source, "$dynamicAnchor"));
    if (dynamic.len && draft == DRAFT_2020) {
        anchor_add(c, place, dynamic);
        dynamic_add(c, place, dynamic);
    }
    bool recursive = json_is_true(json_get_text(place->source, "$recursiveAnchor"));
    if (recursive && draft == DRAFT_2019 && place->resource->root == place)
        dynamic_add(c, place, STR_LIT(""));
    return err;
}

static enum err index_schema(struct compiler *c, struct place *place);

static enum err index_child(struct compiler *c, const struct place *parent, struct str keyword,
                            struct str key, int32_t index, const struct json *source)
{
    struct place *place = ARENA_NEW(c->arena, struct place);
    *place = (struct place){.source = source,
                            .resource = parent->resource,
                            .parent = parent,
                            .keyword = keyword,
                            .key = key,
                            .index = index,
                            .nesting = parent->nesting + 1};
    return index_schema(c, place);
}

static enum err index_list(struct compiler *c, const struct place *parent, const struct json_member *m)
{
    enum err err = OK;
    for (uint32_t i = 0; i < m->value.len && !err; i++)
        err = index_child(c, parent, m->key, STR_NONE, (int32_t)i, &m->value.items[i]);
    return err;
}

static enum err index_map(struct compiler *c, const struct place *parent, const struct json_member *m,
                          bool names)
{
    enum err err = OK;
    for (uint32_t i = 0; i < m->value.len && !err; i++) {
        const struct json_member *child = &m->value.members[i];
        struct str key = child->key.at ? child->key : STR_LIT("");
        if (!(names && child->value.type == JSON_ARRAY))
            err = index_child(c, parent, m->key, key, -1, &child->value);
    }
    return err;
}

static enum err index_member(struct compiler *c, const struct place *parent, const struct json_member *m)
{
    const struct keyword *k = keyword_find(&parent->resource->dialect, m->key);
    enum shape shape = k ? k->shape : SHAPE_NONE;
    bool list = m->value.type == JSON_ARRAY;
    if (shape == SHAPE_ONE_OR_LIST)
        shape = list ? SHAPE_LIST : SHAPE_ONE;
    if (shape == SHAPE_ONE)
        return index_child(c, parent, m->key, STR_NONE, -1, &m->value);
    if (shape == SHAPE_LIST && list)
        return index_list(c, parent, m);
    if ((shape == SHAPE_MAP || shape == SHAPE_MAP_OR_NAMES) && m->value.type == JSON_OBJECT)
        return index_map(c, parent, m, shape == SHAPE_MAP_OR_NAMES);
    return OK;
}

static enum err check_limits(struct compiler *c, const struct place *place)
{
    if (place->source->type != JSON_OBJECT && place->source->type != JSON_BOOL)
        return err_set(c->why, ERR_SCHEMA,
                       "expected a schema (an object or a boolean) at " STR_FMT ", found %s",
                       STR_ARG(subschema_pointer(c->arena, place)), json_type_name(place->source->type));
    if (++c->subschemas > SCHEMA_MAX_SUBSCHEMAS)
        return err_set(c->why, ERR_LIMIT, "expected at most %u subschemas, found more; split the schema",
                       SCHEMA_MAX_SUBSCHEMAS);
    if (place->nesting > SCHEMA_MAX_NESTING)
        return err_set(c->why, ERR_LIMIT,
                       "expected subschemas to nest at most %u deep, found deeper; use $ref",
                       SCHEMA_MAX_NESTING);
    return OK;
}

static enum err index_schema(struct compiler *c, struct place *place)
{
    enum err err = check_limits(c, place);
    if (err || !map_add(c->places, (struct str){(const char *)&place->source, sizeof(place->source)}, place))
        return err;
    if (place->source->type == JSON_BOOL)
        return OK;
    err = take_identity(c, place);
    for (uint32_t i = 0; i < place->source->len && !err; i++)
        err = index_member(c, place, &place->source->members[i]);
    return err;
}

enum err subschema_index(struct compiler *c, const struct json *source, struct resource *resource,
                         struct place **out)
{
    struct place *place = ARENA_NEW(c->arena, struct place);
    *place = (struct place){.source = source, .resource = resource, .index = -1};
    enum err err = index_schema(c, place);
    *out = err ? NULL : place;
    return err;
}

enum err subschema_index_document(struct compiler *c, const struct json *document, struct str uri,
                                  struct resource **out)
{
    struct place *root = ARENA_NEW(c->arena, struct place);
    *root = (struct place){.source = document, .index = -1};
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
