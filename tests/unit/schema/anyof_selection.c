/* anyOf and oneOf with a branch map give the same answers and messages as trying every branch. */
#include "schema/schema_support.h"

#include "schema/schema_node.h"

static uint32_t seed = 54321;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static const char *const branches[] = {
    "{`properties`:{`k`:{`const`:`a`},`x`:{`type`:`integer`}},`required`:[`k`]}",
    "{`properties`:{`k`:{`enum`:[`b`,`c`]},`x`:{`type`:`string`}},`required`:[`k`,`x`]}",
    "{`properties`:{`k`:{`const`:`c`}},`required`:[`k`],`additionalProperties`:false}",
    "{`properties`:{`k`:{`enum`:[``,`d`]}},`required`:[`k`],`maxProperties`:2}",
    "{`properties`:{`k`:{`const`:1}},`required`:[`k`]}",
    "{`properties`:{`k`:{`const`:`e`}}}",
    "{`$ref`:`#/$defs/f`}",
    "{`type`:`array`}",
    "{`allOf`:[{`properties`:{`k`:{`const`:`g`}},`required`:[`k`]}]}",
};

#define BRANCHES (sizeof(branches) / sizeof(*branches))

/* The same branches twice: as they are, and behind two negations, which hide the discriminator. */
static struct schema *random_schema(bool hidden, const char *keyword, const uint32_t *chosen, uint32_t count)
{
    struct buf out = buf_in(arena);
    buf_printf(&out, "{`$defs`:{`f`:{`properties`:{`k`:{`const`:`f`}},`required`:[`k`]}},`%s`:[", keyword);
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&out, "%s%s%s%s", i > 0 ? "," : "", hidden ? "{`not`:{`not`:" : "", branches[chosen[i]],
                   hidden ? "}}" : "");
    buf_text(&out, "]}");
    buf_byte(&out, '\0');
    return compile(out.at);
}

static const struct json *random_instance(void)
{
    static const char *const keys[] = {"`k`:`a`", "`k`:`b`", "`k`:`c`", "`k`:`d`",  "`k`:`e`", "`k`:`f`",
                                       "`k`:`g`", "`k`:``",  "`k`:1",   "`k`:null", "`j`:`a`"};
    static const char *const others[] = {"", ",`x`:1", ",`x`:`y`", ",`y`:true"};
    if (!below(12))
        return parse(below(2) ? "[]" : "`a`");
    return parse(arena_printf(arena, "{%s%s}", keys[below(11)], others[below(4)]).at);
}

TEST(a_branch_map_gives_the_messages_of_trying_all_branches)
{
    uint32_t forks = 0, fit = 0;
    for (uint32_t n = 0; n < 400; n++) {
        uint32_t chosen[4], count = 2 + below(3);
        for (uint32_t i = 0; i < count; i++)
            chosen[i] = below(BRANCHES);
        const char *keyword = below(2) ? "oneOf" : "anyOf";
        struct schema *told = random_schema(false, keyword, chosen, count);
        struct schema *tried = random_schema(true, keyword, chosen, count);
        assert_null(tried->root->ops[0].nodes.branch_map);
        forks += told->root->ops[0].nodes.branch_map != NULL;
        for (uint32_t i = 0; i < 30; i++) {
            const struct json *v = random_instance();
            enum schema_validity answer = schema_validate(told, v);
            assert_int_equal(answer, schema_validate(tried, v));
            fit += answer == SCHEMA_VALID;
        }
    }
    assert_true(forks > 40 && fit > 400);
}

/* unevaluatedProperties counts what the selected branch evaluated, and only that. */
TEST(the_selected_branch_is_evaluated)
{
    struct schema *schema = compile("{`oneOf`:[{`properties`:{`k`:{`const`:`a`},`x`:true},`required`:[`k`]},"
                                    "{`properties`:{`k`:{`const`:`b`},`y`:true},`required`:[`k`]}],"
                                    "`unevaluatedProperties`:false}");
    assert_non_null(schema->root->ops[0].nodes.branch_map);
    assert_int_equal(schema_validate(schema, parse("{`k`:`a`,`x`:1}")), SCHEMA_VALID);
    assert_int_equal(schema_validate(schema, parse("{`k`:`a`,`y`:1}")), SCHEMA_INVALID);
    assert_int_equal(schema_validate(schema, parse("{`y`:1,`k`:`b`}")), SCHEMA_VALID);
}
