/*
 * Dates of the Gregorian calendar, and compiled zone files (TZif, RFC 9636): a list of transitions, and a
 * POSIX rule for all times after the last one. libc has the same data, but only for the one zone of the
 * process.
 */
#include "base/date.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#define DATABASE     "/usr/share/zoneinfo"
#define DAY_S        86400
#define HEADER_BYTES 44u

/* ---- the calendar ---- */

#define DATE_BYTES 10u

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_of_month(int64_t year, int month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* In the Gregorian calendar; Howard Hinnant's algorithm, with years from March on. */
static int64_t days_since_1970(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* -1: they are not two digits. */
static int two_digits(const char *at)
{
    return ascii_is_digit(at[0]) && ascii_is_digit(at[1]) ? (at[0] - '0') * 10 + (at[1] - '0') : -1;
}

/* Computed here, as the C library takes ten times as long, and policies compare times in each call. */
bool date_read(struct str text, int64_t *seconds)
{
    if (text.len != DATE_BYTES || text.at[4] != '-' || text.at[7] != '-')
        return false;
    int century = two_digits(text.at), rest = two_digits(text.at + 2), year = century * 100 + rest;
    int month = two_digits(text.at + 5), day = two_digits(text.at + 8);
    if (century < 0 || rest < 0 || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month))
        return false;
    *seconds = days_since_1970(year, month, day) * DAY_S;
    return true;
}

/* ---- times ---- */

/* Two digits, up to a number. */
static bool read_two(struct str *text, int most, int *out)
{
    *out = text->len < 2 ? -1 : two_digits(text->at);
    if (*out >= 0)
        *text = str_from(*text, 2);
    return *out >= 0 && *out <= most;
}

static bool read_mark(struct str *text, const char *marks)
{
    if (!text->len || !strchr(marks, text->at[0]) || !text->at[0])
        return false;
    *text = str_from(*text, 1);
    return true;
}

bool time_read(struct str *text, int64_t *seconds, int64_t *ns)
{
    int hour, minute, second = 0, hours, minutes;
    *ns = 0;
    if (text->len < DATE_BYTES || !date_read((struct str){text->at, DATE_BYTES}, seconds))
        return false;
    *text = str_from(*text, DATE_BYTES);
    if (!read_mark(text, "Tt ") || !read_two(text, 24, &hour) || !read_mark(text, ":") ||
        !read_two(text, 59, &minute))
        return false;
    bool has_seconds = read_mark(text, ":");
    if (has_seconds && !read_two(text, 60, &second))
        return false;
    struct str rest = *text;
    if (has_seconds && read_mark(&rest, ".,") && rest.len &&
        ascii_is_digit(rest.at[0])) { /* nine digits of it count */
        int64_t unit = 100000000;
        for (; rest.len && ascii_is_digit(rest.at[0]); rest = str_from(rest, 1), unit /= 10)
            *ns += (rest.at[0] - '0') * unit;
        *text = rest;
    }
    *seconds += (hour * 60 + minute) * 60 + second;
    /* "Z", "+01:00", "+0100", "+01"; anything else is left, and the time is UTC. */
    rest = *text;
    bool west = rest.len && rest.at[0] == '-';
    if (!read_mark(text, "Zz") && read_mark(&rest, "+-") && read_two(&rest, 23, &hours)) {
        struct str behind = rest;
        bool colon = read_mark(&behind, ":"), whole = read_two(&behind, 59, &minutes);
        if (whole || !colon) {
            *text = whole ? behind : rest;
            *seconds -= (west ? -1 : 1) * (hours * 60 + (whole ? minutes : 0)) * 60;
        }
    }
    return hour < 24 || !(minute || second || *ns);
}

bool timestamp_read(struct str *text, int64_t *us)
{
    int64_t seconds, ns;
    bool is_time = time_read(text, &seconds, &ns);
    *us = is_time ? seconds * 1000000 + ns / 1000 : 0;
    return is_time;
}

/* ---- time zones ---- */

/* A day of the year and a time on it. */
struct yearly {
    char kind; /* 'M': weekday of a week of a month; 'J': day 1-365, never 29 February; 'N': day 0-365 */
    int month, week, day;
    int32_t time_s;
};

/* What holds after the last transition. */
struct zone_rule {
    int32_t standard_s, summer_s;
    bool summer; /* the two days below are given */
    struct yearly starts, ends;
};

struct time_zone {
    struct str name;
    const char *times, *types; /* in the file: 8 bytes for each transition, and a byte */
    const char *kinds;         /* 6 bytes: offset, summer, name */
    uint32_t count;
    struct zone_rule rule;
    bool ruled;
};

static int64_t big_endian(const char *at, size_t bytes)
{
    uint64_t n = (unsigned char)at[0] & 128 ? ~0ull : 0;
    for (size_t i = 0; i < bytes; i++)
        n = n << 8 | (unsigned char)at[i];
    return (int64_t)n;
}

static int64_t year_of(int64_t seconds)
{
    int64_t year = 1970 + seconds / (365 * DAY_S + DAY_S / 4);
    while (days_since_1970(year, 1, 1) * DAY_S > seconds)
        year--;
    while (days_since_1970(year + 1, 1, 1) * DAY_S <= seconds)
        year++;
    return year;
}

/* The moment by the zone's own clocks. */
static int64_t moment_in(const struct yearly *when, int64_t year)
{
    int64_t day = days_since_1970(year, when->kind == 'M' ? when->month : 1, 1);
    if (when->kind == 'N')
        day += when->day;
    if (when->kind == 'J')
        day += when->day - 1 + (is_leap(year) && when->day > 59);
    if (when->kind == 'M') {
        int first = (int)(((day + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
        int in_month = (when->day - first + 7) % 7 + 7 * (when->week - 1);
        day += in_month < days_of_month(year, when->month) ? in_month : in_month - 7; /* week 5: the last */
    }
    return day * DAY_S + when->time_s;
}

/* ---- the rule: CET-1CEST,M3.5.0,M10.5.0/3 ---- */

struct rule_text {
    struct str rest;
    bool bad;
};

static bool take(struct rule_text *t, char c)
{
    bool is = t->rest.len && t->rest.at[0] == c;
    if (is)
        t->rest = (struct str){t->rest.at + 1, t->rest.len - 1};
    return is;
}

static int take_number(struct rule_text *t, int least, int most)
{
    int n = 0;
    size_t digits = 0;
    while (digits < t->rest.len && digits < 4 && ascii_is_digit(t->rest.at[digits]))
        n = n * 10 + (t->rest.at[digits++] - '0');
    t->bad |= !digits || n < least || n > most;
    t->rest = (struct str){t->rest.at + digits, t->rest.len - digits};
    return n;
}

/* "3", "-1:30", "+5:45:10" */
static int32_t take_time(struct rule_text *t)
{
    int sign = take(t, '-') ? -1 : 1;
    if (sign == 1)
        take(t, '+');
    int seconds = take_number(t, 0, 167) * 3600;
    if (take(t, ':'))
        seconds += take_number(t, 0, 59) * 60;
    if (take(t, ':'))
        seconds += take_number(t, 0, 59);
    return sign * seconds;
}

/* "CET" or "<+03>" */
static void take_name(struct rule_text *t)
{
    bool quoted = take(t, '<');
    size_t n = 0;
    while (n < t->rest.len && (quoted ? t->rest.at[n] != '>' : ascii_is_letter(t->rest.at[n])))
        n++;
    t->rest = (struct str){t->rest.at + n, t->rest.len - n};
    t->bad |= n == 0 || (quoted && !take(t, '>'));
}

static struct yearly take_day(struct rule_text *t)
{
    struct yearly when = {.kind = 'N', .time_s = 2 * 3600};
    t->bad |= !take(t, ',');
    if (take(t, 'M')) {
        when.kind = 'M';
        when.month = take_number(t, 1, 12);
        t->bad |= !take(t, '.');
        when.week = take_number(t, 1, 5);
        t->bad |= !take(t, '.');
        when.day = take_number(t, 0, 6);
    } else if (take(t, 'J')) {
        when.kind = 'J';
        when.day = take_number(t, 1, 365);
    } else {
        when.day = take_number(t, 0, 365);
    }
    if (take(t, '/'))
        when.time_s = take_time(t);
    return when;
}

static bool read_rule(struct str text, struct zone_rule *rule)
{
    struct rule_text t = {.rest = text};
    *rule = (struct zone_rule){0};
    take_name(&t);
    rule->standard_s = -take_time(&t); /* POSIX counts to the west */
    if (t.rest.len && !t.bad) {
        rule->summer = true;
        take_name(&t);
        bool given = t.rest.len && t.rest.at[0] != ',';
        rule->summer_s = given ? -take_time(&t) : rule->standard_s + 3600;
        rule->starts = take_day(&t);
        rule->ends = take_day(&t);
    }
    return !t.bad && !t.rest.len;
}

static int32_t offset_by_rule(const struct zone_rule *rule, int64_t utc)
{
    if (!rule->summer)
        return rule->standard_s;
    int64_t year = year_of(utc + rule->standard_s);
    int64_t starts = moment_in(&rule->starts, year) - rule->standard_s;
    int64_t ends = moment_in(&rule->ends, year) - rule->summer_s;
    bool summer = starts < ends ? utc >= starts && utc < ends : utc >= starts || utc < ends;
    return summer ? rule->summer_s : rule->standard_s;
}

/* ---- the file ---- */

/* The counts in a header, in their order. */
enum count { UTC, STANDARD, LEAPS, TIMES, KINDS, NAME_BYTES, COUNTS };

/* False if it is not one, or promises more than the file holds. `width`: bytes of a time. */
static bool read_header(struct str file, size_t width, uint32_t counts[COUNTS], size_t *block)
{
    if (file.len < HEADER_BYTES || memcmp(file.at, "TZif", 4) != 0 || file.at[4] < '2')
        return false;
    for (size_t i = 0; i < COUNTS; i++) {
        counts[i] = (uint32_t)big_endian(file.at + 20 + 4 * i, 4);
        if (counts[i] > TIME_ZONE_FILE_MAX_BYTES)
            return false;
    }
    *block = counts[TIMES] * (width + 1) + counts[KINDS] * 6u + counts[NAME_BYTES] +
             counts[LEAPS] * (width + 4) + counts[STANDARD] + counts[UTC];
    return counts[KINDS] > 0 && *block <= file.len - HEADER_BYTES;
}

static bool read_zone(struct str file, struct time_zone *zone)
{
    uint32_t counts[COUNTS];
    size_t block;
    if (!read_header(file, 4, counts, &block)) /* for readers of 32-bit times; skipped */
        return false;
    file = str_from(file, HEADER_BYTES + block);
    if (!file.at || !read_header(file, 8, counts, &block))
        return false;
    zone->times = file.at + HEADER_BYTES;
    zone->types = zone->times + 8 * (size_t)counts[TIMES];
    zone->kinds = zone->types + counts[TIMES];
    zone->count = counts[TIMES];
    for (uint32_t i = 0; i < counts[TIMES]; i++)
        if ((unsigned char)zone->types[i] >= counts[KINDS])
            return false;
    struct str rule = str_trim(str_from(file, HEADER_BYTES + block));
    zone->ruled = rule.len > 0;
    return !rule.len || read_rule(rule, &zone->rule);
}

/* No path of its own: no "..", nothing from the root. */
static bool is_zone_name(struct str name)
{
    bool good = name.len > 0 && name.len <= TIME_ZONE_NAME_MAX_BYTES && name.at[0] != '/';
    for (size_t i = 0; i < name.len && good; i++)
        good = ascii_is_letter(name.at[i]) || ascii_is_digit(name.at[i]) || memchr("/_+-", name.at[i], 4);
    return good;
}

enum err time_zone_load(struct arena *arena, struct str name, const struct time_zone **out, struct why *why)
{
    const char *folder = getenv("TZDIR");
    struct time_zone *zone = ARENA_NEW(arena, struct time_zone);
    struct str path =
        arena_printf(arena, "%s/" STR_FMT, folder && *folder ? folder : DATABASE, STR_ARG(name));
    FILE *file = is_zone_name(name) ? fopen(path.at, "r") : NULL;
    *out = NULL;
    if (!file)
        return err_set(why, ERR_NOT_FOUND, "no time zone '" STR_FMT "' in %s", STR_ARG(name),
                       folder && *folder ? folder : DATABASE);
    char *bytes = arena_alloc(arena, TIME_ZONE_FILE_MAX_BYTES);
    size_t n = fread(bytes, 1, TIME_ZONE_FILE_MAX_BYTES, file); /* 0: a folder, such as Europe */
    fclose(file);
    zone->name = arena_dup(arena, name);
    if (!read_zone((struct str){bytes, n}, zone))
        return err_set(why, ERR_PARSE, "%s is no time zone", path.at);
    *out = zone;
    return OK;
}

struct str time_zone_name(const struct time_zone *zone)
{
    return zone->name;
}

static int32_t offset_at(const struct time_zone *zone, int64_t utc)
{
    uint32_t low = 0, high = zone->count; /* the first transition after the moment */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (big_endian(zone->times + 8 * (size_t)middle, 8) <= utc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zone->count && zone->ruled)
        return offset_by_rule(&zone->rule, utc);
    size_t kind = low ? (unsigned char)zone->types[low - 1] : 0;
    return (int32_t)big_endian(zone->kinds + 6 * kind, 4);
}

unsigned time_zone_offsets(const struct time_zone *zone, int64_t local, int32_t offsets[2])
{
    /* Of the offsets a day before and a day after, those that hold at the moment they make of it. */
    int32_t before = offset_at(zone, local - DAY_S), after = offset_at(zone, local + DAY_S);
    unsigned count = 0;
    if (offset_at(zone, local - before) == before)
        offsets[count++] = before;
    if (after != before && offset_at(zone, local - after) == after)
        offsets[count++] = after;
    return count;
}
