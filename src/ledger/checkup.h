/*
 * What an operator should know of a Redis that works: that it may forget, that
 * it is slow. Looked at whenever a connection is made, logged when it is new,
 * and told in the daemon's status.
 */
#ifndef TOOLGATE_LEDGER_CHECKUP_H
#define TOOLGATE_LEDGER_CHECKUP_H

#include "ledger/greeting.h"

#include <stddef.h>

#define CHECKUP_MAX       4u
#define CHECKUP_BYTES     256u
#define CHECKUP_SLOW_PART 4u /* a write that takes this part of timeout_ms is slow */

struct checkup {
    size_t count;
    const char *events[CHECKUP_MAX];       /* "redis_eviction_enabled" … */
    char said[CHECKUP_MAX][CHECKUP_BYTES]; /* what it is, and the mend */
};

/* Logs what `checkup` did not hold yet. */
void checkup_make(struct checkup *checkup, const struct server_facts *facts, uint32_t timeout_ms);

#endif
