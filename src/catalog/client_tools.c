/*
 * Tools a connection declared for itself, each in an arena of its own. One
 * that was replaced, or compiled anew after a reload, waits aside until no
 * call can hold it any more; the bytes of all are bounded together.
 */
#include "catalog/client_tools.h"

#include "base/arena.h"
#include "json/build.h"

#include <stdlib.h>

struct entry {
    struct entry *next; /* of the replaced ones */
    struct arena *arena;
    struct str name;
    const struct json *definition;
    struct tool *tool;   /* NULL: the configuration of this generation refuses it */
    uint64_t generation; /* the number it was compiled against */
};

struct client_tools {
    const struct peer *peer;
    struct entry *entries[CLIENT_TOOLS_MAX], *replaced;
    size_t count, bytes;
};

struct client_tools *client_tools_new(const struct peer *peer)
{
    struct client_tools *box = calloc(1, sizeof(*box));
    if (!box)
        abort();
    box->peer = peer;
    return box;
}

void client_tools_free_replaced(struct client_tools *box)
{
    while (box->replaced) {
        struct entry *entry = box->replaced;
        box->replaced = entry->next;
        box->bytes -= arena_bytes(entry->arena);
        arena_free(entry->arena);
    }
}

void client_tools_free(struct client_tools *box)
{
    if (!box)
        return;
    client_tools_free_replaced(box);
    for (size_t i = 0; i < box->count; i++)
        arena_free(box->entries[i]->arena);
    free(box);
}

size_t client_tools_count(const struct client_tools *box)
{
    return box ? box->count : 0;
}

struct str client_tools_name_at(const struct client_tools *box, size_t index)
{
    return box->entries[index]->name;
}

/* Its place, or the one behind the last. */
static struct entry **place_of(struct client_tools *box, struct str name)
{
    size_t i = 0;
    while (i < box->count && !str_eq(box->entries[i]->name, name))
        i++;
    return &box->entries[i];
}

static bool is_taken(const struct client_tools *box, struct entry *const *place)
{
    return place < box->entries + box->count;
}

/* The operator's policy of the same name applies, with or without a definition of its own. */
static enum err compile(struct generation *generation, const struct json *definition, struct entry **out,
                        struct why *why)
{
    struct arena *arena = arena_new();
    struct entry *entry = ARENA_NEW(arena, struct entry);
    struct json *kept = ARENA_NEW(arena, struct json);
    *kept = json_copy(arena, definition);
    *entry = (struct entry){.arena = arena,
                            .name = json_str(json_get_text(kept, "name")),
                            .definition = kept,
                            .generation = generation_number(generation)};
    const struct tool *known = generation_find(generation, entry->name);
    *out = entry;
    return tool_build(arena, kept, known ? known->policy : NULL, generation_config(generation),
                      STR_LIT("register"), &entry->tool, why);
}

static void put(struct client_tools *box, struct entry **place, struct entry *entry)
{
    if (is_taken(box, place)) {
        (*place)->next = box->replaced;
        box->replaced = *place;
    } else {
        box->count++;
    }
    *place = entry;
    box->bytes += arena_bytes(entry->arena);
}

/* An agent that says again what it said before is heard at no cost. */
static bool is_same(const struct client_tools *box, struct entry *const *place, const struct json *definition,
                    const struct generation *generation)
{
    return is_taken(box, place) && (*place)->tool && (*place)->generation == generation_number(generation) &&
           json_equal((*place)->definition, definition);
}

static enum err add(struct client_tools *box, struct entry **place, struct generation *generation,
                    const struct json *definition, struct why *why)
{
    struct entry *entry;
    if (!is_taken(box, place) && box->count == CLIENT_TOOLS_MAX)
        return err_set(why, ERR_LIMIT, "a connection may register at most %u tools", CLIENT_TOOLS_MAX);
    enum err err = compile(generation, definition, &entry, why);
    if (!err && box->bytes + arena_bytes(entry->arena) > CLIENT_TOOLS_MAX_BYTES)
        err =
            err_set(why, ERR_LIMIT,
                    "a connection's registered tools may take at most %u bytes together, compiled: register "
                    "fewer, or with simpler schemas",
                    CLIENT_TOOLS_MAX_BYTES);
    if (err)
        arena_free(entry->arena);
    else
        put(box, place, entry);
    return err;
}

enum err client_tools_register(struct client_tools *box, struct generation *generation,
                               const struct json *definition, const struct tool **out, struct why *why)
{
    struct str name = json_str(json_get_text(definition, "name"));
    const struct tool *known = generation_find(generation, name);
    struct entry **place = place_of(box, name);
    *out = NULL;
    if (!name.len)
        return err_set(why, ERR_SCHEMA, "expected a tool {name, description?, inputSchema}, got no name");
    if (!peer_may_call(generation_config(generation), box->peer, name))
        return err_set(why, ERR_NOT_FOUND,
                       "the configuration (allow) grants this user no tool named '" STR_FMT "'",
                       STR_ARG(str_cut(name, TOOL_NAME_MAX_BYTES)));
    if (known && known->runner != RUNNER_AGENT)
        return err_set(why, ERR_EXISTS,
                       "tool '" STR_FMT "' is run by toolgate itself: give yours another name",
                       STR_ARG(name));
    enum err err = OK;
    if (!is_same(box, place, definition, generation))
        err = add(box, place, generation, definition, why);
    *out = err ? NULL : (*place)->tool;
    return err;
}

const struct tool *client_tools_find(struct client_tools *box, struct generation *generation, struct str name)
{
    struct entry **place = box ? place_of(box, name) : NULL, *fresh;
    if (!box || !is_taken(box, place))
        return NULL;
    const struct tool *known = generation_find(generation, name);
    if (!peer_may_call(generation_config(generation), box->peer, name))
        return NULL; /* since a reload it is not granted any more */
    if (known && known->runner != RUNNER_AGENT)
        return NULL; /* since a reload toolgate runs a tool of that name itself */
    if ((*place)->generation != generation_number(generation)) {
        struct why why; /* it compiled before; a stricter configuration may refuse it now */
        compile(generation, (*place)->definition, &fresh, &why);
        put(box, place, fresh);
    }
    return (*place)->tool;
}
