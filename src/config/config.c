/*
 * Loading a configuration: defaults, then one Lua file checked against the
 * tables of keys below, then the command line. To add a key, add its line.
 */
#include "config/config.h"

#include "base/arena.h"
#include "base/date.h"
#include "config/config_ledger.h"
#include "config/config_traces.h"
#include "config/config_metrics.h"
#include "config/config_upstreams.h"
#include "config/peer.h"
#include "config/key_table.h"
#include "ledger/ledger.h"
#include "sandbox/deadline.h"
#include "policy/policy_set.h"
#include "policy/lua_config.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CONFIG_COUNT_MAX 1000 /* of a budget or a loop: more is no limit at all */

#define KEY(key, reader, field) .name = STR(key), .read = (reader), .offset = offsetof(struct config, field)
#define U32(key, field, least, most)                                                                         \
    {                                                                                                        \
        KEY(key, key_u32, field), .min = (least), .max = (most)                                              \
    }
#define COUNT(key, field) U32(key, field, 0, CONFIG_COUNT_MAX)
#define TABLE(key, table)                                                                                    \
    {                                                                                                        \
        .name = STR(key), .read = key_subtable, .keys = (table)                                              \
    }
#define ABSENT(key, sentence)                                                                                \
    {                                                                                                        \
        .name = STR(key), .read = key_absent, .text = (sentence)                                             \
    }

static key_reader read_socket_mode, read_coerce, read_cost, read_compact, read_names, read_retry,
    read_shadow_until;

static const struct config_key call_retry_keys[] = {
    U32("times", retry.times, 1, POLICY_RETRY_TIMES_MAX),
    {KEY("backoff", key_duration, retry.backoff_ms), .min = 1, .max = POLICY_RETRY_WITHIN_MAX_S * 1000},
    {KEY("within", key_duration, retry.within_ms), .min = 1, .max = POLICY_RETRY_WITHIN_MAX_S * 1000},
    {.read = NULL},
};

static const struct config_key retry_keys[] = {
    COUNT("repair", repair),
    COUNT("same_call", same_call),
    COUNT("transient", transient),
    {.name = STR("again"), .read = read_retry, .keys = call_retry_keys},
    {.read = NULL},
};

static const struct config_key poll_keys[] = {
    COUNT("max", poll_max),
    ABSENT("every", "the policy of a tool sets how often it may be polled; remove the key here"),
    {.read = NULL},
};

static const struct key_choice compares[] = {
    {"result", COMPARE_RESULT}, {"arguments", COMPARE_ARGUMENTS}, {0}};
static const struct key_choice same_failures[] = {
    {"note", SAME_FAILURE_NOTE}, {"refuse", SAME_FAILURE_REFUSE}, {0}};

static const struct config_key loop_keys[] = {
    U32("repeats", repeats, 2, CONFIG_COUNT_MAX),
    U32("halt", halt, 2, CONFIG_COUNT_MAX),
    U32("across_turns", across_turns, 2, CONFIG_COUNT_MAX),
    TABLE("poll", poll_keys),
    ABSENT("volatile", "the policy of a tool names its volatile arguments; remove the key here"),
    ABSENT("volatile_result",
           "the policy of a tool names the volatile fields of its results; remove the key here"),
    {KEY("compare", key_one_of, compare), .choices = compares},
    {KEY("same_failure", key_one_of, same_failure), .choices = same_failures},
    {.read = NULL},
};

static const struct key_choice modes[] = {
    {"enforce", POLICY_ENFORCE}, {"shadow", POLICY_SHADOW}, {"off", POLICY_OFF}, {0}};
static const struct key_choice argument_formats[] = {
    {"lenient", FORMATS_LENIENT}, {"strict", FORMATS_STRICT}, {0}};
static const struct key_choice unknowns[] = {
    {"pass", UNKNOWN_PASS}, {"drop", UNKNOWN_DROP}, {"refuse", UNKNOWN_REFUSE}, {0}};

