/*
 * One Redis (or Valkey): alone, watched by sentinels, or a cluster, whose nodes are met as they are named.
 * Sends commands to whoever holds their slot, follows redirections, loads scripts again that a server has
 * lost, and reports each command's end, in time. What to do while Redis is away is for others to decide.
 */
#ifndef TOOLGATE_LEDGER_REDIS_CLUSTER_H
#define TOOLGATE_LEDGER_REDIS_CLUSTER_H

#include "ledger/redis_address.h"
#include "ledger/redis_handshake.h"

struct loop;
struct redis_cluster;
struct ledger_status;

#define REDIS_UNSENT_MAX_BYTES 4194304u /* of one connection; what would be more is not sent */
#define REDIS_RETRY_FIRST_MS   20u      /* doubled with each failure in a row, and jittered by half */
#define REDIS_RETRY_LAST_MS    1000u
#define REDIS_HANDSHAKE_MS     2000u /* from connecting until it takes commands */

struct redis_options {
    struct loop *loop;
    const struct redis_address *address; /* borrowed until the end */
    const char *password_file;           /* read at every connect; NULL: the address's */
    const char *name;                    /* CLIENT SETNAME: letters, digits, dashes */
    uint32_t timeout_ms;                 /* until an answer */
    struct redis_scripts *scripts;       /* borrowed until the end */
};

#define REDIS_NODES_MAX 64u /* of a cluster */
#define REDIS_HOPS_MAX  5u  /* redirections of one command */

/* From the loop's turn, never inside a redis_cluster_ function. */
struct redis_hooks {
    void (*up)(void *owner);
    void (*away)(void *owner, const char *why); /* also where it was never there */
};

struct redis_cluster *redis_cluster_new(const struct redis_options *options, const struct redis_hooks *hooks,
                                        void *owner);
/* No hook and no command's `ended` fires any more. */
void redis_cluster_free(struct redis_cluster *cluster);

/* The first attempt to connect has ended, one way or the other. */
bool redis_cluster_is_settled(const struct redis_cluster *cluster);
bool redis_cluster_is_up(const struct redis_cluster *cluster);

/* `ended` fires once, never inside this call. False: not sent, and it won't be; nobody is there to take it.
 */
bool redis_cluster_send(struct redis_cluster *cluster, struct redis_command *command);
/* The same for a command that belongs to no slot: to the server that is configured. */
bool redis_cluster_send_first(struct redis_cluster *cluster, struct redis_command *command);

/* Of the server that is configured, from its last handshake. */
const struct redis_facts *redis_cluster_facts(const struct redis_cluster *cluster);
/* Why it is away; "" while it is there. */
const char *redis_cluster_why_away(const struct redis_cluster *cluster);

/* Fills in what it knows of Redis and the way there. Borrowed until the next call of any function here. */
void redis_cluster_status(const struct redis_cluster *cluster, struct ledger_status *out);

#endif
