/* Tools as a model sees them: repaired definitions, hidden tools, and each provider's format. */

#include "catalog/generation_case.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"
#include "catalog/provider_formats.h"

#include <unistd.h>

static const struct peer peer = {.uid = 1000, .user = "ann"};
static struct buf shown;

static void write_policy(const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof(path), "policies/%s", name);
    write_file(path, text);
}

static void build(void)
{
    const char *tools[] = {in_folder("tools.json")};
    struct config_sources sources = {
        .socket = "/nowhere", .tools = tools, .tools_count = access(tools[0], F_OK) == 0};
    if (build_with(sources, NULL) != OK)
        fail_msg(STR_FMT, STR_ARG(report.errors[0]));
}

static const struct json *list(struct catalog_request request)
{
    request.peer = &peer;
    shown = buf_in(arena);
    catalog_write(arena, generation, &request, &shown);
    return value_of_str(buf_view(&shown));
}

static const struct json *tool_at(const struct json *tools, uint32_t at)
{
    assert_true(at < tools->len);
    return &tools->items[at];
}

static struct str text_of(const struct json *object, const char *key)
{
    return json_str(json_get_text(object, key));
}

static void expect_json(const struct json *value, const char *text)
{
    assert_string_equal(written(value), text);
}

#define RUNS "run = function(args) return 'ran' end,\n"

/* ---- lists ---------------------------------------------------------------- */

TEST(policy_sentences_join_the_description)
{
    write_policy("a.lua",
                 "return tool \"look\" {\n" RUNS "description = \"Looks.\", use_when = \"you want to see\",\n"
                 "avoid_when = \"it is dark: use feel\",\n"
                 "schema = json [[{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}}}]],\n"
                 "rules = { when { a = 1 } : needs \"b\" } }\n");
    build();
    const struct json *tools = list((struct catalog_request){0});
    struct str text = text_of(tool_at(tools, 0), "description");
    assert_true(
        str_starts(text, "Looks.\nUse it when you want to see.\nAvoid it when it is dark: use feel.\n"));
    assert_true(str_contains_nocase(text, STR_LIT("required")));
}

TEST(tools_that_the_agent_runs_are_not_listed)
{
    write_file("tools.json", "[{\"name\":\"zed\",\"inputSchema\":{\"type\":\"object\"}},"
                             "{\"name\":\"odd name\",\"inputSchema\":{\"type\":\"object\"}}]");
    write_policy("b.lua",
                 "return tool \"b\" { description = \"B.\", schema = json [[{\"type\":\"object\"}]],\n" RUNS
                 "}\n");
    write_policy("a.lua",
                 "return tool \"a\" { description = \"A.\", schema = json [[{\"type\":\"object\"}]],\n" RUNS
                 "}\n");
    build();
    const struct json *tools = list((struct catalog_request){0});
    assert_int_equal(tools->len, 2);
    assert_true(str_is(text_of(tool_at(tools, 0), "name"), "a"));
    assert_true(str_is(text_of(tool_at(tools, 1), "name"), "b"));
    assert_int_equal(list((struct catalog_request){.all = true})->len, 4);
    /* no provider accepts the third name */
    assert_int_equal(
        list((struct catalog_request){.all = true, .provider = {.format = PROVIDER_FORMAT_OPENAI}})->len, 3);
}

TEST(members_that_break_clients_are_repaired)
{
    write_file("tools.json",
               "[{\"name\":\"t\",\"title\":7,\"description\":null,\"_meta\":null,\"execution\":{"
               "\"taskSupport\":\"x\"},"
               "\"icons\":[{\"sizes\":[]}],\"annotations\":{\"readOnlyHint\":\"yes\",\"openWorldHint\":true},"
               "\"inputSchema\":{\"properties\":{\"any\":true,\"n\":{\"maximum\":1.10}},\"x-note\":"
               "9007199254740993},"
               "\"outputSchema\":{\"type\":\"array\"}}]");
    build();
    const struct json *tool = tool_at(list((struct catalog_request){.all = true}), 0);
    expect_json(tool,
                "{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"any\":{},\"n\":{\"maximum\":1.10}},"
                "\"x-note\":9007199254740993,\"type\":\"object\"},\"annotations\":{\"openWorldHint\":true}}");
}

