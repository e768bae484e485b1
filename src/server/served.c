/*
 * What the MCP servers behind the gate list besides tools, as one list for clients: prompts/list,
 * resources/list and resources/templates/list; and their instructions. Two passes over the prompts, since a
 * name that two servers use is prefixed for both; one over the rest.
 */
#include "server/served.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/printable.h"
#include "catalog/definition.h"
#include "catalog/generation.h"
#include "catalog/mcp_version.h"
#include "catalog/pins.h"
#include "json/build.h"
#include "json/write.h"
#include "server/method_table.h"

#include <unistd.h>

#define SERVED_MAX            10000u   /* entries of one list, of all servers together */
#define SERVED_WARNINGS_MAX   20u      /* of one snapshot; further ones are counted */
#define SERVED_PAGE_MAX       1000u    /* entries of a page */
#define SERVED_PAGE_MAX_BYTES 1048576u /* a page ends after the entry that reaches this */

#define INSTRUCTIONS_OF_ONE_MAX_BYTES 4096u /* of one server */
#define INSTRUCTIONS_MAX_BYTES        16384u

static const struct kind {
    enum upstream_list list; /* what upstreams call it */
    const char *noun, *name_member;
    const char *method;
    const char *member;    /* of the reply */
    const char *in_status; /* its count */
} kinds[SERVED_KINDS] = {
    [SERVED_PROMPTS] = {UPSTREAM_PROMPTS, "prompt", "name", "prompts/list", "prompts", "prompts"},
    [SERVED_RESOURCES] = {UPSTREAM_RESOURCES, "resource", "uri", "resources/list", "resources", "resources"},
    [SERVED_TEMPLATES] = {UPSTREAM_TEMPLATES, "resource template", "uriTemplate", "resources/templates/list",
                          "resourceTemplates", "templates"},
    [SERVED_INSTRUCTIONS] = {UPSTREAM_INSTRUCTIONS, "instructions", "name", "", "", "instructions"},
};

struct list {
    struct served_item **items;
    size_t count;
    struct map *by_name;
    uint64_t hash; /* equal for equal lists */
};

