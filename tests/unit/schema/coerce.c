/* Coercion: which values change and to what, which never do, and that it is idempotent. */
#include "schema/schema_support.h"

#include "schema/coerce.h"

static const char *coerced_text(const struct schema *schema, const struct json *v)
{
    const struct json *coerced = schema_coerce(schema, v, &coerce_options_all, arena, NULL);
    if (coerced != v) {
        const struct json *again = schema_coerce(schema, coerced, &coerce_options_all, arena, NULL);
        assert_string_equal(written(again), written(coerced)); /* idempotent */
    }
    return coerced == v ? "as it was" : written(coerced);
}

#define FIELD(schema) "{`properties`:{`a`:" schema "}}"

static const struct {
    const char *schema, *instance, *coerced;
} readings[] = {
    /* strings that spell a number or a boolean */
    {FIELD("{`type`:`integer`}"), "{`a`:`5`}", "{`a`:5}"},
    {FIELD("{`type`:`number`}"), "{`a`:` -1.50 `}", "{`a`:-1.50}"},
    {FIELD("{`type`:`integer`}"), "{`a`:`9007199254740993`}", "{`a`:9007199254740993}"},
    {FIELD("{`type`:`integer`}"), "{`a`:`5.0`}", "{`a`:5}"},
    {FIELD("{`type`:`boolean`}"), "{`a`:`True`}", "{`a`:true}"},
    {FIELD("{`anyOf`:[{`type`:`integer`},{`type`:`null`}]}"), "{`a`:`7`}", "{`a`:7}"},
    {FIELD("{`type`:`integer`,`enum`:[1,2]}"), "{`a`:`2`}", "{`a`:2}"},
    {FIELD("{`type`:`integer`}"), "{`a`:`5.5`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`05`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`five`}", "as it was"},
    {FIELD("{`type`:`integer`,`maximum`:3}"), "{`a`:`5`}", "as it was"},
    {FIELD("{`type`:[`integer`,`string`]}"), "{`a`:`5`}", "as it was"},
    {FIELD("{`anyOf`:[{`type`:`integer`},{`type`:`string`}]}"), "{`a`:`5`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`007`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`1e5`}", "{`a`:100000}"},
    {FIELD("{`type`:`integer`}"), "{`a`:`1e99`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:` 5 `}", "{`a`:5}"},
    {FIELD("{`type`:`integer`}"), "{`a`:`5%`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`$5`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`0x10`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`1,000`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`١٢`}", "as it was"},
    {FIELD("{`type`:`number`}"), "{`a`:`NaN`}", "as it was"},
    {FIELD("{`type`:`integer`}"), "{`a`:`123456789012345678901234567890`}",
     "{`a`:123456789012345678901234567890}"},
    /* words for a boolean, where nothing else fits */
    {FIELD("{`type`:`boolean`}"), "{`a`:`yes`}", "{`a`:true}"},
    {FIELD("{`type`:[`boolean`,`null`]}"), "{`a`:`No`}", "{`a`:false}"},
    {FIELD("{`type`:`boolean`}"), "{`a`:1}", "{`a`:true}"},
    {FIELD("{`type`:`boolean`}"), "{`a`:0}", "{`a`:false}"},
    {FIELD("{`type`:`boolean`}"), "{`a`:`1`}", "{`a`:true}"},
    {FIELD("{`type`:`boolean`}"), "{`a`:2}", "as it was"},
    {FIELD("{`type`:`boolean`}"), "{`a`:-0}", "as it was"},
    {FIELD("{`type`:`boolean`}"), "{`a`:`maybe`}", "as it was"},
    {FIELD("{`const`:true}"), "{`a`:`no`}", "as it was"},
    {FIELD("{`type`:[`boolean`,`integer`]}"), "{`a`:`yes`}", "as it was"},
    {FIELD("{`type`:[`boolean`,`integer`]}"), "{`a`:`1`}", "{`a`:1}"},
    {FIELD("{`type`:[`boolean`,`number`]}"), "{`a`:`true`}", "{`a`:true}"},
    {FIELD("{`enum`:[`True`,`False`]}"), "{`a`:true}", "{`a`:`True`}"},
    {FIELD("{`enum`:[`true`,`false`,`auto`]}"), "{`a`:false}", "{`a`:`false`}"},
    {FIELD("{`enum`:[`true`,`True`]}"), "{`a`:true}", "{`a`:`true`}"},
    {FIELD("{`type`:`string`}"), "{`a`:true}", "{`a`:`true`}"},
    {FIELD("{`type`:[`string`,`null`]}"), "{`a`:false}", "{`a`:`false`}"},
    {FIELD("{`type`:`string`,`maxLength`:3}"), "{`a`:true}", "as it was"},
    {FIELD("{`type`:[`string`,`number`]}"), "{`a`:true}", "as it was"},
    /* separators of a listed value */
    {FIELD("{`enum`:[`in_progress`,`done`]}"), "{`a`:`in-progress`}", "{`a`:`in_progress`}"},
    {FIELD("{`enum`:[`in_progress`,`done`]}"), "{`a`:`In Progress`}", "{`a`:`in_progress`}"},
    {FIELD("{`enum`:[`in_progress`,`done`]}"), "{`a`:`inProgress`}", "{`a`:`in_progress`}"},
    {FIELD("{`enum`:[`a-b`,`a_b`]}"), "{`a`:`a b`}", "as it was"},
    {FIELD("{`enum`:[`a-b`,`a_b`]}"), "{`a`:`A-B`}", "{`a`:`a-b`}"},
    {FIELD("{`enum`:[`1.1`,`2`]}"), "{`a`:`11`}", "as it was"},
    {FIELD("{`enum`:[`order`,`item`]}"), "{`a`:`orders`}", "as it was"},
    /* dates and times */
    {FIELD("{`format`:`date-time`}"), "{`a`:`2026-05-03 10:00:00Z`}", "{`a`:`2026-05-03T10:00:00Z`}"},
    {FIELD("{`format`:`date-time`}"), "{`a`:`2026-05-03T10:00Z`}", "{`a`:`2026-05-03T10:00:00Z`}"},
    {FIELD("{`format`:`date-time`}"), "{`a`:`2026-05-03 9:30 +0200`}", "{`a`:`2026-05-03T09:30:00+02:00`}"},
    {FIELD("{`format`:`date-time`}"), "{`a`:`2026-05-03T09:30:00.25-07`}",
     "{`a`:`2026-05-03T09:30:00.25-07:00`}"},
    {FIELD("{`format`:`date-time`}"), "{`a`:`2026-05-03 25:00`}", "as it was"},
    {FIELD("{`format`:`date-time`}"), "{`a`:`2026-02-30 10:00Z`}", "as it was"},
    {FIELD("{`format`:`date-time`}"), "{`a`:`03.05.2026 10:00Z`}", "as it was"},
    {FIELD("{`format`:`time`}"), "{`a`:`9:30Z`}", "{`a`:`09:30:00Z`}"},
    {FIELD("{`format`:`time`}"), "{`a`:`09:30+0200`}", "{`a`:`09:30:00+02:00`}"},
    {FIELD("{`format`:`time`}"), "{`a`:`9:30 pm`}", "as it was"},
    {FIELD("{`format`:`date`}"), "{`a`:`2025-08-09 00:00:00`}", "{`a`:`2025-08-09`}"},
    {FIELD("{`format`:`date`}"), "{`a`:`2025-08-09T00:00:00Z`}", "{`a`:`2025-08-09`}"},
    {FIELD("{`format`:`date`}"), "{`a`:`2025-08-09 12:00:00`}", "as it was"},
    /* a number where only a string fits, with the digits that were sent */
    {FIELD("{`type`:`string`}"), "{`a`:42}", "{`a`:`42`}"},
    {FIELD("{`type`:`string`}"), "{`a`:1.10}", "{`a`:`1.10`}"},
    {FIELD("{`type`:`string`}"), "{`a`:9007199254740993}", "{`a`:`9007199254740993`}"},
    {FIELD("{`type`:`string`}"), "{`a`:-0}", "{`a`:`-0`}"},
    {FIELD("{`type`:`string`,`enum`:[`1`,`2`]}"), "{`a`:2}", "{`a`:`2`}"},
    {FIELD("{`type`:`string`,`enum`:[`1`,`2`]}"), "{`a`:2.0}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`date`}"), "{`a`:20260503}", "as it was"},
    {FIELD("{`type`:[`string`,`boolean`]}"), "{`a`:1}", "as it was"},
    {FIELD("{`type`:[`string`,`array`]}"), "{`a`:1}", "as it was"},
    {FIELD("{`type`:`string`}"), "{`a`:{}}", "as it was"},
    /* null in words, or nothing */
    {FIELD("{`type`:[`integer`,`null`]}"), "{`a`:`None`}", "{`a`:null}"},
    {FIELD("{`type`:`integer`}"), "{`a`:`None`,`b`:1}", "{`b`:1}"},
    {FIELD("{`type`:`integer`}"), "{`a`:`null`,`b`:1}", "{`b`:1}"},
    {FIELD("{`type`:`integer`}"), "{`a`:``,`b`:1}", "{`b`:1}"},
    {FIELD("{`type`:`string`,`minLength`:1}"), "{`a`:``}", "{}"},
    {FIELD("{`type`:`string`}"), "{`a`:``}", "as it was"},
    {FIELD("{`type`:`string`}"), "{`a`:`None`}", "as it was"},
    {FIELD("{`enum`:[`none`,`all`]}"), "{`a`:`None`}", "{`a`:`none`}"},
    {FIELD("{`enum`:[`low`,`high`]}"), "{`a`:``}", "{}"},
    {FIELD("{`type`:`array`}"), "{`a`:``}", "{}"},
    {"{`properties`:{`a`:{`type`:`integer`}},`required`:[`a`]}", "{`a`:``}", "as it was"},
    {"{`additionalProperties`:{`type`:`integer`}}", "{`a`:``}", "as it was"},
    {"{`properties`:{`a`:{`type`:`integer`}},`minProperties`:1}", "{`a`:``}", "{}"},
    /* strings that spell JSON */
    {FIELD("{`type`:`object`}"), "{`a`:`{\\`b\\`:1.10}`}", "{`a`:{`b`:1.10}}"},
    {FIELD("{`type`:`array`}"), "{`a`:`[1]`}", "{`a`:[1]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`integer`}}"), "{`a`:`[\\`1\\`]`}", "{`a`:[1]}"},
    {FIELD("{`type`:[`object`,`string`]}"), "{`a`:`{}`}", "as it was"},
    {FIELD("{`type`:`array`}"), "{`a`:`[1,`}", "as it was"},
    {FIELD("{`type`:`array`}"), "{`a`:`[1,]`}", "{`a`:[1]}"},
    {FIELD("{`type`:`object`}"), "{`a`:`{'b': True, 'c': None}`}", "{`a`:{`b`:true,`c`:null}}"},
    {FIELD("{`type`:`object`}"), "{`a`:`\\u0060\\u0060\\u0060json\\n{}\\n\\u0060\\u0060\\u0060`}",
     "{`a`:{}}"},
    {FIELD("{`type`:`object`}"), "{`a`:`{\\`b\\`: \\`x`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`['b', 'c`}", "as it was"},
    {FIELD("{`type`:[`array`,`string`]}"), "{`a`:`['b']`}", "as it was"},
    /* one value for a list */
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`x`}", "{`a`:[`x`]}"},
    {FIELD("{`anyOf`:[{`type`:`array`,`items`:{`type`:`integer`}},{`type`:`null`}]}"), "{`a`:`3`}",
     "{`a`:[3]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`object`}}"), "{`a`:{`b`:1}}", "{`a`:[{`b`:1}]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`boolean`}}"), "{`a`:5}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:7}", "{`a`:[`7`]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`a, b`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`a;b`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`a\\nb`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`\\`a\\``}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`None`}", "{}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`[\\`a\\`,`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`\\u0060\\u0060\\u0060json\\n[`}",
     "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"),
     "{`a`:`The first half of this sentence is long enough to be one, and so is its second half behind the "
     "comma.`}",
     "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`One sentence without any comma.`}",
     "{`a`:[`One sentence without any comma.`]}"},
    {FIELD("{`type`:`array`,`items`:{`enum`:[`a`,`b`]}}"), "{`a`:`a, B`}", "{`a`:[`a`,`b`]}"},
    {FIELD("{`type`:`array`,`items`:{`enum`:[`a`,`b`]}}"), "{`a`:`a, c`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`enum`:[`a`,`b`]}}"), "{`a`:`a,`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`enum`:[`a`,`b`,`a,b`]}}"), "{`a`:`a,b`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`enum`:[`a`,`a, b`]}}"), "{`a`:`a, b`}", "{`a`:[`a, b`]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`,`format`:`date`}}"), "{`a`:`2026-05-03, 2026-05-04`}",
     "{`a`:[`2026-05-03`,`2026-05-04`]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`,`format`:`uri`}}"), "{`a`:`http://a/b,http://c/d`}",
     "as it was"},
    /* URIs as a browser reads them */
    {FIELD("{`type`:`string`,`format`:`uri`}"),
     "{`a`:`https://de.wikipedia.org/wiki/Käse/und/noch/viel/mehr/davon`}",
     "{`a`:`https://de.wikipedia.org/wiki/K%C3%A4se/und/noch/viel/mehr/davon`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de/a b?q=c d#e f`}",
     "{`a`:`https://a.de/a%20b?q=c%20d#e%20f`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de/100%`}", "{`a`:`https://a.de/100%25`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de/a%20b c`}",
     "{`a`:`https://a.de/a%20b%20c`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de/?f[x]=1|2`}",
     "{`a`:`https://a.de/?f%5Bx%5D=1%7C2`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de/#a#b`}", "{`a`:`https://a.de/#a%23b`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://müller.de:80/ü`}",
     "{`a`:`https://xn--mller-kva.de:80/%C3%BC`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`http://u@[::1]:80/ü`}",
     "{`a`:`http://u@[::1]:80/%C3%BC`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:` https://a.de `}", "{`a`:`https://a.de`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`file:///tmp/a b`}", "{`a`:`file:///tmp/a%20b`}"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`not an address`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`/only/a/path`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`example.com`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`note: call Ann`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de and https://b.de`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de/{id}`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a b.de/`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://exa\\u0000mple.dé/`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de／é/`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`https://a.de\\\\é`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri`}"), "{`a`:`mailto:é@a.de`}", "as it was"},
    {FIELD("{`type`:`string`,`format`:`uri-reference`}"), "{`a`:`/a b/é`}", "{`a`:`/a%20b/%C3%A9`}"},
    {FIELD("{`type`:`string`,`format`:`uri-reference`}"), "{`a`:`two words`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`integer`}}"), "{`a`:`1, 2`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`object`}}"), "{`a`:`{\\`b\\`:1}`}", "{`a`:[{`b`:1}]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`object`}}"), "{`a`:{`item`:[{}]}}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`object`}}"), "{`a`:{`0`:{},`1`:{}}}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`object`}}"), "{`a`:{}}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`object`,`properties`:{`b`:{}}}}"), "{`a`:{`c`:1}}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`object`,`properties`:{`to`:{}},`required`:[`to`]}}"),
     "{`a`:{`TO`:1}}", "{`a`:[{`to`:1}]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`string`}}"), "{`a`:`x、y`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`enum`:[`x`,`y`]}}"), "{`a`:`x;y`}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`enum`:[`x`,`x;y`]}}"), "{`a`:`x;y`}", "{`a`:[`x;y`]}"},
    {FIELD("{`type`:`array`,`items`:{`properties`:{`items`:{}},`type`:`object`}}"), "{`a`:{`items`:[1]}}",
     "{`a`:[{`items`:[1]}]}"},
    /* lists of lists: one list or three */
    {FIELD("{`type`:`array`,`items`:{`type`:`array`,`items`:{`type`:`integer`}}}"), "{`a`:[255,255,255]}",
     "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`array`,`items`:{`type`:`integer`}}}"),
     "{`a`:[`255`,`255`,`255`]}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`array`,`minItems`:3,`items`:{`type`:`integer`}}}"),
     "{`a`:[1,2,3]}", "{`a`:[[1,2,3]]}"},
    {FIELD("{`type`:`array`,`items`:{`type`:`array`,`maxItems`:1,`items`:{`type`:`integer`}}}"),
     "{`a`:[1,2,3]}", "{`a`:[[1],[2],[3]]}"},
    {FIELD("{`type`:`array`,`minItems`:1,`items`:{`type`:`array`}}"), "{`a`:[]}", "as it was"},
    {FIELD("{`type`:`array`,`maxItems`:2}"), "{`a`:[1,2,3]}", "as it was"},
    /* a text in a list of one */
    {FIELD("{`type`:`string`}"), "{`a`:[`x`]}", "{`a`:`x`}"},
    {FIELD("{`enum`:[`x`]}"), "{`a`:[`X`]}", "{`a`:`x`}"},
    {FIELD("{`type`:`string`}"), "{`a`:[`x`,`y`]}", "as it was"},
    {FIELD("{`type`:`string`}"), "{`a`:[1]}", "as it was"},
    {FIELD("{`type`:`string`}"), "{`a`:[]}", "as it was"},
    {FIELD("{`type`:[`string`,`object`]}"), "{`a`:[`x`]}", "as it was"},
    {FIELD("{`type`:`array`,`minItems`:2}"), "{`a`:1}", "as it was"},
    {FIELD("{`type`:[`array`,`string`]}"), "{`a`:`x`}", "as it was"},
    {FIELD("{`type`:[`array`,`integer`]}"), "{`a`:`x`}", "as it was"},
    /* null for an optional field */
    {FIELD("{`type`:`string`}"), "{`a`:null,`b`:1}", "{`b`:1}"},
    {FIELD("{`type`:[`string`,`null`]}"), "{`a`:null}", "as it was"},
    {"{`properties`:{`a`:{`type`:`string`}},`required`:[`a`]}", "{`a`:null}", "as it was"},
    {"{`allOf`:[{`properties`:{`a`:{`type`:`string`}}},{`required`:[`a`]}]}", "{`a`:null}", "as it was"},
    {"{`properties`:{},`additionalProperties`:{`type`:`string`}}", "{`a`:null}", "as it was"},
    /* enum values */
    {FIELD("{`enum`:[`placed`,`shipped`]}"), "{`a`:` Shipped`}", "{`a`:`shipped`}"},
    {FIELD("{`anyOf`:[{`enum`:[`placed`]},{`const`:`NA`},{`type`:`null`}]}"), "{`a`:`na`}", "{`a`:`NA`}"},
    {FIELD("{`enum`:[`a`,`A`]}"), "{`a`:` a`}", "{`a`:`a`}"},
    {FIELD("{`enum`:[`an`,`AN`]}"), "{`a`:`An`}", "as it was"},
    {FIELD("{`enum`:[`a`,`a `]}"), "{`a`:` a`}", "as it was"},
    {FIELD("{`enum`:[`shipped`]}"), "{`a`:`shipping`}", "as it was"},
    /* whole numbers spelled as floats, valid as they are */
    {FIELD("{`type`:`integer`}"), "{`a`:5.0}", "{`a`:5}"},
    {FIELD("{`type`:`number`}"), "{`a`:5.0}", "as it was"},
    {FIELD("{`type`:`array`,`items`:{`type`:`integer`}}"), "{`a`:[1,2e0]}", "{`a`:[1,2]}"},
    /* through references, branches and patterns; the rest shared as it was sent */
    {"{`properties`:{`l`:{`type`:`array`,`items`:{`$ref`:`#/$defs/f`}}},`$defs`:{`f`:{`properties`:"
     "{`n`:{`type`:`integer`}}}}}",
     "{ `l`: [ { `n`:`1`, `m`: 1.0 } ] }", "{`l`:[{`n`:1,`m`:1.0}]}"},
    {"{`oneOf`:[{`properties`:{`k`:{`const`:`a`},`n`:{`type`:`integer`}},`required`:[`k`,`n`]},"
     "{`properties`:{`k`:{`const`:`b`},`n`:{`type`:`string`}},`required`:[`k`,`n`]}]}",
     "{`k`:`a`,`n`:`1`}", "{`k`:`a`,`n`:1}"},
    {"{`patternProperties`:{`^n`:{`type`:`integer`}}}", "{`n1`:`1`}", "{`n1`:1}"},
    {"{`type`:`object`}", "`{\\`a\\`:1}`", "{`a`:1}"},
    /* a tuple is no list of one kind */
    {"{`$schema`:`http://json-schema.org/draft-07/"
     "schema#`,`properties`:{`a`:{`type`:`array`,`items`:[{`enum`:[`x`]},{`enum`:[`y`]}]}}}",
     "{`a`:`x, y`}", "as it was"},
    /* a valid value is unchanged although its neighbour is coerced */
    {"{`properties`:{`a`:{`type`:`integer`},`b`:{}}}", "{`a`:`1`,`b`:`1`}", "{`a`:1,`b`:`1`}"},
};

