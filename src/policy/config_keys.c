/* The keys of the configuration as rows, and readers for those that no kind of policy/field.h covers. To add
 * a key, add its row and a member of struct config. The keys of `defaults` are fields of policies:
 * declare_fields.c. */
#include "policy/config_internal.h"

#include "base/arena.h"
#include "ledger/ledger.h"
#include "ledger/redis_address.h"
#include "policy/policy_set.h"
#include "sandbox/deadline.h"
#include "upstream/http/fetch.h"
#include "upstream/secrets.h"

#include <sys/un.h>

/* ---- decisions ---- */

/* Names are compared without case, '_', '-', '.' and blanks: apiKey, API_KEY and "API key" are one name. The
 * last that fits decides; those with '!' are not masked: what asks for the next page opens nothing. */
static const struct str default_mask[] = {
    STR("token"),
    STR("*token"),
    STR("!*page_token"),
    STR("!*continuation_token"),
    STR("!next_token"),
    STR("!sync_token"),
    STR("!next_sync_token"),
    STR("!pagination_token"),
    STR("*password*"),
    STR("passwd"),
    STR("pwd"),
    STR("*passphrase*"),
    STR("*secret*"),
    STR("*api_key*"),
    STR("access_key*"),
    STR("*private_key*"),
    STR("authorization"),
    STR("auth"),
    STR("basic_auth"),
    STR("proxy_auth"),
    STR("credential*"),
    STR("pin"),
    STR("pin_code"),
    STR("card_pin"),
    STR("otp"),
    STR("cvv"),
    STR("cvc"),
    STR("passcode"),
    STR("set-cookie"),
    STR("cookie"),
    STR("session_cookie"),
};

/* A path, or false: no file. */
static void read_file(const struct key_value *value)
{
    struct config_decisions *d = value->base;
    if (value->json->type != JSON_BOOL)
        key_path(value);
    else
        d->to_file = value->json->truth;
}

/* true: the system's journal; a path: of another one, such as a namespace's. */
static void read_journald(const struct key_value *value)
{
    const char **target = key_target(value);
    size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
    if (value->json->type == JSON_BOOL)
        *target = value->json->truth ? DECISIONS_JOURNAL : NULL;
    else
        key_path(value);
    if (*target && strlen(*target) > most)
        key_table_error(value->reader, value->path,
                        "expected a path of at most %zu bytes, got %zu; choose a shorter one", most,
                        strlen(*target));
}

/* Adds to the names that are masked anyway. */
static void read_mask(const struct key_value *value)
{
    struct config_decisions *d = value->base;
    size_t defaults = sizeof(default_mask) / sizeof(*default_mask);
    if (!key_is_list(value, "a list of names, e.g. { \"ssn\", \"*pin\" }"))
        return;
    if (value->json->len > DECISIONS_MASK_MAX) {
        key_table_error(value->reader, value->path,
                        "expected at most %u names, got %u; use globs such as *pin*", DECISIONS_MASK_MAX,
                        value->json->len);
        return;
    }
    struct str *list = ARENA_ARRAY(value->reader->arena, struct str, value->json->len + defaults);
    memcpy(list, default_mask, sizeof(default_mask));
    for (uint32_t i = 0; i < value->json->len; i++) {
        struct key_value item = key_item(value, &value->json->items[i], i);
        list[defaults + i] = arena_dup(value->reader->arena, json_str(item.json));
        if (!list[defaults + i].len || str_is(list[defaults + i], "!"))
            key_expected(
                &item,
                "the name of an argument or of a result's field, which may have * and ?, and ! in front");
    }
    d->mask = list;
    d->mask_count = defaults + value->json->len;
}

#define DECISIONS(member) .offset = offsetof(struct config_decisions, member)
#define DETAIL            CHOICES("none hash masked full", DECISIONS_NONE)
static const struct field decisions_fields[] = {
    {"file", DECISIONS(file), READ_KEY(read_file)},
    {"arguments", FIELD_CHOICE, DECISIONS(arguments), DETAIL},
    {"results", FIELD_CHOICE, DECISIONS(results), DETAIL},
    {"mask", DECISIONS(mask), READ_KEY(read_mask)},
    {"max_mb", FIELD_WHOLE, DECISIONS(max_mb), RANGE(1, DECISIONS_MAX_MB_MAX)},
    {"keep", FIELD_WHOLE, DECISIONS(keep), RANGE(1, DECISIONS_KEEP_MAX)},
    {"journald", DECISIONS(journald), READ_KEY(read_journald)},
};
static const struct field_table decisions_table = KEYS(decisions_fields);

