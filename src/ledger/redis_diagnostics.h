/*
 * What an operator should know of a Redis: warnings about one that works (it may evict keys, it is slow),
 * checked at each connect, logged when new, and shown in the daemon's status; and hints how to fix what keeps
 * it away.
 */
#ifndef TOOLGATE_LEDGER_REDIS_DIAGNOSTICS_H
#define TOOLGATE_LEDGER_REDIS_DIAGNOSTICS_H

#include "ledger/redis_handshake.h"

#include <stddef.h>

#define REDIS_DIAGNOSTICS_MAX       4u
#define REDIS_DIAGNOSTICS_BYTES     256u
#define REDIS_DIAGNOSTICS_SLOW_PART 4u /* a write that takes this part of timeout_ms is slow */

struct redis_diagnostics {
    size_t count;
    const char *events[REDIS_DIAGNOSTICS_MAX];                 /* "redis_eviction_enabled" … */
    char said[REDIS_DIAGNOSTICS_MAX][REDIS_DIAGNOSTICS_BYTES]; /* what it is, and the fix */
};

/* Logs what `diagnostics` did not hold yet. */
void redis_diagnostics_run(struct redis_diagnostics *diagnostics, const struct redis_facts *facts,
                           uint32_t timeout_ms);

/* The reason for which Redis is away, and behind it how to fix that, if it is known. */
void redis_diagnostics_add_hint(const char *why, char *out, size_t size);

/* What a server has against our AUTH, without our password, which may be empty: of a command that it does not
 * know Redis repeats the arguments, cut at 128 bytes. They go as a whole, since half a password is not known
 * for one; elsewhere it is masked. */
void redis_redact(const char *said, struct str password, char *out, size_t size);

#endif
