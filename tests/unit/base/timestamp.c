/* The times of recordings, in the spellings of other systems. */
#include "unit.h"
#include "base/date.h"

TEST(reads_times)
{
    static const struct {
        const char *text, *rest;
        int64_t us;
    } times[] = {
        {"1970-01-01T00:00:00Z", "", 0},
        {"1970-01-01T00:00:01.5Z", "", 1500000},
        {"1970-01-01 00:01:00,000001", "", 60000001},
        {"1970-01-01T00:02", "", 120000000},
        {"1970-01-01T01:00:00+01:00", "", 0},
        {"1970-01-01T01:00:00+0100", "", 0},
        {"1969-12-31T23:00:00-01:00", "", 0},
        {"1970-01-01T00:00:00Z[UTC]", "[UTC]", 0},
        {"1970-01-01T00:00:00 CET", " CET", 0},
        {"1970-01-01T24:00:00+01", "", 82800000000},
        {"1970-01-01T01:00:00+01:", "+01:", 3600000000},
        {"1970-01-01T00:00:00.Z", ".Z", 0},
    };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct str text = str_of(times[i].text);
        int64_t us = -1;
        assert_true(timestamp_read(&text, &us));
        assert_int_equal(us, times[i].us);
        assert_true(str_is(text, times[i].rest));
    }
}

TEST(refuses_what_is_no_time)
{
    static const char *const texts[] = {"",
                                        "today",
                                        "1970-13-01T00:00:00Z",
                                        "1970-01-01T24:00:01Z",
                                        "1970-01-01T00:00:61Z",
                                        "1970-01-01",
                                        "19700101T000000Z"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct str text = str_of(texts[i]);
        int64_t us;
        assert_false(timestamp_read(&text, &us));
    }
}
