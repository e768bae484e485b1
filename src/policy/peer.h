/* The user at the other end of a connection, as the kernel reports it, and the tools, prompts and resources
 * that `allow` grants to that user. */
#ifndef TOOLGATE_POLICY_PEER_H
#define TOOLGATE_POLICY_PEER_H

#include "policy/config.h"

#define PEER_GROUPS_MAX    64
#define PEER_SERVERS_BYTES 64u

struct peer {
    uid_t uid;
    pid_t pid;
    gid_t groups[PEER_GROUPS_MAX]; /* primary first, then those of the user database */
    size_t group_count;
    char user[64]; /* the name, or the number in decimal */
    char
        servers[PEER_SERVERS_BYTES]; /* only what this file of mcp_config has exists for it; "": everything */
    bool is_example;                 /* made by peer_init_example: `allow` grants it every tool */
};

/* Looks up name and groups; an unknown uid is no error. */
void peer_init(struct peer *peer, uid_t uid, gid_t gid, pid_t pid);

/* A user of an example, who need not exist on this host. */
void peer_init_example(struct peer *peer, struct str user);

/* A tool that a peer may not call does not exist for it. */
bool peer_may_connect(const struct config *config, const struct peer *peer);
bool peer_may_call(const struct config *config, const struct peer *peer, struct str tool);
bool peer_may_get(const struct config *config, const struct peer *peer, struct str prompt);
bool peer_may_read(const struct config *config, const struct peer *peer, struct str uri);
bool peer_may_read_some(const struct config *config, const struct peer *peer);
bool peer_has_resource_globs(const struct config *config, const struct peer *peer); /* they decide for it */

/* Whether what this upstream offers exists for the peer, which may have asked for one file's servers. */
bool peer_sees_upstream(const struct config *config, const struct peer *peer, struct str upstream);

/* Root, and the daemon's own user unless the configuration names `operators` instead: who may approve what a
 * policy asks about, accept definitions, reload, and see and touch other users' sessions. */
bool peer_is_operator(const struct config *config, const struct peer *peer);

#endif