/* false, true or a table */
static void read_decisions(const struct key_value *value)
{
    struct config_decisions *d = key_target(value);
    if (value->json->type == JSON_BOOL)
        d->on = value->json->truth;
    else
        key_table_read(value->reader, &decisions_table, value->path, value->json, d);
    if (d->on && !d->to_file && !d->journald && value->json->type != JSON_BOOL)
        key_table_error(value->reader, value->path,
                        "file = false leaves no place for the records; set journald, or write "
                        "decisions = false to switch the decision log off");
}

/* ---- ledger, metrics, traces ---- */

#define AT(member) .offset = offsetof(struct config, member)

/* Errors do not quote the value: it may hold a password. */
static void read_redis(const struct key_value *value)
{
    struct arena *arena = value->reader->arena;
    struct str text = json_str(value->json), whole;
    struct redis_address address;
    struct why why;
    if (!text.len) {
        key_table_error(value->reader, value->path,
                        "expected the address of Redis, e.g. \"unix:/run/redis/redis.sock\"");
        return;
    }
    if (secrets_expand(arena, text, NULL, &whole, &why) == OK &&
        redis_address_parse(arena, whole, &address, &why) != OK)
        key_table_error(value->reader, value->path, "%s", why.text);
    *(const char **)key_target(value) = arena_dup(arena, text).at;
}

static const struct field ledger_fields[] = {
    {"namespace", FIELD_CHOICE, AT(shared_namespace), CHOICES("uid shared", 0), .read_key = key_read_plain},
    {"ttl_s", FIELD_WHOLE, AT(ledger_ttl_s), RANGE(1, 31536000)},
    {"history", FIELD_WHOLE, AT(ledger_history), RANGE(1, 10000)},
    {"redis", AT(ledger_redis), READ_KEY(read_redis)},
    {"password_file", FIELD_PATH, AT(ledger_password_file)},
    {"memory", FIELD_SIZE, AT(ledger_memory), RANGE(1048576, INT64_MAX)},
    {"timeout_ms", FIELD_WHOLE, AT(ledger_timeout_ms), RANGE(5, 10000)},
    {"on_outage", FIELD_CHOICE, AT(ledger_on_outage), CHOICES("local closed open", LEDGER_OUTAGE_LOCAL)},
    {"settle", FIELD_CHOICE, AT(ledger_settle), CHOICES("awaited sent", 0)},
};
static const struct field_table ledger_table = KEYS(ledger_fields);

/* A path is relative to the file's folder, like every other. */
static void read_listen(const struct key_value *value)
{
    struct config_reader *reader = value->reader;
    struct str text = json_str(value->json);
    struct why why;
    if (!json_is(value->json, JSON_STRING)) {
        key_expected(value, "an address, e.g. \"127.0.0.1:9464\" or \"unix:/run/toolgate/metrics.sock\"");
        return;
    }
    if (text.len > strlen("unix:") && str_starts(text, "unix:"))
        text =
            arena_printf(reader->arena, "unix:%s", key_table_path(reader, str_from(text, strlen("unix:"))));
    if (http_address_parse(text, key_target(value), &why))
        key_table_error(reader, value->path, "%s", why.text);
}

/* The token's file is read when the endpoint opens, not here: `lint` and `test` need not be allowed to read
 * it. */
static const struct field metrics_fields[] = {
    {"listen", AT(metrics.address), READ_KEY(read_listen)},
    {"page", FIELD_BOOL, AT(metrics.page)},
    {"token_file", FIELD_PATH, AT(metrics.token_file)},
};
static const struct field_table metrics_table = KEYS(metrics_fields);

/* An address that is composed of secrets is checked when it is used. */
static void read_endpoint(const struct key_value *value)
{
    struct str text = json_str(value->json), origin = fetch_origin(text);
    bool composed = text.len && memmem(text.at, text.len, "${", 2);
    if (composed || (origin.len && text.len > origin.len + 1))
        *(struct str *)key_target(value) = arena_dup(value->reader->arena, text);
    else if (origin.len)
        key_table_error(value->reader, value->path,
                        "expected the whole address, usually " STR_FMT "/v1/traces", STR_ARG(origin));
    else
        key_table_error(value->reader, value->path,
                        "expected the OTLP/HTTP address of a collector without user and password, e.g. "
                        "\"http://127.0.0.1:4318/v1/traces\"");
}

