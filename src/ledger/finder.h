/*
 * Where to connect to now: a path as it is, a host's address from the
 * resolver, a master's from its sentinels. Names are looked up aside, so that
 * a resolver that is slow holds up nobody.
 */
#ifndef TOOLGATE_LEDGER_FINDER_H
#define TOOLGATE_LEDGER_FINDER_H

#include "base/err.h"
#include "ledger/address.h"

struct finder;
struct loop;
struct redisAsyncContext;

#define FINDER_TIMEOUT_MS 1000u /* of one name, and of one sentinel */
#define FINDER_HOST_BYTES 64u   /* a numeric address */

/* Numeric; port 0: `host` is a socket's path. */
struct place {
    char host[108];
    uint16_t port;
};

/* Fires once for each finder_start, never inside it. `place` NULL: not found, `why` says so. */
typedef void finder_found(void *owner, const struct place *place, const struct why *why);

/* `address` is borrowed. */
struct finder *finder_new(struct loop *loop, const struct address *address, finder_found *found, void *owner);
void finder_start(struct finder *finder); /* not while one is under way */
void finder_stop(struct finder *finder);  /* `found` does not fire any more; may be started again */
/* The sentinel that answered last. */
const struct place *finder_sentinel(const struct finder *finder);
/* Says to a sentinel who we are; false: the address does not tell, and `answered` does not fire. */
bool finder_introduce(const struct address *address, struct redisAsyncContext *context,
                      void (*answered)(struct redisAsyncContext *context, void *reply, void *unused));
void finder_free(struct finder *finder);

#endif
