/* Names and groups come from the user database, rights from `allow`. */
#include "config/peer.h"

#include "base/hash.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>

#define PEER_NAME_ROOM 16384u /* getpwuid_r */

void peer_init(struct peer *peer, uid_t uid, gid_t gid, pid_t pid)
{
    *peer = (struct peer){.uid = uid, .pid = pid, .groups = {gid}, .group_count = 1};
    char room[PEER_NAME_ROOM];
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

bool peer_may_connect(const struct config *config, const struct peer *peer)
{
    for (size_t i = 0; i < config->allow_count; i++)
        if (matches_peer(&config->allow[i], peer))
            return true;
    return config->allow_count == 0;
}

bool peer_may_call(const struct config *config, const struct peer *peer, struct str tool)
{
    bool granted = config->allow_count == 0 || peer->is_example;
    for (size_t i = 0; i < config->allow_count && !granted; i++) {
        const struct allow_rule *rule = &config->allow[i];
        if (!matches_peer(rule, peer))
            continue;
        granted = rule->tool_count == 0;
        for (size_t n = 0; n < rule->tool_count && !granted; n++)
            granted = str_glob(rule->tools[n], tool);
    }
    return granted;
}
