/* Which texts are dates, and offsets of local times by the tz database: the edges of summer time, and every
 * zone below against libc. */
#include "unit.h"
#include "base/date.h"

#include "arena_case.h"

#include <time.h>
#include <unistd.h>

#define UTC_2026_03_29 1774742400
#define UTC_2026_10_25 1792886400
#define HOUR_S         3600

static const struct time_zone *load(const char *name)
{
    const struct time_zone *zone;
    struct why why;
    if (time_zone_load(arena, str_of(name), &zone, &why) != OK)
        fail_msg("%s", why.text);
    return zone;
}

TEST(summer_time_begins_and_ends)
{
    const struct time_zone *berlin = load("Europe/Berlin");
    int32_t offsets[2];
    assert_int_equal(time_zone_offsets(berlin, UTC_2026_03_29 + 2 * HOUR_S - 1, offsets), 1);
    assert_int_equal(offsets[0], HOUR_S);
    assert_int_equal(time_zone_offsets(berlin, UTC_2026_03_29 + 2 * HOUR_S, offsets), 0);
    assert_int_equal(time_zone_offsets(berlin, UTC_2026_03_29 + 3 * HOUR_S - 1, offsets), 0);
    assert_int_equal(time_zone_offsets(berlin, UTC_2026_03_29 + 3 * HOUR_S, offsets), 1);
    assert_int_equal(offsets[0], 2 * HOUR_S);
    assert_int_equal(time_zone_offsets(berlin, UTC_2026_10_25 + 2 * HOUR_S - 1, offsets), 1);
    assert_int_equal(offsets[0], 2 * HOUR_S);
    assert_int_equal(time_zone_offsets(berlin, UTC_2026_10_25 + 2 * HOUR_S, offsets), 2);
    assert_int_equal(offsets[0], 2 * HOUR_S);
    assert_int_equal(offsets[1], HOUR_S);
    assert_int_equal(time_zone_offsets(berlin, UTC_2026_10_25 + 3 * HOUR_S, offsets), 1);
    assert_int_equal(offsets[0], HOUR_S);
}

/* The moments of more than a century, in steps that meet every hour of the day. */
TEST(agrees_with_libc)
{
    static const char *const zones[] = {"Europe/Berlin",
                                        "Europe/Dublin",
                                        "Europe/London",
                                        "America/New_York",
                                        "America/Sao_Paulo",
                                        "America/Nuuk",
                                        "Asia/Kolkata",
                                        "Asia/Kathmandu",
                                        "Asia/Tokyo",
                                        "Africa/Casablanca",
                                        "Australia/Lord_Howe",
                                        "Australia/Sydney",
                                        "Pacific/Apia",
                                        "UTC",
                                        "America/Argentina/Buenos_Aires"};
    for (size_t i = 0; i < sizeof(zones) / sizeof(*zones); i++) {
        const struct time_zone *zone = load(zones[i]);
        setenv("TZ", zones[i], 1);
        tzset();
        for (int64_t utc = -315619200; utc < 4102444800; utc += 25990) {
            time_t moment = (time_t)utc;
            struct tm tm;
            int32_t offsets[2] = {0, 0};
            localtime_r(&moment, &tm);
            unsigned count = time_zone_offsets(zone, utc + tm.tm_gmtoff, offsets);
            bool found = count && (offsets[0] == tm.tm_gmtoff || (count == 2 && offsets[1] == tm.tm_gmtoff));
            if (!found)
                fail_msg("%s at %lld: %d not %ld", zones[i], (long long)utc, offsets[0], tm.tm_gmtoff);
        }
    }
    unsetenv("TZ");
    tzset();
}

TEST(only_zones_are_loaded)
{
    static const char *const names[] = {
        "", "Europe/Berlim", "Europe", "/etc/localtime", "../zoneinfo/UTC", "UTC ", "zone.tab", "tzdata.zi"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const struct time_zone *zone;
        struct why why = {""};
        assert_true(time_zone_load(arena, str_of(names[i]), &zone, &why) < 0);
        assert_true(why.text[0]);
    }
}

/* Whatever a damaged file says, it is refused or read within its bounds. */
TEST(a_file_that_was_cut_off_is_harmless)
{
    char folder[] = "/tmp/toolgate-zones-XXXXXX", bytes[4096];
    FILE *whole = fopen("/usr/share/zoneinfo/Europe/Berlin", "r");
    assert_non_null(whole);
    size_t n = fread(bytes, 1, sizeof(bytes), whole);
    fclose(whole);
    assert_non_null(mkdtemp(folder));
    const char *path = arena_printf(arena, "%s/Cut", folder).at;
    setenv("TZDIR", folder, 1);
    for (size_t len = 0; len <= n; len++) {
        const struct time_zone *zone;
        struct why why;
        int32_t offsets[2];
        FILE *cut = fopen(path, "w");
        assert_int_equal(fwrite(bytes, 1, len, cut), len);
        fclose(cut);
        enum err err = time_zone_load(arena, STR_LIT("Cut"), &zone, &why);
        assert_true(err == ERR_PARSE || len + 40 > n);
        if (err == OK)
            time_zone_offsets(zone, UTC_2026_03_29, offsets);
    }
    unsetenv("TZDIR");
    unlink(path);
    rmdir(folder);
}

TEST(a_day_begins_at_midnight_utc)
{
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
    unsetenv("TZ");
}

TEST(other_texts_are_no_dates)
{
    static const char *const texts[] = {"",           "2026-13-01", "2026-00-01", "2026-02-29",
                                        "2026-12-00", "2026-12-32", "2026-12-1",  "2026-12-01T00:00:00Z",
                                        "2026/12/01", "26-12-01",   "tomorrow",   " 2026-12-01",
                                        "2026-12-0x"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t seconds;
        assert_false(date_read(str_of(texts[i]), &seconds));
    }
}
