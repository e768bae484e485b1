/*
 * Who is on the other end of a connection, by the kernel's word, and which
 * tools exist for them.
 */
#ifndef TOOLGATE_CONFIG_PEER_H
#define TOOLGATE_CONFIG_PEER_H

#include "config/config.h"

#define PEER_GROUPS_MAX 64

struct peer {
    uid_t uid;
    pid_t pid;
    gid_t groups[PEER_GROUPS_MAX]; /* primary first, then what the user database says */
    size_t group_count;
    char user[64];   /* the name, or the number in decimal */
    bool is_example; /* of an example: `allow`, which is about this machine's users, does not concern it */
};

/* Fills in name and groups; an unknown uid is no error. */
void peer_init(struct peer *peer, uid_t uid, gid_t gid, pid_t pid);

/* A user by name alone, as examples tell of one. */
void peer_init_example(struct peer *peer, struct str user);

/* May this peer connect at all; does this tool exist for it. */
bool peer_may_connect(const struct config *config, const struct peer *peer);
bool peer_may_call(const struct config *config, const struct peer *peer, struct str tool);

#endif
