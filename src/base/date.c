/* The C library knows the calendar: a day that it has to move to another date does not exist. */
#include "base/date.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define DATE_BYTES 10u

static bool has_form(struct str text)
{
    static const char form[] = "0000-00-00";
    for (size_t i = 0; i < text.len && i < DATE_BYTES; i++)
        if (form[i] == '-' ? text.at[i] != '-' : !ascii_is_digit(text.at[i]))
            return false;
    return text.len == DATE_BYTES;
}

static int number_at(struct str text, size_t at, size_t digits)
{
    int number = 0;
    for (size_t i = at; i < at + digits; i++)
        number = number * 10 + (text.at[i] - '0');
    return number;
}

bool date_read(struct str text, int64_t *seconds)
{
    if (!has_form(text))
        return false;
    struct tm day = {.tm_year = number_at(text, 0, 4) - 1900,
                     .tm_mon = number_at(text, 5, 2) - 1,
                     .tm_mday = number_at(text, 8, 2)};
    struct tm same = day;
    *seconds = (int64_t)timegm(&same);
    return same.tm_year == day.tm_year && same.tm_mon == day.tm_mon && same.tm_mday == day.tm_mday;
}
