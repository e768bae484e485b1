/* Names and groups come from the user database, rights from `allow`. */
#include "policy/peer.h"

#include "policy/config_internal.h"

#include "base/arena.h"
#include "base/hash.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#define NAME_ROOM 16384u /* getpwuid_r, getpwnam_r, getgrnam_r */

void peer_init(struct peer *peer, uid_t uid, gid_t gid, pid_t pid)
{
    *peer = (struct peer){.uid = uid, .pid = pid, .groups = {gid}, .group_count = 1};
    char room[NAME_ROOM];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(uid, &entry, room, sizeof(room), &found) != 0 || !found) {
        snprintf(peer->user, sizeof(peer->user), "%u", (unsigned)uid);
        return;
    }
    snprintf(peer->user, sizeof(peer->user), "%s", entry.pw_name);
    /* Groups beyond the limit are dropped, by which a peer can only lose rights. */
    int count = PEER_GROUPS_MAX;
    if (getgrouplist(entry.pw_name, gid, peer->groups, &count) < 0)
        count = PEER_GROUPS_MAX;
    peer->group_count = (size_t)count;
}

static bool matches_peer(const struct allow_rule *rule, const struct peer *peer)
{
    bool matches = rule->everyone;
    for (size_t i = 0; !matches && i < rule->uid_count; i++)
        matches = rule->uids[i] == peer->uid;
    for (size_t i = 0; !matches && i < rule->gid_count; i++)
        for (size_t n = 0; !matches && n < peer->group_count; n++)
            matches = peer->groups[n] == rule->gids[i];
    return matches;
}

/* A uid that differs for each name and is no real one. */
void peer_init_example(struct peer *peer, struct str user)
{
    *peer = (struct peer){.uid = (uid_t)(0x80000000u | (uint32_t)hash_stable(user).low), .is_example = true};
    snprintf(peer->user, sizeof(peer->user), STR_FMT, STR_ARG(user));
}

/* The next rule of `allow` for this peer, from *at on; NULL: none exists. */
static const struct allow_rule *next_rule(const struct config *config, const struct peer *peer, size_t *at)
{
    while (*at < config->allow_count)
        if (matches_peer(&config->allow[(*at)++], peer))
            return &config->allow[*at - 1];
    return NULL;
}

bool peer_may_connect(const struct config *config, const struct peer *peer)
{
    size_t at = 0;
    return !config->allow_count || next_rule(config, peer, &at);
}

bool peer_is_operator(const struct config *config, const struct peer *peer)
{
    if (peer->uid == 0)
        return true;
    return config->operators ? matches_peer(config->operators, peer) : peer->uid == geteuid();
}

/* `member`: the offset of the globs in a rule. */
static bool may(const struct config *config, const struct peer *peer, size_t member, struct str name)
{
    bool granted = config->allow_count == 0;
    const struct allow_rule *rule;
    for (size_t at = 0; !granted && (rule = next_rule(config, peer, &at));) {
        const struct name_globs *globs = (const struct name_globs *)((const char *)rule + member);
        /* A rule that names tools and says nothing of prompts or resources was written for tools alone. */
        granted = globs->given ? name_globs_fit(globs, name) : !rule->tools.given;
    }
    return granted;
}

bool peer_may_call(const struct config *config, const struct peer *peer, struct str tool)
{
    return !config->allow_count || peer->is_example ||
           may(config, peer, offsetof(struct allow_rule, tools), tool);
}

bool peer_sees_upstream(const struct config *config, const struct peer *peer, struct str upstream)
{
    if (!peer->servers[0])
        return true;
    const struct upstream_spec *spec = config_find_upstream(config, upstream);
    struct str from = spec ? spec->from : STR_NONE;
    if (!from.len)
        return false;
    const char *slash = memrchr(from.at, '/', from.len);
    from = slash ? str_from(from, (size_t)(slash + 1 - from.at)) : from;
    struct str stem = {from.at, from.len > 5 ? from.len - 5 : 0}; /* without ".json" */
    return stem.len && str_is(stem, peer->servers) && str_is(str_from(from, stem.len), ".json");
}