TEST(a_valid_schema_is_unchanged)
{
    const char *schema = "{ \"type\" : \"object\", \"$schema\":\"http://json-schema.org/draft-07/schema#\",  "
                         "\"properties\":{\"b\":{\"const\":1.0e1},\"a\":{}} }";
    char text[400];
    snprintf(text, sizeof(text), "[{\"name\":\"t\",\"inputSchema\":%s}]", schema);
    write_file("tools.json", text);
    build();
    const struct json *tool = tool_at(list((struct catalog_request){.all = true}), 0);
    expect_json(json_get_text(tool, "inputSchema"), schema);
}

/* ---- hooks ---------------------------------------------------------------- */

#define PLAIN(name)                                                                                          \
    "return tool \"" name "\" { description = \"D.\", schema = json [[{\"type\":\"object\"}]],\n" RUNS "}\n"
#define WITH(name, hook)                                                                                     \
    "return tool \"" name "\" { description = \"D.\", schema = json [[{\"type\":\"object\"}]],\n" RUNS hook  \
    "}\n"

static bool shows(const char *tool, const char *goal)
{
    struct catalog_request request = {.peer = &peer, .goal = str_of(goal)};
    const struct tool *found = generation_find(generation, str_of(tool));
    return found && catalog_shows(arena, generation, &request, found);
}

TEST(prepare_rewords_and_hides)
{
    write_policy(
        "a.lua",
        WITH("a", "prepare = function(def, call) def.description = \"For \" .. call.user; def.name = \"z\"; "
                  "return def end,"));
    write_policy("b.lua", WITH("b", "prepare = function() return nil end,"));
    write_policy("c.lua", WITH("c", "prepare = function() error \"oops\" end,"));
    write_policy("d.lua", WITH("d", "on_policy_error = 'open', prepare = function() error \"oops\" end,"));
    build();
    const struct json *tools = list((struct catalog_request){0});
    assert_int_equal(tools->len, 2);
    assert_true(str_is(text_of(tool_at(tools, 0), "name"), "a"));
    assert_true(str_is(text_of(tool_at(tools, 0), "description"), "For ann"));
    assert_true(str_is(text_of(tool_at(tools, 1), "name"), "d"));
    assert_true(shows("a", ""));
    assert_false(shows("b", ""));
    assert_false(shows("c", "")); /* it breaks, so it cannot say that the tool may be shown */
    assert_true(shows("d", ""));
    assert_false(shows("no-such-tool", ""));
}

TEST(the_gateway_hides_by_goal_and_grants_nothing)
{
    write_policy("a.lua", PLAIN("a"));
    write_policy("b.lua", PLAIN("b"));
    write_policy("gateway.lua",
                 "return gateway { prepare_tools = function(defs, call)\n"
                 "  local shown = { { name = \"invented\", inputSchema = { type = \"object\" } } }\n"
                 "  for _, def in ipairs(defs) do\n"
                 "    if def.name ~= \"b\" or call.goal == \"b\" then shown[#shown + 1] = def end\n"
                 "  end\n  return shown\nend }\n");
    build();
    assert_int_equal(list((struct catalog_request){0})->len, 1);
    assert_int_equal(list((struct catalog_request){.goal = STR_LIT("b")})->len, 2);
    for (int i = 0; i < 2; i++) { /* computed, then cached */
        assert_true(shows("a", ""));
        assert_false(shows("b", ""));
        assert_true(shows("b", "b"));
        assert_false(shows("invented", ""));
    }
}

TEST(a_broken_gateway_leaves_what_reads)
{
    write_policy("a.lua", WITH("a", "effects = 'read',"));
    write_policy("b.lua", WITH("b", "annotations = { readOnlyHint = true },"));
    write_policy("c.lua", WITH("c", "effects = 'write',"));
    write_policy("get_d.lua", PLAIN("get_d")); /* only its name says so */
    write_policy("gateway.lua", "return gateway { prepare_tools = function(defs, call)\n"
                                "  if call.goal ~= \"fine\" then error \"oops\" end\n  return defs\nend }\n");
    build();
    assert_int_equal(list((struct catalog_request){0})->len, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(shows("a", "") && shows("b", ""));
        assert_false(shows("c", "") || shows("get_d", ""));
        assert_true(shows("c", "fine") && shows("get_d", "fine"));
    }
}

