/* Which URIs a resource template can give, and what a connection remembers of links. */

#include "unit.h"
#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"
#include "server/served.h"

static bool fits(const char *template, const char *uri)
{
    size_t literal;
    return resource_template_fits(str_of(template), str_of(uri), &literal);
}

TEST(fits_with_something_in_each_place)
{
    assert_true(fits("book:///{title}", "book:///emma"));
    assert_true(fits("book:///{title}/{chapter}", "book:///emma/3"));
    assert_true(fits("a{x}b{y}c", "a1b2c"));
    assert_true(fits("plain:1", "plain:1"));
    assert_false(fits("book:///{title}", "book:///"));
    assert_false(fits("book:///{title}/{chapter}", "book:///emma"));
    assert_false(fits("book:///{title}", "film:///emma"));
    assert_false(fits("plain:1", "plain:12"));
    assert_false(fits("a{x}b", "a1c"));
    assert_false(fits("a{x}b", "a"));
}

TEST(lets_only_some_expressions_hold_a_slash)
{
    assert_false(fits("file:///{name}", "file:///etc/passwd"));
    assert_true(fits("file:///{+path}", "file:///etc/passwd"));
    assert_true(fits("file://{/path*}", "file:///etc/passwd"));
    assert_true(fits("q:x{?n,m}", "q:x"));
    assert_true(fits("q:x{?n,m}", "q:x?n=1"));
}

TEST(reads_broken_templates_as_text)
{
    assert_true(fits("a{x", "a{x"));
    assert_false(fits("a{x", "a1"));
    assert_false(fits("a{}b", "a1b")); /* no expression of the RFC */
    assert_true(fits("", ""));
}

TEST(counts_what_is_exact)
{
    size_t literal;
    assert_true(resource_template_fits(STR_LIT("ab{x}c"), STR_LIT("ab1c"), &literal));
    assert_int_equal(literal, 3);
}

static void keep(struct resource_links **links, const char *uri, const char *type, const char *upstream)
{
    struct arena *arena = arena_new();
    struct json content;
    struct json_error fault;
    char text[300];
    snprintf(text, sizeof(text),
             strcmp(type, "resource") == 0
                 ? "[{\"type\":\"resource\",\"resource\":{\"uri\":\"%s\"}}]"
                 : "[1,{\"type\":\"text\"},{\"type\":\"resource_link\",\"uri\":\"%s\"}]",
             uri);
    assert_int_equal(json_parse(arena, str_of(text), NULL, &content, &fault), OK);
    resource_links_keep(links, &content, str_of(upstream));
    arena_free(arena);
}

TEST(remembers_the_newest_links)
{
    struct resource_links *links = NULL;
    char uri[32];
    assert_int_equal(resource_links_find(links, STR_LIT("x:1")).len, 0);
    keep(&links, "first:", "resource", "a");
    keep(&links, "first:", "resource_link", "b");
    assert_true(str_is(resource_links_find(links, STR_LIT("first:")), "b"));
    for (unsigned i = 0; i < RESOURCE_LINKS_MAX; i++) {
        snprintf(uri, sizeof(uri), "x:%u", i);
        keep(&links, uri, "resource_link", "c");
    }
    assert_int_equal(resource_links_find(links, STR_LIT("first:")).len, 0);
    assert_true(str_is(resource_links_find(links, STR_LIT("x:0")), "c"));
    assert_true(str_is(resource_links_find(links, str_of(uri)), "c"));
    keep(&links, "one-more:", "resource_link", "c");
    assert_int_equal(resource_links_find(links, STR_LIT("x:0")).len, 0);
    resource_links_free(links);
}

#define LINKS_MANY 130000u /* as many as a result may hold */

TEST(keeps_the_newest_of_many)
{
    struct resource_links *links = NULL;
    struct arena *arena = arena_new();
    struct buf text = buf_in(arena);
    struct json_limits limits = {.nodes = 4 * LINKS_MANY};
    struct json content;
    for (unsigned i = 0; i < LINKS_MANY; i++)
        buf_printf(&text, "%c{\"type\":\"resource_link\",\"uri\":\"x:%u\"}", i ? ',' : '[', i);
    buf_byte(&text, ']');
    assert_int_equal(json_parse(arena, buf_view(&text), &limits, &content, NULL), OK);
    resource_links_keep(&links, &content, STR_LIT("a"));
    assert_true(str_is(resource_links_find(links, STR_LIT("x:129999")), "a"));
    assert_true(str_is(resource_links_find(links, STR_LIT("x:128976")), "a"));
    assert_int_equal(resource_links_find(links, STR_LIT("x:128975")).len, 0);
    resource_links_free(links);
    arena_free(arena);
}
