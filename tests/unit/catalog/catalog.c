/* Tools as a model sees them: repaired definitions, hidden tools, and each provider's format. */

#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"
#include "catalog/provider_formats.h"
#include "json/parse.h"
#include "json/write.h"

/* ---- a generation from strings ---- */

struct fixture {
    char folder[64], policies[80], tools[80];
    struct arena *arena;
    struct generation *generation;
    struct peer peer;
    struct buf shown;
};

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    log_open(LOG_OFF, LOG_FORMAT_TEXT, NULL, NULL);
    strcpy(fixture->folder, "/tmp/toolgate-catalog-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->policies, sizeof(fixture->policies), "%s/policies", fixture->folder);
    snprintf(fixture->tools, sizeof(fixture->tools), "%s/tools.json", fixture->folder);
    assert_int_equal(mkdir(fixture->policies, 0700), 0);
    fixture->arena = arena_new();
    fixture->shown = buf_in(fixture->arena);
    fixture->peer = (struct peer){.uid = 1000, .user = "ann"};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char command[128];
    generation_unref(fixture->generation);
    arena_free(fixture->arena);
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->folder);
    assert_int_equal(system(command), 0);
    free(fixture);
    return 0;
}

FIXTURE_OF(set_up, tear_down)

#define STORY(name) TEST_OF(name, struct fixture *fixture)

static void build(struct fixture *fixture)
{
    const char *tools[] = {fixture->tools};
    bool has_tools = access(fixture->tools, F_OK) == 0;
    struct config_sources sources = {
        .socket = "/nowhere", .policies = fixture->policies, .tools = tools, .tools_count = has_tools};
    struct config config;
    struct generation_report report;
    struct why why;
    generation_report_init(&report, fixture->arena);
    assert_int_equal(config_load(&sources, &config, &why), OK);
    if (generation_build(&config, 1, NULL, &fixture->generation, &report) != OK)
        fail_msg("%.*s", STR_ARG(report.errors[0]));
}

static const struct json *list(struct fixture *fixture, struct catalog_request request)
{
    struct json *tools = arena_alloc(fixture->arena, sizeof(*tools));
    struct json_error fault;
    request.peer = &fixture->peer;
    fixture->shown = buf_in(fixture->arena);
    catalog_write(fixture->arena, fixture->generation, &request, &fixture->shown);
    if (json_parse(fixture->arena, buf_view(&fixture->shown), NULL, tools, &fault) != OK)
        fail_msg("%s in %.*s", fault.text, STR_ARG(buf_view(&fixture->shown)));
    return tools;
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
    struct buf got = {0};
    assert_non_null(value);
    json_write(&got, value);
    buf_byte(&got, '\0');
    assert_string_equal(got.at, text);
    buf_clear(&got);
}

#define RUNS "run = function(args) return 'ran' end,\n"

/* ---- lists ---------------------------------------------------------------- */

STORY(policy_sentences_join_the_description)
{
    write_file(fixture->policies, "a.lua",
               "return tool \"look\" {\n" RUNS "description = \"Looks.\", use_when = \"you want to see\",\n"
               "avoid_when = \"it is dark: use feel\",\n"
               "schema = json [[{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}}}]],\n"
               "rules = { when { a = 1 } : needs \"b\" } }\n");
    build(fixture);
    const struct json *tools = list(fixture, (struct catalog_request){0});
    struct str text = text_of(tool_at(tools, 0), "description");
    assert_true(
        str_starts(text, "Looks.\nUse it when you want to see.\nAvoid it when it is dark: use feel.\n"));
    assert_true(str_contains_nocase(text, STR_LIT("required")));
}

