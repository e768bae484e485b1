/* The times of recordings: RFC 3339, and what other systems make of it. */
#ifndef TOOLGATE_REPLAY_TIMESTAMP_H
#define TOOLGATE_REPLAY_TIMESTAMP_H

#include "base/str.h"

#include <stdint.h>

/* Reads "2026-11-22T09:00:00.123456Z" from the beginning of `text`, which then is the rest. Seconds, their
 * fraction (after a point or a comma) and the zone ("+01:00", "+0100") may be missing; without a zone it is
 * UTC. `us`: microseconds since 1970. False: it is no time. */
bool timestamp_read(struct str *text, int64_t *us);

#endif
