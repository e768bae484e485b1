/*
 * Redis comes and goes: since when, how often, why, and which of it is worth a
 * line in the log. Who comes and goes all the time gets a few lines, then one
 * in ten seconds that counts the others.
 */
#ifndef TOOLGATE_LEDGER_REDIS_OUTAGE_LOG_H
#define TOOLGATE_LEDGER_REDIS_OUTAGE_LOG_H

#include "base/str.h"

#include <stdint.h>

#define REDIS_OUTAGE_LOG_LINES     5u     /* of `ledger_away`, one after the other */
#define REDIS_OUTAGE_LOG_LINE_MS   10000u /* until there may be one more */
#define REDIS_OUTAGE_LOG_WHY_BYTES 512u

struct redis_outage_log { /* embedded; all zero to begin with */
    bool is_away, is_said;
    int64_t since_ms;
    uint64_t outages;
    uint64_t unsaid; /* outages since the last line */
    uint32_t lines_used;
    int64_t refilled_ms;
    char why[REDIS_OUTAGE_LOG_WHY_BYTES]; /* as it was said last */
};

/* After each failure, also where it has been away; logged where an outage begins or its reason is another. */
void redis_outage_log_away(struct redis_outage_log *outage_log, struct str address, const char *why,
                           const char *on_outage);
/* `sessions` are to be told. */
void redis_outage_log_back(struct redis_outage_log *outage_log, uint64_t sessions);

#endif
