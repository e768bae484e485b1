/*
 * time, date and duration: ISO 8601 as models and tools write it. strptime
 * follows the locale and reads no fractions. Times without a zone are UTC.
 * There is no clock, so that a replay gives the same result.
 */
#include "policy/vocabulary.h"
#include "base/str.h"

#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0));
}

/* Days from 1970-01-01 in the Gregorian calendar; Howard Hinnant's algorithm. */
static int64_t days_from(int year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400;
    int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void day_of(int64_t days, int *year, int *month, int *day)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
            doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *day = (int)(doy - (153 * mp + 2) / 5 + 1);
    *month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *year = (int)(yoe + era * 400 + (*month <= 2));
}

static bool take_date(struct str *s, double *out)
{
    int year, month, day;
    if (!take_number(s, 4, &year) || !take_char(s, "-") || !take_number(s, 2, &month) || !take_char(s, "-") ||
        !take_number(s, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in(year, month))
        return false;
    *out = (double)days_from(year, month, day) * DAY_S;
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

int word_time(lua_State *L)
{
    double t;
    if (lua_type(L, 1) == LUA_TNUMBER)
        lua_pushvalue(L, 1);
    else if (word_time_parse(text_at(L, 1, "time"), &t))
        lua_pushnumber(L, t);
    else
        lua_pushnil(L);
    return 1;
}

/* The day in UTC of seconds or of a time. */
int word_day(lua_State *L)
{
    double t;
    int year, month, day;
    char text[40];
    if (lua_type(L, 1) == LUA_TNUMBER) {
        t = lua_tonumber(L, 1);
    } else if (!word_time_parse(text_at(L, 1, "date"), &t)) {
        lua_pushnil(L);
        return 1;
    }
    if (!(fabs(t) < 1e13))
        return luaL_error(L, "date: the time is beyond the calendar");
    day_of((int64_t)floor(t / DAY_S), &year, &month, &day);
    snprintf(text, sizeof(text), "%04d-%02d-%02d", year, month, day);
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
    switch (unit | 32) {
    case 'w':
        return 7.0 * DAY_S;
    case 'd':
        return DAY_S;
    case 'h':
        return 3600;
    case 'm':
        return 60;
    case 's':
        return 1;
    default:
        return 0;
    }
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
    double seconds;
    if (lua_type(L, 1) == LUA_TNUMBER)
        lua_pushvalue(L, 1);
    else if (word_duration_parse(text_at(L, 1, "duration"), &seconds))
        lua_pushnumber(L, seconds);
    else
        lua_pushnil(L);
    return 1;
}
