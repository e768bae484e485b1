/*
 * Tools a connection declared for itself. Replaced and recompiled ones stay
 * in the box's arena until the connection ends, since a call in flight may
 * still hold them; the bytes are bounded all the same.
 */
#include "gate/toolbox.h"

#include "base/arena.h"
#include "json/build.h"

#include <stdlib.h>

struct entry {
    struct str name;
    const struct json *definition;
    struct tool *tool;
    uint64_t generation; /* the number it was compiled against */
};

struct toolbox {
    struct arena *arena;
    const struct peer *peer;
    struct entry entries[TOOLBOX_MAX_TOOLS];
    size_t count;
};

struct toolbox *toolbox_new(const struct peer *peer)
{
    struct arena *arena = arena_new();
    struct toolbox *box = ARENA_NEW(arena, struct toolbox);
    box->arena = arena;
    box->peer = peer;
    return box;
}

void toolbox_free(struct toolbox *box)
{
    if (box)
        arena_free(box->arena);
}

size_t toolbox_count(const struct toolbox *box)
{
    return box ? box->count : 0;
}

struct str toolbox_name_at(const struct toolbox *box, size_t index)
{
    return box->entries[index].name;
}

static struct entry *entry_named(struct toolbox *box, struct str name)
{
    for (size_t i = 0; box && i < box->count; i++)
        if (str_eq(box->entries[i].name, name))
            return &box->entries[i];
    return NULL;
}

/* The operator's policy of the same name applies, with or without a definition of its own. */
static enum err compile(struct toolbox *box, struct generation *generation, struct entry *entry,
                        struct why *why)
{
    const struct tool *known = generation_find(generation, entry->name);
    entry->generation = generation_number(generation);
    return tool_build(box->arena, entry->definition, known ? known->policy : NULL,
                      generation_config(generation), STR_LIT("register"), &entry->tool, why);
}

enum err toolbox_register(struct toolbox *box, struct generation *generation, const struct json *definition,
                          const struct tool **out, struct why *why)
{
    struct str name = json_str(json_get_text(definition, "name"));
    const struct tool *known = generation_find(generation, name);
    struct entry *old = entry_named(box, name);
    *out = NULL;
    if (!name.len)
        return why_set(why, ERR_SCHEMA, "expected a tool {name, description?, inputSchema}, got no name");
    if (!peer_may_call(generation_config(generation), box->peer, name))
        return why_set(why, ERR_NOT_FOUND,
                       "the configuration (allow) grants this user no tool named '" STR_FMT "'",
                       STR_ARG(str_cut(name, TOOL_NAME_MAX_BYTES)));
    if (known && known->runner != RUNNER_AGENT)
        return why_set(why, ERR_EXISTS,
                       "tool '" STR_FMT "' is run by toolgate itself: give yours another name",
                       STR_ARG(name));
    if (!old && box->count == TOOLBOX_MAX_TOOLS)
        return why_set(why, ERR_LIMIT, "a connection may register at most %u tools", TOOLBOX_MAX_TOOLS);
    if (arena_bytes(box->arena) + definition->raw_len > TOOLBOX_MAX_BYTES)
        return why_set(why, ERR_LIMIT, "a connection's registered tools may take at most %u bytes together",
                       TOOLBOX_MAX_BYTES);
    struct json *kept = arena_alloc(box->arena, sizeof(*kept));
    *kept = json_copy(box->arena, definition);
    struct entry entry = {.name = json_str(json_get_text(kept, "name")), .definition = kept};
    enum err err = compile(box, generation, &entry, why);
    if (err != OK)
        return err;
    *(old ? old : &box->entries[box->count++]) = entry;
    *out = entry.tool;
    return OK;
}

const struct tool *toolbox_find(struct toolbox *box, struct generation *generation, struct str name)
{
    struct entry *entry = entry_named(box, name);
    if (!entry)
        return NULL;
    const struct tool *known = generation_find(generation, name);
    if (!peer_may_call(generation_config(generation), box->peer, name))
        return NULL; /* since a reload it is not granted any more */
    if (known && known->runner != RUNNER_AGENT)
        return NULL; /* since a reload toolgate runs a tool of that name itself */
    if (entry->generation != generation_number(generation)) {
        struct why why;
        if (compile(box, generation, entry, &why) != OK)
            return NULL; /* it compiled before; a stricter configuration may refuse it now */
    }
    return entry->tool;
}
