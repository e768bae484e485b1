/* Helper and outcome words, id formats, paths, and the configuration file. */
#include "json/path.h"
#include "policy/config.h"
#include "policy/policy_support.h"
#include "golden.h"
#include "policy/policy_set.h"
#include "policy/id_format.h"

#include <unistd.h>

static void gives(const char *expression, const char *json)
{
    const char *got = eval(expression);
    const char *wanted = text_of(arena_printf(arena, "{\"v\":%s}", json));
    if (strcmp(got, wanted) != 0)
        fail_msg("%s: expected %s, got %s", expression, wanted, got);
}

TEST(times)
{
    gives("time '1970-01-01T00:00:00Z'", "0");
    gives("time '2026-05-01T00:00:00Z'", "1777593600");
    gives("time '2026-05-01'", "1777593600");
    gives("time '2026-05-01T02:00:00+02:00'", "1777593600");
    gives("time '2026-04-30T22:30:00-0130'", "1777593600");
    gives("time '2026-05-01 00:00:00.5'", "1777593600.5");
    gives("time '2026-05-01T00:00'", "1777593600");
    gives("time '1900-03-01'", "-2203891200");
    gives("time '2024-02-29' - time '2024-02-28'", "86400");
    gives("{ time 'tomorrow' == nil, time '2026-02-30' == nil, time '2026-05-01T25:00:00Z' == nil, time "
          "'2026-05-01Tx' == nil,"
          "  time '2025-02-29' == nil, time '2026-5-1' == nil, time '' == nil, time "
          "'2026-05-01T00:00:00Zjunk' == nil }",
          "[true,true,true,true,true,true,true,true]");
    gives("time(5)", "5");
    assert_has(eval("time(nil)"), "p.lua:3: time: expected text, got nil");
    gives("date '2026-05-01T23:30:00-02:00'", "\"2026-05-02\"");
    gives("date(0)", "\"1970-01-01\"");
    gives("date(-1)", "\"1969-12-31\"");
    gives("date(time '2000-02-29')", "\"2000-02-29\"");
    gives("date 'nonsense' == nil", "true");
    gives("{ duration 'PT1H30M', duration '90m', duration 'P1DT1S', duration '1w', duration '1.5h', duration "
          "'2h 3' == nil,"
          "  duration 'P1M' == nil, duration '' == nil, duration 'PT' == nil, duration 'P' == nil }",
          "[5400,5400,86401,604800,5400,true,true,true,true,true]");
}

TEST(urls)
{
    gives("url 'https://Ana:x@Example.COM:8080/a/b?c=d#e'",
          "{\"fragment\":\"e\",\"host\":\"example.com\",\"path\":\"/a/"
          "b\",\"port\":8080,\"query\":\"c=d\",\"scheme\":\"https\",\"user\":\"Ana:x\"}");
    gives("url 'http://[::1]:80'", "{\"host\":\"[::1]\",\"path\":\"/\",\"port\":80,\"scheme\":\"http\"}");
    gives("{ url 'x' == nil, url 'http://' == nil, url 'http://a b' == nil, url '//a' == nil, url "
          "'http://a\\\\@b' == nil }",
          "[true,true,true,true,true]");
    gives("host_in('https://api.example.com/x', { 'api.example.com' })", "true");
    gives("host_in('https://API.example.com./x', { 'api.EXAMPLE.com' })", "true");
    gives("host_in('https://api.example.com/x', { '*.example.com' })", "true");
    gives("host_in('api.example.com', { '*.example.com' })", "true");
    gives("{ host_in('https://evil-example.com', { 'example.com', '*.example.com' }), "
          "host_in('https://example.com.evil.org', { 'example.com' }),"
          "  host_in('https://example.com@evil.org/', { 'example.com' }), host_in('https://example.com', { "
          "'*.example.com' }),"
          "  host_in('https://evil.org/example.com', { 'example.com' }), "
          "host_in('https://evil.org#@example.com', { 'example.com' }) }",
          "[false,false,false,false,false,false]");
    gives("{ glob('reports/*.pdf', 'reports/a.pdf'), glob('a?c', 'abc'), glob('*', ''), glob('a*', 'b') }",
          "[true,true,true,false]");
}

TEST(lists_and_goals)
{
    gives("newest({ { at = '2026-05-01T10:00:00+02:00', n = 1 }, { at = '2026-05-01T09:00:00Z', n = 2 }, { n "
          "= 3 } }, 'at').n",
          "2");
    gives("newest({ { v = 3 }, { v = 10 }, { v = 4 } }, 'v').v", "10");
    gives("select(2, newest({ { v = 'b' }, { v = 'c' }, { v = 'a' } }, 'v'))", "2");
    gives("newest({}, 'v') == nil", "true");
    gives("{ wants_all 'delete ALL of them', wants_all 'everyone in the team', wants_all 'the entire list', "
          "wants_all 'a tall man',"
          "  wants_all 'not at all', wants_all(nil) }",
          "[true,true,true,false,false,false]");
    gives("set { 'a', 'b' }.a", "true");
    gives("set('a', 'b').c == nil", "true");
    gives("tostring(set {})", "\"table\"");
}

