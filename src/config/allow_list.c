/* Rules read from the configuration: names become numbers at load, so that a check costs no look-up. */
#include "config/allow_list.h"

#include "base/arena.h"

#include <grp.h>
#include <pwd.h>

#define ALLOW_NAME_ROOM 16384u /* getpwnam_r, getgrnam_r */

typedef bool find_id(const char *name, uint32_t *id);

static bool find_user(const char *name, uint32_t *id)
{
    char room[ALLOW_NAME_ROOM];
    struct passwd entry, *found = NULL;
    if (getpwnam_r(name, &entry, room, sizeof(room), &found) != 0 || !found)
        return false;
    *id = entry.pw_uid;
    return true;
}

static bool find_group(const char *name, uint32_t *id)
{
    char room[ALLOW_NAME_ROOM];
    struct group entry, *found = NULL;
    if (getgrnam_r(name, &entry, room, sizeof(room), &found) != 0 || !found)
        return false;
    *id = entry.gr_gid;
    return true;
}

/* A name that nobody has is an error: a rule that silently matches no one would be worse than none. */
static bool read_id(struct settings *settings, struct str path, const char *what, const struct json *value,
                    find_id *find, uint32_t *id)
{
    int64_t n;
    if (json_int(value, &n) && n >= 0 && n < UINT32_MAX) {
        *id = (uint32_t)n;
        return true;
    }
    struct str name = json_str(value);
    if (!name.len) {
        key_table_expected(settings, path, what, value);
        return false;
    }
    if (find(arena_dup(settings->arena, name).at, id))
        return true;
    key_table_error(settings, path, "no such name on this host: '" STR_FMT "'; expected %s", STR_ARG(name),
                    what);
    return false;
}

static uint32_t *read_ids(struct settings *settings, struct str path, const char *what,
                          const struct json *value, find_id *find, size_t *count)
{
    if (!key_table_list(settings, path, what, value))
        return NULL;
    uint32_t *ids = ARENA_ARRAY(settings->arena, uint32_t, value->len);
    for (size_t i = 0; i < value->len; i++)
        if (read_id(settings, path, what, &value->items[i], find, &ids[*count]))
            ++*count;
    return ids;
}

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t),
               "uids and gids are read as 32-bit numbers");

static void read_users(struct settings *settings, const struct setting *setting, struct str path,
                       const struct json *value, void *into)
{
    (void)setting;
    struct allow_rule *rule = into;
    rule->uids =
        read_ids(settings, path, "a list of user names or uid numbers", value, find_user, &rule->uid_count);
}

static void read_groups(struct settings *settings, const struct setting *setting, struct str path,
                        const struct json *value, void *into)
{
    (void)setting;
    struct allow_rule *rule = into;
    rule->gids =
        read_ids(settings, path, "a list of group names or gid numbers", value, find_group, &rule->gid_count);
}

static void read_tool_globs(struct settings *settings, const struct setting *setting, struct str path,
                            const struct json *value, void *into)
{
    (void)setting;
    struct allow_rule *rule = into;
    if (!key_table_list(settings, path, "a list of tool names or globs such as \"get_*\"", value))
        return;
    struct str *globs = ARENA_ARRAY(settings->arena, struct str, value->len);
    for (size_t i = 0; i < value->len; i++) {
        globs[i] = json_str(&value->items[i]);
        if (!globs[i].len)
            key_table_expected(settings, path, "a tool name or glob", &value->items[i]);
    }
    rule->tools = globs;
    rule->tool_count = value->len;
}

static const struct setting allow_keys[] = {
    {.name = STR("users"), .read = read_users},
    {.name = STR("groups"), .read = read_groups},
    {.name = STR("tools"), .read = read_tool_globs},
    {.read = NULL},
};

void allow_list_read(struct settings *settings, const struct setting *setting, struct str path,
                     const struct json *value, void *into)
{
    (void)setting;
    struct config *config = into;
    if (!key_table_list(settings, path, "a list of rules, { { users = {…}, groups = {…}, tools = {…} } }",
                        value))
        return;
    struct allow_rule *rules = ARENA_ARRAY(settings->arena, struct allow_rule, value->len);
    for (size_t i = 0; i < value->len; i++) {
        const struct json *item = &value->items[i];
        struct str name = arena_printf(settings->arena, STR_FMT "[%zu]", STR_ARG(path), i + 1);
        key_table_read(settings, allow_keys, name, item, &rules[i]);
        rules[i].everyone = !json_get_text(item, "users") && !json_get_text(item, "groups");
    }
    config->allow = rules;
    config->allow_count = value->len;
}
