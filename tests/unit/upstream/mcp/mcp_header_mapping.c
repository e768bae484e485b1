/* Arguments in headers, as MCP 2026-07-28 requires them. */

#include "arena_case.h"
#include "upstream/mcp/mcp_header_mapping.h"

/* The specification's own table of encodings. */
TEST(encodes_values_that_no_header_can_hold)
{
    static const struct {
        const char *text, *value;
    } rows[] = {
        {"us-west1", "us-west1"},
        {"Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
        {" padded ", "=?base64?IHBhZGRlZCA=?="},
        {"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
        {"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
        {"=?base64?", "=?base64?"},
        {"", "=?base64?\?="},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct str value = header_mapping_encode(arena, str_of(rows[i].text));
        assert_int_equal(value.len, strlen(rows[i].value));
        assert_memory_equal(value.at, rows[i].value, value.len);
    }
}

#define MARKED                                                                                               \
    "{\"type\":\"object\",\"properties\":{"                                                                  \
    "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"                                          \
    "\"n\":{\"type\":[\"integer\",\"null\"],\"x-mcp-header\":\"N\"},"                                        \
    "\"x-mcp-header\":{\"type\":\"string\"},"                                                                \
    "\"in\":{\"type\":\"object\",\"properties\":{\"dry\":{\"type\":\"boolean\",\"x-mcp-header\":\"Dry\"}}}}" \
    "}"

/* "Name: value;" for each. */
static void mirrors(const char *arguments, const char *expected)
{
    const struct json *value = value_of(arguments);
    struct buf heard = buf_in(arena);
    struct name_values pairs = header_mapping_headers(arena, value_of(MARKED), value);
    for (size_t i = 0; i < pairs.count; i++)
        buf_printf(&heard, STR_FMT ": " STR_FMT ";", STR_ARG(pairs.list[i].name),
                   STR_ARG(pairs.list[i].value));
    buf_byte(&heard, '\0');
    assert_string_equal(heard.at, expected);
    assert_int_equal(header_mapping_headers(arena, NULL, value).count, 0);
    assert_int_equal(header_mapping_headers(arena, value_of("{\"type\":\"object\"}"), value).count, 0);
}

TEST(maps_annotated_arguments)
{
    mirrors("{\"region\":\"us-west1\",\"n\":42,\"in\":{\"dry\":true}}",
            "Mcp-Param-Region: us-west1;Mcp-Param-N: 42;Mcp-Param-Dry: true;");
    mirrors("{\"n\":-7.0}", "Mcp-Param-N: -7;");
    mirrors("{\"region\":null,\"in\":{}}", "");
    mirrors("{\"n\":9007199254740993,\"region\":[1],\"in\":5}", "");
    mirrors("{\"region\":\"\"}", "Mcp-Param-Region: =?base64?\?=;");
    mirrors("{}", "");
}

static void is_checked(const char *schema, enum err expected)
{
    struct why why;
    assert_int_equal(header_mapping_check(value_of(schema), &why), expected);
}

#define PROPERTY(inside) "{\"type\":\"object\",\"properties\":{\"a\":" inside "}}"

TEST(rejects_invalid_annotations)
{
    is_checked(MARKED, OK);
    is_checked("{\"type\":\"object\",\"default\":{\"x-mcp-header\":\"A\"}}", OK);
    is_checked(PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"\"}"), ERR_SCHEMA);
    is_checked(PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"a b\"}"), ERR_SCHEMA);
    is_checked(PROPERTY("{\"type\":\"string\",\"x-mcp-header\":7}"), ERR_SCHEMA);
    is_checked(PROPERTY("{\"type\":\"number\",\"x-mcp-header\":\"A\"}"), ERR_SCHEMA);
    is_checked(PROPERTY("{\"type\":\"array\",\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}"),
               ERR_SCHEMA);
    is_checked(PROPERTY("{\"anyOf\":[{\"type\":\"string\",\"x-mcp-header\":\"A\"}]}"), ERR_SCHEMA);
    is_checked("{\"type\":\"object\",\"x-mcp-header\":\"A\"}", ERR_SCHEMA);
    is_checked("{\"$defs\":{\"d\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}", ERR_SCHEMA);
    is_checked("{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"Id\"},"
               "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"ID\"}}}",
               ERR_SCHEMA);
}
