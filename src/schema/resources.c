/*
 * Documents, the resources and subschemas in them, and what a reference names. A document is walked by its
 * keywords, so that values which only look like schemas (in enum, default, examples) are never indexed.
 * Documents come from the caller's registry, or are the metaschemas of draft-07, 2019-09 and 2020-12 as
 * published at https://json-schema.org (BSD licence of the JSON Schema project), one a line in
 * metaschemas.jsonl. Nothing is fetched.
 */
#include "schema/compile.h"

#include "base/embedded.h"
#include "json/parse.h"
#include "json/path.h"
#include "schema/format.h"

#include <stdlib.h>

/* ---- documents by URI ---- */

void schema_registry_add(struct map *registry, struct str uri, const struct json *document)
{
    struct str fragment;
    map_add(registry, uri_split(uri, &fragment), (void *)document);
}

/* The document by its URI without fragment, metaschemas included, or NULL. */
static const struct json *find_document(struct compiler *c, struct str uri)
{
    const struct map *registry = c->options ? c->options->registry : NULL;
    const struct json *known = registry ? map_get(registry, uri) : NULL;
    if (known)
        return known;
    /* The metaschema on the line whose $id is the URI; draft-07's ends in an empty fragment. */
    struct json *document = ARENA_NEW(c->arena, struct json);
    struct json_error error;
    struct str rest = embedded_text("src/schema/metaschemas.jsonl");
    while (rest.len) {
        struct str fragment, line = str_split(&rest, '\n');
        const char *id = memmem(line.at, line.len, "\"$id\":\"", 7);
        struct str value = id ? str_from(line, (size_t)(id - line.at) + 7) : STR_NONE;
        if (str_eq(uri_split(str_split(&value, '"'), &fragment), uri))
            return json_parse(c->arena, line, NULL, document, &error) == OK ? document : NULL;
    }
    return NULL;
}

/* ---- dialects: the drafts by name, and metaschemas that choose vocabularies ---- */

/* Older drafts are read by the rules of draft-07, which keeps nearly all of theirs. */
static const struct {
    const char *uri;
    enum draft draft;
} drafts[] = {
    {"://json-schema.org/draft/2020-12/schema", DRAFT_2020},
    {"://json-schema.org/draft/2019-09/schema", DRAFT_2019},
    {"://json-schema.org/draft-07/schema", DRAFT_7},
    {"://json-schema.org/draft-06/schema", DRAFT_7},
    {"://json-schema.org/draft-04/schema", DRAFT_7},
    {"://json-schema.org/schema", DRAFT_2020},
};

static const struct {
    const char *name;
    unsigned keywords;
} vocabularies[] = {
    {"core", VOCABULARY_CORE},
    {"applicator", VOCABULARY_APPLICATOR},
    {"unevaluated", VOCABULARY_UNEVALUATED},
    {"validation", VOCABULARY_VALIDATION},
    {"format-annotation", VOCABULARY_FORMAT},
    {"format-assertion", VOCABULARY_FORMAT},
    {"format", VOCABULARY_FORMAT},
    {"content", 0},
    {"meta-data", 0},
};

static enum draft known_draft(struct str uri)
{
    struct str rest = str_starts(uri, "https")  ? str_from(uri, 5)
                      : str_starts(uri, "http") ? str_from(uri, 4)
                                                : uri;
    for (size_t i = 0; i < sizeof(drafts) / sizeof(*drafts); i++)
        if (str_is(rest, drafts[i].uri))
            return drafts[i].draft;
    return 0;
}