static bool fits(const char *shape, const char *json)
{
    return id_format_mismatch(str_of(shape), value_of(json)) == NULL;
}

TEST(id_formats)
{
    assert_true(fits("uuid", "\"3f2b8c1e-5a74-4d7e-9b1a-0c6d2e8f4a10\"") &&
                !fits("uuid", "\"3f2b8c1e5a744d7e9b1a0c6d2e8f4a10\"") && !fits("uuid", "7") &&
                !fits("uuid", "\"project-123\""));
    assert_true(fits("integer", "7") && fits("integer", "\"-70\"") && !fits("integer", "1.5") &&
                !fits("integer", "\"7a\"") && !fits("integer", "\"\""));
    assert_true(fits("digits", "\"0042\"") && !fits("digits", "\"-1\"") && fits("hex", "\"9f86D081\"") &&
                !fits("hex", "\"xyz\""));
    assert_true(fits("slug", "\"spring-sale_2\"") && !fits("slug", "\"Spring\"") &&
                !fits("slug", "\"a--b\"") && !fits("slug", "\"-a\""));
    assert_true(fits("email", "\"ana@example.com\"") && !fits("email", "\"ana@\"") &&
                !fits("email", "\"a b@c.d\"") && !fits("email", "\"ana@com\""));
    assert_true(fits("url", "\"https://a.b/c\"") && !fits("url", "\"a.b/c\"") && !fits("url", "true"));
    assert_true(fits("prefix:evt_", "\"evt_1\"") && !fits("prefix:evt_", "\"evt_\"") &&
                !fits("prefix:evt_", "\"ord_1\"") && !fits("prefix:evt_", "1"));
    assert_true(fits("", "\"anything\""));
    assert_string_equal(id_format_mismatch(STR_LIT("prefix:evt_"), value_of("1")),
                        "an id that begins with 'evt_'");
}

static const char *values_at(const char *json, const char *path)
{
    const struct json *found[4];
    size_t n = json_path_scalars(value_of(json), str_of(path), found, 4);
    struct buf out = buf_in(arena);
    for (size_t i = 0; i < n; i++) {
        json_write(&out, found[i]);
        buf_byte(&out, ' ');
    }
    return text_of(buf_view(&out));
}

TEST(values_at_paths)
{
    assert_string_equal(values_at("{\"id\":1}", "id"), "1 ");
    assert_string_equal(values_at("{\"ids\":[1,\"a\",null,{}]}", "ids"), "1 \"a\" ");
    assert_string_equal(values_at("{\"items\":[{\"id\":1},{\"x\":2},{\"id\":3}]}", "items[].id"), "1 3 ");
    assert_string_equal(values_at("[{\"id\":1},{\"id\":2}]", "[].id"), "1 2 ");
    assert_string_equal(values_at("{\"a\":{\"b\":[{\"c\":[1,2]},{\"c\":[3]}]}}", "a.b[].c[]"), "1 2 3 ");
    assert_string_equal(values_at("{\"ids\":[1,2,3,4,5,6]}", "ids[]"), "1 2 3 4 ");
    assert_string_equal(values_at("{\"a\":1}", "b.c"), "");
}

static enum err read_config(const char *text, struct json *out, struct why *why)
{
    char path[] = "/tmp/toolgate-config-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    enum err err = lua_config_read(path, arena, out, why);
    unlink(path);
    return err;
}

TEST(the_configuration_is_data)
{
    struct json out;
    struct why why = {""};
    assert_int_equal(read_config("local n = 2\nreturn { socket = '/x', limits = { depth = 64 * n }, allow = "
                                 "{ { users = { 'ana' } } }, tools = {} }",
                                 &out, &why),
                     OK);
    assert_string_equal(
        json_of(&out),
        "{\"allow\":[{\"users\":[\"ana\"]}],\"limits\":{\"depth\":128},\"socket\":\"/x\",\"tools\":[]}");
    static const char *const faulty[][1] = {
        {"return { f = function() end }"}, {"return 5"}, {"return { 1, 2 }"},
        {"return { x = os.getenv('X') }"}, {"return {"}, {"while true do end"},
    };
    for (size_t i = 0; i < sizeof(faulty) / sizeof(faulty[0]); i++) {
        assert_int_equal(read_config(faulty[i][0], &out, &why), ERR_CONFIG);
        golden_row(faulty[i][0], why.text);
        assert_has(why.text, "/tmp/toolgate-config-");
    }
    assert_int_equal(lua_config_read("/nonexistent.lua", arena, &out, &why), ERR_IO);
    golden_check_rows("load", "configuration: the file as Lua");
}