STORY(tools_that_the_agent_runs_are_not_listed)
{
    write_file(fixture->folder, "tools.json",
               "[{\"name\":\"zed\",\"inputSchema\":{\"type\":\"object\"}},"
               "{\"name\":\"odd name\",\"inputSchema\":{\"type\":\"object\"}}]");
    write_file(fixture->policies, "b.lua",
               "return tool \"b\" { description = \"B.\", schema = json [[{\"type\":\"object\"}]],\n" RUNS
               "}\n");
    write_file(fixture->policies, "a.lua",
               "return tool \"a\" { description = \"A.\", schema = json [[{\"type\":\"object\"}]],\n" RUNS
               "}\n");
    build(fixture);
    const struct json *tools = list(fixture, (struct catalog_request){0});
    assert_int_equal(tools->len, 2);
    assert_true(str_is(text_of(tool_at(tools, 0), "name"), "a"));
    assert_true(str_is(text_of(tool_at(tools, 1), "name"), "b"));
    assert_int_equal(list(fixture, (struct catalog_request){.all = true})->len, 4);
    /* no provider accepts the third name */
    assert_int_equal(
        list(fixture, (struct catalog_request){.all = true, .provider = {.format = PROVIDER_FORMAT_OPENAI}})
            ->len,
        3);
}

STORY(members_that_break_clients_are_repaired)
{
    write_file(fixture->folder, "tools.json",
               "[{\"name\":\"t\",\"title\":7,\"description\":null,\"_meta\":null,\"execution\":{"
               "\"taskSupport\":\"x\"},"
               "\"icons\":[{\"sizes\":[]}],\"annotations\":{\"readOnlyHint\":\"yes\",\"openWorldHint\":true},"
               "\"inputSchema\":{\"properties\":{\"any\":true,\"n\":{\"maximum\":1.10}},\"x-note\":"
               "9007199254740993},"
               "\"outputSchema\":{\"type\":\"array\"}}]");
    build(fixture);
    const struct json *tool = tool_at(list(fixture, (struct catalog_request){.all = true}), 0);
    expect_json(tool,
                "{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"any\":{},\"n\":{\"maximum\":1.10}},"
                "\"x-note\":9007199254740993,\"type\":\"object\"},\"annotations\":{\"openWorldHint\":true}}");
}

STORY(a_valid_schema_is_unchanged)
{
    const char *schema = "{ \"type\" : \"object\", \"$schema\":\"http://json-schema.org/draft-07/schema#\",  "
                         "\"properties\":{\"b\":{\"const\":1.0e1},\"a\":{}} }";
    char text[400];
    snprintf(text, sizeof(text), "[{\"name\":\"t\",\"inputSchema\":%s}]", schema);
    write_file(fixture->folder, "tools.json", text);
    build(fixture);
    const struct json *tool = tool_at(list(fixture, (struct catalog_request){.all = true}), 0);
    expect_json(json_get_text(tool, "inputSchema"), schema);
}

/* ---- hooks ---------------------------------------------------------------- */

#define PLAIN(name)                                                                                          \
    "return tool \"" name "\" { description = \"D.\", schema = json [[{\"type\":\"object\"}]],\n" RUNS "}\n"
#define WITH(name, hook)                                                                                     \
    "return tool \"" name "\" { description = \"D.\", schema = json [[{\"type\":\"object\"}]],\n" RUNS hook  \
    "}\n"

static bool shows(struct fixture *fixture, const char *tool, const char *goal)
{
    struct catalog_request request = {.peer = &fixture->peer, .goal = str_of(goal)};
    const struct tool *found = generation_find(fixture->generation, str_of(tool));
    return found && catalog_shows(fixture->arena, fixture->generation, &request, found);
}

STORY(prepare_rewords_and_hides)
{
    write_file(
        fixture->policies, "a.lua",
        WITH("a", "prepare = function(def, call) def.description = \"For \" .. call.user; def.name = \"z\"; "
                  "return def end,"));
    write_file(fixture->policies, "b.lua", WITH("b", "prepare = function() return nil end,"));
    write_file(fixture->policies, "c.lua", WITH("c", "prepare = function() error \"oops\" end,"));
    write_file(fixture->policies, "d.lua",
               WITH("d", "on_policy_error = 'open', prepare = function() error \"oops\" end,"));
    build(fixture);
    const struct json *tools = list(fixture, (struct catalog_request){0});
    assert_int_equal(tools->len, 2);
    assert_true(str_is(text_of(tool_at(tools, 0), "name"), "a"));
    assert_true(str_is(text_of(tool_at(tools, 0), "description"), "For ann"));
    assert_true(str_is(text_of(tool_at(tools, 1), "name"), "d"));
    assert_true(shows(fixture, "a", ""));
    assert_false(shows(fixture, "b", ""));
    assert_false(shows(fixture, "c", "")); /* it breaks, so it cannot say that the tool may be shown */
    assert_true(shows(fixture, "d", ""));
    assert_false(shows(fixture, "no-such-tool", ""));
}

