/* The key `upstreams`, and the mcpServers files of other clients. */
#include "folder.h"
#include "base/arena.h"
#include "base/buf.h"
#include "policy/config_internal.h"
#include "golden.h"

#include <unistd.h>

static struct config config;
static struct why why;

GROUP(make_folder, remove_folder)

static void forget(void)
{
    config_free(&config);
}

FIXTURE(do_nothing, forget)

static enum err load(const char *lua, const char *json)
{
    const char *file = lua ? write_file("toolgate.lua", lua) : NULL;
    const char *files[] = {json ? write_file("mcp.json", json) : NULL};
    why.text[0] = '\0';
    config_free(&config);
    return config_load(
        &(struct config_sources){.file = file, .mcp_configs = files, .mcp_config_count = json ? 1 : 0},
        &config, &why);
}

static void refused(const char *input, enum err err)
{
    if (err != ERR_CONFIG)
        fail_msg("'%s': %s", input, err_name(err));
    golden_row(input, why.text);
}

static const struct upstream_spec *named(const char *name)
{
    for (size_t i = 0; i < config.upstream_count; i++)
        if (str_is(config.upstreams[i]->name, name))
            return config.upstreams[i];
    fail_msg("no upstream '%s': %s", name, why.text);
    return NULL;
}

static void is(struct str got, const char *expected)
{
    if (!str_is(got, expected))
        fail_msg("expected '%s', got '" STR_FMT "'", expected, STR_ARG(got));
}

static void is_below(struct str got, const char *name)
{
    is(got, in_folder(name));
}

/* ---- the Lua file ---- */

TEST(each_kind_with_its_keys)
{
    assert_int_equal(
        load("return { upstreams = {\n"
             "  files = { command = 'npx', args = { '-y', 'server', 8080 }, env = { DEBUG = true, PORT = 1 "
             "},\n"
             "            cwd = 'sub', start = 'lazy', prefix = true, tools = { 'read_*', 'list' },\n"
             "            timeout = '1.5m', start_timeout = 20, in_flight = 4 },\n"
             "  docs = { url = 'https://docs.example/mcp', headers = { Authorization = 'Bearer ${TOKEN}' },\n"
             "           ca_file = '/dev/null', prefix = 'on_collision', timeout = 0.5 },\n"
             "  billing = { rest = 'http://127.0.0.1:8/v1', headers = { ['X-Key'] = '${file:/run/key}' } },\n"
             "} }",
             NULL),
        OK);
    assert_int_equal(config.upstream_count, 3);
    is(config.upstreams[0]->name, "billing");
    is(config.upstreams[1]->name, "docs");
    const struct upstream_spec *files = named("files"), *docs = named("docs"), *billing = named("billing");
    assert_int_equal(files->kind, UPSTREAM_STDIO);
    assert_int_equal(files->argc, 4);
    is(files->argv[0], "npx");
    is(files->argv[3], "8080");
    assert_int_equal(files->env.count, 2);
    is(files->env.list[0].name, "DEBUG");
    is(files->env.list[0].value, "true");
    is(files->env.list[1].value, "1");
    is_below(files->cwd, "sub");
    assert_true(files->lazy);
    assert_int_equal(files->prefix, UPSTREAM_PREFIX_ALWAYS);
    assert_int_equal(files->tools.count, 2);
    is(files->tools.list[0], "read_*");
    assert_int_equal(files->timeout_ms, 90000);
    assert_int_equal(files->start_ms, 20000);
    assert_int_equal(files->in_flight, 4);
    is_below(files->from, "toolgate.lua");
    assert_int_equal(docs->kind, UPSTREAM_HTTP);
    is(docs->url, "https://docs.example/mcp");
    is(docs->headers.list[0].value, "Bearer ${TOKEN}");
    is(docs->ca_file, "/dev/null");
    assert_false(docs->lazy);
    assert_int_equal(docs->prefix, UPSTREAM_PREFIX_ON_COLLISION);
    assert_int_equal(docs->timeout_ms, 500);
    assert_int_equal(docs->start_ms, UPSTREAM_START_MS);
    assert_int_equal(billing->kind, UPSTREAM_REST);
    is(billing->url, "http://127.0.0.1:8/v1");
    is(billing->headers.list[0].value, "${file:/run/key}");
}

