/* Dates of RFC 3339 ("2026-12-01"), and which offset from UTC a local time has by the system's tz database.
 */
#ifndef TOOLGATE_BASE_DATE_H
#define TOOLGATE_BASE_DATE_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

/* The seconds since 1970 at which that day begins in UTC. False: no date of the calendar. */
bool date_read(struct str text, int64_t *seconds);

/* RFC 3339, and what other systems make of it. Reads "2026-11-22T09:00:00.123456Z" from the beginning of
 * `text`, which then is the rest. Seconds, their fraction (after a point or a comma) and the zone ("+01:00",
 * "+0100", "+01") may be missing; without a zone it is UTC. 24:00 is the end of the day. The time since 1970
 * in seconds and nanoseconds, or in microseconds. False: it is no time. */
bool time_read(struct str *text, int64_t *seconds, int64_t *ns);
bool timestamp_read(struct str *text, int64_t *us);

struct arena;
struct time_zone;

#define TIME_ZONE_FILE_MAX_BYTES 65536u
#define TIME_ZONE_NAME_MAX_BYTES 64u

/* Reads "Europe/Berlin" below $TZDIR, or /usr/share/zoneinfo. ERR_NOT_FOUND: there is no such zone;
 * ERR_PARSE: its file cannot be understood. */
enum err time_zone_load(struct arena *arena, struct str name, const struct time_zone **out, struct why *why);

/* As it was loaded. */
struct str time_zone_name(const struct time_zone *zone);

/* Writes the offsets (seconds east of UTC) that a local time has, given as seconds since 1970-01-01T00:00:00
 * of that zone's clocks, the earlier moment first, and returns how many: 0 in the hour that is skipped when
 * the clocks go forward, 2 in the hour that is repeated when they go back, else 1. */
unsigned time_zone_offsets(const struct time_zone *zone, int64_t local, int32_t offsets[2]);

#endif
