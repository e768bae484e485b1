/*
 * A compiled tool has an arena of its own and is shared by all sets that have its definition: an agent's
 * tools are compiled once, however many sessions it serves. Tools and sets that nobody has any more are kept
 * until no call can use them; the bytes of all together are limited.
 */
#include "catalog/client_tools.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/lru.h"
#include "json/build.h"

#include <stdlib.h>

#define COMPILED_LISTS 256u

struct entry {
    struct entry *next; /* of the list of its hash */
    struct arena *arena;
    uint32_t hash; /* of the name */
    struct str name;
    const struct json *definition;
    struct tool *tool;   /* NULL: the generation's configuration refuses it */
    uint64_t generation; /* the number of the generation that it was compiled with */
    size_t sets;         /* that have it */
    uint64_t left;       /* when the last set let go of it, in changes: client_tools_now */
};

/* What one session registered, or the connection for all of them. */
struct client_tools {
    struct lru_node node;     /* first; of a session's set */
    struct client_tools *all; /* the connection's own set; itself, if it is that */
    struct entry *entries[CLIENT_TOOLS_MAX];
    uint32_t hashes[CLIENT_TOOLS_MAX]; /* of their names: entries are far apart, each in its arena */
    size_t count;
    uint64_t revision;
    /* Only of the connection's own set. */
    const struct peer *peer;
    struct lru sessions;
    struct entry *compiled[COMPILED_LISTS]; /* of all sets, by their hashes */
    bool unused;                            /* some of them are in no set any more */
    uint64_t changes;
    size_t bytes;
};

static struct client_tools *set_new(struct client_tools *all)
{
    struct client_tools *set = alloc_zeroed(sizeof(*set));
    set->all = all ? all : set;
    set->revision = hash_random();
    set->changes = 1;
    set->all->bytes += sizeof(*set);
    return set;
}

struct client_tools *client_tools_new(const struct peer *peer)
{
    struct client_tools *tools = set_new(NULL);
    tools->peer = peer;
    lru_init(&tools->sessions);
    return tools;
}

struct client_tools *client_tools_of(struct client_tools *tools, struct hash128 session, bool open)
{
    struct lru_node *node = tools ? lru_find(&tools->sessions, session) : NULL;
    if (node || !open || !tools)
        return node ? (struct client_tools *)node : tools;
    if (tools->bytes + sizeof(*tools) > CLIENT_TOOLS_MAX_BYTES)
        return NULL;
    struct client_tools *set = set_new(tools);
    set->node.id = session;
    lru_add(&tools->sessions, &set->node);
    return set;
}

static void leave(struct client_tools *all, struct entry *entry)
{
    if (--entry->sets)
        return;
    entry->left = ++all->changes;
    all->unused = true;
}

static void drop_sessions(struct client_tools *tools, size_t kept)
{
    while (tools->sessions.count > kept) {
        struct lru_node *oldest = tools->sessions.oldest;
        struct client_tools *set = (struct client_tools *)oldest;
        lru_remove(&tools->sessions, oldest);
        for (size_t i = 0; i < set->count; i++)
            leave(tools, set->entries[i]);
        tools->bytes -= sizeof(*set);
        free(set);
    }
}

static void free_at(struct client_tools *all, struct entry **at)
{
    struct entry *entry = *at;
    *at = entry->next;
    all->bytes -= arena_bytes(entry->arena);
    arena_free(entry->arena);
}

void client_tools_free_unused(struct client_tools *tools, uint64_t since)
{
    if (since == UINT64_MAX)
        drop_sessions(tools, CLIENT_TOOLS_SESSIONS);
    bool left = false;
    for (size_t i = 0; tools->unused && i < COMPILED_LISTS; i++)
        for (struct entry **at = &tools->compiled[i]; *at;) {
            left |= !(*at)->sets && (*at)->left > since;
            if ((*at)->sets || (*at)->left > since)
                at = &(*at)->next;
            else
                free_at(tools, at);
        }
    tools->unused = left;
}

uint64_t client_tools_now(const struct client_tools *tools)
{
    return tools->changes;
}

void client_tools_free(struct client_tools *tools)
{
    if (!tools)
        return;
    drop_sessions(tools, 0);
    lru_clear(&tools->sessions);
    for (size_t i = 0; i < COMPILED_LISTS; i++)
        while (tools->compiled[i])
            free_at(tools, &tools->compiled[i]);
    free(tools);
}

size_t client_tools_bytes(const struct client_tools *tools)
{
    return tools ? tools->all->bytes : 0;
}

/* ---- what a session sees: its own, then the connection's ---- */

static uint32_t hash_of(struct str name)
{
    return (uint32_t)hash_stable(name).low;
}

static size_t index_in(const struct client_tools *set, struct str name)
{
    uint32_t hash = set->count ? hash_of(name) : 0;
    size_t i = 0;
    while (i < set->count && (set->hashes[i] != hash || !str_eq(set->entries[i]->name, name)))
        i++;
    return i;
}

size_t client_tools_count(const struct client_tools *tools)
{
    return !tools ? 0 : tools == tools->all ? tools->count : tools->count + tools->all->count;
}

