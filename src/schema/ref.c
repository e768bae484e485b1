/* From a reference to the subschema it means. Documents come from the registry alone: nothing is fetched. */
#include "schema/compile.h"

#include "schema/uri.h"

static enum err lost(struct compiler *c, const struct subschema *from, struct str reference,
                     const char *reason)
{
    return err_set(c->why, ERR_SCHEMA,
                   "the reference '" STR_FMT "' at " STR_FMT
                   " leads nowhere: %s; define what it names in the schema",
                   STR_ARG(str_cut(reference, 200)), STR_ARG(subschema_pointer(c->arena, from)), reason);
}

static enum err find_resource(struct compiler *c, struct str uri, struct resource **out)
{
    *out = map_get(c->resources, uri);
    if (*out)
        return OK;
    const struct json *document =
        schema_registry_find(c->arena, c->options ? c->options->registry : NULL, uri);
    return document ? subschema_index_document(c, document, uri, out) : OK;
}

/* The next token of a JSON pointer, unescaped; *rest begins at the slash after it. */
static struct str next_token(struct arena *arena, struct str pointer, struct str *rest)
{
    struct str inner = str_from(pointer, 1);
    const char *slash = inner.len ? memchr(inner.at, '/', inner.len) : NULL;
    struct str token = {inner.at, slash ? (size_t)(slash - inner.at) : inner.len};
    *rest = str_from(inner, token.len);
    if (!token.len || !memchr(token.at, '~', token.len))
        return token;
    struct buf out = buf_in(arena);
    for (size_t i = 0; i < token.len; i++) {
        bool coded =
            token.at[i] == '~' && i + 1 < token.len && (token.at[i + 1] == '0' || token.at[i + 1] == '1');
        buf_byte(&out, !coded ? token.at[i] : token.at[i + 1] == '0' ? '~' : '/');
        i += coded;
    }
    return buf_view(&out);
}

static const struct json *descend(const struct json *at, struct str token)
{
    if (at->type == JSON_OBJECT)
        return json_get(at, token);
    uint64_t n = 0;
    bool number = at->type == JSON_ARRAY && token.len > 0 && token.len < 10;
    for (size_t i = 0; number && i < token.len; i++) {
        number = token.at[i] >= '0' && token.at[i] <= '9';
        n = n * 10 + (uint64_t)(token.at[i] - '0');
    }
    return number && n < at->len ? &at->items[n] : NULL;
}

/* Remembers the innermost subschema passed: its base URI is that of what stands below. */
static enum err follow_pointer(struct compiler *c, const struct subschema *root, struct str pointer,
                               struct subschema **out)
{
    const struct json *at = root->source;
    struct resource *resource = root->resource;
    while (pointer.len && at) {
        at = descend(at, next_token(c->arena, pointer, &pointer));
        struct subschema *passed = at ? subschema_find(c, at) : NULL;
        resource = passed ? passed->resource : resource;
    }
    *out = at ? subschema_find(c, at) : NULL;
    if (*out || !at)
        return OK;
    return subschema_index(c, at, resource, out);
}

enum err ref_resolve(struct compiler *c, const struct subschema *from, struct str reference,
                     struct subschema **out, struct str *by_anchor)
{
    struct str fragment;
    struct str uri = uri_split(uri_resolve(c->arena, from->resource->uri, reference), &fragment);
    struct resource *resource = NULL;
    struct str anchor = STR_NONE;
    *out = NULL;
    enum err err = find_resource(c, uri, &resource);
    if (err)
        return err;
    if (!resource)
        return lost(c, from, reference, "no document has that URI, and toolgate fetches none");
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
    return err || *out ? err : lost(c, from, reference, "the document has no such part");
}
