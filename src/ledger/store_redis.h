/*
 * Sessions in a Redis that many daemons share (session_store.h). Each part of a session is a key; the hash
 * tag is base64url of the session's id, so that all are in one slot:
 *
 *   tg2:{B}s   core, string          tg2:{B}i   seen ids, string
 *   tg2:{B}j   journal, string       tg2:{B}d   details, hash
 *   tg2:{B}r   a bucket of rates, hash
 *   tg2:callid_key   the fleet's key for call ids
 *
 * A commit is one call of lua/ledger/commit.lua. While Redis is away a request ends at once as STORE_UNDONE.
 */
#ifndef TOOLGATE_LEDGER_STORE_REDIS_H
#define TOOLGATE_LEDGER_STORE_REDIS_H

#include "ledger/session_store.h"

struct ledger_status;
struct loop;
struct redis_address;

#define STORE_REDIS_KEY_BYTES 16u

struct redis_options {
    struct loop *loop;
    const struct redis_address *address; /* borrowed until the end */
    const char *password_file;           /* read at every connect; NULL: the address's */
    const char *name;                    /* CLIENT SETNAME: letters, digits, dashes */
    uint32_t timeout_ms;                 /* until an answer */
};

struct redis_hooks {
    void (*up)(void *owner);
    void (*away)(void *owner, const char *why);
};

/* Begins to connect; never fails. The hooks fire from the loop's turn, never
 * inside a call: `up` when requests are taken and the key for call ids is known (or could not be had, see
 * store_redis_key), `away` after each failure, also where it was never up. */
struct session_store *store_redis_new(const struct redis_options *options, const struct redis_hooks *hooks,
                                      void *owner);

/* The first attempt to connect has ended, one way or the other. */
bool store_redis_is_settled(const struct session_store *store);
/* Between `up` and `away`. */
bool store_redis_is_up(const struct session_store *store);

/* The key that all daemons of this Redis share. It is stored by the first that connects, and again by those
 * that know it where Redis lost its data. False: it was never reached, or would not give it; it is asked
 * again every second. */
bool store_redis_key(const struct session_store *store, unsigned char out[STORE_REDIS_KEY_BYTES]);

/* What the keys of a session have in common, "tg2:{B}", for messages. NUL-terminated. */
#define STORE_REDIS_STEM_BYTES 29u
void store_redis_stem(struct hash128 id, char out[STORE_REDIS_STEM_BYTES]);

/* As redis_cluster_status. */
void store_redis_status(const struct session_store *store, struct ledger_status *out);

#endif