/* ---- formats ---- */

static void collect(void *owner, struct str tool, const char *text)
{
    (void)tool;
    buf_text(owner, text);
}

TEST(each_provider_gets_its_format)
{
    struct buf warnings = buf_in(arena);
    write_file(
        "tools.json",
        "[{\"name\":\"t\",\"description\":\"T.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{},"
        "\"anyOf\":[{}]}}]");
    build();
    struct catalog_request request = {.all = true, .provider = {.warn = collect, .owner = &warnings}};
    request.provider.format = PROVIDER_FORMAT_OPENAI;
    expect_json(list(request), "[{\"type\":\"function\",\"function\":{\"name\":\"t\",\"description\":\"T.\","
                               "\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]");
    assert_true(str_contains_nocase(buf_view(&warnings), STR_LIT("anyOf")));
    warnings.len = 0;
    request.provider.format = PROVIDER_FORMAT_GEMINI;
    expect_json(list(request), "[{\"name\":\"t\",\"description\":\"T.\",\"parametersJsonSchema\":"
                               "{\"type\":\"object\",\"properties\":{},\"anyOf\":[{}]}}]");
    assert_int_equal(warnings.len, 0);
    request.provider.format = PROVIDER_FORMAT_ANTHROPIC;
    expect_json(list(request), "[{\"name\":\"t\",\"description\":\"T.\",\"input_schema\":"
                               "{\"type\":\"object\",\"properties\":{}}}]");
    assert_true(str_contains_nocase(buf_view(&warnings), STR_LIT("anyOf")));
}

/* A turn of the loop may end after each piece; another call of the Lua file comes between two of them. */
TEST(a_large_schema_is_written_in_pieces)
{
    struct buf text = buf_in(arena), pieces = buf_in(arena);
    struct catalog_request request = {.all = true,
                                      .provider = {.format = PROVIDER_FORMAT_OPENAI, .strict = true}};
    static const struct json schema = {.type = JSON_OBJECT};
    struct json out;
    struct why why;
    buf_text(&text,
             "[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"p\":{\"anyOf\":[");
    for (int i = 0; i < 2000; i++)
        buf_printf(&text, "%s{\"type\":\"object\",\"properties\":{\"k\":{\"const\":%d}}}", i ? "," : "", i);
    buf_text(&text, "]}}}}]");
    buf_byte(&text, '\0');
    write_file("tools.json", text.at);
    build();
    for (int round = 0; round < 2; round++) {
        struct catalog_writing *writing = catalog_write_begin(arena, generation, &request, &pieces);
        size_t inside = 0;
        for (; catalog_write_next(writing) && (round || inside < 3);
             inside += catalog_write_is_inside(writing))
            assert_int_equal(openai_strict_schema(arena, &schema, &out, &why), ERR_SCHEMA);
        assert_in_range(inside, round ? 50 : 3, 2000);
        catalog_write_end(writing);
        if (!round) /* it has not come to the end */
            pieces.len = 0;
    }
    list(request);
    assert_true(str_eq(buf_view(&shown), buf_view(&pieces)));
    assert_in_range(pieces.len, 100000, 400000);
}

/* A turn of the loop may end after each tool that is looked at, and after each that is written. */
TEST(a_long_list_is_made_in_steps)
{
    struct buf text = buf_in(arena), out = buf_in(arena);
    struct catalog_request request = {.all = true};
    buf_byte(&text, '[');
    for (int i = 0; i < 300; i++)
        buf_printf(&text, "%s{\"name\":\"t%d\",\"inputSchema\":{\"type\":\"object\"}}", i ? "," : "", i);
    buf_text(&text, "]");
    buf_byte(&text, '\0');
    write_file("tools.json", text.at);
    build();
    struct catalog_writing *writing = catalog_write_begin(arena, generation, &request, &out);
    size_t steps = 0;
    while (catalog_write_next(writing))
        steps++;
    assert_in_range(steps, 600, 610);
    list(request);
    assert_true(str_eq(buf_view(&shown), buf_view(&out)));
}

