/* What each format accepts and rejects; multipleOf on decimals; suggestions of similar names. */
#include "schema/schema_support.h"

#include "json/build.h"
#include "schema/format.h"
#include "schema/schema_node.h"
#include "base/suggest.h"

TEST(formats_accept_valid_strings_only)
{
    static const struct {
        const char *format, *good[6], *bad[8];
    } table[] = {
        {"date-time",
         {"2026-05-03T00:00:00Z", "2026-05-03t09:30:00.25+02:00", "2016-12-31T23:59:60Z",
          "2016-12-31T15:59:60-08:00"},
         {"2026-05-03", "tomorrow", "2026-05-03 00:00:00Z", "2026-02-29T00:00:00Z", "2026-05-03T00:00:00",
          "2026-05-03T24:00:00Z", "2026-05-03T10:00:60Z", "2026-05-03T00:00:00+2"}},
        {"date", {"2024-02-29", "0001-01-01"}, {"2023-02-29", "2026-13-01", "2026-1-01", "26-01-01", ""}},
        {"time",
         {"09:30:00Z", "23:59:60Z", "00:29:60+00:30"},
         {"09:30:00", "9:30:00Z", "22:59:60Z", "09:30:00.Z"}},
        {"duration",
         {"P1DT12H", "P4W", "PT36H", "P1Y2M3D", "PT1H30M5S"},
         {"P", "PT", "P1Y2D", "P1D2H", "P4W1D", "1D", "PT1H5S", "P1"}},
        {"uuid",
         {"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"},
         {"123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g", ""}},
        {"email",
         {"ada@example.com", "\"a b\"@example.com", "a+b@[127.0.0.1]"},
         {"ada", "@example.com", "a..b@example.com", ".a@example.com", "ada@", "a b@example.com"}},
        {"uri",
         {"https://example.com/a?b#c", "urn:isbn:1", "mailto:a@b", "http://[2001:db8::1]:80/"},
         {"/a", "example.com", "http://a b/", "http://[::1", "http://a/%zz", "http://a/<b>", "http://a:b/"}},
        {"uri-reference", {"/a?b", "a", "#f", "//host/a", ""}, {"a b", "\\a", "http://[x]/"}},
        {"ipv4", {"192.0.2.1"}, {"256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4 "}},
        {"ipv6", {"::1", "2001:db8::1", "::ffff:192.0.2.1"}, {"12345::", "::1%eth0", ":::", "1.2.3.4"}},
        {"hostname",
         {"www.example.com", "a", "xn--mnchen-3ya.de"},
         {"-a.com", "a-.com", "a..b", "a_b", "", "a.", "xn--x"}},
        {"json-pointer", {"", "/a~0b/0", "/"}, {"a", "/~", "/~2"}},
        {"relative-json-pointer", {"0", "1/a", "2#"}, {"-1", "01", "", "a"}},
        {"regex", {"^a+$", "(?<=a+)b"}, {"(", "\\a", "(?i)a"}},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const struct format *format = format_find(str_of(table[i].format));
        assert_non_null(format);
        assert_true(format->check(str_of(format->example)));
        for (size_t k = 0; k < 6 && table[i].good[k]; k++)
            if (!format->check(str_of(table[i].good[k])))
                fail_msg("%s refuses '%s'", table[i].format, table[i].good[k]);
        for (size_t k = 0; k < 8 && table[i].bad[k]; k++)
            if (format->check(str_of(table[i].bad[k])))
                fail_msg("%s takes '%s'", table[i].format, table[i].bad[k]);
    }
    assert_null(format_find(STR_LIT("uuid4")));
}

TEST(multiples_are_exact)
{
    static const struct {
        const char *number, *divisor;
        bool multiple;
    } table[] = {
        {"19.99", "0.01", true},
        {"19.995", "0.01", false},
        {"4.5", "1.5", true},
        {"0", "7", true},
        {"0.0", "0.1", true},
        {"-9", "3", true},
        {"1e308", "0.123456789", false},
        {"1e308", "1e300", true},
        {"1e300", "1e308", false},
        {"1.5e1", "5", true},
        {"9007199254740993", "2", false},
        {"100000000000000000000000", "10", true},
        {"1e1000000", "3", false},
        {"3e1000000", "3", true},
        {"12.30", "1.23", true},
        {"0.0075", "0.0001", true},
        {"0.00751", "0.0001", false},
        {"1000", "0.001e3", true},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct json n = json_literal(str_of(table[i].number)), d = json_literal(str_of(table[i].divisor));
        if (multiple_of_holds(&n, &d) != table[i].multiple)
            fail_msg("%s of %s", table[i].number, table[i].divisor);
    }
}

TEST(names_are_suggested_by_similarity)
{
    static const struct {
        const char *word, *candidates[4], *best; /* NULL: none */
    } table[] = {
        {"calculator", {"calc", "path"}, "calc"},
        {"name", {"path"}, NULL},
        {"dueDate", {"date", "due_date"}, "due_date"},
        {"shipping", {"placed", "shipped", "delivered"}, "shipped"},
        {"titel", {"title", "tile"}, "title"},
        {"lmit", {"limit", "offset"}, "limit"},
        {"get_event", {"get_events", "set_event"}, "get_events"},
        {"x", {"y"}, NULL},
        {"query", {"q"}, NULL},
        {"os", {"at_most", "host_in"}, NULL},
        {"okay", {"ok"}, "ok"},
        {"", {"a"}, NULL},
        {"status", {"state", "id"}, "state"},
        {"contactId", {"contact_query", "contact_id"}, "contact_id"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct str candidates[4];
        size_t count = 0;
        while (count < 4 && table[i].candidates[count]) {
            candidates[count] = str_of(table[i].candidates[count]);
            count++;
        }
        struct str best = suggest_closest(str_of(table[i].word), candidates, count);
        if (!str_eq(best, str_of(table[i].best)))
            fail_msg("%s: " STR_FMT, table[i].word, STR_ARG(best));
    }
}

TEST(suggestions_are_ranked_and_few)
{
    static const struct str names[] = {STR("list_item"),  STR("list_items"),  STR("LIST_ITEMS"),
                                       STR("list_itemz"), STR("list_items2"), STR("list_it"),
                                       STR("list"),       STR("lists"),       STR("item_list")};
    size_t out[SUGGEST_MAX];
    assert_int_equal(suggest_ranked(STR_LIT("list-items"), names, 9, out), SUGGEST_MAX);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 2);
}
