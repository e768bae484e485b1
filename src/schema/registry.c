/*
 * Documents by URI: those the caller added, then the metaschemas of draft-07,
 * 2019-09 and 2020-12 as published at https://json-schema.org (BSD licence of
 * the JSON Schema project), one a line in metaschemas.jsonl. Nothing is fetched.
 */
#include "schema/compile.h"

#include "base/embedded.h"
#include "json/parse.h"
#include "schema/uri.h"

struct schema_registry {
    struct map *documents;
};

struct schema_registry *schema_registry_new(struct arena *arena)
{
    struct schema_registry *registry = ARENA_NEW(arena, struct schema_registry);
    registry->documents = map_new(arena);
    return registry;
}

void schema_registry_add(struct schema_registry *registry, struct str uri, const struct json *document)
{
    struct str fragment;
    map_add(registry->documents, uri_split(uri, &fragment), (void *)document);
}

const struct json *schema_registry_find(struct arena *arena, const struct schema_registry *registry,
                                        struct str uri)
{
    const struct json *known = registry ? map_get(registry->documents, uri) : NULL;
    if (known)
        return known;
    /* The metaschema on the line whose $id is the URI; draft-07's ends in an empty fragment. */
    struct json *document = ARENA_NEW(arena, struct json);
    struct json_error error;
    struct str rest = embedded_text("src/schema/metaschemas.jsonl");
    while (rest.len) {
        struct str fragment, line = {rest.at, (size_t)((char *)memchr(rest.at, '\n', rest.len) - rest.at)};
        rest = str_from(rest, line.len + 1);
        const char *id = memmem(line.at, line.len, "\"$id\":\"", 7);
        struct str value = id ? str_from(line, (size_t)(id - line.at) + 7) : STR_NONE;
        const char *quote = value.len ? memchr(value.at, '"', value.len) : NULL;
        value.len = quote ? (size_t)(quote - value.at) : 0;
        if (str_eq(uri_split(value, &fragment), uri))
            return json_parse(arena, line, NULL, document, &error) == OK ? document : NULL;
    }
    return NULL;
}
