/* Every keyword of the three dialects: a schema, a valid and an invalid value. The official suite is more
 * thorough, but may be absent. */
#include "schema/schema_support.h"

#define DRAFT7  "`$schema`:`http://json-schema.org/draft-07/schema#`,"
#define DRAFT19 "`$schema`:`https://json-schema.org/draft/2019-09/schema`,"

static const struct {
    const char *schema, *fits, *fails;
} keywords[] = {
    {"{`type`:`integer`}", "1.0", "1.5"},
    {"{`type`:[`string`,`null`]}", "null", "0"},
    {"{`enum`:[1,`a`,[2]]}", "[2.0]", "`b`"},
    {"{`const`:{`a`:1,`b`:[null]}}", "{`b`:[null],`a`:1e0}", "{`a`:1}"},
    {"{`multipleOf`:0.01}", "19.99", "19.999"},
    {"{`minimum`:-3}", "-3", "-3.0001"},
    {"{`maximum`:9007199254740993}", "9007199254740993", "9007199254740994"},
    {"{`exclusiveMinimum`:0}", "1e-400", "0"},
    {"{`exclusiveMaximum`:1e400}", "1e399", "1e400"},
    {"{`minLength`:2}", "`\\ud83d\\ude00x`", "`\\ud83d\\ude00`"},
    {"{`maxLength`:1}", "`\xc3\xa9`", "`ab`"},
    {"{`pattern`:`^\\\\d+$`}", "`12`", "`1a`"},
    {"{`format`:`date`}", "`2024-02-29`", "`2023-02-29`"},
    {"{`items`:{`type`:`string`}}", "[`a`]", "[`a`,1]"},
    {"{`prefixItems`:[{`type`:`string`}],`items`:false}", "[`a`]", "[`a`,1]"},
    {"{" DRAFT19 "`items`:[true],`additionalItems`:false}", "[1]", "[1,2]"},
    {"{`contains`:{`const`:1}}", "[2,1]", "[2]"},
    {"{`contains`:{`const`:1},`minContains`:2}", "[1,1]", "[1]"},
    {"{`contains`:{`const`:1},`maxContains`:1}", "[1,2]", "[1,1]"},
    {"{`contains`:true,`minContains`:0}", "[]", NULL},
    {"{`minItems`:1}", "[0]", "[]"},
    {"{`maxItems`:1}", "[0]", "[0,0]"},
    {"{`uniqueItems`:true}", "[1,true,`1`]", "[{`a`:1},{`a`:1.0}]"},
    {"{`properties`:{`a`:{`type`:`null`}}}", "{`a`:null,`b`:1}", "{`a`:1}"},
    {"{`patternProperties`:{`^x`:false}}", "{`ax`:1}", "{`xa`:1}"},
    {"{`properties`:{`a`:true},`additionalProperties`:{`type`:`null`}}", "{`a`:1,`b`:null}", "{`b`:1}"},
    {"{`propertyNames`:{`maxLength`:2}}", "{`ab`:1}", "{`abc`:1}"},
    {"{`required`:[`a`,`b`]}", "{`b`:1,`a`:null}", "{`a`:1}"},
    {"{`minProperties`:1}", "{`a`:1}", "{}"},
    {"{`maxProperties`:1}", "{`a`:1}", "{`a`:1,`b`:2}"},
    {"{`dependentRequired`:{`a`:[`b`]}}", "{`b`:1}", "{`a`:1}"},
    {"{`dependentSchemas`:{`a`:{`minProperties`:2}}}", "{`a`:1,`b`:1}", "{`a`:1}"},
    {"{" DRAFT7 "`dependencies`:{`a`:[`b`],`c`:{`required`:[`d`]}}}", "{`c`:1,`d`:1}", "{`a`:1}"},
    {"{`allOf`:[{`minimum`:1},{`maximum`:2}]}", "2", "3"},
    {"{`anyOf`:[{`type`:`string`},{`minimum`:1}]}", "`x`", "0"},
    {"{`oneOf`:[{`minimum`:1},{`maximum`:2}]}", "3", "2"},
    {"{`not`:{`type`:`string`}}", "1", "`a`"},
    {"{`if`:{`required`:[`a`]},`then`:{`required`:[`b`]},`else`:{`maxProperties`:0}}", "{`a`:1,`b`:1}",
     "{`c`:1}"},
    {"{`$defs`:{`n`:{`type`:`number`}},`$ref`:`#/$defs/n`,`minimum`:1}", "1", "0"},
    {"{" DRAFT7 "`definitions`:{`n`:{`type`:`number`}},`$ref`:`#/definitions/n`,`minimum`:1}", "0", "`a`"},
    {"{`$defs`:{`n`:{`$anchor`:`num`,`type`:`number`}},`$ref`:`#num`}", "1", "`a`"},
    {"{" DRAFT7 "`definitions`:{`n`:{`$id`:`#num`,`type`:`number`}},`$ref`:`#num`}", "1", "`a`"},
    {"{`$id`:`http://x/a`,`$defs`:{`n`:{`$id`:`b`,`type`:`number`}},`$ref`:`b`}", "1", "`a`"},
    {"{`$id`:`http://x/t`,`$dynamicAnchor`:`n`,`properties`:{`c`:{`$dynamicRef`:`#n`}},`required`:[`v`]}",
     "{`v`:1,`c`:{`v`:2}}", "{`v`:1,`c`:{}}"},
    {"{" DRAFT19 "`$id`:`http://x/t`,`$recursiveAnchor`:true,`properties`:{`c`:{`$recursiveRef`:`#`}},"
     "`required`:[`v`]}",
     "{`v`:1,`c`:{`v`:2}}", "{`v`:1,`c`:{}}"},
    {"{`prefixItems`:[true],`anyOf`:[{`prefixItems`:[true,{`const`:2}]},true],`unevaluatedItems`:false}",
     "[1,2]", "[1,3]"},
    {"{`properties`:{`a`:true},`if`:{`properties`:{`b`:{`const`:1}},`required`:[`b`]},"
     "`unevaluatedProperties`:false}",
     "{`a`:1,`b`:1}", "{`a`:1,`b`:2}"},
    {"{`title`:`t`,`description`:`d`,`default`:1,`examples`:[2],`deprecated`:true,`readOnly`:true,"
     "`writeOnly`:false,`$comment`:`c`,`contentEncoding`:`base64`,`x-own`:{`type`:`null`}}",
     "`anything`", NULL},
    {"true", "null", NULL},
    {"false", NULL, "null"},
    {"{`properties`:{`a`:{`$ref`:`#`}},`type`:`object`}", "{`a`:{`a`:{}}}", "{`a`:{`a`:1}}"},
};

/* The boolean pass, and that the collecting pass agrees. */
static bool fits(const char *schema, const char *instance)
{
    return lines_of(compile(schema), parse(instance))[0] == '\0';
}

TEST(each_keyword_accepts_and_rejects)
{
    for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++) {
        if (keywords[i].fits && !fits(keywords[i].schema, keywords[i].fits))
            fail_msg("%s refuses %s", keywords[i].schema, keywords[i].fits);
        if (keywords[i].fails && fits(keywords[i].schema, keywords[i].fails))
            fail_msg("%s takes %s", keywords[i].schema, keywords[i].fails);
    }
}