/* ---- a client's own tools ---- */

static const struct tool *registers(struct client_tools *tools, const char *text)
{
    const struct tool *tool;
    struct why why;
    assert_int_equal(client_tools_register(tools, generation, value_of(text), &tool, &why), OK);
    return tool;
}

TEST(a_replaced_tool_goes_when_no_request_can_use_it_though_others_are_in_flight)
{
    build();
    struct client_tools *tools = client_tools_new(&peer);
    uint64_t early = client_tools_now(tools);
    const struct tool *first = registers(tools, "{\"name\":\"mine\",\"description\":\"One.\"}");
    registers(tools, "{\"name\":\"mine\",\"description\":\"Two.\"}");
    size_t both = client_tools_bytes(tools);
    uint64_t late = client_tools_now(tools);
    client_tools_free_unused(tools, early);
    assert_int_equal(client_tools_bytes(tools), both);
    assert_true(str_is(first->description, "One."));
    registers(tools, "{\"name\":\"mine\",\"description\":\"Three.\"}");
    client_tools_free_unused(tools, late);
    assert_true(client_tools_bytes(tools) <= both);
    client_tools_free_unused(tools, UINT64_MAX);
    assert_true(client_tools_bytes(tools) < both);
    const struct tool *now = client_tools_find(tools, generation, STR_LIT("mine"));
    assert_true(str_is(now->description, "Three."));
    client_tools_free(tools);
}

TEST(formats_have_names)
{
    enum provider_format format;
    assert_int_equal(provider_format_named(STR_LIT("gemini"), &format), OK);
    assert_int_equal(format, PROVIDER_FORMAT_GEMINI);
    assert_int_equal(provider_format_named(STR_LIT("cohere"), &format), ERR_NOT_FOUND);
}

/* ---- strict --------------------------------------------------------------- */

static enum err strict(const char *text, struct json *out, struct why *why)
{
    return openai_strict_schema(arena, value_of(text), out, why);
}

TEST(strict_mode_closes_objects_and_requires_nullable_fields)
{
    struct json out;
    struct why why;
    assert_int_equal(
        strict("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"x\"},"
               "\"b\":{\"enum\":[1,2],\"type\":\"integer\"},\"c\":{\"$ref\":\"#/$defs/d\"}},"
               "\"required\":[\"a\"],\"$defs\":{\"d\":{\"type\":\"array\",\"items\":{\"oneOf\":"
               "[{\"type\":\"number\"},{\"type\":\"null\"}]}}}}",
               &out, &why),
        OK);
    expect_json(&out,
                "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},"
                "\"b\":{\"enum\":[1,2,null],\"type\":[\"integer\",\"null\"]},"
                "\"c\":{\"anyOf\":[{\"$ref\":\"#/$defs/d\"},{\"type\":\"null\"}]}},"
                "\"$defs\":{\"d\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"number\"},"
                "{\"type\":\"null\"}]}}},\"required\":[\"a\",\"b\",\"c\"],\"additionalProperties\":false}");
}

TEST(strict_mode_names_what_it_cannot_express)
{
    static const struct {
        const char *schema, *words;
    } cases[] = {
        {"{\"type\":\"object\",\"properties\":{\"a\":{}}}", "#/a"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\"}}}", "free-form"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
         "\"string\"}}}}",
         "any keys"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\"}}}", "items"},
        {"{\"type\":\"object\",\"properties\":{},\"allOf\":[]}", "allOf"},
        {"{\"type\":\"object\",\"properties\":{},\"anyOf\":[]}", "root"},
        {"{\"type\":\"string\"}", "root"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json out;
        struct why why;
        assert_int_equal(strict(cases[i].schema, &out, &why), ERR_SCHEMA);
        if (!strstr(why.text, cases[i].words))
            fail_msg("'%s' does not say '%s'", why.text, cases[i].words);
    }
}
