/* An arena with one array in it, and a count of those who hold it. */
#include "upstream/tool_list.h"

#include "base/arena.h"
#include "base/hash.h"
#include "json/build.h"
#include "json/canonical.h"

struct tool_list {
    struct arena *arena;
    unsigned held;
    struct json tools;
    uint64_t hash;
};

struct tool_list *tool_list_new(const struct json *tools)
{
    struct arena *arena = arena_new();
    struct tool_list *offer = ARENA_NEW(arena, struct tool_list);
    struct buf text = {0};
    offer->arena = arena;
    offer->held = 1;
    offer->tools = json_copy(arena, tools);
    json_canonical(&text, &offer->tools);
    offer->hash = hash_stable(buf_view(&text)).low;
    buf_clear(&text);
    return offer;
}

struct tool_list *tool_list_ref(struct tool_list *offer)
{
    offer->held++;
    return offer;
}

void tool_list_unref(struct tool_list *offer)
{
    if (offer && --offer->held == 0)
        arena_free(offer->arena);
}

const struct json *tool_list_array(const struct tool_list *offer)
{
    return &offer->tools;
}

uint64_t tool_list_hash(const struct tool_list *offer)
{
    return offer->hash;
}
