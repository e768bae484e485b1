/* Dates of RFC 3339: "2026-12-01". */
#ifndef TOOLGATE_BASE_DATE_H
#define TOOLGATE_BASE_DATE_H

#include "base/str.h"

#include <stdint.h>

/* The seconds since 1970 at which that day begins in UTC. False: no date of the calendar. */
bool date_read(struct str text, int64_t *seconds);

#endif
