/* The heap of a sandbox: allocations succeed up to the cap, and it never holds more. */
#include "policy/policy_hostile.h"

#include "sandbox/heap.h"

#define CAP    (4u * 1024 * 1024)
#define BLOCKS 200000u

static struct heap heap;
static void *blocks[BLOCKS];

static size_t fill(size_t size)
{
    size_t count = 0;
    while (count < BLOCKS && (blocks[count] = heap_realloc(&heap, NULL, 0, size)))
        memset(blocks[count++], (int)size, size);
    return count;
}

static void give_all_back(size_t count, size_t size)
{
    while (count-- > 0)
        heap_realloc(&heap, blocks[count], size, 0);
}

TEST(blocks_of_each_size_in_turn_share_the_cap)
{
    heap_init(&heap, CAP);
    for (size_t size = 16; size <= 2048; size += size < HEAP_SMALL_BYTES ? 16 : 512) {
        size_t count = fill(size);
        assert_true(count * size <= CAP && count * size > CAP / 4 * 3);
        assert_true(heap.held <= CAP + HEAP_SLACK_BYTES);
        give_all_back(count, size);
        assert_int_equal(heap.used, 0);
    }
    heap_clear(&heap);
}

/* One block of every chunk stays in use, so the chunks stay allocated and count against the cap. */
TEST(scattered_blocks_count_with_their_chunks)
{
    heap_init(&heap, CAP);
    size_t count = fill(16), kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i % 1000 == 0)
            blocks[kept++] = blocks[i];
        else
            heap_realloc(&heap, blocks[i], 16, 0);
    assert_true(heap.used < CAP / 100);
    void *first = heap_realloc(&heap, NULL, 0, 300000);
    assert_non_null(first);
    assert_null(heap_realloc(&heap, NULL, 0, CAP - 400000));
    assert_true(heap.failures > 0 && heap.held <= CAP + HEAP_SLACK_BYTES);
    heap_realloc(&heap, first, 300000, 0);
    give_all_back(kept, 16);
    first = heap_realloc(&heap, NULL, 0, CAP - 400000);
    assert_non_null(first);
    heap_realloc(&heap, first, CAP - 400000, 0);
    assert_int_equal(heap.used, 0);
    heap_clear(&heap);
}

/* A block keeps its content when it grows or shrinks. */
TEST(blocks_keep_their_bytes)
{
    uint32_t random = 12345;
    size_t size = 0, sizes[] = {1, 16, 17, 100, 511, 512, 513, 5000, 100000, 40};
    char *block = NULL;
    heap_init(&heap, CAP);
    for (int i = 0; i < 2000; i++) {
        random = random * 1103515245 + 12345;
        size_t wanted = sizes[random / 65536 % 10], both = size < wanted ? size : wanted;
        block = heap_realloc(&heap, block, size, wanted);
        assert_non_null(block);
        for (size_t at = 0; at < both; at++)
            assert_int_equal(block[at], (char)(at * 7));
        for (size_t at = 0; at < wanted; at++)
            block[at] = (char)(at * 7);
        size = wanted;
        assert_int_equal(heap.used, size);
    }
    heap_realloc(&heap, block, size, 0);
    heap_clear(&heap);
}

/* Nothing was freed. */
TEST(everything_is_freed_at_once)
{
    heap_init(&heap, CAP);
    for (size_t size = 16; size < 4096; size += 100)
        assert_non_null(heap_realloc(&heap, NULL, 0, size));
    heap_clear(&heap);
    assert_true(heap.used == 0 && heap.held == 0 && heap.cap == CAP);
}

/* The same from Lua: garbage of one size leaves room for another. */
TEST(policies_may_change_their_mind)
{
    options.memory_kb = 4096;
    const struct policy *p =
        with_hook("check", "args", "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(args.size) .. i end");
    for (int size = 1; size < 600; size += 30) {
        assert_int_equal(check(p, arena_printf(arena, "{\"size\":%d}", size).at), OUTCOME_POLICY_ERROR);
        assert_has(said.why.text, MEMORY);
    }
    dies("local t = {} for i = 1, 2e5 do t[i] = { i } end", "");
}
