/*
 * The connection to one server: made, on_handshake_over, kept, given up when it stalls,
 * made anew after a pause that grows.
 *
 *   off ─▶ discovery ─▶ handshake ─▶ up ─▶ leaving ─▶ off …
 *    ▲________│___________│________│  (lost, silent for too long, useless)
 */
#ifndef TOOLGATE_LEDGER_REDIS_CONNECTION_H
#define TOOLGATE_LEDGER_REDIS_CONNECTION_H

#include "ledger/redis_handshake.h"
#include "ledger/redis_address.h"
#include "ledger/redis_command.h"

struct loop;
struct redis_connection;
struct redis_place;

#define REDIS_TIMEOUT_MS       50u
#define REDIS_UNSENT_MAX_BYTES 4194304u /* of one connection; what would be more is not sent */
#define REDIS_RETRY_FIRST_MS   20u      /* doubled with each failure in a row, and jittered by half */
#define REDIS_RETRY_LAST_MS    1000u
#define REDIS_HANDSHAKE_MS     2000u /* from connecting until it takes commands */
#define REDIS_OLDEST_VERSION   6     /* SET … KEEPTTL */

struct redis_options {
    struct loop *loop;
    const struct redis_address *address; /* borrowed until the end */
    const char *password_file;           /* read at every connect; NULL: the address's */
    const char *name;                    /* CLIENT SETNAME: letters, digits, dashes */
    uint32_t timeout_ms;                 /* until an answer */
    struct redis_scripts *scripts;       /* borrowed until the end */
};

/* What all nodes of one Redis have in common. None of the hooks fires inside a node_ function. */
struct redis_connection_common {
    const struct redis_options *options;
    void *owner;
    void (*up)(void *owner, struct redis_connection *node);
    void (*away)(void *owner, struct redis_connection *node,
                 const char *why); /* after each failure; then its jobs end */
    void (*answered)(void *owner, struct redis_connection *connection, struct redis_command *command,
                     const struct redis_value *value);
    void (*failed)(void *owner, struct redis_connection *connection, struct redis_command *command,
                   const char *error); /* the server's answer is an error */
    void (*lost)(void *owner, struct redis_command *command, bool sent);
};

enum redis_connection_state {
    CONNECTION_OFF,
    CONNECTION_DISCOVERY,
    CONNECTION_HANDSHAKE,
    CONNECTION_UP,
    CONNECTION_LEAVING
};

/* `address` is borrowed. `keeps` at it: connects by itself, and again; else when something is to be sent. */
struct redis_connection *redis_connection_new(struct redis_connection_common *common,
                                              const struct redis_address *address, bool keeps);
void redis_connection_free(struct redis_connection *node); /* its jobs are forgotten */

const struct redis_address *redis_connection_address(const struct redis_connection *node);
enum redis_connection_state redis_connection_state(const struct redis_connection *node);
const struct redis_facts *redis_connection_facts(const struct redis_connection *node);

/* The master that its sentinels named, and since when this daemon has used it. NULL: it was not found through
 * sentinels, or no master was reached yet. */
const struct redis_place *redis_connection_master(const struct redis_connection *node, int64_t *since_ms);

/* Begins to connect where it is off and not in its pause. */
void redis_connection_wake(struct redis_connection *node);

/* False: it takes nothing now. `waits`: also while it is being connected to. */
bool redis_connection_send(struct redis_connection *node, struct redis_command *command, bool waits);

/* It can't do its work now, but answers: what was sent is still awaited, then the connection is given up. */
void redis_connection_leave(struct redis_connection *node, const char *why);

/* Its scripts are gone (SCRIPT FLUSH): they are sent ahead of whatever comes next. */
void redis_connection_reload(struct redis_connection *node);

#endif
