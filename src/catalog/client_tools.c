/*
 * Each registered tool has an arena of its own. A tool that was replaced, or compiled again after a reload,
 * is kept until no call can use it; the bytes of all together are limited.
 */
#include "catalog/client_tools.h"

#include "base/arena.h"
#include "base/hash.h"
#include "json/build.h"

#include <stdlib.h>

struct entry {
    struct entry *next; /* in the list of replaced entries */
    struct arena *arena;
    struct str name;
    const struct json *definition;
    struct tool *tool;   /* NULL: the generation's configuration refuses it */
    uint64_t generation; /* the number of the generation that it was compiled with */
};

struct client_tools {
    const struct peer *peer;
    struct entry *entries[CLIENT_TOOLS_MAX], *replaced;
    size_t count, bytes;
    uint64_t revision;
};

struct client_tools *client_tools_new(const struct peer *peer)
{
    struct client_tools *tools = calloc(1, sizeof(*tools));
    if (!tools)
        abort();
    tools->peer = peer;
    tools->revision = hash_random();
    return tools;
}

void client_tools_free_replaced(struct client_tools *tools)
{
    while (tools->replaced) {
        struct entry *entry = tools->replaced;
        tools->replaced = entry->next;
        tools->bytes -= arena_bytes(entry->arena);
        arena_free(entry->arena);
    }
}

void client_tools_free(struct client_tools *tools)
{
    if (!tools)
        return;
    client_tools_free_replaced(tools);
    for (size_t i = 0; i < tools->count; i++)
        arena_free(tools->entries[i]->arena);
    free(tools);
}

size_t client_tools_count(const struct client_tools *tools)
{
    return tools ? tools->count : 0;
}

struct str client_tools_name_at(const struct client_tools *tools, size_t index)
{
    return tools->entries[index]->name;
}

size_t client_tools_index(const struct client_tools *tools, struct str name)
{
    size_t i = 0;
    while (i < tools->count && !str_eq(tools->entries[i]->name, name))
        i++;
    return i;
}

uint64_t client_tools_revision(const struct client_tools *tools)
{
    return tools->revision;
}

/* Uses the operator's policy of the same name, if there is one. The caller frees the entry's arena, also on
 * failure. */
static enum err compile(struct generation *generation, const struct json *definition, struct entry **out,
                        struct why *why)
{
    struct arena *arena = arena_new();
    struct entry *entry = ARENA_NEW(arena, struct entry);
    struct json *copy = ARENA_NEW(arena, struct json);
    *copy = json_copy(arena, definition);
    *entry = (struct entry){.arena = arena,
                            .name = json_str(json_get_text(copy, "name")),
                            .definition = copy,
                            .generation = generation->number};
    *out = entry;
    const struct tool *known = generation_find(generation, entry->name);
    struct tool_source source = {.definition = copy,
                                 .policy = known ? known->policy : NULL,
                                 .policies = generation->policies,
                                 .origin = STR_LIT("register")};
    return tool_build(arena, &generation->config, &source, &entry->tool, why);
}

static void put(struct client_tools *tools, size_t index, struct entry *entry)
{
    if (index < tools->count) {
        tools->entries[index]->next = tools->replaced;
        tools->replaced = tools->entries[index];
    } else {
        tools->count++;
    }
    tools->entries[index] = entry;
    tools->revision++;
    tools->bytes += arena_bytes(entry->arena);
}

enum err client_tools_register(struct client_tools *tools, struct generation *generation,
                               const struct json *definition, const struct tool **out, struct why *why)
{
    struct str name = json_str(json_get_text(definition, "name"));
    const struct tool *known = generation_find(generation, name);
    size_t index = client_tools_index(tools, name);
    struct entry *entry = index < tools->count ? tools->entries[index] : NULL;
    *out = NULL;
    if (!name.len)
        return err_set(why, ERR_SCHEMA, "expected a tool {name, description?, inputSchema}, got no name");
    if (!peer_may_call(&generation->config, tools->peer, name))
        return err_set(why, ERR_NOT_FOUND,
                       "the configuration (allow) grants this user no tool named '" STR_FMT "'",
                       STR_ARG(str_cut(name, TOOL_NAME_MAX_BYTES)));
    if (known && known->runner != RUNNER_AGENT)
        return err_set(why, ERR_EXISTS,
                       "tool '" STR_FMT "' is run by toolgate itself: give yours another name",
                       STR_ARG(name));
    if (!entry || !entry->tool || entry->generation != generation->number ||
        !json_equal(entry->definition, definition)) {
        if (index == CLIENT_TOOLS_MAX)
            return err_set(why, ERR_LIMIT, "a connection may register at most %u tools", CLIENT_TOOLS_MAX);
        enum err err = compile(generation, definition, &entry, why);
        if (!err && tools->bytes + arena_bytes(entry->arena) > CLIENT_TOOLS_MAX_BYTES)
            err = err_set(why, ERR_LIMIT,
                          "a connection's registered tools may take at most %u bytes together, compiled: "
                          "register fewer, or with simpler schemas",
                          CLIENT_TOOLS_MAX_BYTES);
        if (err) {
            arena_free(entry->arena);
            return err;
        }
        put(tools, index, entry);
    }
    *out = entry->tool;
    return OK;
}

/* A reload may have taken the grant away, added a tool of that name, or changed what a tool may be. */
const struct tool *client_tools_find(struct client_tools *tools, struct generation *generation,
                                     struct str name)
{
    size_t index = tools ? client_tools_index(tools, name) : 0;
    if (!tools || index == tools->count)
        return NULL;
    const struct tool *known = generation_find(generation, name);
    if (!peer_may_call(&generation->config, tools->peer, name))
        return NULL;
    if (known && known->runner != RUNNER_AGENT)
        return NULL;
    if (tools->entries[index]->generation != generation->number) {
        struct entry *compiled;
        struct why why;
        compile(generation, tools->entries[index]->definition, &compiled, &why);
        put(tools, index, compiled);
    }
    return tools->entries[index]->tool;
}
