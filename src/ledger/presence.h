/*
 * Redis comes and goes: since when, how often, why, and which of it is worth a
 * line in the log. Who comes and goes all the time gets a few lines, then one
 * in ten seconds that counts the others.
 */
#ifndef TOOLGATE_LEDGER_PRESENCE_H
#define TOOLGATE_LEDGER_PRESENCE_H

#include "base/str.h"

#include <stdint.h>

#define PRESENCE_LINES     5u     /* of `ledger_away`, one after the other */
#define PRESENCE_LINE_MS   10000u /* until there may be one more */
#define PRESENCE_WHY_BYTES 512u

struct presence { /* embedded; all zero to begin with */
    bool is_away, is_said;
    int64_t since_ms;
    uint64_t outages;
    uint64_t unsaid; /* outages since the last line */
    uint32_t lines_used;
    int64_t refilled_ms;
    char why[PRESENCE_WHY_BYTES]; /* as it was said last */
};

/* After each failure, also where it has been away; logged where an outage begins or its reason is another. */
void presence_away(struct presence *presence, struct str address, const char *why, const char *on_outage);
/* `sessions` are to be told. */
void presence_back(struct presence *presence, uint64_t sessions);

#endif
