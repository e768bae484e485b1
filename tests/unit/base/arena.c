/* Arenas: alignment, zeroing, reuse of blocks. */
#include "unit.h"
#include "base/arena.h"

TEST(allocations_are_aligned_and_apart)
{
    struct arena *arena = arena_new();
    char *before = arena_alloc(arena, 0);
    for (size_t size = 0; size < 3000; size += 7) {
        char *p = arena_alloc(arena, size);
        assert_int_equal((uintptr_t)p % 8, 0);
        assert_ptr_not_equal(p, before);
        memset(p, 0xA5, size); /* the address sanitizer would see a block too small */
        before = p;
    }
    arena_free(arena);
}

TEST(a_pool_keeps_equal_bytes_once)
{
    struct arena *arena = arena_new();
    struct arena_pool *pool = arena_pool_new(arena);
    char text[32];
    struct str first = arena_pool_dup(pool, STR_LIT("By which ids"));
    for (int i = 0; i < 20; i++) { /* others come in between */
        snprintf(text, sizeof(text), "tool %d", i);
        struct str other = arena_pool_dup(pool, str_of(text));
        assert_string_equal(other.at, text);
        assert_ptr_equal(arena_pool_dup(pool, STR_LIT("By which ids")).at, first.at);
    }
    uint64_t numbers[] = {1, 2, 3};
    const void *kept = arena_pool_keep(pool, numbers, sizeof(numbers));
    assert_ptr_equal(arena_pool_keep(pool, numbers, sizeof(numbers)), kept);
    numbers[2] = 4;
    assert_ptr_not_equal(arena_pool_keep(pool, numbers, sizeof(numbers)), kept);
    assert_string_equal(arena_pool_dup(pool, STR_NONE).at, "");
    arena_free(arena);
}

TEST(zalloc_is_zero_even_in_used_blocks)
{
    struct arena *arena = arena_new();
    memset(arena_alloc(arena, 8000), 0xFF, 8000);
    arena_free(arena);
    arena = arena_new();
    const unsigned char *p = arena_zalloc(arena, 8000);
    for (size_t i = 0; i < 8000; i++)
        assert_int_equal(p[i], 0);
    arena_free(arena);
}

TEST(first_blocks_are_kept_for_the_next_call)
{
    arena_free(arena_new());
    size_t before = arena_malloc_count(), held = arena_live_bytes();
    for (int i = 0; i < 1000; i++) {
        struct arena *arena = arena_new();
        arena_alloc(arena, 4096);
        arena_free(arena);
    }
    assert_int_equal(arena_malloc_count(), before);
    assert_int_equal(arena_live_bytes(), held);
}

TEST(large_blocks_are_given_back)
{
    size_t held = arena_live_bytes();
    struct arena *arena = arena_new();
    char *p = arena_alloc(arena, 10 << 20);
    p[0] = p[(10 << 20) - 1] = 1;
    assert_true(arena_bytes(arena) >= 10 << 20);
    assert_true(arena_live_bytes() >= held + (10 << 20));
    arena_free(arena);
    assert_int_equal(arena_live_bytes(), held);
}

TEST(blocks_grow_with_the_arena)
{
    struct arena *arena = arena_new();
    size_t before = arena_malloc_count();
    for (int i = 0; i < 100000; i++)
        arena_alloc(arena, 64);
    assert_true(arena_malloc_count() - before < 12); /* blocks of 16 KiB are reused */
    arena_free(arena);
}

TEST(copies_end_with_a_nul)
{
    struct arena *arena = arena_new();
    struct str copy = arena_dup(arena, (struct str){"abcdef", 3});
    assert_string_equal(copy.at, "abc");
    assert_int_equal(copy.len, 3);
    assert_string_equal(arena_dup(arena, STR_NONE).at, "");
    struct str printed = arena_printf(arena, "%d-%s", 42, "x");
    assert_string_equal(printed.at, "42-x");
    assert_int_equal(printed.len, 4);
    arena_free(arena);
    arena_free(NULL);
}

TEST(truncated_strings_end_with_an_ellipsis)
{
    struct arena *arena = arena_new();
    assert_true(str_is(arena_truncate(arena, STR_LIT("twelve bytes"), 12), "twelve bytes"));
    assert_true(str_is(arena_truncate(arena, STR_LIT("thirteen byte"), 12), "thirteen …"));
    assert_true(
        str_is(arena_truncate(arena, STR_LIT("größer als acht"), 8), "grö…")); /* never half a character */
    assert_true(str_is(arena_truncate(arena, STR_LIT("long"), 2), "…"));
    assert_true(str_is(arena_first_line(arena, STR_LIT("\n  a title \r\n\nmore of it"), 40), "a title"));
    assert_true(str_is(arena_first_line(arena, STR_LIT("a long title\nmore"), 9), "a long…"));
    assert_true(str_is(arena_first_line(arena, STR_NONE, 9), ""));
    arena_free(arena);
}
