/* Names that belong elsewhere: each is one problem that says where. */
#include "schema/schema_support.h"

#define RANGE                                                                                                \
    "{`type`:`object`,`properties`:{`start`:{`type`:`integer`},`end`:{`type`:`integer`}},"                   \
    "`required`:[`start`,`end`],`additionalProperties`:false}"
#define EDITS                                                                                                \
    "{`type`:`object`,`properties`:{`path`:{`type`:`string`},`edits`:{`type`:`array`,`items`:{`type`:`"      \
    "object`,"                                                                                               \
    "`properties`:{`oldText`:{`type`:`string`},`newText`:{`type`:`string`}},`required`:[`oldText`,`newText`" \
    "]}}},"                                                                                                  \
    "`required`:[`path`,`edits`],`additionalProperties`:false}"
#define OPTIONS                                                                                              \
    "{`type`:`object`,`properties`:{`url`:{`type`:`string`},`options`:{`type`:`object`,`properties`:"        \
    "{`timeout`:{`type`:`integer`}},`additionalProperties`:false}},`additionalProperties`:false}"

TEST(each_misplaced_name_is_one_problem)
{
    static const struct {
        const char *schema, *instance, *lines;
    } table[] = {
        {RANGE, "{`line_start`:1,`line_end`:2}", "- rename 'line_start' → 'start', 'line_end' → 'end'\n"},
        {"{`properties`:{`date_of_birth`:{`type`:`string`}},`required`:[`date_of_birth`]}", "{`dob`:`a`}",
         "- 'dob': unknown field — did you mean 'date_of_birth'?\n"},
        /* a name that is not alike was not meant, even if it is the only one left */
        {RANGE, "{`start`:1,`stop`:2}", "- 'end' is missing: integer\n- 'stop': unknown field — remove it\n"},
        {RANGE, "{`start`:1,`stop`:`x`}",
         "- 'end' is missing: integer\n- 'stop': unknown field — remove it\n"},
        {RANGE, "{`start`:1,`END`:`x`}", "- 'end' is missing: integer\n- 'END': unknown field — remove it\n"},
        {"{`type`:`object`,`properties`:{`quality`:{`enum`:[`low`,`high`]}},`required`:[`quality`],"
         "`additionalProperties`:false}",
         "{`format`:`png`}", "- 'quality' is missing: low|high\n- 'format': unknown field — remove it\n"},
        {EDITS, "{`path`:`a`,`oldText`:`x`,`newText`:`y`}",
         "- 'edits' is missing: list of {oldText: string (required), newText: string (required)}; 'oldText', "
         "'newText' belong in edits[0]\n"},
        {OPTIONS, "{`timeout`:5}", "- 'timeout' is not declared here: it belongs in options\n"},
        {OPTIONS, "{`options`:{`url`:`x`}}",
         "- 'options.url' is not declared here: it belongs at the top level of the arguments\n"},
        {OPTIONS, "{`options`:{`colour`:{`a`:1}}}",
         "- 'options.colour' is not declared here; the declared names are timeout\n"},
        /* an open object takes any name: only what is alike was meant */
        {"{`properties`:{`file_path`:{`type`:`string`}},`required`:[`file_path`]}", "{`path`:`a`}",
         "- 'path': unknown field — did you mean 'file_path'?\n"},
        {"{`properties`:{`user_id`:{`type`:`string`},`file_id`:{`type`:`string`}},`additionalProperties`:"
         "false}",
         "{`id`:`7`}", "- 'id': unknown field — remove it\n"},
        /* …, and then each other name that is alike */
        {"{`properties`:{`start`:{`type`:`integer`},`end`:{`type`:`integer`}},`required`:[`start`]}",
         "{`line_start`:1,`line_end`:2,`note`:3}", "- rename 'line_start' → 'start', 'line_end' → 'end'\n"},
        {"{`type`:`object`,`properties`:{`entities`:{`type`:`array`,`items`:{`type`:`object`,`properties`:"
         "{`name`:{`type`:`string`},`entityType`:{`type`:`string`}},`required`:[`name`,`entityType`]}}},"
         "`required`:[`entities`],`additionalProperties`:false}",
         "{`name`:`Ada`,`entityType`:`person`}",
         "- 'entities' is missing: list of {name: string (required), entityType: string (required)}; 'name', "
         "'entityType' belong in entities[0]\n"},
        {"{`items`:" RANGE "}", "[{`from`:1,`end`:2},{`from`:1,`end`:2}]",
         "- '[0…1].start' is missing: integer\n- '[0…1].from' is not declared here; the declared names are "
         "start, end\n"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        assert_string_equal(lines_of(compile(table[i].schema), parse(table[i].instance)),
                            quoted(table[i].lines).at);
}

TEST(a_rename_is_suggested)
{
    struct problems problems;
    problems_init(&problems, arena);
    schema_explain(compile(RANGE), parse("{`line_start`:1,`end`:2}"), &problems, NULL);
    assert_int_equal(problems.count, 1);
    assert_string_equal(problems.list[0].code, "unknown_field");
    assert_true(str_is(problems.list[0].path, "line_start"));
    assert_true(str_is(problems.list[0].suggestion, "\"start\""));
}
