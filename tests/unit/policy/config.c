/* The configuration file: every key, every error, and the precedence of sources. */
#include "folder.h"
#include "base/arena.h"
#include "policy/config.h"
#include "ledger/ledger.h"
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

static enum err load(const char *text)
{
    const char *file = write_file("toolgate.lua", text);
    why.text[0] = '\0';
    return config_load(&(struct config_sources){.file = file}, &config, &why);
}

static void refuses(const char *text)
{
    assert_int_equal(load(text), ERR_CONFIG);
    golden_row(text, why.text);
    assert_non_null(strstr(why.text, "toolgate.lua"));
    config_free(&config);
}

TEST(works_without_a_file)
{
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    assert_int_equal(config_load(&(struct config_sources){0}, &config, &why), OK);
    assert_string_equal(config.socket, "/run/user/7/toolgate/toolgate.sock");
    assert_int_equal(config.socket_mode, 0660);
    assert_int_equal(config.allow_count, 0);
    assert_int_equal(config.defaults.repair, POLICY_UNSET);
    assert_int_equal(config.limits.message, CONFIG_MESSAGE_BYTES);
    assert_int_equal(config.anonymous_repeats, 8);
    assert_true(config.defaults.coerce.strings);
}

TEST(default_socket_of_a_service)
{
    char runtime[64];
    snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)geteuid());
    unsetenv("XDG_RUNTIME_DIR");
    assert_int_equal(config_load(&(struct config_sources){0}, &config, &why), OK);
    if (access(runtime, F_OK) != 0)
        assert_string_equal(config.socket, "/run/toolgate/toolgate.sock");
    else
        assert_memory_equal(config.socket, runtime, strlen(runtime));
}

TEST(default_socket_is_named_by_the_environment)
{
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    setenv("TOOLGATE_SOCKET", "/tmp/named.sock", 1);
    assert_int_equal(config_load(&(struct config_sources){0}, &config, &why), OK);
    unsetenv("TOOLGATE_SOCKET");
    assert_string_equal(config.socket, "/tmp/named.sock");
    assert_null(config.state);
}

TEST(state_of_a_user_outlives_the_login)
{
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    setenv("XDG_STATE_HOME", "/tmp/none/state", 1);
    assert_int_equal(config_load(&(struct config_sources){0}, &config, &why), OK);
    unsetenv("XDG_STATE_HOME");
    assert_string_equal(config.state, "/tmp/none/state/toolgate");
    config_free(&config);
    assert_int_equal(config_load(&(struct config_sources){.socket = "/tmp/x.sock"}, &config, &why), OK);
    assert_null(config.state);
}

TEST(every_key_is_read)
{
    assert_int_equal(
        load("return { socket = '/run/x.sock', socket_mode = '0600', tools = { 'a.json', '/b.json' },"
             " ledger = { namespace = 'shared', ttl_s = 3600, history = 10, on_outage = 'local', settle = "
             "'awaited' },"
             " defaults = { retry = { repair = 1, same_call = 4, transient = 2 },"
             "   loop = { repeats = 4, halt = 6, across_turns = 7, compare = 'arguments', same_failure = "
             "'refuse',"
             "     poll = { max = 9 } },"
             "   mode = 'shadow', coerce = { lists = false }, unknown = 'drop',"
             "   limits = { calls_per_turn = 11, seconds_per_turn = 30, cost_per_turn = 0.25 },"
             "   compact = { max_tokens = 900, drop = { 'raw', 'items[].html' } } },"
             " session_limits = { calls_per_session = 500, cost_per_session = 5 },"
             " limits = { message = 2048, arguments = 1024, depth = 16, in_flight = 2, connections = 3,"
             "   memory = 33554432, policy_ms = 5, policy_kb = 2048 },"
             " log = { level = 'debug', format = 'json', file = 'log' },"
             " turn_idle_s = 60, anonymous_repeats = 5, require_descriptions = true }"),
        OK);
    assert_string_equal(config.socket, "/run/x.sock");
    assert_int_equal(config.socket_mode, 0600);
    assert_int_equal(config.tools.count, 2);
    assert_string_equal(config.tools.list[0], in_folder("a.json"));
    assert_string_equal(config.tools.list[1], "/b.json");
    assert_true(config.shared_namespace);
    assert_int_equal(config.ledger_ttl_s, 3600);
    assert_int_equal(config.ledger_history, 10);
    assert_int_equal(config.defaults.repair, 1);
    assert_int_equal(config.defaults.same_call, 4);
    assert_int_equal(config.defaults.transient, 2);
    assert_int_equal(config.defaults.repeats, 4);
    assert_int_equal(config.defaults.halt, 6);
    assert_int_equal(config.defaults.across_turns, 7);
    assert_int_equal(config.defaults.poll_max, 9);
    assert_int_equal(config.defaults.compare, COMPARE_ARGUMENTS);
    assert_int_equal(config.defaults.same_failure, SAME_FAILURE_REFUSE);
    assert_int_equal(config.defaults.mode, POLICY_SHADOW);
    assert_int_equal(config.defaults.unknown, UNKNOWN_DROP);
    assert_int_equal(config.defaults.limits.calls_per_turn, 11);
    assert_int_equal(config.defaults.limits.seconds_per_turn, 30);
    assert_int_equal(config.defaults.limits.cost_per_turn, 250000);
    assert_int_equal(config.defaults.limits.calls_per_session, POLICY_UNSET);
    assert_int_equal(config.session_limits.calls_per_session, 500);
    assert_int_equal(config.session_limits.cost_per_session, 5 * POLICY_COST_UNIT);
    assert_true(config.defaults.compact.on);
    assert_int_equal(config.defaults.compact.max_tokens, 900);
    assert_int_equal(config.defaults.compact.max_bytes, 0);
    assert_int_equal(config.defaults.compact.drop_count, 2);
    assert_false(config.defaults.coerce.lists);
    assert_true(config.defaults.coerce.strings);
    assert_int_equal(config.limits.message, 2048);
    assert_int_equal(config.limits.depth, 16);
    assert_int_equal(config.limits.memory, 33554432);
    assert_int_equal(config.limits.policy_kb, 2048);
    assert_int_equal(config.log_level, LOG_DEBUG);
    assert_int_equal(config.log_format, LOG_FORMAT_JSON);
    assert_string_equal(config.log_file, in_folder("log"));
    assert_int_equal(config.turn_idle_s, 60);
    assert_int_equal(config.anonymous_repeats, 5);
    assert_true(config.require_descriptions);
}