#define CONFIG_LIMIT_MAX 1000000000
/* NOLINTBEGIN(bugprone-macro-parentheses): `of` is a member's name, which takes none */
#define LIMITS(of)                                                                                           \
    U32("calls_per_turn", of.calls_per_turn, 1, CONFIG_LIMIT_MAX),                                           \
        U32("calls_per_session", of.calls_per_session, 1, CONFIG_LIMIT_MAX),                                 \
        U32("seconds_per_turn", of.seconds_per_turn, 1, CONFIG_LIMIT_MAX),                                   \
        {KEY("cost_per_turn", read_cost, of.cost_per_turn)},                                                 \
        {KEY("cost_per_session", read_cost, of.cost_per_session)},                                           \
    {                                                                                                        \
        .read = NULL                                                                                         \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct config_key tool_limits_keys[] = {LIMITS(tool_limits)};
static const struct config_key session_limits_keys[] = {LIMITS(session_limits)};

static const struct config_key compact_keys[] = {
    U32("max_bytes", compact.max_bytes, POLICY_COMPACT_MIN, CONFIG_LIMIT_MAX),
    U32("max_tokens", compact.max_tokens, POLICY_COMPACT_MIN, CONFIG_LIMIT_MAX),
    {KEY("keep", read_names, compact.keep)},
    {KEY("drop", read_names, compact.drop)},
    {.read = NULL},
};

static const struct config_key coerce_keys[] = {
    {KEY("json", key_bool, coerce.json)},       {KEY("strings", key_bool, coerce.strings)},
    {KEY("lists", key_bool, coerce.lists)},     {KEY("nulls", key_bool, coerce.nulls)},
    {KEY("enums", key_bool, coerce.enums)},     {KEY("floats", key_bool, coerce.floats)},
    {KEY("names", key_bool, coerce.names)},     {KEY("words", key_bool, coerce.words)},
    {KEY("wrapped", key_bool, coerce.wrapped)}, {.read = NULL},
};

static const struct config_key defaults_keys[] = {
    TABLE("retry", retry_keys),
    TABLE("loop", loop_keys),
    {KEY("mode", key_one_of, mode), .choices = modes},
    {KEY("shadow_until", read_shadow_until, shadow_until)},
    {KEY("unknown", key_one_of, unknown), .choices = unknowns},
    {.name = STR("coerce"), .read = read_coerce, .keys = coerce_keys},
    {KEY("formats", key_one_of, formats), .choices = argument_formats},
    TABLE("limits", tool_limits_keys),
    ABSENT("rate", "the policy of a tool declares its rate; remove the key here"),
    {.name = STR("compact"), .read = read_compact, .keys = compact_keys},
    {.read = NULL},
};

/* Upper ends: what a 64-bit host with the memory of one can honour, and depth what json/parse.h allows. */
static const struct config_key limits_keys[] = {
    U32("message", limits.message, 1024, 1073741824),
    U32("arguments", limits.arguments, 64, 1073741824),
    U32("depth", limits.depth, 4, CONFIG_DEPTH),
    U32("in_flight", limits.in_flight, 1, 65536),
    U32("in_flight_user", limits.in_flight_user, 1, 1048576),
    U32("in_flight_all", limits.in_flight_all, 1, 1048576),
    U32("connections", limits.connections, 1, 1048576),
    {KEY("memory", key_size, limits.memory), .min = 16777216, .max = INT64_MAX},
    U32("policy_ms", limits.policy_ms, 1, SANDBOX_WATCHDOG_MS / 2),
    U32("policy_kb", limits.policy_kb, 1024, 1048576),
    {.read = NULL},
};

static const struct key_choice levels[] = {{"debug", LOG_DEBUG}, {"info", LOG_INFO}, {"warn", LOG_WARN},
                                           {"error", LOG_ERROR}, {"off", LOG_OFF},   {0}};
static const struct key_choice formats[] = {{"text", LOG_FORMAT_TEXT}, {"json", LOG_FORMAT_JSON}, {0}};

static const struct config_key log_keys[] = {
    {KEY("level", key_one_of, log_level), .choices = levels},
    {KEY("format", key_one_of, log_format), .choices = formats},
    ABSENT("arguments",
           "the decision log has the arguments, masked: decisions = { arguments = \"full\" } records them as "
           "they are; remove the key here"),
    {KEY("file", key_path, log_file)},
    {.read = NULL},
};

static const struct key_choice pins_modes[] = {
    {"off", PINS_OFF}, {"warn", PINS_WARN}, {"changes", PINS_CHANGES}, {"all", PINS_ALL}, {0}};

static key_reader read_spawner;

static const struct config_key config_keys[] = {
    {KEY("socket", key_path, socket)},
    {KEY("socket_mode", read_socket_mode, socket_mode)},
    {KEY("allow", peer_read_allow, allow), .keys = peer_allow_keys, .item = "[]"},
    {KEY("operators", peer_read_operators, operators), .keys = peer_operator_keys},
    {KEY("policies", key_path, policies)},
    {KEY("schemas", key_path, schemas)},
    {KEY("tools", key_files, tools), .text = "a file name with tool definitions (JSON)"},
    {.name = STR("upstreams"), .read = config_upstreams_read, .keys = config_upstream_keys, .item = ".NAME"},
    {KEY("pins", key_one_of, pins), .choices = pins_modes},
    {KEY("mcp_config", key_files, mcp_configs), .text = "a file name with mcpServers (JSON)"},
    {KEY("spawner", read_spawner, spawner)},
    TABLE("ledger", config_ledger_keys),
    TABLE("defaults", defaults_keys),
    TABLE("limits", limits_keys),
    TABLE("session_limits", session_limits_keys),
    TABLE("log", log_keys),
    {KEY("decisions", config_decisions_read, decisions), .keys = config_decisions_keys},
    TABLE("traces", config_traces_keys),
    {KEY("watch", key_bool, watch)},
    {KEY("state", key_path, state)},
    U32("turn_idle_s", turn_idle_s, 0, 86400),
    U32("anonymous_repeats", anonymous_repeats, 2, CONFIG_COUNT_MAX),
    {KEY("require_descriptions", key_bool, require_descriptions)},
    TABLE("metrics", config_metrics_keys),
    {.read = NULL},
};

/* "unix:PATH", or only the path. */
static void read_spawner(const struct key_value *value)
{
    struct key_value path = *value;
    struct json json = *value->json;
    if (json.type == JSON_STRING && json.len > 5 && memcmp(json.text, "unix:", 5) == 0) {
        json.text += 5;
        json.len -= 5;
    }
    path.json = &json;
    key_path(&path);
}

static void read_socket_mode(const struct key_value *value)
{
    struct str text = json_str(value->json);
    mode_t mode = 0;
    bool octal = text.len == 4 && text.at[0] == '0';
    for (size_t i = 0; octal && i < text.len; i++) {
        octal = text.at[i] >= '0' && text.at[i] <= '7';
        mode = mode * 8 + (mode_t)(text.at[i] - '0');
    }
    if (octal)
        *(mode_t *)key_target(value) = mode;
    else
        key_expected(value, "octal digits as a string, e.g. \"0660\" (Lua reads 0660 as 660)");
}

/* true, false, or a table of the switches that differ from the default. */
static void read_coerce(const struct key_value *value)
{
    struct config *config = value->base;
    if (value->json->type == JSON_BOOL)
        config->coerce = value->json->truth ? coerce_options_all : (struct coerce_options){0};
    else
        key_table_read(value->reader, coerce_keys, value->path, value->json, config);
}

static void read_shadow_until(const struct key_value *value)
{
    int64_t seconds;
    if (date_read(json_str(value->json), &seconds))
        *(struct str *)key_target(value) = arena_dup(value->reader->arena, json_str(value->json));
    else
        key_expected(value, "a date such as \"2026-12-01\"");
}

/* Stored in millionths. */
static void read_cost(const struct key_value *value)
{
    double n;
    if (json_double(value->json, &n) && n >= 1.0 / POLICY_COST_UNIT && n <= POLICY_COST_MAX)
        *(uint64_t *)key_target(value) = (uint64_t)llround(n * POLICY_COST_UNIT);
    else
        key_expected(value, "a number from 0.000001 to 100000000");
}

/* A list of strings, followed by its length. */
static void read_names(const struct key_value *value)
{
    struct names {
        const struct str *list;
        size_t count;
    } *names = key_target(value);
    if (!key_is_list(value, "a list of fields, e.g. { \"events[].raw\" }"))
        return;
    struct str *list = ARENA_ARRAY(value->reader->arena, struct str, value->json->len);
    for (uint32_t i = 0; i < value->json->len; i++) {
        struct key_value item = *value;
        item.json = &value->json->items[i];
        list[i] = arena_dup(value->reader->arena, json_str(item.json));
        if (!list[i].len)
            key_expected(&item, "the name or path of a field");
    }
    *names = (struct names){list, value->json->len};
}

/* true, false or a table. */
static void read_compact(const struct key_value *value)
{
    struct config *config = value->base;
    config->compact.on = value->json->type != JSON_BOOL || value->json->truth;
    if (value->json->type != JSON_BOOL)
        key_table_read(value->reader, compact_keys, value->path, value->json, config);
    if (!config->compact.max_bytes && !config->compact.max_tokens)
        config->compact.max_bytes = POLICY_COMPACT_BYTES;
}

/* true, false or a table. */
static void read_retry(const struct key_value *value)
{
    struct config *config = value->base;
    if (value->json->type != JSON_BOOL || value->json->truth)
        config->retry =
            (struct policy_retry){POLICY_RETRY_TIMES, POLICY_RETRY_BACKOFF_MS, POLICY_RETRY_WITHIN_MS};
    if (value->json->type != JSON_BOOL)
        key_table_read(value->reader, call_retry_keys, value->path, value->json, config);
}

static void set_defaults(struct config *config)
{
    config->socket_mode = 0660;
    config->ledger_ttl_s = LEDGER_TTL_S_DEFAULT;
    config->ledger_history = LEDGER_HISTORY_DEFAULT;
    config->ledger_timeout_ms = LEDGER_TIMEOUT_MS;
    config->repair = config->same_call = config->transient = POLICY_UNSET;
    config->tool_limits = config->session_limits = policy_limits_unset;
    config->repeats = config->halt = config->across_turns = config->poll_max = POLICY_UNSET;
    config->coerce = coerce_options_all;
    config->limits.message = CONFIG_MESSAGE_BYTES;
    config->limits.depth = CONFIG_DEPTH;
    config->limits.in_flight = CONFIG_IN_FLIGHT;
    config->limits.connections = CONFIG_CONNECTIONS;
    config->limits.memory = CONFIG_MEMORY_BYTES;
    config->limits.policy_ms = POLICY_DEADLINE_MS;
    config->limits.policy_kb = POLICY_MEMORY_KB;
    config->log_level = LOG_INFO;
    config_decisions_init(&config->decisions);
    config_traces_init(&config->traces);
    config->watch = true;
    config->turn_idle_s = CONFIG_TURN_IDLE_S;
    config->anonymous_repeats = CONFIG_ANONYMOUS_REPEATS;
}

void config_list_keys(struct buf *out)
{
    struct config defaults = {0};
    set_defaults(&defaults);
    key_table_list(out, config_keys, STR_NONE, &defaults);
}

static void take_redis(const struct config_sources *sources, struct config *config)
{
    if (sources->redis)
        config->ledger_redis = arena_dup(config->arena, str_of(sources->redis)).at;
}

static enum err read_file(const char *path, const struct config_sources *sources, struct config *config,
                          struct why *why)
{
    struct json table;
    enum err err = lua_config_read(path, config->arena, &table, why);
    if (err != OK)
        return err;
    config->file = arena_dup(config->arena, str_of(path)).at;
    config->hash = key_table_hash(config->hash, &table);
    struct config_reader reader = {config->arena, config->file, buf_in(config->arena)};
    key_table_read(&reader, config_keys, STR_NONE, &table, config);
    take_redis(sources, config); /* before the checks, which depend on it */
    /* Combinations of keys that contradict each other. */
    uint32_t repeats = config->repeats == POLICY_UNSET ? ledger_default_limits.repeats : config->repeats;
    uint32_t halt = config->halt == POLICY_UNSET ? ledger_default_limits.halt : config->halt;
    if (halt < repeats)
        key_table_error(&reader, STR_LIT("defaults.loop.halt"),
                        "expected at least defaults.loop.repeats (%u), got %u", repeats, halt);
    if (config->limits.arguments > config->limits.message)
        key_table_error(&reader, STR_LIT("limits.arguments"),
                        "expected at most limits.message (%u), got %u; raise limits.message too",
                        config->limits.message, config->limits.arguments);
    if (config->mode == POLICY_SHADOW)
        config->mode_line = key_table_line(&reader, STR_LIT("defaults.mode"));
    if (config->shadow_until.len && config->mode != POLICY_SHADOW)
        key_table_error(&reader, STR_LIT("defaults.shadow_until"),
                        "is the end of mode shadow: set defaults.mode = \"shadow\", or remove it");
    config_upstreams_set_spawner(&reader, config);
    config_ledger_check(&reader, config);
    config_traces_check(&reader, config);
    config_metrics_check(&reader, config);
    if (!reader.errors.len)
        return OK;
    return err_set(why, ERR_CONFIG, STR_FMT, STR_ARG(buf_view(&reader.errors)));
}

const char *config_default_socket(struct arena *arena)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (!folder || folder[0] != '/')
        folder = CONFIG_SYSTEM_FOLDER;
    return arena_printf(arena, "%s/%s", folder, CONFIG_SOCKET_NAME).at;
}

