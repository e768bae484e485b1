/*
 * The connection to one server: made, greeted, kept, given up when it stalls,
 * made anew after a pause that grows.
 *
 *   off ─▶ finding ─▶ greeting ─▶ up ─▶ leaving ─▶ off …
 *    ▲________│___________│________│  (lost, silent for too long, useless)
 */
#ifndef TOOLGATE_LEDGER_NODE_H
#define TOOLGATE_LEDGER_NODE_H

#include "ledger/greeting.h"
#include "ledger/redis.h"

struct node;
struct redisReply;

/* What all nodes of one Redis have in common. None of the hooks fires inside a node_ function. */
struct node_common {
    const struct redis_options *options;
    struct script_names shas, functions;
    void *owner;
    void (*up)(void *owner, struct node *node);
    void (*away)(void *owner, struct node *node, const char *why); /* after each failure; then its jobs end */
    void (*answered)(void *owner, struct node *node, struct redis_job *job, const struct redisReply *reply);
    void (*lost)(void *owner, struct redis_job *job, bool sent);
};

enum node_state { NODE_OFF, NODE_FINDING, NODE_GREETING, NODE_UP, NODE_LEAVING };

/* `address` is borrowed. `keeps` at it: connects by itself, and again; else when something is to be sent. */
struct node *node_new(struct node_common *common, const struct address *address, bool keeps);
void node_free(struct node *node); /* its jobs are forgotten */

const struct address *node_address(const struct node *node);
enum node_state node_state(const struct node *node);
const struct server_facts *node_facts(const struct node *node);

/* Begins to connect where it is off and not in its pause. */
void node_wake(struct node *node);

/* False: it takes nothing now. `waits`: also while it is being connected to. */
bool node_send(struct node *node, struct redis_job *job, bool waits);

/* It can't do its work now, but answers: what was sent is still awaited, then the connection is given up. */
void node_leave(struct node *node, const char *why);

/* Its scripts are gone (SCRIPT FLUSH): they are sent ahead of whatever comes next. */
void node_reload(struct node *node);

#endif
