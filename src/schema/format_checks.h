/* The checks behind the table of formats. Internal to this room. */
#ifndef TOOLGATE_SCHEMA_FORMAT_CHECKS_H
#define TOOLGATE_SCHEMA_FORMAT_CHECKS_H

#include "base/str.h"

/* By RFC 3339 and its appendix A; a leap second at the end of a UTC day only. */
bool format_is_date_time(struct str s);
bool is_date(struct str s);
bool is_time(struct str s);
bool format_is_duration(struct str s);

/* By RFC 3986, ASCII only. */
bool is_uri(struct str s);
bool format_is_uri_reference(struct str s);
bool format_is_ipv4(struct str s);
bool format_is_ipv6(struct str s);

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_alpha(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static inline bool is_hex(char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

#endif