bool peer_may_get(const struct config *config, const struct peer *peer, struct str prompt)
{
    return may(config, peer, offsetof(struct allow_rule, prompts), prompt);
}

bool peer_may_read(const struct config *config, const struct peer *peer, struct str uri)
{
    return may(config, peer, offsetof(struct allow_rule, resources), uri);
}

bool peer_may_read_some(const struct config *config, const struct peer *peer)
{
    bool granted = config->allow_count == 0;
    const struct allow_rule *rule;
    for (size_t at = 0; !granted && (rule = next_rule(config, peer, &at));)
        granted = rule->resources.given ? rule->resources.count > 0 : !rule->tools.given;
    return granted;
}

bool peer_has_resource_globs(const struct config *config, const struct peer *peer)
{
    const struct allow_rule *rule;
    for (size_t at = 0; (rule = next_rule(config, peer, &at));)
        if (rule->resources.given)
            return true;
    return false;
}

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

/* Users or groups. An unknown name is an error: a rule that silently matches no user would be worse. */
static void read_ids(const struct key_value *value)
{
    struct config_reader *reader = value->reader;
    struct allow_rule *rule = value->base;
    bool user = strcmp(value->key->name, "users") == 0;
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

/* {} means none; for tools it is an error, as it surely means something else. */
static void read_globs(const struct key_value *value)
{
    const char *what = value->key->expected;
    bool may_be_empty = value->key->offset != offsetof(struct allow_rule, tools);
    bool list = value->json->type == JSON_ARRAY || value->json->type == JSON_OBJECT;
    struct name_globs *out = key_target(value);
    if (may_be_empty && list && !value->json->len) {
        *out = (struct name_globs){.given = true};
        return;
    }
    if (!key_is_list(value, what))
        return;
    struct str *globs = ARENA_ARRAY(value->reader->arena, struct str, value->json->len);
    for (size_t i = 0; i < value->json->len; i++) {
        struct key_value item = *value;
        item.json = &value->json->items[i];
        globs[i] = json_str(item.json);
        if (!globs[i].len)
            key_expected(&item, what);
        key_refuse_negation(&item, globs[i]);
    }
    *out = (struct name_globs){globs, value->json->len, true};
}

#define GLOBS(member, words)                                                                                 \
#member, .offset = offsetof(struct allow_rule, member), EXPECTED(words), READ_KEY(read_globs)
static const struct field allow_fields[] = {
    {"users", READ_KEY(read_ids)},
    {"groups", READ_KEY(read_ids)},
    {GLOBS(tools, "a list of tool names or globs such as \"get_*\"")},
    {GLOBS(prompts, "a list of prompt names or globs such as \"review_*\"")},
    {GLOBS(resources, "a list of URIs or globs such as \"file:///srv/docs/*\"")},
};
const struct field_table peer_allow_table = KEYS(allow_fields);

void peer_read_allow(const struct key_value *value)
{
    struct config *config = value->base;
    if (!key_is_list(value, "a list of rules, { { users = {…}, groups = {…}, tools = {…} } }"))
        return;
    struct allow_rule *rules = ARENA_ARRAY(value->reader->arena, struct allow_rule, value->json->len);
    for (size_t i = 0; i < value->json->len; i++) {
        struct key_value item = key_item(value, &value->json->items[i], i);
        key_table_read(value->reader, &peer_allow_table, item.path, item.json, &rules[i]);
        rules[i].everyone = !json_get_text(item.json, "users") && !json_get_text(item.json, "groups");
    }
    config->allow = rules;
    config->allow_count = value->json->len;
}

static const struct field operators_fields[] = {{"users", READ_KEY(read_ids)},
                                                {"groups", READ_KEY(read_ids)}};
const struct field_table peer_operators_table = KEYS(operators_fields);

/* An empty table names no user: then only root is one. */
void peer_read_operators(const struct key_value *value)
{
    struct config *config = value->base;
    struct allow_rule *rule = ARENA_NEW(value->reader->arena, struct allow_rule);
    key_table_read(value->reader, &peer_operators_table, value->path, value->json, rule);
    config->operators = rule;
}
