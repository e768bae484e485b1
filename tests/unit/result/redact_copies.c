/* Copies in texts, against a search that tries every copy at every place. */
#include "result/redact_copies.h"

#include "base/arena.h"
#include "json/build.h"
#include "result/redact.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct redact_copies copies_of(struct arena *arena, const struct str *texts, size_t count)
{
    struct redact_copies copies = {.arena = arena};
    for (size_t i = 0; i < count; i++) {
        struct json value = json_string(texts[i]);
        redact_copies_add(&copies, &value);
    }
    return copies;
}

static const char *masked(const char *copy, const char *other, const char *text)
{
    struct arena *arena = arena_new();
    const struct str texts[] = {str_of(copy), str_of(other)};
    struct redact_copies copies = copies_of(arena, texts, 2);
    static char out[256];
    snprintf(out, sizeof(out), STR_FMT, STR_ARG(redact_copies_mask(&copies, str_of(text))));
    arena_free(arena);
    return out;
}

static void the_longest_whole_word_is_masked(void **state)
{
    (void)state;
    assert_string_equal(masked("anna", "anna-lena", "Anna-Lena, anna, annas"),
                        "[redacted], [redacted], annas");
    assert_string_equal(masked("anna", "anna-lena", "anna-lenas anna-"), "[redacted]-lenas [redacted]-");
    assert_string_equal(masked("-----", "cust_01", "a-----b cust_011 cust_01"),
                        "a[redacted]b cust_011 [redacted]");
    assert_string_equal(masked("say \"hi\"", "none", "say \\\"hi\\\" say \"hi\""), "[redacted] [redacted]");
    assert_string_equal(masked("cat", "none", "cat nonesuch"), "cat nonesuch");
}

static bool is_alnum(char c)
{
    return isalnum((unsigned char)c);
}

static bool stands_at(struct str text, size_t at, struct str copy)
{
    size_t end = at + copy.len;
    return end <= text.len && strncasecmp(text.at + at, copy.at, copy.len) == 0 &&
           !(at && is_alnum(text.at[at]) && is_alnum(text.at[at - 1])) &&
           !(end < text.len && is_alnum(text.at[end - 1]) && is_alnum(text.at[end]));
}

/* Writes what redact_copies_mask should. */
static size_t mask_slowly(const struct str *texts, size_t count, struct str text, char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < text.len;) {
        size_t longest = 0;
        for (size_t i = 0; i < count; i++)
            if (texts[i].len >= REDACT_COPY_MIN_BYTES && texts[i].len > longest &&
                stands_at(text, at, texts[i]))
                longest = texts[i].len;
        if (longest)
            n += (size_t)sprintf(out + n, "%s", REDACTED);
        else
            out[n++] = text.at[at];
        at += longest ? longest : 1;
    }
    return n;
}

static size_t random_text(char *out, size_t most)
{
    static const char alphabet[] = "aAaAb-";
    size_t len = (size_t)random() % most;
    for (size_t i = 0; i < len; i++)
        out[i] = alphabet[(size_t)random() % (sizeof(alphabet) - 1)];
    return len;
}

static void a_slow_search_finds_the_same(void **state)
{
    char bytes[12][9], text[120], expected[1400];
    struct str texts[12];
    size_t hits = 0;
    (void)state;
    srandom(7);
    for (int round = 0; round < 20000; round++) {
        struct arena *arena = arena_new();
        for (size_t i = 0; i < 12; i++)
            texts[i] = (struct str){bytes[i], random_text(bytes[i], 9)};
        struct redact_copies copies = copies_of(arena, texts, 12);
        struct str given = {text, random_text(text, sizeof(text))};
        size_t len = mask_slowly(texts, 12, given, expected);
        struct str now = redact_copies_mask(&copies, given);
        assert_true(str_eq(now, (struct str){expected, len}));
        hits += now.at != given.at;
        arena_free(arena);
    }
    assert_true(hits > 5000);
}

static void copies_are_added_after_a_search(void **state)
{
    struct arena *arena = arena_new();
    struct redact_copies copies = copies_of(arena, NULL, 0);
    (void)state;
    assert_true(str_is(redact_copies_mask(&copies, STR_LIT("alpha beta")), "alpha beta"));
    for (const char *const *next = (const char *const[]){"beta", "alpha", NULL}; *next; next++) {
        struct json value = json_string(str_of(*next));
        redact_copies_add(&copies, &value);
        assert_true(redact_copies_mask(&copies, str_of(*next)).at != *next);
    }
    arena_free(arena);
}

static void too_many_copies_overflow(void **state)
{
    struct arena *arena = arena_new();
    struct redact_copies copies = {.arena = arena};
    (void)state;
    for (unsigned i = 0; i < 2 * REDACT_COPIES_MAX; i++) {
        struct json value = json_string(arena_printf(arena, "copy-%u", i % REDACT_COPIES_MAX));
        redact_copies_add(&copies, &value);
    }
    assert_false(copies.overflow);
    struct json value = json_string(STR_LIT("one more"));
    redact_copies_add(&copies, &value);
    assert_true(copies.overflow);
    arena_free(arena);
}

/* `count` copies of `len` dashes and a number; false: their search stopped, and the text is masked whole. */
static bool is_searched(size_t count, size_t len, size_t text_len)
{
    struct arena *arena = arena_new();
    struct redact_copies copies = {.arena = arena};
    char *dashes = arena_alloc(arena, len + text_len);
    memset(dashes, '-', len + text_len);
    for (size_t i = 0; i < count; i++) {
        struct json value = json_string(arena_printf(arena, "%.*s%zu", (int)len, dashes, i));
        redact_copies_add(&copies, &value);
    }
    struct str text = {dashes, text_len}, now = redact_copies_mask(&copies, text);
    bool whole = str_is(now, REDACTED);
    assert_true(whole == copies.overflow && (whole || now.at == text.at));
    arena_free(arena);
    return !whole;
}

static void endless_searches_stop(void **state)
{
    (void)state;
    assert_true(is_searched(1, 1000, 2000));
    assert_true(is_searched(REDACT_COPIES_MAX, 20, 2000));
    assert_false(is_searched(1, 500000, 500000));           /* each place compares what is left */
    assert_false(is_searched(REDACT_COPIES_MAX, 2000, 10)); /* sorting compares them whole */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_whole_word_is_masked),
        cmocka_unit_test(a_slow_search_finds_the_same),
        cmocka_unit_test(copies_are_added_after_a_search),
        cmocka_unit_test(too_many_copies_overflow),
        cmocka_unit_test(endless_searches_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
