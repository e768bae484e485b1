/* The rules in their order. A template is compared without its variables' values: the server knows them. */
#include "server/resource_owner.h"

#include "base/hash.h"

#include <stdlib.h>

/* ---- links: a ring, found by the hash of the URI, which is seeded and has 64 bits: no server can make two
 * collide ---- */

#define LINKS_FIRST 16u

struct link {
    uint64_t uri; /* hash; 0: free */
    char upstream[UPSTREAM_NAME_MAX_BYTES + 1];
};

struct resource_links {
    uint32_t room, next; /* `next` is written over, once there are RESOURCE_LINKS_MAX */
    struct link list[];
};

static struct link *find_link(const struct resource_links *links, uint64_t uri)
{
    for (uint32_t i = 0; links && i < links->room; i++)
        if (links->list[i].uri == uri)
            return (struct link *)&links->list[i];
    return NULL;
}

static void keep_link(struct resource_links **links, struct str uri, struct str upstream)
{
    uint64_t hash = hash_seeded(uri) | 1;
    struct link *link = find_link(*links, hash);
    if (!link) {
        struct resource_links *l = *links;
        if (!l || (l->next == l->room && l->room < RESOURCE_LINKS_MAX)) {
            uint32_t before = l ? l->room : 0, room = before ? 2 * before : LINKS_FIRST;
            l = *links = realloc(l, sizeof(*l) + room * sizeof(l->list[0]));
            if (!l)
                abort();
            memset(l->list + before, 0, (room - before) * sizeof(l->list[0]));
            l->room = room;
            l->next = before;
        }
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
            keep_link(links, uri, upstream);
    }
}

struct str resource_links_find(const struct resource_links *links, struct str uri)
{
    const struct link *link = find_link(links, hash_seeded(uri) | 1);
    return link ? str_of(link->upstream) : STR_NONE;
}

void resource_links_free(struct resource_links *links)
{
    free(links);
}

/* ---- owners ---------------------------------------------------------------------- */

const struct upstream_spec *resource_upstream(const struct config *config, struct str name)
{
    for (size_t i = 0; i < config->upstream_count; i++)
        if (str_eq(config->upstreams[i]->name, name))
            return config->upstreams[i];
    return NULL;
}

/* Takes the text before the next expression off, and the expression. */
static struct str next_part(struct str *template, struct str *expression)
{
    const char *open = template->len ? memchr(template->at, '{', template->len) : NULL;
    size_t before = open ? (size_t)(open - template->at) : template->len;
    const char *close = open ? memchr(open, '}', template->len - before) : NULL;
    struct str text = {template->at, close ? before : template->len};
    *expression = close ? (struct str){open + 1, (size_t)(close - open) - 1} : STR_NONE;
    *template = close ? str_from(*template, before + expression->len + 2) : STR_NONE;
    return text;
}

/* The value of the expression before `text` ends at the first place where `text` stands: each place is looked
 * at once. The last text must stand at the end. */
static bool take_value(struct str *uri, struct str expression, struct str text, bool last)
{
    size_t at = 0;
    if (last && text.len <= uri->len && text.len)
        at = uri->len - text.len;
    else if (last)
        at = uri->len;
    else if (text.len) {
        const char *found = uri->len ? memmem(uri->at, uri->len, text.at, text.len) : NULL;
        if (!found)
            return false;
        at = (size_t)(found - uri->at);
    }
    struct str value = {uri->at, at}, rest = str_from(*uri, at);
    bool may_be_empty = expression.len && strchr("?&#;", expression.at[0]);
    bool of_paths =
        expression.len && (strchr("+#/", expression.at[0]) || expression.at[expression.len - 1] == '*');
    bool has_slash = value.len && memchr(value.at, '/', value.len);
    bool fits = (value.len || may_be_empty) && (!has_slash || of_paths) && rest.len >= text.len &&
                (!text.len || memcmp(rest.at, text.at, text.len) == 0);
    *uri = str_from(rest, rest.len < text.len ? rest.len : text.len);
    return fits;
}

bool resource_template_fits(struct str template, struct str uri, size_t *literal)
{
    struct str expression, next, text = next_part(&template, &expression);
    *literal = text.len;
    if (uri.len < text.len || (text.len && memcmp(uri.at, text.at, text.len) != 0))
        return false;
    uri = str_from(uri, text.len);
    while (expression.len) {
        text = next_part(&template, &next);
        *literal += text.len;
        if (!take_value(&uri, expression, text, !next.len))
            return false;
        expression = next;
    }
    return !uri.len;
}

/* The server with the most exact template; another one that has a fitting one is the rival. */
static struct str by_template(struct resource_search *s, struct str uri)
{
    struct str owner = STR_NONE;
    size_t literal, most = 0;
    for (size_t i = 0; i < served_count(s->served, SERVED_TEMPLATES); i++) {
        const struct served_item *item = served_at(s->served, SERVED_TEMPLATES, i);
        const char *open = item->name.len ? memchr(item->name.at, '{', item->name.len) : NULL;
        size_t len = open ? (size_t)(open - item->name.at) : item->name.len;
        /* Most templates differ in what stands before their first expression. */
        if (uri.len < len || (len && memcmp(uri.at, item->name.at, len) != 0) ||
            s->steps > RESOURCE_STEPS_MAX)
            continue;
        s->steps += item->name.len + uri.len;
        if (!resource_template_fits(item->name, uri, &literal))
            continue;
        bool wins = !owner.len || literal > most;
        struct str other = wins ? owner : item->upstream;
        if (other.len && !str_eq(other, wins ? item->upstream : owner))
            s->rival = other;
        if (wins) {
            owner = item->upstream;
            most = literal;
        }
    }
    return owner;
}

/* Servers that list neither resources nor templates have none. */
static struct str only_one(const struct config *config, struct upstreams *upstreams)
{
    struct str only = STR_NONE;
    for (size_t i = 0; i < config->upstream_count; i++) {
        struct tool_list *list = upstreams_list(upstreams, config->upstreams[i]->name, UPSTREAM_RESOURCES);
        tool_list_unref(list);
        if (!list)
            continue;
        if (only.len)
            return STR_NONE;
        only = config->upstreams[i]->name;
    }
    return only;
}

const struct upstream_spec *resource_owner(struct resource_search *s, struct str uri)
{
    const struct served_item *listed = served_find(s->served, SERVED_RESOURCES, uri);
    s->rival = STR_NONE;
    struct str name = by_template(s, uri);
    if (listed) {
        s->rival = name.len && !str_eq(name, listed->upstream) ? name : STR_NONE;
        name = listed->upstream;
    }
    if (!name.len)
        name = resource_links_find(s->links, uri);
    if (!name.len)
        name = only_one(s->config, s->upstreams);
    const struct upstream_spec *spec = name.len ? resource_upstream(s->config, name) : NULL;
    return spec && served_may_read(s->config, s->peer, spec, uri) ? spec : NULL;
}