TEST(coercion_can_be_switched_off)
{
    assert_int_equal(load("return { defaults = { coerce = false } }"), OK);
    assert_false(config.defaults.coerce.strings || config.defaults.coerce.json ||
                 config.defaults.coerce.enums);
}

TEST(unknown_key_is_reported_with_the_closest)
{
    refuses("return { polices = 'x' }");
    refuses("return { ledger = { ttl = 9 } }");
    refuses("return { defaults = { retry = { zzz = 1 } } }");
    refuses("return { allow = { { user = { 0 } } } }");
    golden_check_rows("load", "configuration: unknown keys");
}

TEST(wrong_value_is_reported)
{
    refuses("return { turn_idle_s = 'soon' }");
    refuses("return { limits = { depth = 4.5 } }");
    refuses("return { limits = { depth = 129 } }");
    refuses("return { defaults = { limits = { calls_per_turn = 0 } } }");
    refuses("return { session_limits = { cost_per_turn = 'much' } }");
    refuses("return { defaults = { compact = { max_bytes = 1 } } }");
    refuses("return { defaults = { compact = { keep = 'id' } } }");
    refuses("return { log = 'debug' }");
    refuses("return { ledger = 'redis://:hidden@x' }");
    refuses("return { log = { level = 'loud' } }");
    refuses("return { socket_mode = 0660 }");
    refuses("return { socket_mode = '0888' }");
    refuses("return { socket = '' }");
    refuses("return { require_descriptions = 'yes' }");
    refuses("return { tools = { 7 } }");
    refuses("return { ledger = { namespace = 'all' } }");
    refuses("return { defaults = { loop = { repeats = 6, halt = 5 } } }");
    refuses("return { limits = { message = 2048, arguments = 4096 } }");
    golden_check_rows("load", "configuration: wrong values");
}

TEST(missing_policies_folder_is_reported)
{
    assert_int_equal(load("return { policies = 'nowhere' }"), ERR_CONFIG);
    golden_check("load", "configuration: the folder of policies does not exist", why.text);
}

TEST(arguments_limit_fits_the_message_limit)
{
    assert_int_equal(load("return { limits = { message = 2048 } }"), OK);
    assert_int_equal(config.limits.arguments, 2048);
}