static void read_headers(const struct key_value *value)
{
    struct name_values *headers = key_target(value);
    config_upstream_pairs(value);
    for (size_t i = 0; i < headers->count; i++)
        if (!fetch_header_is_safe(STR_LIT("x"), headers->list[i].value))
            key_table_error(value->reader, value->path, "a header must not hold a line break");
}

static void read_sample(const struct key_value *value)
{
    double share;
    if (json_double(value->json, &share) && share >= 0 && share <= 1)
        *(double *)key_target(value) = share;
    else
        key_expected(value, "a share from 0 to 1");
}

static void read_service(const struct key_value *value)
{
    struct str name = json_str(value->json);
    if (name.len && name.len <= SPAN_TEXT_MAX_BYTES)
        *(struct str *)key_target(value) = arena_dup(value->reader->arena, name);
    else
        key_expected(value, "a name of at most 256 bytes");
}

/* Spans are off by default: where they would go is not known. Header values are never quoted: they may be
 * secrets. */
static const struct field traces_fields[] = {
    {"endpoint", AT(traces.endpoint), READ_KEY(read_endpoint)},
    {"headers", AT(traces.headers), READ_KEY(read_headers)},
    {"ca_file", AT(traces.ca_file), READ_KEY(config_upstream_folder)},
    {"sample", AT(traces.sample), READ_KEY(read_sample)},
    {"batch", FIELD_DURATION, AT(traces.batch_ms), RANGE(SPANS_BATCH_MIN_MS, SPANS_BATCH_MAX_MS)},
    {"service_name", AT(traces.service_name), READ_KEY(read_service)},
};
static const struct field_table traces_table = KEYS(traces_fields);

/* ---- limits, log ---- */

#define LIMIT(key, least, most) #key, FIELD_WHOLE, AT(limits.key), RANGE(least, most)
/* Upper ends: what a 64-bit host with the memory of one can honour, and depth what json/parse.h allows. */
static const struct field limits_fields[] = {
    {LIMIT(message, 1024, 1073741824)},
    {LIMIT(arguments, 64, 1073741824)},
    {LIMIT(depth, 4, CONFIG_DEPTH)},
    {LIMIT(in_flight, 1, 65536)},
    {LIMIT(in_flight_user, 1, 1048576)},
    {LIMIT(in_flight_all, 1, 1048576)},
    {LIMIT(connections, 1, 1048576)},
    {"memory", FIELD_SIZE, AT(limits.memory), RANGE(16777216, INT64_MAX)},
    {LIMIT(policy_ms, 1, SANDBOX_WATCHDOG_MS / 2)},
    {LIMIT(policy_kb, 1024, 1048576)},
};
static const struct field_table limits_table = KEYS(limits_fields);

static const struct field log_fields[] = {
    {"level", FIELD_CHOICE, AT(log_level), CHOICES("debug info warn error off", LOG_DEBUG)},
    {"format", FIELD_CHOICE, AT(log_format), CHOICES("text json", LOG_FORMAT_TEXT)},
    {"arguments", FIELD_ANY,
     .elsewhere =
         "the decision log has the arguments, masked: decisions = { arguments = \"full\" } records them as "
         "they are; remove the key here"},
    {"file", FIELD_PATH, AT(log_file)},
};
static const struct field_table log_table = KEYS(log_fields);

/* ---- the file ---- */

