/*
 * Hears from a sentinel that another server is the master now. The old one
 * goes on taking writes for seconds, and forgets them when it learns of it:
 * it has to be left at once.
 */
#ifndef TOOLGATE_LEDGER_SENTINEL_SUBSCRIPTION_H
#define TOOLGATE_LEDGER_SENTINEL_SUBSCRIPTION_H

#include "ledger/redis_discovery.h"

struct sentinel_subscription;

#define SENTINEL_RETRY_MS 1000u /* from a sentinel that is lost to the next */

/* `moved` fires at most once for each sentinel_subscription_start, from the loop's turn. `address` is
 * borrowed. */
struct sentinel_subscription *sentinel_subscription_new(struct loop *loop,
                                                        const struct redis_address *address,
                                                        void (*moved)(void *owner), void *owner);
void sentinel_subscription_free(struct sentinel_subscription *subscription);

void sentinel_subscription_start(struct sentinel_subscription *subscription,
                                 const struct redis_place *master); /* the one that is ours now */
void sentinel_subscription_stop(struct sentinel_subscription *subscription);

#endif
