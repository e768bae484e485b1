/* Computed here, as the C library takes ten times as long, and policies compare times in each call. */
#include "base/date.h"

#include <string.h>

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
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (!has_form(text))
        return false;
    int64_t year = number_at(text, 0, 4), month = number_at(text, 5, 2), day = number_at(text, 8, 2);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (month < 1 || month > 12 || day < 1 || day > lengths[month - 1] + (leap && month == 2))
        return false;
    /* Days since 1970 in the Gregorian calendar; Howard Hinnant's algorithm, with years from March on. */
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    *seconds = (era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468) * 86400;
    return true;
}
