/* Documents by URI: those the caller added, then the metaschemas, parsed when first asked for. */
#include "schema/compile.h"

#include "json/parse.h"
#include "schema/metaschemas.h"
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

static const struct json *parse_metaschema(struct arena *arena, const char *text)
{
    struct json *document = ARENA_NEW(arena, struct json);
    struct json_error fault;
    return json_parse(arena, str_of(text), NULL, document, &fault) == OK ? document : NULL;
}

const struct json *schema_registry_find(struct arena *arena, const struct schema_registry *registry,
                                        struct str uri)
{
    const struct json *document = registry ? map_get(registry->documents, uri) : NULL;
    for (size_t i = 0; !document && i < metaschema_count; i++)
        if (str_is(uri, metaschemas[i].uri))
            document = parse_metaschema(arena, metaschemas[i].text);
    return document;
}