static enum err choose_vocabularies(struct compiler *c, struct str metaschema, const struct json *chosen,
                                    struct dialect *out)
{
    out->vocabularies = VOCABULARY_CORE;
    for (uint32_t i = 0; i < chosen->len; i++) {
        struct str uri = chosen->members[i].key;
        const char *slash = uri.len ? memrchr(uri.at, '/', uri.len) : NULL;
        struct str name = slash ? str_from(uri, (size_t)(slash - uri.at) + 1) : uri;
        size_t count = sizeof(vocabularies) / sizeof(*vocabularies), at = 0;
        while (at < count && !str_is(name, vocabularies[at].name))
            at++;
        bool known = at < count && str_starts(uri, "https://json-schema.org/draft/");
        if (!known && json_is_true(&chosen->members[i].value))
            return err_set(c->why, ERR_SCHEMA,
                           "the metaschema '" STR_FMT "' requires the vocabulary '" STR_FMT
                           "', which toolgate does not know",
                           STR_ARG(metaschema), STR_ARG(uri));
        if (!known)
            continue;
        out->vocabularies |= vocabularies[at].keywords;
        out->asserts_format |= str_is(str_of(vocabularies[at].name), "format-assertion");
    }
    if (out->draft == DRAFT_2019 && (out->vocabularies & VOCABULARY_APPLICATOR))
        out->vocabularies |= VOCABULARY_UNEVALUATED; /* one vocabulary in that draft */
    return OK;
}

/* ERR_SCHEMA for an unknown $schema. */
static enum err dialect_find(struct compiler *c, struct str uri, struct dialect *out)
{
    struct str fragment, name = uri_split(uri, &fragment);
    *out = (struct dialect){.draft = known_draft(name), .vocabularies = VOCABULARIES_ALL};
    if (out->draft)
        return OK;
    const struct json *metaschema = find_document(c, name);
    struct str base = uri_split(json_str(json_get_text(metaschema, "$schema")), &fragment);
    out->draft = metaschema ? known_draft(base) : 0;
    if (!out->draft)
        return err_set(c->why, ERR_SCHEMA,
                       "expected \"$schema\" to name draft-07, 2019-09 or 2020-12 of "
                       "https://json-schema.org, found '" STR_FMT "'; name one of these, or leave it out",
                       STR_ARG(str_cut(uri, 200)));
    const struct json *chosen = json_get_text(metaschema, "$vocabulary");
    return json_is(chosen, JSON_OBJECT) ? choose_vocabularies(c, name, chosen, out) : OK;
}

/* ---- subschemas ---- */

struct subschema *subschema_find(const struct compiler *c, const struct json *source)
{
    return map_get(c->subschemas, address_of(&source));
}

const struct node *subschema_node(struct compiler *c, struct subschema *subschema)
{
    if (subschema->node)
        return subschema->node;
    struct node_entry *entry = ARENA_NEW(c->scratch, struct node_entry);
    struct node *node = ARENA_NEW(c->arena, struct node);
    *entry = (struct node_entry){.node = node, .subschema = subschema};
    node->entry = entry;
    node->resource = subschema->resource;
    node->source = subschema->source;
    struct str description = json_str(json_get_text(subschema->source, "description"));
    node->description = arena_first_line(c->arena, description, PROBLEM_DESCRIPTION_MAX_BYTES);
    if (c->last)
        c->last->next = entry;
    else
        c->first = entry;
    c->last = entry;
    if (!c->todo)
        c->todo = entry;
    return subschema->node = node;
}

#define POINTER_MAX_BYTES      1024u /* about; of a longer pointer the rest is left out */
#define POINTER_STEP_MAX_BYTES 200u

