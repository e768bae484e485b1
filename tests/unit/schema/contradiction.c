/* Contradictions of published schemas: which are softened and how, and what is left as it is. */
#include "schema/schema_support.h"

#include "json/write.h"
#include "schema/contradiction.h"

static const struct {
    const char *schema, *softened, *code; /* softened NULL: as it was */
} schemas[] = {
    /* required, and it need not be there */
    {"{`properties`:{`a`:{`type`:`string`,`default`:`x`}},`required`:[`a`]}",
     "{`properties`:{`a`:{`type`:`string`,`default`:`x`}}}", "required_has_default"},
    {"{`properties`:{`a`:{`default`:null},`b`:{}},`required`:[`a`,`b`]}",
     "{`properties`:{`a`:{`default`:null},`b`:{}},`required`:[`b`]}", "required_has_default"},
    {"{`properties`:{`a`:{`description`:`Optional. The zone.`}},`required`:[`a`]}",
     "{`properties`:{`a`:{`description`:`Optional. The zone.`}}}", "required_is_optional"},
    {"{`properties`:{`a`:{`description`:`This is not optional`}},`required`:[`a`]}", NULL, NULL},
    {"{`properties`:{`o`:{`properties`:{`a`:{`default`:1}},`required`:[`a`]}}}",
     "{`properties`:{`o`:{`properties`:{`a`:{`default`:1}}}}}", "required_has_default"},
    {"{`anyOf`:[{`properties`:{`a`:{`default`:1}},`required`:[`a`]},{`type`:`null`}]}",
     "{`anyOf`:[{`properties`:{`a`:{`default`:1}}},{`type`:`null`}]}", "required_has_default"},
    /* where less strict is not more lenient */
    {"{`oneOf`:[{`properties`:{`a`:{`default`:1}},`required`:[`a`]},{`type`:`null`}]}", NULL, NULL},
    {"{`not`:{`properties`:{`a`:{`default`:1}},`required`:[`a`]}}", NULL, NULL},
    /* required, and nothing fits */
    {"{`properties`:{`b`:{}},`required`:[`a`,`b`],`additionalProperties`:false}",
     "{`properties`:{`b`:{}},`required`:[`b`],`additionalProperties`:false}", "required_fits_nothing"},
    {"{`properties`:{`b`:{}},`required`:[`a`]}", NULL, NULL},
    {"{`properties`:{`a`:{`enum`:[]}},`required`:[`a`]}", "{`properties`:{`a`:{`enum`:[]}}}",
     "required_fits_nothing"},
    /* an enum and its type */
    {"{`properties`:{`a`:{`type`:`string`,`enum`:[`x`,null]}}}", "{`properties`:{`a`:{`enum`:[`x`,null]}}}",
     "enum_outside_type"},
    {"{`properties`:{`a`:{`type`:`string`,`enum`:[1,2]}}}",
     "{`properties`:{`a`:{`anyOf`:[{`enum`:[1,2]},{`type`:`string`}]}}}", "enum_outside_type"},
    {"{`properties`:{`a`:{`type`:[`string`,`null`],`enum`:[`x`,null]}}}", NULL, NULL},
    {"{`properties`:{`a`:{`type`:`string`,`nullable`:true,`enum`:[`x`,null]}}}", NULL, NULL},
    {"{`properties`:{`a`:{`type`:`integer`,`enum`:[1,2.0]}}}", NULL, NULL},
    {"{`properties`:{`a`:{`type`:`INTEGER`,`enum`:[`1`,`2`]}}}",
     "{`properties`:{`a`:{`anyOf`:[{`enum`:[`1`,`2`]},{`type`:`INTEGER`}]}}}", "enum_outside_type"},
    /* bounds */
    {"{`properties`:{`a`:{`minimum`:5,`maximum`:1}}}", "{`properties`:{`a`:{}}}", "bounds_cross"},
    {"{`properties`:{`a`:{`minLength`:1,`maxLength`:1}}}", NULL, NULL},
    /* what only looks like a schema */
    {"{`properties`:{`a`:{`enum`:[{`required`:[`x`],`properties`:{`x`:{`default`:1}}}]}}}", NULL, NULL},
};

