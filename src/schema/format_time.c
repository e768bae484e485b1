/* Dates, times and durations by RFC 3339. */
#include "schema/format_checks.h"

#define DAYS_TO_1970 719468 /* from 0000-03-01 */

/* `n` digits at `at` as a number in [low, high], or -1. */
static int number(struct str s, size_t at, size_t n, int low, int high)
{
    int value = 0;
    if (at + n > s.len)
        return -1;
    for (size_t i = at; i < at + n; i++) {
        if (!ascii_is_digit(s.at[i]))
            return -1;
        value = value * 10 + (s.at[i] - '0');
    }
    return value >= low && value <= high ? value : -1;
}

bool format_is_date(struct str s)
{
    if (s.len != 10 || s.at[4] != '-' || s.at[7] != '-')
        return false;
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = number(s, 0, 4, 0, 9999), month = number(s, 5, 2, 1, 12);
    if (year < 0 || month < 0)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return number(s, 8, 2, 1, days[month - 1] + (month == 2 && leap)) > 0;
}

/* Minutes east of UTC of "Z", "+hh:mm" or "-hh:mm"; false for anything else. */
static bool read_zone(struct str s, int *minutes)
{
    *minutes = 0;
    if (s.len == 1)
        return s.at[0] == 'Z' || s.at[0] == 'z';
    if (s.len != 6 || (s.at[0] != '+' && s.at[0] != '-') || s.at[3] != ':')
        return false;
    int hour = number(s, 1, 2, 0, 23), minute = number(s, 4, 2, 0, 59);
    *minutes = (hour * 60 + minute) * (s.at[0] == '-' ? -1 : 1);
    return hour >= 0 && minute >= 0;
}

/* "hh:mm:ss" with an optional fraction; returns the bytes read, 0 for anything else. */
static size_t read_clock(struct str s, int *minutes, int *second)
{
    if (s.len < 8 || s.at[2] != ':' || s.at[5] != ':')
        return 0;
    int hour = number(s, 0, 2, 0, 23), minute = number(s, 3, 2, 0, 59);
    size_t end = 8;
    if (end < s.len && s.at[end] == '.')
        for (end++; end < s.len && ascii_is_digit(s.at[end]);)
            end++;
    *second = number(s, 6, 2, 0, 60);
    *minutes = hour * 60 + minute;
    return hour < 0 || minute < 0 || *second < 0 || end == 9 ? 0 : end;
}

bool format_is_time(struct str s)
{
    int minutes, second, east;
    size_t zone = read_clock(s, &minutes, &second);
    if (!zone || !read_zone(str_from(s, zone), &east))
        return false;
    int utc = (minutes - east + 2 * 1440) % 1440;
    return second < 60 || utc == 1439;
}

bool format_is_date_time(struct str s)
{
    return s.len > 11 && (s.at[10] == 'T' || s.at[10] == 't') && format_is_date((struct str){s.at, 10}) &&
           format_is_time(str_from(s, 11));
}

bool format_is_local_date_time(struct str s)
{
    int minutes, second;
    return s.len > 11 && (s.at[10] == 'T' || s.at[10] == 't') && format_is_date((struct str){s.at, 10}) &&
           read_clock(str_from(s, 11), &minutes, &second) == s.len - 11 && second < 60;
}

int64_t format_local_seconds(struct str s)
{
    int year = number(s, 0, 4, 0, 9999), month = number(s, 5, 2, 1, 12), day = number(s, 8, 2, 1, 31);
    int minutes = 0, second = 0;
    read_clock(str_from(s, 11), &minutes, &second);
    /* Days of the Gregorian calendar, with the year beginning in March. */
    int64_t y = month < 3 ? year - 1 : year, m = (month + 9) % 12;
    int64_t days = 365 * y + (y >= 0 ? y / 4 - y / 100 + y / 400 : -1) + (153 * m + 2) / 5 + day - 1;
    return (days - DAYS_TO_1970) * 86400 + minutes * 60 + second;
}

/* Digits and a unit, repeated; units follow each other as in `units`. Returns the bytes read, 0 for none. */
static size_t read_run(struct str s, const char *units)
{
    size_t at = 0;
    const char *next = NULL;
    for (;;) {
        size_t digits = at;
        while (digits < s.len && ascii_is_digit(s.at[digits]))
            digits++;
        const char *unit = digits > at && digits < s.len && s.at[digits] ? strchr(units, s.at[digits]) : NULL;
        if (!unit || (next && unit != next))
            return at;
        next = unit + 1;
        at = digits + 1;
    }
}

bool format_is_duration(struct str s)
{
    if (s.len < 2 || s.at[0] != 'P')
        return false;
    struct str rest = str_from(s, 1);
    size_t weeks = read_run(rest, "W");
    if (weeks && weeks == rest.len)
        return true;
    size_t date = read_run(rest, "YMD");
    rest = str_from(rest, date);
    if (rest.len == 0)
        return date > 0;
    if (rest.at[0] != 'T' || rest.len < 2)
        return false;
    return read_run(str_from(rest, 1), "HMS") == rest.len - 1;
}
