/* The text format: escaping, and histograms that are cumulative. */
#include "base/prometheus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct buf out;

static int clear(void **state)
{
    (void)state;
    buf_clear(&out);
    return 0;
}

#define WROTE(text)                                                                                          \
    do {                                                                                                     \
        buf_byte(&out, '\0');                                                                                \
        assert_string_equal(out.at, text);                                                                   \
        out.len = 0;                                                                                         \
    } while (0)

static void labels_are_escaped(void **state)
{
    (void)state;
    prometheus_name(&out, "x_total");
    prometheus_label(&out, "a", STR_LIT("quote \" back \\ line\nend"));
    prometheus_label(&out, "b", STR_LIT("grün"));
    prometheus_label(&out, "c", STR_LIT(""));
    prometheus_label(&out, "d", STR_LIT("a\xff\xc3"));
    prometheus_value(&out, 18446744073709551u);
    WROTE("x_total{a=\"quote \\\" back \\\\ line\\nend\",b=\"grün\",c=\"\",d=\"a\xef\xbf\xbd\xef\xbf\xbd\"} "
          "18446744073709551\n");
}

static void a_label_that_ends_in_a_quote_does_not_end_the_list(void **state)
{
    (void)state;
    prometheus_name(&out, "x");
    prometheus_label(&out, "a", STR_LIT("\""));
    prometheus_label(&out, "b", STR_LIT("}"));
    prometheus_value(&out, 0);
    WROTE("x{a=\"\\\"\",b=\"}\"} 0\n");
}

static void a_metric_has_its_head(void **state)
{
    (void)state;
    prometheus_metric(&out, "x", "gauge", "What x is.", 7);
    WROTE("# HELP x What x is.\n# TYPE x gauge\nx 7\n");
}

static void seconds_have_all_their_digits(void **state)
{
    (void)state;
    prometheus_name(&out, "x");
    prometheus_seconds(&out, 1795407873000000001);
    WROTE("x 1795407873.000000001\n");
}

static void buckets_are_cumulative(void **state)
{
    static const struct histogram_bounds bounds = {{{1000, "0.000001"}, {1000000, "0.001"}}, 2};
    struct histogram h = {0};
    (void)state;
    histogram_add(&h, &bounds, -5);
    histogram_add(&h, &bounds, 1000);
    histogram_add(&h, &bounds, 1001);
    histogram_add(&h, &bounds, 5000000000);
    prometheus_histogram(&out, "x", STR_NONE, &h, &bounds);
    WROTE(
        "x_bucket{le=\"0.000001\"} 2\nx_bucket{le=\"0.001\"} 3\nx_bucket{le=\"+Inf\"} 4\nx_sum 5.000002001\n"
        "x_count 4\n");
    prometheus_histogram(&out, "x", STR_LIT("{a=\"b\""), &h, &bounds);
    WROTE("x_bucket{a=\"b\",le=\"0.000001\"} 2\nx_bucket{a=\"b\",le=\"0.001\"} "
          "3\nx_bucket{a=\"b\",le=\"+Inf\"} 4\n"
          "x_sum{a=\"b\"} 5.000002001\nx_count{a=\"b\"} 4\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(labels_are_escaped, clear),
        cmocka_unit_test_teardown(a_label_that_ends_in_a_quote_does_not_end_the_list, clear),
        cmocka_unit_test_teardown(a_metric_has_its_head, clear),
        cmocka_unit_test_teardown(seconds_have_all_their_digits, clear),
        cmocka_unit_test_teardown(buckets_are_cumulative, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
