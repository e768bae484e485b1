/* An arena with one array in it, and a count of those who hold it. */
#include "upstream/tool_list.h"

#include "base/arena.h"
#include "base/hash.h"
#include "json/build.h"
#include "json/canonical.h"

struct upstream_offer {
    struct arena *arena;
    unsigned held;
    struct json tools;
    uint64_t hash;
};

struct upstream_offer *offer_new(const struct json *tools)
{
    struct arena *arena = arena_new();
    struct upstream_offer *offer = ARENA_NEW(arena, struct upstream_offer);
    struct buf text = {0};
    offer->arena = arena;
    offer->held = 1;
    offer->tools = json_copy(arena, tools);
    json_canonical(&text, &offer->tools);
    offer->hash = hash_stable(buf_view(&text)).low;
    buf_clear(&text);
    return offer;
}

struct upstream_offer *upstream_offer_ref(struct upstream_offer *offer)
{
    offer->held++;
    return offer;
}

void upstream_offer_unref(struct upstream_offer *offer)
{
    if (offer && --offer->held == 0)
        arena_free(offer->arena);
}

const struct json *upstream_offer_tools(const struct upstream_offer *offer)
{
    return &offer->tools;
}

uint64_t upstream_offer_hash(const struct upstream_offer *offer)
{
    return offer->hash;
}
