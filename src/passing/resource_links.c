/* A ring, found by the hash of the URI. The hash is seeded and has 64 bits: no server can make two collide.
 */
#include "passing/resource_links.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define LINKS_FIRST 16u

struct link {
    uint64_t uri; /* hash; 0: free */
    char upstream[UPSTREAM_NAME_MAX_BYTES + 1];
};

struct resource_links {
    uint32_t room, next; /* `next` is written over, once there are RESOURCE_LINKS_MAX */
    struct link list[];
};

static struct link *find(const struct resource_links *links, uint64_t uri)
{
    for (uint32_t i = 0; links && i < links->room; i++)
        if (links->list[i].uri == uri)
            return (struct link *)&links->list[i];
    return NULL;
}

static struct resource_links *grow(struct resource_links *links)
{
    uint32_t before = links ? links->room : 0, room = before ? 2 * before : LINKS_FIRST;
    struct resource_links *grown = realloc(links, sizeof(*links) + room * sizeof(links->list[0]));
    if (!grown)
        abort();
    memset(grown->list + before, 0, (room - before) * sizeof(grown->list[0]));
    grown->room = room;
    grown->next = before;
    return grown;
}

static void keep(struct resource_links **links, struct str uri, struct str upstream)
{
    uint64_t hash = hash_seeded(uri) | 1;
    struct link *link = find(*links, hash);
    if (!link) {
        if (!*links || ((*links)->next == (*links)->room && (*links)->room < RESOURCE_LINKS_MAX))
            *links = grow(*links);
        struct resource_links *l = *links;
        link = &l->list[l->next % l->room];
        l->next = l->next % l->room + 1;
    }
    link->uri = hash;
    struct str name = str_cut(upstream, UPSTREAM_NAME_MAX_BYTES);
    memcpy(link->upstream, name.at, name.len);
    link->upstream[name.len] = '\0';
}

void resource_links_keep(struct resource_links **links, const struct json *content, struct str upstream)
{
    for (uint32_t i = 0; json_is(content, JSON_ARRAY) && i < content->len; i++) {
        const struct json *block = &content->items[i], *from = block;
        struct str type = json_str(json_get_text(block, "type"));
        if (str_is(type, "resource"))
            from = json_get_text(block, "resource");
        else if (!str_is(type, "resource_link"))
            continue;
        struct str uri = json_str(json_get_text(from, "uri"));
        if (uri.len)
            keep(links, uri, upstream);
    }
}

struct str resource_links_find(const struct resource_links *links, struct str uri)
{
    const struct link *link = find(links, hash_seeded(uri) | 1);
    return link ? str_of(link->upstream) : STR_NONE;
}

void resource_links_free(struct resource_links *links)
{
    free(links);
}