/* "unix:PATH", or only the path. */
static void read_spawner(const struct key_value *value)
{
    struct str text = json_str(value->json);
    key_path_of(value, str_starts(text, "unix:") ? str_from(text, strlen("unix:")) : text);
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

#define TABLE(called, rows) called, FIELD_TABLE, .table = &(rows)
static const struct field config_fields[] = {
    {"socket", FIELD_PATH, AT(socket)},
    {"socket_mode", AT(socket_mode), READ_KEY(read_socket_mode)},
    {"allow", .table = &peer_allow_table, .item = "[]", READ_KEY(peer_read_allow)},
    {"operators", .table = &peer_operators_table, READ_KEY(peer_read_operators)},
    {"policies", FIELD_PATH, AT(policies)},
    {"schemas", FIELD_PATH, AT(schemas)},
    {"tools", FIELD_PATHS, AT(tools), EXPECTED("a file name with tool definitions (JSON)")},
    {"upstreams", .table = &config_upstream_table, .item = ".NAME", READ_KEY(config_upstreams_read)},
    {"pins", FIELD_CHOICE, AT(pins), CHOICES("off warn changes all", PINS_OFF)},
    {"mcp_config", FIELD_PATHS, AT(mcp_configs), EXPECTED("a file name with mcpServers (JSON)")},
    {"spawner", AT(spawner), READ_KEY(read_spawner)},
    {TABLE("ledger", ledger_table)},
    {TABLE("defaults", policy_defaults_table), AT(defaults)},
    {TABLE("limits", limits_table)},
    {TABLE("session_limits", policy_limits_table), AT(session_limits)},
    {TABLE("log", log_table)},
    {"decisions", AT(decisions), .table = &decisions_table, READ_KEY(read_decisions)},
    {TABLE("traces", traces_table)},
    {"watch", FIELD_BOOL, AT(watch)},
    {"state", FIELD_PATH, AT(state)},
    {"turn_idle_s", FIELD_WHOLE, AT(turn_idle_s), RANGE(0, 86400)},
    {"anonymous_repeats", FIELD_WHOLE, AT(anonymous_repeats), RANGE(2, FIELD_COUNT_MAX_DEFAULT)},
    {"require_descriptions", FIELD_BOOL, AT(require_descriptions)},
    {TABLE("metrics", metrics_table)},
};
const struct field_table config_table = KEYS(config_fields);

void config_init(struct config *config)
{
    config->socket_mode = 0660;
    config->ledger_ttl_s = LEDGER_TTL_S_DEFAULT;
    config->ledger_history = LEDGER_HISTORY_DEFAULT;
    config->ledger_timeout_ms = LEDGER_TIMEOUT_MS;
    policy_init(&config->defaults);
    config->session_limits = policy_limits_unset;
    config->pins = PINS_WARN;
    config->limits.message = CONFIG_MESSAGE_BYTES;
    config->limits.depth = CONFIG_DEPTH;
    config->limits.in_flight = CONFIG_IN_FLIGHT;
    config->limits.connections = CONFIG_CONNECTIONS;
    config->limits.memory = CONFIG_MEMORY_BYTES;
    config->limits.policy_ms = POLICY_DEADLINE_MS;
    config->limits.policy_kb = POLICY_MEMORY_KB;
    config->log_level = LOG_INFO;
    config->decisions = (struct config_decisions){
        .on = true,
        .to_file = true,
        .arguments = DECISIONS_MASKED,
        .results = DECISIONS_HASH,
        .mask = default_mask,
        .mask_count = sizeof(default_mask) / sizeof(*default_mask),
        .keep = DECISIONS_KEEP,
    };
    config->traces =
        (struct span_export){.sample = 1, .batch_ms = SPANS_BATCH_MS, .service_name = STR("toolgate")};
    config->watch = true;
    config->turn_idle_s = CONFIG_TURN_IDLE_S;
    config->anonymous_repeats = CONFIG_ANONYMOUS_REPEATS;
}

void config_list_keys(struct buf *out)
{
    struct config defaults = {0};
    config_init(&defaults);
    key_table_list(out, &config_table, STR_NONE, &defaults);
}

/* ---- combinations of keys that contradict each other, or of which one does nothing ---- */

#define SAME_CALL_MOST 5u /* of the defaults by effects: catalog/tool.c */

void config_check_keys(struct config_reader *reader, struct config *config)
{
    const struct policy *defaults = &config->defaults;
    uint32_t repeats = defaults->repeats == POLICY_UNSET ? ledger_default_limits.repeats : defaults->repeats;
    uint32_t halt = defaults->halt == POLICY_UNSET ? ledger_default_limits.halt : defaults->halt;
    if (halt < repeats)
        key_table_error(reader, STR_LIT("defaults.loop.halt"),
                        "expected at least defaults.loop.repeats (%u), got %u", repeats, halt);
    if (config->limits.arguments > config->limits.message)
        key_table_error(reader, STR_LIT("limits.arguments"),
                        "expected at most limits.message (%u), got %u; raise limits.message too",
                        config->limits.message, config->limits.arguments);
    if (defaults->mode == POLICY_SHADOW)
        config->defaults.mode_line = key_table_line(reader, STR_LIT("defaults.mode"));
    if (defaults->shadow_until.len && defaults->mode != POLICY_SHADOW)
        key_table_error(reader, STR_LIT("defaults.shadow_until"),
                        "is the end of mode shadow: set defaults.mode = \"shadow\", or remove it");
    config_upstreams_set_spawner(reader, config);
    if (config->ledger_password_file && !config->ledger_redis)
        key_table_error(reader, STR_LIT("ledger.password_file"),
                        "there is no ledger.redis for this password; remove it, or set ledger.redis");
    const struct policy_retry *again = &defaults->retry;
    if (again->times && again->backoff_ms > again->within_ms)
        key_table_error(reader, STR_LIT("defaults.retry.again"), POLICY_RETRY_NEVER,
                        (double)again->backoff_ms / 1000, (double)again->within_ms / 1000);
    const struct span_export *t = &config->traces;
    if (!t->endpoint.len && !reader->errors.len &&
        (t->headers.count || t->ca_file.len || t->sample != 1 || t->batch_ms != SPANS_BATCH_MS ||
         !str_is(t->service_name, "toolgate")))
        key_table_error(reader, STR_LIT("traces"),
                        "has no endpoint, so no span is sent; add endpoint = "
                        "\"http://127.0.0.1:4318/v1/traces\", or remove the table");
    bool listens = config->metrics.address.text[0] != '\0';
    if (config->metrics.page && !listens)
        key_table_error(
            reader, STR_LIT("metrics.page"),
            "there is no metrics.listen to serve it on; set metrics.listen, e.g. \"127.0.0.1:9464\"");
    else if (config->metrics.page && !config->metrics.address.is_unix && !config->metrics.token_file)
        key_table_error(reader, STR_LIT("metrics.page"),
                        "the page shows users' content, and any program of this host can reach %s; set "
                        "metrics.token_file, or listen on a Unix socket (unix:PATH)",
                        config->metrics.address.text);
    else if (config->metrics.token_file && !listens)
        key_table_error(reader, STR_LIT("metrics.token_file"),
                        "there is no metrics.listen that asks for it; set metrics.listen, or remove it");
}

void config_warn(struct config *config, struct str text)
{
    struct str *list =
        arena_grow(config->arena, (void *)config->warnings, config->warning_count, sizeof(*list));
    list[config->warning_count++] = text;
    config->warnings = list;
}

static bool has_spawned(const struct config *config)
{
    for (size_t i = 0; i < config->upstream_count; i++)
        if (config->upstreams[i]->spawner.len)
            return true;
    return false;
}

void config_check_effects(struct config_reader *reader, struct config *config)
{
    const struct config_decisions *d = &config->decisions;
    const struct policy *defaults = &config->defaults;
    uint32_t all = config_in_flight_all(config);
    bool has_same_call = defaults->same_call != POLICY_UNSET, page = config->metrics.page;
    const struct {
        const char *key;
        bool idle;
        const char *why;
    } rows[] = {
        {"ledger.timeout_ms", !config->ledger_redis && config->ledger_timeout_ms != LEDGER_TIMEOUT_MS,
         "without ledger.redis"},
        {"ledger.on_outage", !config->ledger_redis && config->ledger_on_outage != LEDGER_OUTAGE_LOCAL,
         "without ledger.redis: there is no outage"},
        {"ledger.settle", !config->ledger_redis && config->ledger_settle, "without ledger.redis"},
        {"metrics.token_file", config->metrics.token_file && !page,
         "as nothing asks for it: /metrics needs no token, and there is no page"},
        {"spawner", config->spawner && !has_spawned(config), "without an upstream that has spawned = true"},
        {"decisions.mask",
         d->mask != default_mask && d->arguments == DECISIONS_FULL && d->results != DECISIONS_MASKED,
         "beside arguments = \"full\", which records secrets as they are"},
        {"decisions.max_mb", d->max_mb && !d->to_file, "beside file = false"},
        {"limits.in_flight", config->limits.in_flight > all, "beyond limits.in_flight_all: raise that, too"},
        {"limits.in_flight_user", config->limits.in_flight_user > all,
         "beyond limits.in_flight_all: raise that, too"},
        /* Beyond the default of tools that read, the highest, a loop is refused by its budget before. */
        {"defaults.loop.repeats",
         !has_same_call && defaults->repeats != POLICY_UNSET && defaults->repeats > SAME_CALL_MOST + 1,
         "without defaults.retry.same_call, whose default refuses such a call before"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned line = rows[i].idle ? key_table_line(reader, str_of(rows[i].key)) : 0;
        struct str at = line ? arena_printf(config->arena, ":%u", line) : STR_NONE;
        if (rows[i].idle)
            config_warn(config, arena_printf(config->arena, "%s" STR_FMT ": %s has no effect %s",
                                             reader->file, STR_ARG(at), rows[i].key, rows[i].why));
    }
}