/* Appends the files of the command line that the configuration does not name itself. */
static void add_files(struct config *config, struct path_list *files, const char *const *more, size_t count)
{
    const char **list = ARENA_ARRAY(config->arena, const char *, files->count + count + 1);
    size_t own = files->count, length = own;
    for (size_t i = 0; i < own; i++)
        list[i] = files->list[i];
    for (size_t i = 0; i < count; i++) {
        bool named = false;
        for (size_t k = 0; k < own && !named; k++)
            named = strcmp(list[k], more[i]) == 0;
        if (!named)
            list[length++] = arena_dup(config->arena, str_of(more[i])).at;
    }
    *files = (struct path_list){list, length};
}

static bool is_folder(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The folder schemas/ beside a file or folder; NULL if that is unknown. */
static const char *schemas_beside(struct arena *arena, const char *path)
{
    size_t len = path ? strlen(path) : 0;
    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len && path[len - 1] != '/')
        len--;
    return path ? arena_printf(arena, "%.*s" CONFIG_SCHEMAS_FOLDER, (int)len, path).at : NULL;
}

static const char *default_schemas(struct config *config)
{
    const char *policies = is_folder(config->policies) ? config->policies : NULL;
    const char *own = schemas_beside(config->arena, config->file),
               *theirs = schemas_beside(config->arena, policies);
    return own && (is_folder(own) || !is_folder(theirs)) ? own : theirs;
}