/* Immutable. */
struct served {
    struct arena *arena;
    struct pins_review *pins; /* NULL: none are kept */
    struct list lists[SERVED_KINDS];
    struct tool_list **held; /* whose definitions the items borrow */
    size_t held_count;
    struct str warnings[SERVED_WARNINGS_MAX]; /* what was left out or hidden, for the operator */
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

static void leave_out(struct served *served, const struct upstream_spec *spec, enum served_kind kind,
                      struct str name, const char *why)
{
    struct str shown = printable_line(served->arena, str_cut(name, SERVED_NAME_MAX_BYTES));
    if (served->warning_count == SERVED_WARNINGS_MAX)
        served->more_warnings++;
    else
        served->warnings[served->warning_count++] =
            arena_printf(served->arena, "upstream " STR_FMT ": %s '" STR_FMT "' is left out: %s",
                         STR_ARG(spec->name), kinds[kind].noun, STR_ARG(shown), why);
}

/* ---- who may have what -------------------------------------------------------- */

/* As pins have it: a list counts as an upstream of its own. */
static struct str pinned_as(struct arena *arena, const struct upstream_spec *spec, enum served_kind kind)
{
    return arena_printf(arena, STR_FMT ":%s", STR_ARG(spec->name), kinds[kind].in_status);
}

/* "/../" in any spelling: the server may read another file than the one that the glob has seen. A control
 * character counts as one, since parsers of URLs drop tabs and line ends: ".\t." is ".." for them; and they
 * trim spaces. "%252e" is a dot for a server that decodes twice. */
static bool has_dot_segments(struct str uri)
{
    size_t dots = 0, others = 1; /* of the segment so far; there is no segment before the first '/' */
    for (size_t i = 0; i <= uri.len; i++) {
        char c = i < uri.len ? uri.at[i] : '/';
        struct str rest = str_from(uri, i);
        if ((unsigned char)c < ' ' || c == 0x7f ||
            (c == '%' && (str_starts_nocase(rest, "%252e") || str_starts_nocase(rest, "%252f") ||
                          str_starts_nocase(rest, "%255c"))))
            return true;
        if (c == '%' && i + 2 < uri.len && uri.at[i + 1] == '2') {
            char low = uri.at[i + 2];
            c = low == 'e' || low == 'E' ? '.' : low == 'f' || low == 'F' ? '/' : c;
            i += c == '%' ? 0 : 2;
        } else if (c == '%' && i + 2 < uri.len && uri.at[i + 1] == '5' && (uri.at[i + 2] | 0x20) == 'c') {
            c = '/';
            i += 2;
        }
        if (strchr("/\\?#;", c)) { /* a segment also ends where a query, a fragment or parameters begin */
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
    return peer_sees_upstream(config, peer, spec->name) && name_globs_fit(&spec->resources, uri) &&
           peer_may_read(config, peer, uri);
}

/* A '\1' is in no glob. One that fits the beginning alone, and with more of them than it has bytes, ends
 * with a '*' there. */
bool served_may_read_all(const struct config *config, const struct peer *peer,
                         const struct upstream_spec *spec, struct str template)
{
    char any[SERVED_URI_MAX_BYTES * 2];
    const char *open = memchr(template.at, '{', template.len);
    size_t len = open ? (size_t)(open - template.at) : template.len;
    memcpy(any, template.at, len);
    memset(any + len, '\1', sizeof(any) - len);
    struct str begin = {any, len}, all = {any, sizeof(any)};
    return name_globs_fit(&spec->resources, begin) && name_globs_fit(&spec->resources, all) &&
           peer_may_read(config, peer, begin) && peer_may_read(config, peer, all);
}

bool served_is_for(const struct config *config, const struct peer *peer, enum served_kind kind,
                   const struct served_item *item)
{
    const struct upstream_spec *spec = config_find_upstream(config, item->upstream);
    if (item->held || !peer_sees_upstream(config, peer, item->upstream))
        return false;
    /* What a server says to the daemon's user, with the credentials of that user, is nobody else's. */
    if (kind == SERVED_INSTRUCTIONS && spec && spec->per_user && peer->uid != geteuid())
        return false;
    if (kind == SERVED_TEMPLATES)
        return peer_may_read_some(config, peer);
    return kind == SERVED_INSTRUCTIONS || (kind == SERVED_PROMPTS ? peer_may_get(config, peer, item->name)
                                                                  : peer_may_read(config, peer, item->name));
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

static void count_name(struct building *b, const struct upstream_spec *spec, const struct json *definition)
{
    struct str name = json_str(json_get_text(definition, "name"));
    if (spec->prefix == UPSTREAM_PREFIX_ALWAYS || !name.len || !name_globs_fit(&spec->prompts, name) ||
        fault_of(b, spec, SERVED_PROMPTS, name))
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
    struct served_item *kept = ARENA_NEW(arena, struct served_item);
    list->items = arena_grow(arena, list->items, list->count, sizeof(*list->items));
    *kept = *item;
    list->items[list->count++] = kept;
    map_add(list->by_name, kept->name, kept);
    hash_add(&list->hash, hash_stable(kept->name).low + kept->held);
}

/* The globs of `resources` are for URIs: which a template gives, only a request shows. */
static bool is_selected(const struct upstream_spec *spec, enum served_kind kind, struct str name)
{
    return kind == SERVED_TEMPLATES      ? !spec->resources.given || spec->resources.count
           : kind == SERVED_PROMPTS      ? name_globs_fit(&spec->prompts, name)
           : kind == SERVED_INSTRUCTIONS ? spec->instructions
                                         : name_globs_fit(&spec->resources, name);
}

/* Resources that come and go all the time are pinned only where that holds them. */
static void review_pins(struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                        const struct json *list)
{
    struct pins_review *review = b->served->pins;
    if (!review || (kind == SERVED_RESOURCES && review->mode == PINS_WARN))
        return;
    struct str as = pinned_as(b->served->arena, spec, kind);
    for (uint32_t i = 0; i < list->len; i++) {
        struct str name = json_str(json_get_text(&list->items[i], kinds[kind].name_member));
        if (is_selected(spec, kind, name))
            pins_review_add(review, as, name, &list->items[i]);
    }
    pins_review_close(review, as);
}

static void add_one(struct building *b, const struct upstream_spec *spec, enum served_kind kind,
                    const struct json *definition)
{
    struct served *served = b->served;
    struct str name = json_str(json_get_text(definition, kinds[kind].name_member));
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
    const struct name_use *use = kind == SERVED_PROMPTS ? map_get(b->uses, name) : NULL;
    if (kind == SERVED_PROMPTS && (spec->prefix == UPSTREAM_PREFIX_ALWAYS || (use && use->shared)))
        item.name =
            arena_printf(served->arena, STR_FMT IMPORT_SEPARATOR STR_FMT, STR_ARG(spec->name), STR_ARG(name));
    item.upstream = arena_dup(served->arena, spec->name);
    if (kind == SERVED_INSTRUCTIONS)
        item.name = item.upstream; /* the configuration may go before the list */
    const struct pin_entry *pin =
        served->pins ? pins_review_find(served->pins, pinned_as(served->arena, spec, kind), name) : NULL;
    item.held = pin && pin->held;
    item.renamed = !str_eq(item.name, name);
    if (served_find(served, kind, item.name))
        leave_out(served, spec, kind, item.name, "an upstream before it in the configuration has it, too");
    else
        add(served->arena, &served->lists[kind], &item);
}

/* `counts`: only the names of prompts, which the lists are made by. */
static void each_definition(struct building *b, enum served_kind kind, bool counts)
{
    struct served *served = b->served;
    for (size_t i = 0; i < b->config->upstream_count; i++) {
        const struct upstream_spec *spec = b->config->upstreams[i];
        /* With per_user, the daemon's own instance has the resources of the daemon's user: they are nobody
         * else's. */
        bool for_all = spec->kind != UPSTREAM_REST && (!spec->per_user || kind != SERVED_RESOURCES);
        struct tool_list *list = for_all ? upstreams_list(b->upstreams, spec->name, kinds[kind].list) : NULL;
        if (!list)
            continue;
        served->held[served->held_count++] = list;
        const struct json *definitions = tool_list_array(list);
        if (json_is(definitions, JSON_ARRAY)) /* else the server has none of these */
            hash_add(&served->lists[kind].hash, tool_list_hash(list));
        if (!counts)
            review_pins(b, spec, kind, definitions);
        for (uint32_t k = 0; k < definitions->len; k++)
            if (counts)
                count_name(b, spec, &definitions->items[k]);
            else
                add_one(b, spec, kind, &definitions->items[k]);
    }
}

/* Takes the lists that are known now. */
static struct served *make(struct server *server, const struct served *before)
{
    const struct config *config = server_config(server);
    struct arena *arena = arena_new();
    struct served *served = ARENA_NEW(arena, struct served);
    struct building b = {served, config, server->gate.upstreams, map_new(arena)};
    struct pins *pins = pin_methods_pins(server, config);
    *served = (struct served){.arena = arena, .pins = pins_review_new(arena, pins, config->pins)};
    served->held = ARENA_ARRAY(arena, struct tool_list *, (SERVED_KINDS + 1) * config->upstream_count + 1);
    each_definition(&b, SERVED_PROMPTS, true);
    for (size_t kind = 0; kind < SERVED_KINDS; kind++) {
        served->lists[kind].by_name = map_new(arena);
        served->lists[kind].hash = 0;
        each_definition(&b, (enum served_kind)kind, false);
    }
    pins_commit(pins, served->pins, before ? before->pins : NULL);
    return served;
}

static void release(struct served *served)
{
    if (!served)
        return;
    for (size_t i = 0; i < served->held_count; i++)
        tool_list_unref(served->held[i]);
    arena_free(served->arena);
}

/* ---- reading ---- */

const struct served *served_now(struct server *server)
{
    struct server_lists *lists = &server->lists;
    if (!lists->now)
        lists->now = make(server, NULL);
    return lists->now;
}

const struct pins_review *served_pins(struct server *server)
{
    return served_now(server)->pins;
}

struct served_item *const *served_items(const struct served *served, enum served_kind kind, size_t *count)
{
    *count = served->lists[kind].count;
    return served->lists[kind].items;
}

const struct served_item *served_find(const struct served *served, enum served_kind kind, struct str name)
{
    return map_get(served->lists[kind].by_name, name);
}

/* ---- changes: one new list for what several servers, or one of them by several lists, send in a row ---- */

static void on_due(void *owner)
{
    struct server *server = owner;
    struct server_lists *lists = &server->lists;
    struct served *before = lists->now;
    bool changed[SERVED_KINDS];
    const struct served *now = lists->now = make(server, before);
    for (size_t i = 0; i < SERVED_KINDS; i++)
        changed[i] = before && before->lists[i].hash != now->lists[i].hash;
    if (changed[SERVED_PROMPTS])
        subscriptions_changed(server, LIST_CHANGED_PROMPTS);
    if (changed[SERVED_RESOURCES] || changed[SERVED_TEMPLATES])
        subscriptions_changed(server, LIST_CHANGED_RESOURCES);
    uint64_t hash = now->warning_count; /* warnings are logged once, as long as they are the same */
    for (size_t i = 0; i < now->warning_count; i++)
        hash_add(&hash, hash_stable(now->warnings[i]).low);
    for (size_t i = 0; i < now->warning_count && hash != lists->warned; i++)
        log_event(LOG_WARN, "list_warning", LOG_STR("why", now->warnings[i]),
                  LOG_NUM("not_logged", now->more_warnings));
    lists->warned = hash;
    release(lists->before);
    lists->before = before;
    lists->number++;
}

void passing_lists_changed(struct server *server)
{
    if (server->gate.generation && !server->draining && !timer_is_set(&server->lists.due))
        timer_set(&server->lists.due, server->loop, PASSING_SETTLE_MS, on_due, server);
}

void passing_lists_renew(struct server *server)
{
    timer_clear(&server->lists.due);
    on_due(server);
}

void passing_free(struct server *server)
{
    timer_clear(&server->lists.due);
    release(server->lists.now);
    release(server->lists.before);
    server->lists = (struct server_lists){0};
}

void passing_write_status(struct json_out *out, struct server *server)
{
    const struct served *served = server->gate.generation ? served_now(server) : NULL;
    if (!served)
        return;
    json_field_open(out, "lists", '{');
    for (size_t i = 0; i < SERVED_KINDS; i++)
        json_field_int(out, kinds[i].in_status, (int64_t)served->lists[i].count);
    json_field_strs(out, "warnings", served->warnings, served->warning_count);
    if (served->more_warnings)
        json_field_int(out, "more_warnings", (int64_t)served->more_warnings);
    json_close(out, '}');
}

/* ---- the lists' methods ---- */

/* SDKs demand a `name` of resources and of templates, and drop the list if there is none. */
static const struct json *repaired(struct arena *arena, enum served_kind kind, const struct served_item *item,
                                   const struct json *definition)
{
    const struct json *now = definition_fit(arena, definition);
    bool named = json_is(json_get_text(definition, "name"), JSON_STRING);
    if (!item->renamed && (named || kind == SERVED_PROMPTS))
        return now;
    return json_keep(arena, json_with(arena, now, STR_LIT("name"), json_string(item->name)));
}

/* A page as its client reads it: what it may have, under published names, without hidden characters. Returns
 * where the next page begins; 0: this was the last page. */
static size_t put_page(struct request *r, const struct served *served, enum served_kind kind, size_t from)
{
    const struct config *config = server_config(r->client->server);
    struct json_out *out = &r->out;
    const struct list *list = &served->lists[kind];
    size_t start = out->buf->len, written = 0, i = from;
    json_field_open(out, kinds[kind].member, '[');
    for (; i < list->count && written < SERVED_PAGE_MAX && out->buf->len - start < SERVED_PAGE_MAX_BYTES;
         i++) {
        const struct served_item *item = list->items[i];
        struct hidden_text hidden;
        if (!served_is_for(config, &r->client->peer, kind, item))
            continue;
        const struct json *clean = hidden_text_strip(r->arena, item->definition, &hidden);
        json_put(out, mcp_version_definition(r->arena, request_protocol(r),
                                             repaired(r->arena, kind, item, clean)));
        written++;
    }
    json_close(out, ']');
    return i < list->count ? i : 0;
}

void served_write_instructions(struct request *r, struct buf *out)
{
    struct server *server = r->client->server;
    const struct list *list = &served_now(server)->lists[SERVED_INSTRUCTIONS];
    size_t left = INSTRUCTIONS_MAX_BYTES;
    for (size_t i = 0; i < list->count; i++) {
        const struct served_item *item = list->items[i];
        struct hidden_text hidden;
        if (!served_is_for(server_config(server), &r->client->peer, SERVED_INSTRUCTIONS, item))
            continue;
        const struct json *clean = hidden_text_strip(r->arena, item->definition, &hidden);
        struct str text = json_str(json_get_text(clean, "text"));
        struct str rest =
            str_cut(text, left < INSTRUCTIONS_OF_ONE_MAX_BYTES ? left : INSTRUCTIONS_OF_ONE_MAX_BYTES);
        bool is_cut = rest.len < text.len;
        left -= rest.len;
        buf_printf(out, "%sThe server '" STR_FMT "' says of its own tools, prompts and resources:",
                   out->len ? "\n\n" : "", STR_ARG(item->upstream));
        while (rest.len) {
            struct str line = printable_line(r->arena, str_split(&rest, '\n'));
            buf_printf(out, "\n> " STR_FMT, STR_ARG(line));
        }
        buf_text(out, is_cut ? "\n[the rest is too long and left out]" : "");
    }
}

/* "3.1000": entry 1000 of the third list. Its pages go on also after a change; the client hears of that
 * by list_changed. */
static bool read_cursor(struct request *r, const struct served **served, size_t *from)
{
    const struct server_lists *lists = &r->client->server->lists;
    struct str cursor = json_str(json_get_text(r->params, "cursor"));
    uint64_t numbers[2] = {0, 0};
    size_t which = 0;
    for (size_t i = 0; i < cursor.len; i++) {
        if (cursor.at[i] == '.' && !which)
            which++;
        else if (cursor.at[i] < '0' || cursor.at[i] > '9' || numbers[which] > UINT32_MAX)
            return false;
        else
            numbers[which] = numbers[which] * 10 + (uint64_t)(cursor.at[i] - '0');
    }
    *from = numbers[1];
    if (!which || !*from)
        return false;
    if (numbers[0] + 1 == lists->number && lists->before)
        *served = lists->before;
    return *served && (numbers[0] == lists->number || *served == lists->before);
}

enum request_status passing_list(struct request *r)
{
    struct server *server = r->client->server;
    enum served_kind kind = SERVED_PROMPTS;
    while (strcmp(kinds[kind].method, r->method->name) != 0)
        kind++;
    const struct served *served = served_now(server);
    size_t from = 0;
    if (json_get_text(r->params, "cursor") && !read_cursor(r, &served, &from))
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.cursor: expected a nextCursor of this list; if the list has changed twice "
                           "since, begin again without a cursor");
    if (!r->modern) /* initialize is optional, so this request also turns on list_changed */
        r->client->wants_list_changed = true;
    struct json_out *out = reply_open(r);
    size_t next = put_page(r, served, kind, from);
    if (next) {
        uint32_t number = served == server->lists.before ? server->lists.number - 1 : server->lists.number;
        json_field_str(out, "nextCursor", arena_printf(r->arena, "%u.%zu", number, next));
    }
    if (r->modern)
        json_fields(out, FIELD_NUM("ttlMs", MCP_TTL_MS), FIELD_TEXT("cacheScope", MCP_CACHE_SCOPE));
    upstreams_refresh(server->gate.upstreams, kinds[kind].list);
    return reply_close(r);
}