TEST(coerces_only_to_the_one_reading_that_fits)
{
    for (size_t i = 0; i < sizeof(readings) / sizeof(*readings); i++) {
        const char *got = coerced_text(compile(readings[i].schema), parse(readings[i].instance));
        if (strcmp(got, quoted(readings[i].coerced).at) != 0)
            fail_msg("%s %s became %s", readings[i].schema, readings[i].instance, got);
    }
}

TEST(each_coercion_can_be_disabled)
{
    static const struct {
        const char *schema, *instance;
        struct coerce_options without;
    } table[] = {
        {FIELD("{`type`:`integer`}"),
         "{`a`:`5`}",
         {.json = true, .lists = true, .nulls = true, .enums = true, .floats = true}},
        {FIELD("{`type`:`object`}"),
         "{`a`:`{}`}",
         {.strings = true, .lists = true, .nulls = true, .enums = true}},
        {FIELD("{`type`:`array`}"), "{`a`:1}", {.json = true, .strings = true, .nulls = true, .enums = true}},
        {FIELD("{`type`:`string`}"),
         "{`a`:null}",
         {.json = true, .strings = true, .lists = true, .enums = true}},
        {FIELD("{`enum`:[`x`]}"), "{`a`:`X`}", {.json = true, .strings = true, .lists = true, .nulls = true}},
        {FIELD("{`type`:`integer`}"),
         "{`a`:5.0}",
         {.json = true, .strings = true, .lists = true, .nulls = true}},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const struct json *v = parse(table[i].instance);
        const struct schema *schema = compile(table[i].schema);
        assert_ptr_equal(schema_coerce(schema, v, &table[i].without, arena, NULL), v);
        assert_ptr_not_equal(schema_coerce(schema, v, &coerce_options_all, arena, NULL), v);
    }
}