/* The command line wins; the defaults that depend on other keys come last. */
static void complete(const struct config_sources *sources, struct config *config,
                     const char **missing_schemas)
{
    struct stat st;
    if (sources->socket)
        config->socket = arena_dup(config->arena, str_of(sources->socket)).at;
    if (!config->socket)
        config->socket = config_default_socket(config->arena);
    if (sources->policies)
        config->policies = arena_dup(config->arena, str_of(sources->policies)).at;
    if (!config->policies && stat(CONFIG_DEFAULT_FOLDER, &st) == 0 && S_ISDIR(st.st_mode))
        config->policies = CONFIG_DEFAULT_FOLDER;
    if (!config->schemas)
        config->schemas = default_schemas(config);
    else if (!is_folder(config->schemas))
        *missing_schemas = config->schemas;
    take_redis(sources, config);
    if (sources->no_watch)
        config->watch = false;
    config->offline = sources->offline;
    if (!config->limits.arguments)
        config->limits.arguments =
            config->limits.message < CONFIG_ARGUMENTS_BYTES ? config->limits.message : CONFIG_ARGUMENTS_BYTES;
    add_files(config, &config->tools, sources->tools, sources->tools_count);
    add_files(config, &config->mcp_configs, sources->mcp_configs, sources->mcp_config_count);
}

