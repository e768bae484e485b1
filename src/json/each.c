/* A container is copied when its first child changes. */
#include "json/each.h"

#include "base/arena.h"
#include "json/build.h"

const struct json *json_map(struct arena *arena, const struct json *value, json_map_child *map, void *owner)
{
    bool is_list = json_is(value, JSON_ARRAY);
    struct json *items = NULL;
    struct json_member *members = NULL;
    uint32_t count = json_child_count(value), kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct json *child = json_child(value, i);
        struct str sent = is_list ? STR_NONE : value->members[i].key, key = sent;
        const struct json *now = map(owner, value, i, &key);
        bool changes = now != child || key.at != sent.at;
        if (changes && is_list && !items) {
            items = ARENA_ARRAY(arena, struct json, count);
            memcpy(items, value->items, i * sizeof(*items));
        } else if (changes && !is_list && !members) {
            members = ARENA_ARRAY(arena, struct json_member, count);
            memcpy(members, value->members, i * sizeof(*members));
        }
        if (now && items)
            items[kept] = *now;
        else if (now && members)
            members[kept] = json_member(key, *now);
        kept += now != NULL;
    }
    if (items)
        return json_keep(arena, json_array(items, kept));
    return members ? json_keep(arena, json_object(arena, members, kept)) : value;
}