STORY(the_gateway_hides_by_goal_and_grants_nothing)
{
    write_file(fixture->policies, "a.lua", PLAIN("a"));
    write_file(fixture->policies, "b.lua", PLAIN("b"));
    write_file(fixture->policies, "gateway.lua",
               "return gateway { prepare_tools = function(defs, call)\n"
               "  local shown = { { name = \"invented\", inputSchema = { type = \"object\" } } }\n"
               "  for _, def in ipairs(defs) do\n"
               "    if def.name ~= \"b\" or call.goal == \"b\" then shown[#shown + 1] = def end\n"
               "  end\n  return shown\nend }\n");
    build(fixture);
    assert_int_equal(list(fixture, (struct catalog_request){0})->len, 1);
    assert_int_equal(list(fixture, (struct catalog_request){.goal = STR_LIT("b")})->len, 2);
    for (int i = 0; i < 2; i++) { /* computed, then cached */
        assert_true(shows(fixture, "a", ""));
        assert_false(shows(fixture, "b", ""));
        assert_true(shows(fixture, "b", "b"));
        assert_false(shows(fixture, "invented", ""));
    }
}

STORY(a_broken_gateway_leaves_what_reads)
{
    write_file(fixture->policies, "a.lua", WITH("a", "effects = 'read',"));
    write_file(fixture->policies, "b.lua", WITH("b", "annotations = { readOnlyHint = true },"));
    write_file(fixture->policies, "c.lua", WITH("c", "effects = 'write',"));
    write_file(fixture->policies, "get_d.lua", PLAIN("get_d")); /* only its name says so */
    write_file(fixture->policies, "gateway.lua",
               "return gateway { prepare_tools = function(defs, call)\n"
               "  if call.goal ~= \"fine\" then error \"oops\" end\n  return defs\nend }\n");
    build(fixture);
    assert_int_equal(list(fixture, (struct catalog_request){0})->len, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(shows(fixture, "a", "") && shows(fixture, "b", ""));
        assert_false(shows(fixture, "c", "") || shows(fixture, "get_d", ""));
        assert_true(shows(fixture, "c", "fine") && shows(fixture, "get_d", "fine"));
    }
}

/* ---- formats ---- */

static void collect(void *owner, struct str tool, const char *text)
{
    (void)tool;
    buf_text(owner, text);
}

STORY(each_provider_gets_its_format)
{
    struct buf warnings = buf_in(fixture->arena);
    write_file(
        fixture->folder, "tools.json",
        "[{\"name\":\"t\",\"description\":\"T.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{},"
        "\"anyOf\":[{}]}}]");
    build(fixture);
    struct catalog_request request = {.all = true, .provider = {.warn = collect, .owner = &warnings}};
    request.provider.format = PROVIDER_FORMAT_OPENAI;
    expect_json(list(fixture, request),
                "[{\"type\":\"function\",\"function\":{\"name\":\"t\",\"description\":\"T.\","
                "\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]");
    assert_true(str_contains_nocase(buf_view(&warnings), STR_LIT("anyOf")));
    warnings.len = 0;
    request.provider.format = PROVIDER_FORMAT_GEMINI;
    expect_json(list(fixture, request), "[{\"name\":\"t\",\"description\":\"T.\",\"parametersJsonSchema\":"
                                        "{\"type\":\"object\",\"properties\":{},\"anyOf\":[{}]}}]");
    assert_int_equal(warnings.len, 0);
    request.provider.format = PROVIDER_FORMAT_ANTHROPIC;
    expect_json(list(fixture, request), "[{\"name\":\"t\",\"description\":\"T.\",\"input_schema\":"
                                        "{\"type\":\"object\",\"properties\":{}}}]");
    assert_true(str_contains_nocase(buf_view(&warnings), STR_LIT("anyOf")));
}