TEST(metrics_keys_are_checked)
{
    static const char *const good[] = {"127.0.0.1:9464", "127.8.9.10:1", "localhost:65535", "[::1]:9464"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        char text[128];
        snprintf(text, sizeof(text), "return { metrics = { listen = '%s' } }", good[i]);
        assert_int_equal(load(text), OK);
        assert_string_equal(config.metrics.address.text, good[i]);
        assert_false(config.metrics.address.is_unix);
        config_free(&config);
    }
    assert_int_equal(
        load("return { metrics = { listen = 'unix:/run/x.sock', page = true, token_file = '/t' } }"), OK);
    assert_true(config.metrics.address.is_unix && config.metrics.page);
    assert_string_equal(config.metrics.address.text, "unix:/run/x.sock");
    assert_string_equal(config.metrics.token_file, "/t");
    config_free(&config);
    refuses("return { metrics = { listen = ':1' } }");
    refuses("return { metrics = { listen = 'x' } }");
    refuses("return { metrics = { listen = 9464 } }");
    refuses("return { metrics = { listen = 'unix:' } }");
    refuses("return { metrics = { listen = '127.0.0.1:0' } }");
    refuses("return { metrics = { listen = '127.0.0.1:65536' } }");
    refuses("return { metrics = { listen = '0.0.0.0:9464' } }");
    refuses("return { metrics = { listen = '192.168.1.5:9464' } }");
    refuses("return { metrics = { listen = '[::]:9464' } }");
    refuses("return { metrics = { listen = 'example.com:9464' } }");
    refuses("return { metrics = { page = true } }");
    refuses("return { metrics = { listen = '127.0.0.1:9464', page = true } }");
    refuses("return { metrics = { token_file = '/t' } }");
    refuses("return { metrics = { lisen = 'unix:/x' } }");
    golden_check_rows("load", "configuration: metrics");
}

TEST(ledger_keys_are_checked)
{
    assert_int_equal(load("return { ledger = { redis = 'unix:/x', timeout_ms = 20, on_outage = 'closed', "
                          "settle = 'sent' } }"),
                     OK);
    assert_string_equal(config.ledger_redis, "unix:/x");
    assert_int_equal(config.ledger_timeout_ms, 20);
    assert_int_equal(config.ledger_on_outage, LEDGER_OUTAGE_CLOSED);
    assert_int_equal(config.ledger_settle, 1);
    config_free(&config);
    refuses("return { ledger = { redis = 'x' } }");
    refuses("return { ledger = { redis = 7 } }");
    refuses("return { ledger = { on_outage = 'shut' } }");
    refuses("return { ledger = { settle = 'later' } }");
    refuses("return { ledger = { timeout_ms = 1 } }");
    refuses("return { ledger = { password_file = 'x' } }");
    golden_check_rows("load", "configuration: ledger");
}

TEST(all_errors_are_reported_at_once)
{
    assert_int_equal(load("return { polices = 'x', turn_idle_s = -1 }"), ERR_CONFIG);
    assert_non_null(strstr(why.text, "policies"));
    assert_non_null(strstr(why.text, "turn_idle_s"));
    assert_non_null(strchr(why.text, '\n'));
}

TEST(rules_name_users_and_groups)
{
    assert_int_equal(
        load("return { allow = { { users = { 'root', 4711 }, groups = { 'root', 12 }, tools = { 'get_*' } },"
             " { tools = { 'x' } } } }"),
        OK);
    assert_int_equal(config.allow_count, 2);
    const struct allow_rule *rule = &config.allow[0];
    assert_int_equal(rule->uid_count, 2);
    assert_int_equal(rule->uids[0], 0);
    assert_int_equal(rule->uids[1], 4711);
    assert_int_equal(rule->gids[1], 12);
    assert_false(rule->everyone);
    assert_true(str_is(rule->tools.list[0], "get_*"));
    assert_true(config.allow[1].everyone);
}

TEST(rule_that_matches_nobody_is_refused)
{
    refuses("return { allow = { { users = { 'nobody-of-that-name' } } } }");
    refuses("return { allow = { { users = {} } } }");
    refuses("return { allow = {} }");
    refuses("return { allow = { users = { 0 } } }");
    refuses("return { allow = { { users = { -1 } } } }");
    refuses("return { allow = { { tools = { 1 } } } }");
    golden_check_rows("load", "configuration: allow");
}

TEST(the_command_line_wins)
{
    const char *tools[] = {"y.json"};
    struct config_sources sources = {
        .file =
            write_file("toolgate.lua", "return { socket = '/a', policies = '/nowhere', tools = 'x.json' }"),
        .socket = "/b",
        .policies = folder,
        .tools = tools,
        .tools_count = 1};
    assert_int_equal(config_load(&sources, &config, &why), OK);
    assert_string_equal(config.socket, "/b");
    assert_string_equal(config.policies, folder);
    assert_int_equal(config.tools.count, 2);
    assert_string_equal(config.tools.list[1], "y.json");
}

TEST(too_long_socket_path_is_refused)
{
    char path[200];
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(config_load(&(struct config_sources){.socket = path}, &config, &why), ERR_CONFIG);
    golden_check("load", "configuration: the socket's path is too long", why.text);
}
