/* What a JSON Patch may take. */
#include "base/arena.h"
#include "json/diff.h"
#include "arena_case.h"

/* {"<name>":[1,…]} with `count` items, as texts if `quote` is one. */
static struct json list_below(const char *name, unsigned count, const char *quote)
{
    struct buf text = buf_in(arena);
    buf_printf(&text, "{\"%s\":[", name);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&text, "%s%s%u%s", i ? "," : "", quote, i, quote);
    buf_text(&text, "]}");
    return *value_of_str(buf_view(&text));
}

TEST(patches_name_each_change)
{
    struct json before = list_below("a", 3, "\""), after = list_below("a", 3, ""),
                patch = json_patch(arena, &before, &after);
    assert_string_equal(written(&patch), "[{\"op\":\"replace\",\"path\":\"/a/0\",\"value\":0},"
                                         "{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":1},"
                                         "{\"op\":\"replace\",\"path\":\"/a/2\",\"value\":2}]");
}

/* 5,000 changes below a name of 50,000 bytes took 320 MB. */
TEST(patches_below_a_long_name_replace_the_whole)
{
    char *name = memset(arena_alloc(arena, 50001), 'n', 50000);
    name[50000] = '\0';
    struct json before = list_below(name, 5000, "\""), after = list_below(name, 5000, "");
    struct arena *own = arena_new();
    struct json patch = json_patch(own, &before, &after);
    assert_int_equal(patch.len, 1);
    assert_string_equal(written(json_get_text(&patch.items[0], "path")), "\"\"");
    assert_true(json_equal(json_get_text(&patch.items[0], "value"), &after));
    assert_true(arena_bytes(own) < 4u << 20);
    arena_free(own);
}
