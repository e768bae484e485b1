/* The longer checks behind the table of formats, and hex digits. Internal to this room. */
#ifndef TOOLGATE_SCHEMA_FORMAT_CHECKS_H
#define TOOLGATE_SCHEMA_FORMAT_CHECKS_H

#include "base/str.h"

/* By RFC 3339 and its appendix A; a leap second only at the end of a UTC day. */
bool format_is_date_time(struct str s);
bool format_is_date(struct str s);

/* A date-time that only lacks its zone; and its seconds since 1970 by the clocks of wherever it is. */
bool format_is_local_date_time(struct str s);
int64_t format_local_seconds(struct str s);

bool format_is_time(struct str s);
bool format_is_duration(struct str s);

bool format_is_ipv4(struct str s);
bool format_is_ipv6(struct str s);

static inline int hex_value(char c) /* -1: not a hex digit */
{
    return ascii_is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static inline bool is_hex(char c)
{
    return hex_value(c) >= 0;
}

#endif
