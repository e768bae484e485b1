/* Two passes over the prompts, since a name that two servers use is prefixed for both; one over the rest. */
#include "server/served.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/printable.h"
#include "catalog/definition.h"
#include "catalog/import.h"
#include "catalog/mcp_version.h"
#include "json/build.h"
#include "json/write.h"

#include <stdarg.h>
#include <stdlib.h>

struct list {
    struct served_item **items;
    size_t count, room;
    struct map *by_name;
    uint64_t hash;
};

struct served {
    struct arena *arena;
    struct list lists[SERVED_KINDS];
    struct tool_list **held; /* whose definitions the items borrow */
    size_t held_count;
    struct str warnings[SERVED_WARNINGS_MAX];
    size_t warning_count, more_warnings;
};

struct name_use { /* of a prompt's own name */
    const struct upstream_spec *upstream;
    bool shared;
};

struct building {
    struct served *served;
    const struct config *config;
    struct upstreams *upstreams;
    struct map *uses;
};

enum upstream_list served_upstream_list(enum served_kind kind)
{
    static const enum upstream_list lists[SERVED_KINDS] = {
        [SERVED_PROMPTS] = UPSTREAM_PROMPTS,
        [SERVED_RESOURCES] = UPSTREAM_RESOURCES,
        [SERVED_TEMPLATES] = UPSTREAM_TEMPLATES,
    };
    return lists[kind];
}

static const char *const nouns[SERVED_KINDS] = {"prompt", "resource", "resource template"};
static const char *const name_members[SERVED_KINDS] = {"name", "uri", "uriTemplate"};

__attribute__((format(printf, 2, 3))) static void warn(struct served *served, const char *format, ...)
{
    va_list args;
    if (served->warning_count == SERVED_WARNINGS_MAX) {
        served->more_warnings++;
        return;
    }
    va_start(args, format);
    served->warnings[served->warning_count++] = arena_vprintf(served->arena, format, args);
    va_end(args);
}

static void leave_out(struct served *served, const struct upstream_spec *spec, enum served_kind kind,
                      struct str name, const char *why)
{
    struct str shown = printable_line(served->arena, str_cut(name, SERVED_NAME_MAX_BYTES));
    warn(served, "upstream " STR_FMT ": %s '" STR_FMT "' is left out: %s", STR_ARG(spec->name), nouns[kind],
         STR_ARG(shown), why);
}

/* ---- who may have what -------------------------------------------------------- */

static bool fits_any(const struct name_globs *globs, struct str name)
{
    for (size_t i = 0; i < globs->count; i++)
        if (str_glob(globs->list[i], name))
            return true;
    return !globs->given;
}

/* What ends a segment of a path: also where a query, a fragment or parameters begin. */
static bool ends_segment(char c)
{
    return c == '/' || c == '\\' || c == '?' || c == '#' || c == ';';
}

/* "%252e", "%252F": a server that decodes twice reads a dot or a slash. */
static bool is_encoded_twice(struct str s)
{
    return str_starts_nocase(s, "%252e") || str_starts_nocase(s, "%252f") || str_starts_nocase(s, "%255c");
}

/* "/../" in any spelling: the server may read another file than the one that the glob has seen. A control
 * character counts as one, since parsers of URLs drop tabs and line ends: ".\t." is ".." for them; and they
 * trim spaces. */
static bool has_dot_segments(struct str uri)
{
    size_t dots = 0, others = 1; /* of the segment so far; there is no segment before the first '/' */
    for (size_t i = 0; i <= uri.len; i++) {
        char c = i < uri.len ? uri.at[i] : '/';
        if ((unsigned char)c < ' ' || c == 0x7f || (c == '%' && is_encoded_twice(str_from(uri, i))))
            return true;
        if (c == '%' && i + 2 < uri.len && uri.at[i + 1] == '2') {
            char low = uri.at[i + 2];
            c = low == 'e' || low == 'E' ? '.' : low == 'f' || low == 'F' ? '/' : c;
            i += c == '%' ? 0 : 2;
        } else if (c == '%' && i + 2 < uri.len && uri.at[i + 1] == '5' && (uri.at[i + 2] | 0x20) == 'c') {
            c = '/';
            i += 2;
        }
        if (ends_segment(c)) {
            if (!others && (dots == 1 || dots == 2))
                return true;
            dots = others = 0;
        } else if (c != ' ') {
            *(c == '.' ? &dots : &others) += 1;
        }
    }
    return false;
}

bool served_may_read(const struct config *config, const struct peer *peer, const struct upstream_spec *spec,
                     struct str uri)
{
    bool globs = spec->resources.given || peer_has_resource_globs(config, peer);
    if (globs && has_dot_segments(uri))
        return false;
    return fits_any(&spec->resources, uri) && peer_may_read(config, peer, uri);
}

