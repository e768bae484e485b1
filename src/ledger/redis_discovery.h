/*
 * Where to connect to now: a path as it is, a host's address from the
 * resolver, a master's from its sentinels. Names are looked up aside, so that
 * a resolver that is slow holds up nobody.
 */
#ifndef TOOLGATE_LEDGER_REDIS_DISCOVERY_H
#define TOOLGATE_LEDGER_REDIS_DISCOVERY_H

#include "base/err.h"
#include "ledger/redis_address.h"

struct redis_discovery;
struct loop;
#define REDIS_DISCOVERY_TIMEOUT_MS 1000u /* of one name, and of one sentinel */
#define REDIS_DISCOVERY_HOST_BYTES 64u   /* a numeric address */

/* Numeric; port 0: `host` is a socket's path. */
struct redis_place {
    char host[108];
    uint16_t port;
};

/* Fires once for each redis_discovery_start, never inside it. `place` NULL: not found, `why` says so. */
typedef void redis_discovery_found(void *owner, const struct redis_place *place, const struct why *why);

/* `address` is borrowed. */
struct redis_discovery *redis_discovery_new(struct loop *loop, const struct redis_address *address,
                                            redis_discovery_found *found, void *owner);
void redis_discovery_start(struct redis_discovery *discovery); /* not while one is under way */
void redis_discovery_free(struct redis_discovery *discovery);  /* `found` does not fire any more */

#endif
