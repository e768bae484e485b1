/* One reader for decision logs and for recordings of other systems. */
#include "replay/timestamp.h"

#include <string.h>
#include <time.h>

/* A number of `count` digits from `least` to `most`. */
static bool read_digits(struct str *text, size_t count, int least, int most, int *out)
{
    *out = 0;
    if (text->len < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!ascii_is_digit(text->at[i]))
            return false;
        *out = *out * 10 + (text->at[i] - '0');
    }
    *text = str_from(*text, count);
    return *out >= least && *out <= most;
}

static bool read_mark(struct str *text, const char *marks)
{
    if (!text->len || !strchr(marks, text->at[0]) || !text->at[0])
        return false;
    *text = str_from(*text, 1);
    return true;
}

/* Digits after the point, of which six count. */
static int64_t read_fraction(struct str *text)
{
    int64_t us = 0;
    int digits = 0;
    while (text->len && ascii_is_digit(text->at[0])) {
        if (digits++ < 6)
            us = us * 10 + (text->at[0] - '0');
        *text = str_from(*text, 1);
    }
    for (; digits < 6; digits++)
        us *= 10;
    return us;
}

/* "Z", "+01:00", "+0100"; anything else is left, and the time is UTC. */
static int read_offset(struct str *text)
{
    struct str rest = *text;
    int hours, minutes;
    bool west = rest.len && rest.at[0] == '-';
    if (read_mark(text, "Zz") || !read_mark(&rest, "+-") || !read_digits(&rest, 2, 0, 23, &hours))
        return 0;
    read_mark(&rest, ":");
    if (!read_digits(&rest, 2, 0, 59, &minutes))
        return 0;
    *text = rest;
    return (west ? -1 : 1) * (hours * 60 + minutes);
}

bool timestamp_read(struct str *text, int64_t *us)
{
    struct tm tm = {0};
    if (!read_digits(text, 4, 1, 9999, &tm.tm_year) || !read_mark(text, "-") ||
        !read_digits(text, 2, 1, 12, &tm.tm_mon) || !read_mark(text, "-") ||
        !read_digits(text, 2, 1, 31, &tm.tm_mday) || !read_mark(text, "Tt ") ||
        !read_digits(text, 2, 0, 23, &tm.tm_hour) || !read_mark(text, ":") ||
        !read_digits(text, 2, 0, 59, &tm.tm_min))
        return false;
    if (read_mark(text, ":") && !read_digits(text, 2, 0, 60, &tm.tm_sec))
        return false;
    int64_t fraction = read_mark(text, ".,") ? read_fraction(text) : 0;
    int offset = read_offset(text);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *us = ((int64_t)timegm(&tm) - offset * 60) * 1000000 + fraction;
    return true;
}