/* A '\1' is in no glob. One that fits the beginning alone, and with more of them than it has bytes, ends with
 * a
 * '*' there. */
bool served_may_read_all(const struct config *config, const struct peer *peer,
                         const struct upstream_spec *spec, struct str template)
{
    char any[SERVED_URI_MAX_BYTES * 2];
    const char *open = memchr(template.at, '{', template.len);
    size_t len = open ? (size_t)(open - template.at) : template.len;
    memcpy(any, template.at, len);
    memset(any + len, '\1', sizeof(any) - len);
    struct str begin = {any, len}, all = {any, sizeof(any)};
    return fits_any(&spec->resources, begin) && fits_any(&spec->resources, all) &&
           peer_may_read(config, peer, begin) && peer_may_read(config, peer, all);
}

bool served_is_for(const struct config *config, const struct peer *peer, enum served_kind kind,
                   const struct served_item *item)
{
    if (kind == SERVED_TEMPLATES)
        return peer_may_read_some(config, peer);
    return kind == SERVED_PROMPTS ? peer_may_get(config, peer, item->name)
                                  : peer_may_read(config, peer, item->name);
}

/* ---- building ------------------------------------------------------------------ */

static const char *fault_of(const struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                            struct str name)
{
    if (!name.len)
        return "it has none";
    if (name.len > (kind == SERVED_PROMPTS ? SERVED_NAME_MAX_BYTES : SERVED_URI_MAX_BYTES))
        return "it is too long";
    if (printable_count_hidden(name))
        return "it has hidden characters (zero-width, bidirectional, tags)";
    const struct upstream_spec *owner = kind == SERVED_PROMPTS ? import_owner_of_name(b->config, name) : NULL;
    if (owner && owner != spec)
        return arena_printf(b->served->arena,
                            "names that begin with '" STR_FMT IMPORT_SEPARATOR
                            "' belong to the upstream " STR_FMT,
                            STR_ARG(owner->name), STR_ARG(owner->name))
            .at;
    return NULL;
}

static void count_name(struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                       const struct json *definition)
{
    struct str name = json_str(json_get_text(definition, "name"));
    if (spec->prefix == UPSTREAM_PREFIX_ALWAYS || !name.len || !fits_any(&spec->prompts, name) ||
        fault_of(b, spec, kind, name))
        return;
    struct name_use *use = map_get(b->uses, name);
    if (!use) {
        use = ARENA_NEW(b->served->arena, struct name_use);
        map_add(b->uses, name, use);
    }
    use->shared |= use->upstream && use->upstream != spec;
    use->upstream = spec;
}

static void add(struct arena *arena, struct list *list, const struct served_item *item)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->items = realloc(list->items, list->room * sizeof(struct served_item *));
        if (!list->items)
            abort();
    }
    struct served_item *kept = ARENA_NEW(arena, struct served_item);
    *kept = *item;
    list->items[list->count++] = kept;
    map_add(list->by_name, kept->name, kept);
    hash_add(&list->hash, hash_stable(kept->name).low);
}

static void add_one(struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                    const struct json *definition)
{
    struct served *served = b->served;
    struct str name = json_str(json_get_text(definition, name_members[kind]));
    /* The globs of `resources` are for URIs: which a template gives, only a request shows. */
    bool selected = kind == SERVED_TEMPLATES ? !spec->resources.given || spec->resources.count
                    : kind == SERVED_PROMPTS ? fits_any(&spec->prompts, name)
                                             : fits_any(&spec->resources, name);
    if (!selected)
        return;
    const char *fault = fault_of(b, spec, kind, name);
    if (!fault && served->lists[kind].count == SERVED_MAX)
        fault = "all servers together have more than can be listed";
    if (fault) {
        leave_out(served, spec, kind, name, fault);
        return;
    }
    struct served_item item = {.definition = definition, .name = name, .own_name = name};
    const struct name_use *use = kind == SERVED_PROMPTS ? map_get(b->uses, name) : NULL;
    if (kind == SERVED_PROMPTS && (spec->prefix == UPSTREAM_PREFIX_ALWAYS || (use && use->shared)))
        item.name =
            arena_printf(served->arena, STR_FMT IMPORT_SEPARATOR STR_FMT, STR_ARG(spec->name), STR_ARG(name));
    item.renamed = !str_eq(item.name, name);
    item.upstream = arena_dup(served->arena, spec->name);
    if (served_find(served, kind, item.name))
        leave_out(served, spec, kind, item.name, "an upstream before it in the configuration has it, too");
    else
        add(served->arena, &served->lists[kind], &item);
}

