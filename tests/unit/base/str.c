/* Words in texts, and that two long texts of peers cost no more than their lengths together. */

#include "unit.h"
#include "base/arena.h"
#include "base/str.h"

static bool has_word(const char *text, const char *word)
{
    return str_contains_word(str_of(text), str_of(word));
}

TEST(a_word_stands_by_itself_in_any_case)
{
    assert_true(has_word("price", "price"));
    assert_true(has_word("The PRICE is wrong", "price"));
    assert_true(has_word("'price'", "price"));
    assert_true(has_word("prices, price", "price"));
    assert_true(has_word("a--a-a-b", "a-a-b"));
    assert_true(has_word("xabab abab", "abab"));
    assert_true(has_word("a_a a", "a"));
    assert_false(has_word("prices", "price"));
    assert_false(has_word("unit_price", "price"));
    assert_false(has_word("pric", "price"));
    assert_false(has_word("", "price"));
    assert_false(has_word("price", ""));
}

/* Quick only if each byte is looked at once or twice. */
TEST(a_long_word_is_searched_in_a_long_text)
{
    struct arena *arena = arena_new();
    struct str text = {memset(arena_alloc(arena, 4000000), '-', 4000000), 4000000};
    for (size_t len = 2; len < 400000; len *= 2) {
        char *word = arena_copy(arena, str_cut(text, len));
        word[len - 1] = '+';
        assert_false(str_contains_word(text, (struct str){word, len}));
    }
    arena_free(arena);
}
