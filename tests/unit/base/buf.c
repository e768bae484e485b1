/* Growing buffers, on the heap and in an arena. */
#include "base/arena.h"
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void grows_and_keeps_what_it_has(struct buf *buf)
{
    for (int i = 0; i < 1000; i++) {
        buf_byte(buf, (char)('a' + i % 26));
        buf_text(buf, "<>");
        buf_str(buf, STR_LIT("()"));
    }
    buf_str(buf, STR_NONE);
    buf_add(buf, NULL, 0);
    assert_int_equal(buf->len, 5000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buf->at[i * 5], 'a' + i % 26);
        assert_memory_equal(buf->at + i * 5 + 1, "<>()", 4);
    }
    buf_clear(buf);
    assert_int_equal(buf->len, 0);
    assert_null(buf->at);
}

static void grows_on_the_heap(void **state)
{
    (void)state;
    struct buf buf = {0};
    grows_and_keeps_what_it_has(&buf);
}

static void grows_in_an_arena(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct buf buf = buf_in(arena);
    grows_and_keeps_what_it_has(&buf);
    assert_ptr_equal(buf.arena, arena);
    arena_free(arena);
}

static void prints_numbers(void **state)
{
    (void)state;
    struct buf buf = {0};
    static const int64_t numbers[] = {0,    7,    10,    99,     100,       305,
                                      1000, 9080, 10000, 100050, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        buf_int(&buf, numbers[i]);
        buf_byte(&buf, ' ');
    }
    buf_printf(&buf, "%s=%05.1f", "x", 2.25);
    buf_byte(&buf, '\0');
    assert_string_equal(buf.at, "0 7 10 99 100 305 1000 9080 10000 100050 9223372036854775807 "
                                "-9223372036854775808 x=002.2");
    buf_clear(&buf);
}

static void prints_more_than_it_has_room_for(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_printf(&buf, "%300d", 5);
    assert_int_equal(buf.len, 300);
    assert_int_equal(buf.at[299], '5');
    buf_clear(&buf);
}

static void drops_from_the_front(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_text(&buf, "abcdef");
    buf_drop(&buf, 0);
    buf_drop(&buf, 4);
    assert_true(str_is(buf_view(&buf), "ef"));
    buf_drop(&buf, 2);
    assert_int_equal(buf.len, 0);
    buf_text(&buf, "x");
    assert_true(str_is(buf_view(&buf), "x"));
    buf_clear(&buf);
}

static void reserved_room_is_the_callers(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_text(&buf, "ab");
    memset(buf_reserve(&buf, 1000), 'z', 1000);
    assert_int_equal(buf.len, 2);
    buf.len += 1000;
    assert_int_equal(buf.at[1001], 'z');
    buf_clear(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_on_the_heap),    cmocka_unit_test(grows_in_an_arena),
        cmocka_unit_test(prints_numbers),       cmocka_unit_test(prints_more_than_it_has_room_for),
        cmocka_unit_test(drops_from_the_front), cmocka_unit_test(reserved_room_is_the_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