static void each_definition(struct building *b, enum served_kind kind,
                            void (*visit)(struct building *b, const struct upstream_spec *spec,
                                          enum served_kind kind, const struct json *definition))
{
    struct served *served = b->served;
    for (size_t i = 0; i < b->config->upstream_count; i++) {
        const struct upstream_spec *spec = b->config->upstreams[i];
        /* With per_user, the daemon's own instance has the resources of the daemon's user: they are nobody
         * else's. */
        bool for_all = spec->kind != UPSTREAM_REST && (!spec->per_user || kind != SERVED_RESOURCES);
        struct tool_list *list =
            for_all ? upstreams_list(b->upstreams, spec->name, served_upstream_list(kind)) : NULL;
        if (!list)
            continue;
        served->held[served->held_count++] = list;
        hash_add(&served->lists[kind].hash, tool_list_hash(list));
        for (uint32_t k = 0; k < tool_list_array(list)->len; k++)
            visit(b, spec, kind, &tool_list_array(list)->items[k]);
    }
}

struct served *served_new(const struct config *config, struct upstreams *upstreams)
{
    struct arena *arena = arena_new();
    struct served *served = ARENA_NEW(arena, struct served);
    struct building b = {served, config, upstreams, map_new(arena)};
    *served = (struct served){.arena = arena};
    served->held = ARENA_ARRAY(arena, struct tool_list *, (SERVED_KINDS + 1) * config->upstream_count + 1);
    each_definition(&b, SERVED_PROMPTS, count_name);
    for (size_t kind = 0; kind < SERVED_KINDS; kind++) {
        served->lists[kind].by_name = map_new(arena);
        served->lists[kind].hash = 0;
        each_definition(&b, (enum served_kind)kind, add_one);
    }
    return served;
}

void served_free(struct served *served)
{
    if (!served)
        return;
    for (size_t i = 0; i < served->held_count; i++)
        tool_list_unref(served->held[i]);
    for (size_t kind = 0; kind < SERVED_KINDS; kind++)
        free(served->lists[kind].items);
    arena_free(served->arena);
}

/* ---- reading ------------------------------------------------------------------- */

size_t served_count(const struct served *served, enum served_kind kind)
{
    return served->lists[kind].count;
}

const struct served_item *served_at(const struct served *served, enum served_kind kind, size_t i)
{
    return served->lists[kind].items[i];
}

const struct served_item *served_find(const struct served *served, enum served_kind kind, struct str name)
{
    return map_get(served->lists[kind].by_name, name);
}

uint64_t served_hash(const struct served *served, enum served_kind kind)
{
    return served->lists[kind].hash;
}

size_t served_warnings(const struct served *served, const struct str **list, size_t *more)
{
    *list = served->warnings;
    *more = served->more_warnings;
    return served->warning_count;
}

/* ---- a page, as a client reads it --------------------------------------------------- */

const char *served_member(enum served_kind kind)
{
    static const char *const members[SERVED_KINDS] = {"prompts", "resources", "resourceTemplates"};
    return members[kind];
}

/* SDKs demand a `name` of resources and of templates, and take null for no member; then they drop the list.
 */
static const struct json *repaired(struct arena *arena, enum served_kind kind, const struct served_item *item,
                                   const struct json *definition)
{
    struct json now = *definition;
    bool named = json_is(json_get_text(definition, "name"), JSON_STRING), changed = false;
    for (uint32_t i = now.len; i-- > 0;)
        if (json_is(&now.members[i].value, JSON_NULL)) {
            now = json_without(arena, &now, now.members[i].key);
            changed = true;
        }
    if (!item->renamed && (named || kind == SERVED_PROMPTS))
        return changed ? json_keep(arena, now) : definition;
    return json_keep(arena, json_with(arena, &now, STR_LIT("name"), json_string(item->name)));
}

size_t served_write_page(struct arena *arena, const struct served *served, const struct config *config,
                         const struct peer *peer, enum served_kind kind, size_t from, struct str protocol,
                         struct buf *out)
{
    size_t count = served_count(served, kind), start = out->len, written = 0, i = from;
    struct json_out page = json_out(out);
    json_open(&page, '[');
    for (; i < count && written < SERVED_PAGE_MAX && out->len - start < SERVED_PAGE_MAX_BYTES; i++) {
        const struct served_item *item = served_at(served, kind, i);
        struct hidden_text hidden;
        if (!served_is_for(config, peer, kind, item))
            continue;
        const struct json *clean = hidden_text_strip(arena, item->definition, &hidden);
        json_put(&page, mcp_version_definition(arena, protocol, repaired(arena, kind, item, clean)));
        written++;
    }
    json_close(&page, ']');
    return i < count ? i : 0;
}

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