struct str client_tools_name_at(const struct client_tools *tools, size_t index)
{
    if (index < tools->count)
        return tools->entries[index]->name;
    struct str name = tools->all->entries[index - tools->count]->name;
    return index_in(tools, name) < tools->count ? STR_NONE : name;
}

size_t client_tools_index(const struct client_tools *tools, struct str name)
{
    size_t i = index_in(tools, name);
    return i < tools->count || tools == tools->all ? i : i + index_in(tools->all, name);
}

uint64_t client_tools_revision(const struct client_tools *tools)
{
    return tools->revision + 3 * tools->all->revision;
}

/* The compiled tool of a definition, which another set may have already. Uses the operator's policy of the
 * same name, if there is one. On failure its tool is NULL. */
static enum err compile(struct client_tools *all, struct generation *generation,
                        const struct json *definition, struct entry **out, struct why *why)
{
    struct str name = json_str(json_get_text(definition, "name"));
    uint32_t hash = hash_of(name);
    struct entry **list = &all->compiled[hash % COMPILED_LISTS];
    for (*out = *list; *out; *out = (*out)->next)
        if ((*out)->tool && (*out)->generation == generation->number && str_eq((*out)->name, name) &&
            json_equal((*out)->definition, definition))
            return OK;
    struct arena *arena = arena_new();
    struct entry *entry = ARENA_NEW(arena, struct entry);
    struct json *copy = ARENA_NEW(arena, struct json);
    *copy = json_copy(arena, definition);
    *entry = (struct entry){.next = *list,
                            .arena = arena,
                            .hash = hash,
                            .name = json_str(json_get_text(copy, "name")),
                            .definition = copy,
                            .generation = generation->number};
    const struct tool *known = generation_find(generation, name);
    struct tool_source source = {.definition = copy,
                                 .policy = known ? known->policy : NULL,
                                 .policies = generation->policies,
                                 .origin = STR_LIT("register")};
    enum err err = tool_build(arena, &generation->config, &source, &entry->tool, why);
    all->bytes += arena_bytes(arena);
    *out = *list = entry;
    return err;
}

static void put(struct client_tools *set, size_t index, struct entry *entry)
{
    if (index < set->count && set->entries[index] == entry)
        return;
    if (index < set->count)
        leave(set->all, set->entries[index]);
    else
        set->count++;
    set->entries[index] = entry;
    set->hashes[index] = entry->hash;
    entry->sets++;
    set->revision++;
}

enum err client_tools_register(struct client_tools *tools, struct generation *generation,
                               const struct json *definition, const struct tool **out, struct why *why)
{
    struct client_tools *all = tools->all;
    struct str name = json_str(json_get_text(definition, "name"));
    const struct tool *known = generation_find(generation, name);
    size_t index = index_in(tools, name);
    struct entry *entry;
    struct entry **list = &all->compiled[hash_of(name) % COMPILED_LISTS], *before = *list;
    *out = NULL;
    if (!name.len)
        return err_set(why, ERR_SCHEMA, "expected a tool {name, description?, inputSchema}, got no name");
    if (!peer_may_call(&generation->config, all->peer, name))
        return err_set(why, ERR_NOT_FOUND,
                       "the configuration (allow) grants this user no tool named '" STR_FMT "'",
                       STR_ARG(str_cut(name, TOOL_NAME_MAX_BYTES)));
    if (known && known->runner != RUNNER_AGENT)
        return err_set(why, ERR_EXISTS,
                       "tool '" STR_FMT "' is run by toolgate itself: give yours another name",
                       STR_ARG(name));
    if (index == CLIENT_TOOLS_MAX)
        return err_set(why, ERR_LIMIT, "a connection may register at most %u tools", CLIENT_TOOLS_MAX);
    enum err err = compile(all, generation, definition, &entry, why);
    if (!err && *list != before && all->bytes > CLIENT_TOOLS_MAX_BYTES)
        err = err_set(why, ERR_LIMIT,
                      "a connection's registered tools may take at most %u bytes together, compiled: "
                      "register fewer, or with simpler schemas",
                      CLIENT_TOOLS_MAX_BYTES);
    if (err) {
        if (*list != before)
            free_at(all, list);
        return err;
    }
    put(tools, index, entry);
    *out = entry->tool;
    return OK;
}

/* A reload may have taken the grant away, added a tool of that name, or changed what a tool may be. */
const struct tool *client_tools_find(struct client_tools *tools, struct generation *generation,
                                     struct str name)
{
    size_t index = tools ? index_in(tools, name) : 0;
    if (tools && index == tools->count) {
        tools = tools->all;
        index = index_in(tools, name);
    }
    if (!tools || index == tools->count || !peer_may_call(&generation->config, tools->all->peer, name))
        return NULL;
    const struct tool *known = generation_find(generation, name);
    if (known && known->runner != RUNNER_AGENT)
        return NULL;
    if (tools->entries[index]->generation != generation->number) {
        struct entry *compiled;
        struct why why;
        compile(tools->all, generation, tools->entries[index]->definition, &compiled, &why);
        put(tools, index, compiled);
    }
    return tools->entries[index]->tool;
}