static enum err check_paths(const struct config *config, struct why *why)
{
    size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
    struct stat st;
    if (strlen(config->socket) > most)
        return err_set(why, ERR_CONFIG,
                       "socket %s: expected a path of at most %zu bytes, got %zu; choose a shorter one",
                       config->socket, most, strlen(config->socket));
    bool exists = config->policies && stat(config->policies, &st) == 0;
    if (!config->policies || (exists && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))))
        return OK;
    return err_set(why, ERR_CONFIG, "policies %s: expected a folder of *.lua files, found %s",
                   config->policies, exists ? "neither that nor a file" : "nothing there");
}

enum err config_load(const struct config_sources *sources, struct config *out, struct why *why)
{
    *out = (struct config){.arena = arena_new()};
    set_defaults(out);
    enum err err = sources->file ? read_file(sources->file, sources, out, why) : OK;
    if (err == OK) {
        const char *missing_schemas = NULL;
        complete(sources, out, &missing_schemas);
        err = check_paths(out, why);
        if (!err && missing_schemas)
            err = err_set(why, ERR_CONFIG, "schemas %s: expected a folder of *.json files, found none",
                          missing_schemas);
    }
    if (err == OK)
        err = mcp_servers_file_read(out, why);
    config_upstreams_sort(out);
    return err;
}

void config_free(struct config *config)
{
    arena_free(config->arena);
    *config = (struct config){0};
}
