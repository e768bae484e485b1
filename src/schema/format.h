/* The formats that toolgate asserts, each with a check, a name for messages and an example. */
#ifndef TOOLGATE_SCHEMA_FORMAT_H
#define TOOLGATE_SCHEMA_FORMAT_H

#include "base/str.h"

#include <stdint.h>

struct format {
    const char *name;    /* "date-time" */
    const char *title;   /* "ISO datetime" */
    const char *example; /* "2026-05-03T00:00:00Z" */
    bool (*check)(struct str s);
    bool (*check_local)(struct str s); /* fits but for its time zone; NULL: the format has none */
    uint32_t steps;                    /* of a check, beside those of its bytes; see SCHEMA_MAX_STEPS */
};

/* NULL: unknown, or an annotation only. */
const struct format *format_find(struct str name);

/* A date-time that only lacks its zone; and its seconds since 1970 by the clocks of wherever it is. */
bool format_is_local_date_time(struct str s);
int64_t format_local_seconds(struct str s);

bool format_is_ipv6(struct str s);

#endif
