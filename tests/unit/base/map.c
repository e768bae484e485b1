/* The hash table and the two hashes. */
#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void finds_every_key(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct map *map = map_new(arena);
    int values[2000];
    assert_null(map_get(map, STR_LIT("key0")));
    for (int i = 0; i < 2000; i++)
        assert_true(map_add(map, arena_printf(arena, "key%d", i), &values[i]));
    assert_int_equal(map_count(map), 2000);
    for (int i = 0; i < 2000; i++)
        assert_ptr_equal(map_get(map, arena_printf(arena, "key%d", i)), &values[i]);
    assert_null(map_get(map, STR_LIT("key2000")));
    assert_null(map_get(map, STR_NONE));
    arena_free(arena);
}

static void refuses_a_key_twice(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct map *map = map_new(arena);
    int first, second;
    assert_true(map_add(map, STR_LIT("a"), &first));
    assert_false(map_add(map, STR_LIT("a"), &second));
    assert_ptr_equal(map_get(map, STR_LIT("a")), &first);
    assert_true(map_add(map, STR_NONE, &second)); /* an empty key is valid */
    assert_ptr_equal(map_get(map, STR_LIT("")), &second);
    assert_int_equal(map_count(map), 2);
    arena_free(arena);
}

static void holds_null_pointers(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct map *map = map_new(arena);
    assert_true(map_add(map, STR_LIT("none"), NULL));
    assert_false(map_add(map, STR_LIT("none"), arena));
    assert_null(map_get(map, STR_LIT("none")));
    arena_free(arena);
}

/* Workers of several releases share the ledger: this hash may never change. */
static void the_stable_hash_is_pinned(void **state)
{
    (void)state;
    struct hash128 empty = hash_stable(STR_NONE), text = hash_stable(STR_LIT("{\"a\":1}"));
    assert_int_equal(empty.high, 0x99aa06d3014798d8ull);
    assert_int_equal(empty.low, 0x6001c324468d497full);
    assert_int_equal(text.high, hash_stable(STR_LIT("{\"a\":1}")).high);
    assert_int_not_equal(text.low, hash_stable(STR_LIT("{\"a\":2}")).low);
}

static void seeded_and_random_bits_differ(void **state)
{
    (void)state;
    assert_int_equal(hash_seeded(STR_LIT("a")), hash_seeded(STR_LIT("a")));
    assert_int_not_equal(hash_seeded(STR_LIT("a")), hash_seeded(STR_LIT("b")));
    assert_int_not_equal(hash_random(), hash_random());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_key),
        cmocka_unit_test(refuses_a_key_twice),
        cmocka_unit_test(holds_null_pointers),
        cmocka_unit_test(the_stable_hash_is_pinned),
        cmocka_unit_test(seeded_and_random_bits_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