TEST(command_path_is_relative_to_the_file)
{
    assert_int_equal(load("return { upstreams = { a = { command = 'bin/a' }, b = { command = '/b' }, "
                          "c = { command = '${HOME}/c' }, d = { command = 'd', env = {}, args = {} } } }",
                          NULL),
                     OK);
    is_below(named("a")->argv[0], "bin/a");
    is(named("b")->argv[0], "/b");
    is(named("c")->argv[0], "${HOME}/c");
    is(named("d")->argv[0], "d");
}

TEST(no_upstreams_are_valid)
{
    assert_int_equal(load("return { upstreams = {} }", NULL), OK);
    assert_int_equal(config.upstream_count, 0);
}

TEST(errors_name_the_whole_path)
{
    static const struct {
        const char *entry;
    } wrong[] = {
        {"{ comand = 'x' }"},
        {"'npx'"},
        {"{ args = { 'x' } }"},
        {"{ command = 'x', url = 'https://x' }"},
        {"{ command = { 'npx', 'x' } }"},
        {"{ command = 'npx -y x' }"},
        {"{ command = 'npx -y @a/b' }"},
        {"{ url = 'https://x', ca_file = 'no.pem' }"},
        {"{ command = '' }"},
        {"{ command = 'x', args = 'y' }"},
        {"{ command = 'x', args = { 'a', {} } }"},
        {"{ command = 'x', args = { 'a\\0b' } }"},
        {"{ command = 'x', env = { 'A=b' } }"},
        {"{ command = 'x', env = { ['A=b'] = 'c' } }"},
        {"{ command = 'x', headers = { A = 'b' } }"},
        {"{ url = 'https://x', env = { A = 'b' } }"},
        {"{ rest = 'https://x', tools = { 'a' } }"},
        {"{ url = 'docs.example/mcp' }"},
        {"{ url = 'https://x y' }"},
        {"{ url = 'https://user:hidden@x/mcp' }"},
        {"{ url = 'https://x', headers = { A = 'b\\nC: d' } }"},
        {"{ command = 'x', start = 'later' }"},
        {"{ command = 'x', prefix = 'never' }"},
        {"{ command = 'x', timeout = '30x' }"},
        {"{ command = 'x', timeout = 0 }"},
        {"{ command = 'x', start_timeout = '1.2.3s' }"},
        {"{ command = 'x', in_flight = 0 }"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char lua[512];
        snprintf(lua, sizeof(lua), "return { upstreams = { u = %s } }", wrong[i].entry);
        refused(wrong[i].entry, load(lua, NULL));
    }
    refused("return { upstreams = { 'npx' } }", load("return { upstreams = { 'npx' } }", NULL));
    refused("return { upstreams = { ['my files'] = { command = 'x' } } }",
            load("return { upstreams = { ['my files'] = { command = 'x' } } }", NULL));
    refused("return { upstreams = { a2345678901234567890123456789012b = { command = 'x' } } }",
            load("return { upstreams = { a2345678901234567890123456789012b = { command = 'x' } } }", NULL));
    golden_check_rows("load", "upstreams: wrong entries");
}

TEST(errors_do_not_quote_secrets)
{
    static const char *const wrong[] = {"{ command = 'x', env = { TOKEN = { 'hunter2' } } }",
                                        "{ command = 'x', env = 'hunter2' }",
                                        "{ command = 'x', args = 'hunter2' }",
                                        "{ url = 'hunter2' }",
                                        "{ url = 'https://x', headers = { A = { 'hunter2' } } }",
                                        "{ url = 'https://x', headers = 'hunter2' }",
                                        "{ url = 'https://x', headers = { A = 'hunter2\\n' } }",
                                        "{ command = { 'hunter2' } }"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char lua[512];
        snprintf(lua, sizeof(lua), "return { upstreams = { u = %s } }", wrong[i]);
        assert_int_equal(load(lua, NULL), ERR_CONFIG);
        assert_non_null(strstr(why.text, "upstreams.u"));
        if (strstr(why.text, "hunter2"))
            fail_msg("'%s' tells the secret: %s", wrong[i], why.text);
    }
}

TEST(too_many_upstreams_are_refused)
{
    struct buf lua = {0};
    buf_text(&lua, "return { upstreams = {");
    for (unsigned i = 0; i <= CONFIG_UPSTREAMS_MAX; i++)
        buf_printf(&lua, "u%u = { command = 'x' },", i);
    buf_text(&lua, "} }");
    buf_byte(&lua, '\0');
    assert_int_equal(load(lua.at, NULL), ERR_CONFIG);
    golden_check("load", "upstreams: more than 256", why.text);
    buf_clear(&lua);
}

/* ---- mcpServers ---- */

TEST(the_file_of_a_desktop_client)
{
    assert_int_equal(load(NULL,
                          "\xef\xbb\xbf{ // mine\n"
                          "  \"theme\": \"dark\",\n"
                          "  \"mcpServers\": {\n"
                          "    \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \"a//b\"], /* all */\n"
                          "                 \"env\": { \"A\": \"${B:-c}\" }, \"headers\": null,\n"
                          "                 \"alwaysAllow\": [\"read\"], \"timeout\": 60 },\n"
                          "    \"off\": { \"command\": \"x y\", \"disabled\": true },\n"
                          "    \"docs\": { \"type\": \"http\", \"url\": \"https://d.example/mcp\",\n"
                          "                \"headers\": { \"X\": \"y\" }, },\n"
                          "  },\n"
                          "}\n"),
                     OK);
    assert_int_equal(config.upstream_count, 2);
    is(named("files")->argv[2], "a//b");
    is(named("files")->env.list[0].value, "${B:-c}");
    is_below(named("files")->from, "mcp.json");
    assert_int_equal(named("docs")->kind, UPSTREAM_HTTP);
    assert_int_equal(config.warning_count, 0);
}

TEST(the_files_of_other_clients)
{
    assert_int_equal(
        load(NULL, "{\"servers\":{\"a\":{\"type\":\"stdio\",\"command\":\"./a\"}},\"inputs\":[]}"), OK);
    is_below(named("a")->argv[0], "./a");
    assert_int_equal(load(NULL, "{\"mcp\":{\"servers\":{\"a\":{\"command\":\"a\"}}}}"), OK);
    is(named("a")->argv[0], "a");
    assert_int_equal(load(NULL, "{\"context_servers\":{\"a\":{\"command\":\"a\",\"enabled\":false},"
                                "\"b\":{\"serverUrl\":\"https://b\",\"type\":\"streamable-http\"}}}"),
                     OK);
    assert_int_equal(config.upstream_count, 1);
    is(named("b")->url, "https://b");
}

TEST(ignored_keys_get_a_warning)
{
    assert_int_equal(load(NULL, "{\"mcpServers\":{\"a\":{\"command\":\"a\",\"arg\":[],\"envFile\":\".env\"},"
                                "\"me\":{\"command\":\"/usr/bin/toolgate\",\"args\":[\"connect\"]}}}"),
                     OK);
    assert_int_equal(config.upstream_count, 1);
    assert_int_equal(config.warning_count, 3);
    for (size_t i = 0; i < config.warning_count; i++)
        golden_row("warning", config.warnings[i].at);
    golden_check_rows("load", "mcpServers: keys that are ignored, and toolgate itself");
}

/* An entry that cannot be used is left out with a warning (tests/spec/config/upstreams_config_spec.lua). */
TEST(files_without_json_are_refused)
{
    refused("{\"mcpServers\":{\"a\"}}", load(NULL, "{\"mcpServers\":{\"a\"}}"));
    golden_check_rows("load", "mcpServers: a file that is no JSON");
}

/* Of two spellings of a list of tools to leave out, each leaves its tools out; a null is not there; a key
 * that names seconds has seconds. */
TEST(mcp_servers_in_the_words_of_several_clients)
{
    static const char *const pairs[] = {
        "\"disabled_tools\":[\"x\"],\"disabledTools\":[\"y\"]",
        "\"disabledTools\":[\"x\"],\"disabled_tools\":[\"y\"]",
        "\"excludedTools\":[\"x\"],\"excludeTools\":[\"y\"],\"blockedTools\":null",
        "\"blockedTools\":\"x\",\"disabledTools\":[],\"excludeTools\":[\"y\"]",
    };
    char text[256];
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        snprintf(text, sizeof(text), "{\"mcpServers\":{\"a\":{\"command\":\"a\",%s}}}", pairs[i]);
        assert_int_equal(load(NULL, text), OK);
        assert_int_equal(config.warning_count, 0);
        assert_true(name_globs_fit(&named("a")->excluded, STR_LIT("x")) &&
                    name_globs_fit(&named("a")->excluded, STR_LIT("y")));
    }
    assert_int_equal(load(NULL, "{\"mcpServers\":{\"a\":{\"command\":\"a\",\"allowed_tools\":[\"x\"],"
                                "\"includeTools\":null,\"startup_timeout_sec\":1800},"
                                "\"b\":{\"command\":\"b\",\"tools\":\"x\",\"tool_timeout_sec\":5}}}"),
                     OK);
    assert_int_equal(config.warning_count, 0);
    for (size_t i = 0; i < 2; i++) {
        const struct name_globs *tools = &named(i ? "b" : "a")->tools;
        assert_true(tools->given && tools->count == 1 && str_is(tools->list[0], "x"));
    }
    assert_int_equal(named("a")->start_ms, 1800000);
    assert_int_equal(named("b")->timeout_ms, 5000);
}

