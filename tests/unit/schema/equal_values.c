/* uniqueItems over numbers: however a number is spelled, and however many share a double. */
#include "schema_support.h"

#include "schema/schema_node.h"

#define NUMBERS 60000u /* were compared each with each, a minute and a half for one call */

static bool has_pair(const char *text)
{
    struct pass pass = pass_begin(NULL, NULL);
    size_t first, second;
    bool found = unique_items_find_pair(&pass, parse(text), &first, &second);
    assert_null(pass.too_complex);
    return found;
}

/* Long enough for the table of hashes: the numbers 1000 to 1039 besides. */
static bool equal_in_a_long_list(const char *a, const char *b)
{
    struct buf list = {0};
    buf_printf(&list, "[%s", a);
    for (int i = 1000; i < 1040; i++)
        buf_printf(&list, ",%d", i);
    buf_printf(&list, ",%s]", b);
    buf_byte(&list, '\0');
    bool found = has_pair(list.at);
    buf_clear(&list);
    return found;
}

TEST(spellings_of_a_number_are_equal)
{
    static const char *const equal[][2] = {
        {"0", "-0.000e7"},
        {"1.5", "15e-1"},
        {"-120", "-1.2E+2"},
        {"0.00012", "12e-5"},
        {"1e400", "1000e397"},
        {"1e99999999999999999999", "10e99999999999999999998"},
        {"1234567890123456789012345678901234567890123.0", "1234567890123456789012345678901234567890123"},
    };
    static const char *const other[][2] = {
        {"1", "-1"},
        {"15", "1.5"},
        {"9007199254740993", "9007199254740992"},
        {"1e400", "1e401"},
        {"1e99999999999999999999", "1e99999999999999999998"},
        {"1e99999999999999999999", "1e-99999999999999999999"},
    };
    for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++)
        assert_true(equal_in_a_long_list(equal[i][0], equal[i][1]));
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        assert_false(equal_in_a_long_list(other[i][0], other[i][1]));
}

/* Wherever the two are: hashes are made some places ahead. A later pair changes nothing. */
TEST(the_first_pair_is_found)
{
    for (int j = 1; j < 80; j++)
        for (int i = 0; i < j; i += 7) {
            struct buf list = {0};
            struct pass pass = pass_begin(NULL, NULL);
            size_t first, second;
            for (int k = 0; k < 80; k++)
                buf_printf(&list, "%c%d", k ? ',' : '[', k == j ? i : k == j + 1 ? j - 1 : k);
            buf_text(&list, "]");
            buf_byte(&list, '\0');
            assert_true(unique_items_find_pair(&pass, parse(list.at), &first, &second));
            assert_int_equal(first, i);
            assert_int_equal(second, j);
            buf_clear(&list);
        }
}

/* `before` and `after` the running number: they share a double, or an exponent that no double has. */
static void many_numbers(const char *before, const char *after)
{
    struct buf list = {0};
    buf_byte(&list, '[');
    for (unsigned i = 0; i < NUMBERS; i++)
        buf_printf(&list, "%s%s%05u%s", i ? "," : "", before, i, after);
    buf_text(&list, "]");
    buf_byte(&list, '\0');
    assert_false(has_pair(list.at));
    buf_clear(&list);
}

TEST(numbers_of_one_double_are_told_apart)
{
    many_numbers("1.0000000000000000000000", "1");
    many_numbers("1e9999999999999999999", "");
    many_numbers("1e-9999999999999999999", "");
}

/* What the table of hashes mixes with, backwards. */
static uint64_t unmixed(uint64_t n)
{
    n = (n ^ n >> 29 ^ n >> 58) * 0xF1DE83E19937733Du;
    return n ^ n >> 31 ^ n >> 62;
}

/* Without a seed these exponents hash alike, all of them. */
TEST(exponents_cannot_be_chosen_to_hash_alike)
{
    __extension__ typedef unsigned __int128 wide;
    const uint64_t billion = 1000000000;
    struct buf list = {0};
    for (uint64_t i = 0; i < NUMBERS; i++) {
        wide exponent = ((wide)(i + 1) << 64 | unmixed(12345 - 2 * (i + 1))) - 1;
        buf_printf(&list, "%c1e%llu%018llu", i ? ',' : '[',
                   (unsigned long long)(exponent / (billion * billion)),
                   (unsigned long long)(exponent % (billion * billion)));
    }
    buf_text(&list, "]");
    buf_byte(&list, '\0');
    assert_false(has_pair(list.at));
    buf_clear(&list);
}