/* A turn of the loop may end after each piece; another call of the Lua file comes between two of them. */
STORY(a_large_schema_is_written_in_pieces)
{
    struct buf text = buf_in(fixture->arena), pieces = buf_in(fixture->arena);
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
    write_file(fixture->folder, "tools.json", text.at);
    build(fixture);
    for (int round = 0; round < 2; round++) {
        struct catalog_writing *writing =
            catalog_write_begin(fixture->arena, fixture->generation, &request, &pieces);
        size_t inside = 0;
        for (; catalog_write_next(writing) && (round || inside < 3);
             inside += catalog_write_is_inside(writing))
            assert_int_equal(openai_strict_schema(fixture->arena, &schema, &out, &why), ERR_SCHEMA);
        assert_in_range(inside, round ? 50 : 3, 2000);
        catalog_write_end(writing);
        if (!round) /* it has not come to the end */
            pieces.len = 0;
    }
    list(fixture, request);
    assert_true(str_eq(buf_view(&fixture->shown), buf_view(&pieces)));
    assert_in_range(pieces.len, 100000, 400000);
}

/* A turn of the loop may end after each tool that is looked at, and after each that is written. */
STORY(a_long_list_is_made_in_steps)
{
    struct buf text = buf_in(fixture->arena), out = buf_in(fixture->arena);
    struct catalog_request request = {.all = true};
    buf_byte(&text, '[');
    for (int i = 0; i < 300; i++)
        buf_printf(&text, "%s{\"name\":\"t%d\",\"inputSchema\":{\"type\":\"object\"}}", i ? "," : "", i);
    buf_text(&text, "]");
    buf_byte(&text, '\0');
    write_file(fixture->folder, "tools.json", text.at);
    build(fixture);
    struct catalog_writing *writing =
        catalog_write_begin(fixture->arena, fixture->generation, &request, &out);
    size_t steps = 0;
    while (catalog_write_next(writing))
        steps++;
    assert_in_range(steps, 600, 610);
    list(fixture, request);
    assert_true(str_eq(buf_view(&fixture->shown), buf_view(&out)));
}

/* ---- a client's own tools ---- */

static const struct tool *registers(struct fixture *fixture, struct client_tools *tools, const char *text)
{
    struct json definition;
    const struct tool *tool;
    struct why why;
    assert_int_equal(json_parse(fixture->arena, str_of(text), NULL, &definition, NULL), OK);
    assert_int_equal(client_tools_register(tools, fixture->generation, &definition, &tool, &why), OK);
    return tool;
}

STORY(a_replaced_tool_goes_when_no_request_can_use_it_though_others_are_in_flight)
{
    build(fixture);
    struct client_tools *tools = client_tools_new(&fixture->peer);
    uint64_t early = client_tools_now(tools);
    const struct tool *first = registers(fixture, tools, "{\"name\":\"mine\",\"description\":\"One.\"}");
    registers(fixture, tools, "{\"name\":\"mine\",\"description\":\"Two.\"}");
    size_t both = client_tools_bytes(tools);
    uint64_t late = client_tools_now(tools);
    client_tools_free_unused(tools, early);
    assert_int_equal(client_tools_bytes(tools), both);
    assert_true(str_is(first->description, "One."));
    registers(fixture, tools, "{\"name\":\"mine\",\"description\":\"Three.\"}");
    client_tools_free_unused(tools, late);
    assert_true(client_tools_bytes(tools) <= both);
    client_tools_free_unused(tools, UINT64_MAX);
    assert_true(client_tools_bytes(tools) < both);
    const struct tool *now = client_tools_find(tools, fixture->generation, STR_LIT("mine"));
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

static enum err strict(struct arena *arena, const char *text, struct json *out, struct why *why)
{
    struct json schema;
    struct json_error fault;
    assert_int_equal(json_parse(arena, str_of(text), NULL, &schema, &fault), OK);
    return openai_strict_schema(arena, &schema, out, why);
}

TEST(strict_mode_closes_objects_and_requires_nullable_fields)
{
    struct arena *arena = arena_new();
    struct json out;
    struct why why;
    assert_int_equal(
        strict(arena,
               "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"x\"},"
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
    arena_free(arena);
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
        struct arena *arena = arena_new();
        struct json out;
        struct why why;
        assert_int_equal(strict(arena, cases[i].schema, &out, &why), ERR_SCHEMA);
        if (!strstr(why.text, cases[i].words))
            fail_msg("'%s' does not say '%s'", why.text, cases[i].words);
        arena_free(arena);
    }
}