TEST(mcp_servers_with_words_in_the_command)
{
    assert_int_equal(load(NULL, "{\"mcp\":{\"servers\":{\"a\":{\"command\":[\"python3\",\"-SE\"],"
                                "\"args\":[\"file\"]}}}}"),
                     OK);
    assert_int_equal(named("a")->argc, 3);
    is(named("a")->argv[1], "-SE");
    is(named("a")->argv[2], "file");
}

TEST(an_address_of_a_users_own)
{
    assert_int_equal(
        load("return { upstreams = { a = { rest = 'https://x/${file:/etc/%u}', per_user = true } } }", NULL),
        OK);
    assert_true(named("a")->per_user);
}

/* The memory for an entry does not grow with the square of its keys. */
TEST(mcp_servers_with_many_keys)
{
    struct buf text = {0};
    buf_text(&text, "{\"mcpServers\":{\"a\":{\"command\":\"a\",\"disabled\":true");
    for (int i = 0; i < 2000; i++)
        buf_printf(&text, ",\"key_%d\":1", i);
    buf_add(&text, "}}}", sizeof("}}}"));
    assert_int_equal(load(NULL, text.at), OK);
    buf_clear(&text);
    assert_int_equal(config.warning_count, 2000);
    assert_true(arena_bytes(config.arena) < 8u << 20);
}

TEST(mcp_config_key_of_the_configuration)
{
    write_file("mcp.json", "{\"mcpServers\":{\"a\":{\"command\":\"y\"}}}");
    assert_int_equal(load("return { mcp_config = 'mcp.json' }", NULL), OK);
    uint64_t hash = config.hash;
    assert_int_equal(config.mcp_configs.count, 1);
    is(named("a")->argv[0], "y");
    write_file("mcp.json", "{\"mcpServers\":{\"a\":{\"command\":\"z\"}}}");
    assert_int_equal(load("return { mcp_config = { 'mcp.json' } }", NULL), OK);
    assert_int_not_equal(config.hash, hash);
    refused("return { mcp_config = { 1 } }", load("return { mcp_config = { 1 } }", NULL));
    refused("return { mcp_config = 'none.json' }", load("return { mcp_config = 'none.json' }", NULL));
    golden_check_rows("load", "mcp_config: wrong values");
}
