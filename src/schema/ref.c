/* From a reference to the subschema it names. Documents come from the registry alone: nothing is fetched. */
#include "schema/compile.h"

#include "schema/json_pointer.h"
#include "schema/uri.h"

static enum err refuse(struct compiler *c, const struct subschema *from, struct str reference,
                       const char *reason)
{
    return err_set(c->why, ERR_SCHEMA,
                   "the reference '" STR_FMT "' at " STR_FMT
                   " leads nowhere: %s; define what it names in the schema",
                   STR_ARG(str_cut(reference, 200)), STR_ARG(subschema_pointer(c->arena, from)), reason);
}

/* The innermost subschema on the way gives its base URI to what lies below it. */
static enum err follow_pointer(struct compiler *c, const struct subschema *root, struct str pointer,
                               struct subschema **out)
{
    const struct json *at = root->source;
    struct resource *resource = root->resource;
    while (pointer.len && at) {
        at = json_pointer_step(c->arena, at, &pointer);
        struct subschema *passed = at ? subschema_find(c, at) : NULL;
        resource = passed ? passed->resource : resource;
    }
    *out = at ? subschema_find(c, at) : NULL;
    return *out || !at ? OK : subschema_index(c, at, resource, out);
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
        const struct schema_registry *registry = c->options ? c->options->registry : NULL;
        const struct json *document = schema_registry_find(c->arena, registry, uri);
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
        err = follow_pointer(c, resource->root, fragment, out);
    } else {
        anchor = fragment;
        *out = resource->anchors ? map_get(resource->anchors, anchor) : NULL;
    }
    if (by_anchor)
        *by_anchor = anchor;
    return err || *out ? err : refuse(c, from, reference, "the document has no such part");
}