static void put_pointer(struct buf *out, const struct subschema *subschema)
{
    if (!subschema->parent) {
        buf_str(out, subschema->resource->uri);
        buf_byte(out, '#');
        return;
    }
    put_pointer(out, subschema->parent); /* as deep as SCHEMA_MAX_NESTING */
    if (out->len > POINTER_MAX_BYTES)
        return;
    json_pointer_put(out, subschema->keyword);
    if (subschema->key.at)
        json_pointer_put(out, str_cut(subschema->key, POINTER_STEP_MAX_BYTES));
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
        r->anchors = map_new(c->scratch);
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
        if (uri.len > SCHEMA_MAX_URI_BYTES) {
            err_set(c->why, ERR_SCHEMA, "expected a URI of at most %u bytes in \"$id\", found %zu",
                    SCHEMA_MAX_URI_BYTES, uri.len);
            return compile_fault(c, subschema->source, "$id", subschema_pointer(c->arena, subschema),
                                 ERR_SCHEMA);
        }
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
    struct subschema *subschema = ARENA_NEW(c->scratch, struct subschema);
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
    struct str pointer = subschema_pointer(c->scratch, subschema);
    const struct json **address = ARENA_NEW(c->scratch, const struct json *);
    *address = source;
    subschema->source = &anything;
    map_add(c->subschemas, address_of(address), subschema);
    return compile_fault(c, source, NULL, pointer, err);
}

static enum err index_member(struct compiler *c, const struct subschema *parent, const struct json_member *m)
{
    const struct keyword *k = keyword_find(&parent->resource->dialect, m->key);
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

static enum err index_schema(struct compiler *c, struct subschema *subschema)
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
    bool seen = !map_add(c->subschemas, address_of(&subschema->source), subschema);
    if (seen || subschema->source->type == JSON_BOOL)
        return OK;
    enum err err = index_identity(c, subschema);
    for (uint32_t i = 0; i < subschema->source->len && !err; i++)
        err = index_member(c, subschema, &subschema->source->members[i]);
    return err;
}

enum err subschema_index(struct compiler *c, const struct json *source, struct resource *resource,
                         struct subschema **out)
{
    struct subschema *subschema = ARENA_NEW(c->scratch, struct subschema);
    *subschema = (struct subschema){.source = source, .resource = resource, .index = -1};
    enum err err = index_schema(c, subschema);
    *out = err ? NULL : subschema;
    return err;
}

enum err subschema_index_document(struct compiler *c, const struct json *document, struct str uri,
                                  struct resource **out)
{
    struct subschema *root = ARENA_NEW(c->scratch, struct subschema);
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

/* ---- references ---- */

static enum err refuse(struct compiler *c, const struct subschema *from, struct str reference,
                       const char *reason)
{
    return err_set(c->why, ERR_SCHEMA,
                   "the reference '" STR_FMT "' at " STR_FMT
                   " leads nowhere: %s; define what it names in the schema",
                   STR_ARG(str_cut(reference, 200)), STR_ARG(subschema_pointer(c->arena, from)), reason);
}

enum err ref_resolve(struct compiler *c, const struct subschema *from, struct str reference,
                     struct subschema **out, struct str *by_anchor)
{
    struct str fragment, anchor = STR_NONE;
    struct str uri = uri_split(uri_resolve(c->arena, from->resource->uri, reference), &fragment);
    struct resource *resource = map_get(c->resources, uri);
    enum err err = OK;
    *out = NULL;
    if (!resource) {
        const struct json *document = find_document(c, uri);
        if (!document)
            return refuse(c, from, reference, "no document has that URI, and toolgate fetches none");
        err = subschema_index_document(c, document, uri, &resource);
        if (err)
            return err;
    }
    fragment = uri_decode(c->arena, fragment);
    if (!fragment.len) {
        *out = resource->root;
    } else if (fragment.at[0] == '/') {
        /* The innermost subschema on the way gives its base URI to what lies below it. */
        const struct json *at = resource->root->source;
        struct resource *base = resource->root->resource;
        while (fragment.len && at) {
            at = json_pointer_step(c->arena, at, &fragment);
            struct subschema *passed = at ? subschema_find(c, at) : NULL;
            base = passed ? passed->resource : base;
        }
        *out = at ? subschema_find(c, at) : NULL;
        if (at && !*out)
            err = subschema_index(c, at, base, out);
    } else {
        anchor = fragment;
        *out = resource->anchors ? map_get(resource->anchors, anchor) : NULL;
    }
    if (by_anchor)
        *by_anchor = anchor;
    return err || *out ? err : refuse(c, from, reference, "the document has no such part");
}