TEST(contradictions_are_softened)
{
    for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
        const struct json *schema = parse(schemas[i].schema);
        struct problems found;
        problems_init(&found, arena);
        const struct json *soft = schema_soften(arena, schema, &found);
        if (!schemas[i].softened) {
            assert_ptr_equal(soft, schema);
            assert_int_equal(found.count, 0);
            continue;
        }
        assert_string_equal(written(soft), written(parse(schemas[i].softened)));
        assert_int_equal(found.count, 1);
        assert_string_equal(found.list[0].code, schemas[i].code);
        assert_int_equal(found.errors, 0);
        problems_init(&found, arena);
        assert_ptr_equal(schema_soften(arena, soft, &found), soft); /* once is enough */
    }
}

static const struct {
    const char *schema, *dropped; /* NULL: as it was */
} unions[] = {
    {"{`anyOf`:[{`properties`:{`a`:{}}},{`type`:`object`}]}", "{`anyOf`:[{`properties`:{`a`:{}}}]}"},
    {"{`properties`:{`p`:{`anyOf`:[{`$ref`:`#/$defs/"
     "M`},{`type`:`object`,`additionalProperties`:true},{`type`:`"
     "null`}]}},`$defs`:{`M`:{`properties`:{`a`:{}}}}}",
     "{`properties`:{`p`:{`anyOf`:[{`$ref`:`#/$defs/"
     "M`},{`type`:`null`}]}},`$defs`:{`M`:{`properties`:{`a`:{}}}}"
     "}"},
    {"{`oneOf`:[{`type`:`object`},{`properties`:{`a`:{}}}]}", "{`oneOf`:[{`properties`:{`a`:{}}}]}"},
    {"{`anyOf`:[{`type`:`string`},{`type`:`object`}]}", NULL},
    {"{`anyOf`:[{`properties`:{`a`:{}}},{`type`:`object`,`additionalProperties`:{`type`:`string`}}]}", NULL},
    {"{`anyOf`:[{`properties`:{`a`:{}}},{`type`:`object`,`required`:[`b`]}]}", NULL},
    {"{`anyOf`:[{`properties`:{}},{`type`:`object`}]}", NULL},
};

TEST(open_branches_are_dropped)
{
    for (size_t i = 0; i < sizeof(unions) / sizeof(*unions); i++) {
        const struct json *schema = parse(unions[i].schema);
        const struct json *now = schema_drop_open_branches(arena, schema);
        if (!unions[i].dropped)
            assert_ptr_equal(now, schema);
        else
            assert_string_equal(written(now), written(parse(unions[i].dropped)));
    }
}

static const struct {
    const char *text;
    bool optional;
} descriptions[] = {
    {"Optional. The zone.", true},
    {"optional list of tags", true},
    {"The zone (optional)", true},
    {"The zone (optional, IANA name)", true},
    {"The zone. Defaults to UTC.", true},
    {"The zone; if omitted, the account's", true},
    {"This is optional", true},
    {"", false},
    {"The zone", false},
    {"Not optional", false},
    {"It is not optional.", false},
    {"This isn't optional", false},
    {"non-optional id", false},
    {"A pattern with optional wildcards", false},
    {"Optionality of the thing", false},
    {"Optional for reads, required for writes", false},
    {"The call fails if omitted", false},
    {"An error is returned if omitted", false},
    {"It never defaults to UTC", false},
    {"It no longer defaults to UTC", false},
};

TEST(descriptions_are_read_strictly)
{
    for (size_t i = 0; i < sizeof(descriptions) / sizeof(*descriptions); i++)
        if (description_says_optional(str_of(descriptions[i].text)) != descriptions[i].optional)
            fail_msg("%s", descriptions[i].text);
}
