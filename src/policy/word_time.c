/*
 * time, date and duration: ISO 8601 as models and tools write it. strptime
 * follows the locale and reads no fractions. Times without a zone are UTC.
 * There is no clock, so that a replay gives the same result.
 */
#include "policy/vocabulary.h"
#include "base/date.h"

#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define DAY_S 86400

/* Takes exactly `digits` digits off the front. */
static bool take_number(struct str *s, size_t digits, int *out)
{
    int n = 0;
    if (s->len < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (s->at[i] < '0' || s->at[i] > '9')
            return false;
        n = n * 10 + (s->at[i] - '0');
    }
    *out = n;
    *s = str_from(*s, digits);
    return true;
}

static bool take_char(struct str *s, const char *any)
{
    if (!s->len || !s->at[0] || !strchr(any, s->at[0]))
        return false;
    *s = str_from(*s, 1);
    return true;
}

static bool take_date(struct str *s, double *out)
{
    const size_t bytes = strlen("2026-12-01");
    int64_t seconds;
    if (s->len < bytes || !date_read((struct str){s->at, bytes}, &seconds))
        return false;
    *out = (double)seconds;
    *s = str_from(*s, bytes);
    return true;
}

static bool take_fraction(struct str *s, double *out)
{
    double scale = 0.1;
    *out = 0;
    if (!take_char(s, ".,"))
        return true;
    if (!s->len || s->at[0] < '0' || s->at[0] > '9')
        return false;
    for (int digit; take_number(s, 1, &digit); scale /= 10)
        *out += digit * scale;
    return true;
}

static bool take_clock(struct str *s, double *out)
{
    int hour, minute, second = 0;
    double fraction = 0;
    if (!take_number(s, 2, &hour) || !take_char(s, ":") || !take_number(s, 2, &minute))
        return false;
    if (take_char(s, ":") && (!take_number(s, 2, &second) || !take_fraction(s, &fraction)))
        return false;
    if (hour > 24 || minute > 59 || second > 60 || (hour == 24 && (minute || second || fraction > 0)))
        return false;
    *out = hour * 3600.0 + minute * 60.0 + second + fraction;
    return true;
}

/* Z, +02:00, +0200, +02 or nothing */
static bool take_zone(struct str *s, double *out)
{
    int hour, minute = 0;
    *out = 0;
    if (!s->len || take_char(s, "Zz"))
        return true;
    double sign = s->at[0] == '-' ? -1 : 1;
    if (!take_char(s, "+-") || !take_number(s, 2, &hour))
        return false;
    if (s->len && ((take_char(s, ":"), !take_number(s, 2, &minute))))
        return false;
    *out = sign * (hour * 3600.0 + minute * 60.0);
    return hour <= 23 && minute <= 59;
}

bool word_time_parse(struct str s, double *out)
{
    double date, clock = 0, zone = 0;
    s = str_trim(s);
    if (!take_date(&s, &date))
        return false;
    if (s.len && (!take_char(&s, "Tt ") || !take_clock(&s, &clock) || !take_zone(&s, &zone) || s.len))
        return false;
    *out = date + clock - zone;
    return true;
}

static struct str text_at(lua_State *L, int at, const char *word)
{
    struct str s;
    if (lua_type(L, at) != LUA_TSTRING)
        luaL_error(L, "%s: expected text, got %s", word, luaL_typename(L, at));
    s.at = lua_tolstring(L, at, &s.len);
    return s;
}

/* A number is seconds already; nil: the text is none. */
static int push_seconds(lua_State *L, const char *word, bool (*parse)(struct str, double *))
{
    double seconds;
    if (lua_type(L, 1) == LUA_TNUMBER)
        lua_pushvalue(L, 1);
    else if (parse(text_at(L, 1, word), &seconds))
        lua_pushnumber(L, seconds);
    else
        lua_pushnil(L);
    return 1;
}

int word_time(lua_State *L)
{
    return push_seconds(L, "time", word_time_parse);
}

/* The day in UTC of seconds or of a time. */
int word_day(lua_State *L)
{
    double t;
    struct tm day;
    char text[40];
    if (lua_type(L, 1) == LUA_TNUMBER) {
        t = lua_tonumber(L, 1);
    } else if (!word_time_parse(text_at(L, 1, "date"), &t)) {
        lua_pushnil(L);
        return 1;
    }
    if (!(fabs(t) < 1e13))
        return luaL_error(L, "date: the time is beyond the calendar");
    time_t seconds = (time_t)floor(t);
    gmtime_r(&seconds, &day);
    snprintf(text, sizeof(text), "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
    lua_pushstring(L, text);
    return 1;
}

static bool take_amount(struct str *s, double *out)
{
    bool any = false;
    double fraction;
    *out = 0;
    for (int digit; take_number(s, 1, &digit); any = true)
        *out = *out * 10 + digit;
    if (!any || !take_fraction(s, &fraction))
        return false;
    *out += fraction;
    return true;
}

static double unit_seconds(char unit)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'w', 7.0 * DAY_S}, {'d', DAY_S}, {'h', 3600}, {'m', 60}, {'s', 1}};
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if ((unit | 32) == units[i].unit)
            return units[i].seconds;
    return 0;
}

/* Amounts and units: "1h30m", and after its P and T "PT1H30M". Months and years have no length: refused. */
bool word_duration_parse(struct str s, double *out)
{
    double amount;
    s = str_trim(s);
    bool iso = take_char(&s, "Pp"), clock = !iso;
    *out = 0;
    if (!s.len)
        return false;
    while (s.len) {
        if (iso && !clock && take_char(&s, "Tt"))
            clock = true;
        if (!take_amount(&s, &amount) || !s.len)
            return false;
        char unit = s.at[0];
        if (unit_seconds(unit) == 0 || (!clock && strchr("hHmMsS", unit)))
            return false;
        *out += amount * unit_seconds(unit);
        s = str_from(s, 1);
    }
    return true;
}

int word_duration(lua_State *L)
{
    return push_seconds(L, "duration", word_duration_parse);
}
