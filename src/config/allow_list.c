/* Names become numbers when the file is read, so that checking a peer needs no look-up. */
#include "config/allow_list.h"

#include "base/arena.h"

#include <grp.h>
#include <pwd.h>

#define NAME_ROOM 16384u /* getpwnam_r, getgrnam_r */

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t),
               "uids and gids are read as 32-bit numbers");

static bool find_id(const char *name, bool user, uint32_t *id)
{
    char room[NAME_ROOM];
    struct passwd passwd, *found_user = NULL;
    struct group group, *found_group = NULL;
    if (user && getpwnam_r(name, &passwd, room, sizeof(room), &found_user) == 0 && found_user)
        *id = passwd.pw_uid;
    else if (!user && getgrnam_r(name, &group, room, sizeof(room), &found_group) == 0 && found_group)
        *id = group.gr_gid;
    return found_user || found_group;
}

/* Users or groups. An unknown name is an error: a rule that silently matches nobody would be worse. */
static void read_ids(const struct key_value *value)
{
    struct config_reader *reader = value->reader;
    struct allow_rule *rule = value->base;
    bool user = str_is(value->key->name, "users");
    const char *what = user ? "a list of user names or uid numbers" : "a list of group names or gid numbers";
    size_t *count = user ? &rule->uid_count : &rule->gid_count;
    if (!key_is_list(value, what))
        return;
    uint32_t *ids = ARENA_ARRAY(reader->arena, uint32_t, value->json->len);
    for (size_t i = 0; i < value->json->len; i++) {
        struct key_value item = *value;
        item.json = &value->json->items[i];
        struct str name = json_str(item.json);
        int64_t n;
        if (json_int(item.json, &n) && n >= 0 && n < UINT32_MAX)
            ids[(*count)++] = (uint32_t)n;
        else if (!name.len)
            key_expected(&item, what);
        else if (find_id(arena_dup(reader->arena, name).at, user, &ids[*count]))
            ++*count;
        else
            key_table_error(reader, value->path, "no such name on this host: '" STR_FMT "'; expected %s",
                            STR_ARG(name), what);
    }
    *(user ? &rule->uids : &rule->gids) = ids;
}

static void read_tools(const struct key_value *value)
{
    struct allow_rule *rule = value->base;
    if (!key_is_list(value, "a list of tool names or globs such as \"get_*\""))
        return;
    struct str *globs = ARENA_ARRAY(value->reader->arena, struct str, value->json->len);
    for (size_t i = 0; i < value->json->len; i++) {
        struct key_value item = *value;
        item.json = &value->json->items[i];
        globs[i] = json_str(item.json);
        if (!globs[i].len)
            key_expected(&item, "a tool name or glob");
    }
    rule->tools = globs;
    rule->tool_count = value->json->len;
}

void allow_list_read(const struct key_value *value)
{
    static const struct config_key keys[] = {
        {.name = STR("users"), .read = read_ids},
        {.name = STR("groups"), .read = read_ids},
        {.name = STR("tools"), .read = read_tools},
        {.read = NULL},
    };
    struct config *config = value->base;
    if (!key_is_list(value, "a list of rules, { { users = {…}, groups = {…}, tools = {…} } }"))
        return;
    struct allow_rule *rules = ARENA_ARRAY(value->reader->arena, struct allow_rule, value->json->len);
    for (size_t i = 0; i < value->json->len; i++) {
        struct key_value item = key_item(value, &value->json->items[i], i);
        key_table_read(value->reader, keys, item.path, item.json, &rules[i]);
        rules[i].everyone = !json_get_text(item.json, "users") && !json_get_text(item.json, "groups");
    }
    config->allow = rules;
    config->allow_count = value->json->len;
}
