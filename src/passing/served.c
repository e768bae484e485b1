/* Two passes over the prompts, since a name that two servers use is prefixed for both; one over the rest. */
#include "passing/served.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/printable.h"

#include <stdarg.h>
#include <stdlib.h>

#define SEPARATOR "__" /* between the upstream's name and the prompt's, as for tools */

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
static bool is_encoded_twice(struct str uri, size_t at)
{
    static const char *const ends[] = {"%252e", "%252f", "%255c"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (str_starts_nocase(str_from(uri, at), ends[i]))
            return true;
    return false;
}

/* "/../" in any spelling: the server may read another file than the one that the glob has seen. A control
 * character counts as one, since parsers of URLs drop tabs and line ends: ".\t." is ".." for them; and they
 * trim spaces. */
static bool has_dot_segments(struct str uri)
{
    size_t dots = 0, others = 1; /* of the segment so far; before the first '/' there is none */
    for (size_t i = 0; i <= uri.len; i++) {
        char c = i < uri.len ? uri.at[i] : '/';
        if ((unsigned char)c < ' ' || c == 0x7f || (c == '%' && is_encoded_twice(uri, i)))
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

static const struct upstream_spec *owner_of_name(const struct config *config, struct str name)
{
    const struct upstream_spec *owner = NULL;
    for (size_t i = 0; i < config->upstream_count; i++) {
        const struct upstream_spec *spec = config->upstreams[i];
        bool fits = name.len > spec->name.len && str_eq((struct str){name.at, spec->name.len}, spec->name) &&
                    str_starts(str_from(name, spec->name.len), SEPARATOR);
        if (fits && (!owner || spec->name.len > owner->name.len))
            owner = spec;
    }
    return owner;
}

static const char *fault_of(const struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                            struct str name)
{
    if (!name.len)
        return "it has none";
    if (name.len > (kind == SERVED_PROMPTS ? SERVED_NAME_MAX_BYTES : SERVED_URI_MAX_BYTES))
        return "it is too long";
    if (printable_count_hidden(name))
        return "it has hidden characters (zero-width, bidirectional, tags)";
    const struct upstream_spec *owner = kind == SERVED_PROMPTS ? owner_of_name(b->config, name) : NULL;
    if (owner && owner != spec)
        return arena_printf(b->served->arena,
                            "names that begin with '" STR_FMT SEPARATOR "' belong to the upstream " STR_FMT,
                            STR_ARG(owner->name), STR_ARG(owner->name))
            .at;
    return NULL;
}

static void count_prompts(struct building *b, const struct upstream_spec *spec, const struct json *prompts)
{
    for (uint32_t i = 0; spec->prefix != UPSTREAM_PREFIX_ALWAYS && i < prompts->len; i++) {
        struct str name = json_str(json_get_text(&prompts->items[i], "name"));
        if (!name.len || !fits_any(&spec->prompts, name) || fault_of(b, spec, SERVED_PROMPTS, name))
            continue;
        struct name_use *use = map_get(b->uses, name);
        if (!use) {
            use = ARENA_NEW(b->served->arena, struct name_use);
            map_add(b->uses, name, use);
        }
        use->shared |= use->upstream && use->upstream != spec;
        use->upstream = spec;
    }
}

static struct str published_name(const struct building *b, const struct upstream_spec *spec, struct str name)
{
    const struct name_use *use = map_get(b->uses, name);
    if (spec->prefix != UPSTREAM_PREFIX_ALWAYS && !(use && use->shared))
        return name;
    return arena_printf(b->served->arena, STR_FMT SEPARATOR STR_FMT, STR_ARG(spec->name), STR_ARG(name));
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

/* The globs of `resources` are for URIs: which a template gives, only a request shows. */
static bool is_selected(const struct upstream_spec *spec, enum served_kind kind, struct str name)
{
    if (kind == SERVED_TEMPLATES)
        return !spec->resources.given || spec->resources.count;
    return fits_any(kind == SERVED_PROMPTS ? &spec->prompts : &spec->resources, name);
}

static void add_one(struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                    const struct json *definition)
{
    struct served *served = b->served;
    struct str name = json_str(json_get_text(definition, name_members[kind]));
    if (!is_selected(spec, kind, name))
        return;
    const char *fault = fault_of(b, spec, kind, name);
    if (!fault && served->lists[kind].count == SERVED_MAX)
        fault = "all servers together have more than can be listed";
    if (fault) {
        leave_out(served, spec, kind, name, fault);
        return;
    }
    struct served_item item = {.definition = definition, .name = name, .own_name = name};
    if (kind == SERVED_PROMPTS)
        item.name = published_name(b, spec, name);
    item.renamed = !str_eq(item.name, name);
    item.upstream = arena_dup(served->arena, spec->name);
    if (served_find(served, kind, item.name))
        leave_out(served, spec, kind, item.name, "an upstream before it in the configuration has it, too");
    else
        add(served->arena, &served->lists[kind], &item);
}

static void add_list(struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                     const struct json *definitions)
{
    for (uint32_t i = 0; i < definitions->len; i++)
        add_one(b, spec, kind, &definitions->items[i]);
}

/* With per_user, the daemon's own instance has the resources of the daemon's user: they are nobody else's. */
static bool lists_for_all(const struct upstream_spec *spec, enum served_kind kind)
{
    return spec->kind != UPSTREAM_REST && (!spec->per_user || kind != SERVED_RESOURCES);
}

static void each_upstream(struct building *b, enum served_kind kind,
                          void (*visit)(struct building *b, const struct upstream_spec *spec,
                                        enum served_kind kind, const struct json *definitions))
{
    struct served *served = b->served;
    for (size_t i = 0; i < b->config->upstream_count; i++) {
        const struct upstream_spec *spec = b->config->upstreams[i];
        struct tool_list *list = lists_for_all(spec, kind)
                                     ? upstreams_list(b->upstreams, spec->name, served_upstream_list(kind))
                                     : NULL;
        if (!list)
            continue;
        served->held[served->held_count++] = list;
        hash_add(&served->lists[kind].hash, tool_list_hash(list));
        visit(b, spec, kind, tool_list_array(list));
    }
}

static void count_names(struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                        const struct json *definitions)
{
    (void)kind;
    count_prompts(b, spec, definitions);
}

struct served *served_new(const struct config *config, struct upstreams *upstreams)
{
    struct arena *arena = arena_new();
    struct served *served = ARENA_NEW(arena, struct served);
    struct building b = {served, config, upstreams, map_new(arena)};
    *served = (struct served){.arena = arena};
    served->held = ARENA_ARRAY(arena, struct tool_list *, (SERVED_KINDS + 1) * config->upstream_count + 1);
    each_upstream(&b, SERVED_PROMPTS, count_names);
    for (size_t kind = 0; kind < SERVED_KINDS; kind++) {
        served->lists[kind].by_name = map_new(arena);
        served->lists[kind].hash = 0;
        each_upstream(&b, (enum served_kind)kind, add_list);
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
