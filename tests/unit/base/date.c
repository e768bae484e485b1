/* Which texts are dates, and when the day of each begins. */
#include "base/date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_day_begins_at_midnight_utc(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } days[] = {{"1970-01-01", 0},
                {"1970-01-02", 86400},
                {"2024-02-29", 1709164800},
                {"2026-12-01", 1796083200},
                {"1969-12-31", -86400}};
    setenv("TZ", "Asia/Tokyo", 1);
    for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
        int64_t seconds = 1;
        assert_true(date_read(str_of(days[i].text), &seconds));
        assert_int_equal(days[i].seconds, seconds);
    }
}

static void other_texts_are_no_dates(void **state)
{
    (void)state;
    static const char *const texts[] = {"",           "2026-13-01", "2026-00-01", "2026-02-29",
                                        "2026-12-00", "2026-12-32", "2026-12-1",  "2026-12-01T00:00:00Z",
                                        "2026/12/01", "26-12-01",   "tomorrow",   " 2026-12-01",
                                        "2026-12-0x"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t seconds;
        assert_false(date_read(str_of(texts[i]), &seconds));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_day_begins_at_midnight_utc),
                                       cmocka_unit_test(other_texts_are_no_dates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
