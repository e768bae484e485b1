/* The address is checked when the file is read if its secrets are available then, else at start. */
#include "config/config_ledger.h"

#include "base/arena.h"
#include "ledger/redis_address.h"
#include "ledger/ledger.h"
#include "upstream/secrets.h"

#define TIMEOUT_LEAST_MS 5
#define TIMEOUT_MOST_MS  10000

#define MEMORY_LEAST_BYTES 1048576

static key_reader read_namespace, read_redis;

static const struct key_choice outages[] = {
    {"local", LEDGER_OUTAGE_LOCAL}, {"closed", LEDGER_OUTAGE_CLOSED}, {"open", LEDGER_OUTAGE_OPEN}, {0}};
static const struct key_choice settles[] = {{"awaited", 0}, {"sent", 1}, {0}};

#define AT(text, reader, field) .name = STR(text), .read = (reader), .offset = offsetof(struct config, field)

const struct config_key config_ledger_keys[] = {
    {AT("namespace", read_namespace, shared_namespace)},
    {AT("ttl_s", key_u32, ledger_ttl_s), .min = 1, .max = 31536000},
    {AT("history", key_u32, ledger_history), .min = 1, .max = 10000},
    {AT("redis", read_redis, ledger_redis)},
    {AT("password_file", key_path, ledger_password_file)},
    {AT("memory", key_size, ledger_memory), .min = MEMORY_LEAST_BYTES, .max = INT64_MAX},
    {AT("timeout_ms", key_u32, ledger_timeout_ms), .min = TIMEOUT_LEAST_MS, .max = TIMEOUT_MOST_MS},
    {AT("on_outage", key_one_of, ledger_on_outage), .choices = outages},
    {AT("settle", key_one_of, ledger_settle), .choices = settles},
    {.read = NULL},
};

static void read_namespace(const struct key_value *value)
{
    struct str text = json_str(value->json);
    if (str_is(text, "uid") || str_is(text, "shared"))
        *(bool *)key_target(value) = str_is(text, "shared");
    else
        key_expected(value, "\"uid\" or \"shared\"");
}

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

void config_ledger_check(struct config_reader *reader, const struct config *config)
{
    if (config->ledger_password_file && !config->ledger_redis)
        key_table_error(reader, STR_LIT("ledger.password_file"),
                        "there is no ledger.redis for this password; remove it, or set ledger.redis");
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

bool config_ledger_equal(const struct config *a, const struct config *b)
{
    return a->ledger_ttl_s == b->ledger_ttl_s && a->ledger_history == b->ledger_history &&
           a->ledger_timeout_ms == b->ledger_timeout_ms && a->ledger_on_outage == b->ledger_on_outage &&
           a->ledger_memory == b->ledger_memory && a->ledger_settle == b->ledger_settle &&
           same_text(a->ledger_redis, b->ledger_redis) &&
           same_text(a->ledger_password_file, b->ledger_password_file);
}

/* Redis authenticates a user only with a password. */
static enum err fill_address(struct arena *arena, const struct config *config, struct str *whole,
                             struct why *why)
{
    struct redis_address address;
    enum err err = secrets_expand(arena, str_of(config->ledger_redis), NULL, whole, why);
    if (err == OK)
        err = redis_address_parse(arena, *whole, &address, why);
    if (err == OK && address.user.len && !address.password.len && !config->ledger_password_file)
        err = err_set(why, ERR_CONFIG,
                      "it has a user but no password: write user:password@, or set "
                      "ledger.password_file");
    if (err != OK)
        err_prefix(why, "ledger.redis");
    return err;
}

enum err config_ledger_validate(const struct config *config, struct why *why)
{
    struct arena *arena = arena_new();
    struct str whole;
    enum err err = config->ledger_redis ? fill_address(arena, config, &whole, why) : OK;
    arena_free(arena);
    return err;
}

enum err config_ledger_open(const struct config *config, struct loop *loop, const char *key_file,
                            struct ledger **out, struct why *why)
{
    struct ledger_options options = {
        .ttl_s = config->ledger_ttl_s,
        .history = config->ledger_history,
        .memory_bytes = config->ledger_memory,
        .on_outage = (enum ledger_outage)config->ledger_on_outage,
        .settles_unheard = config->ledger_settle != 0,
        .key_file = key_file,
    };
    if (!config->ledger_redis)
        return ledger_new_local(&options, out, why);
    struct arena *arena = arena_new();
    struct str address;
    enum err err = fill_address(arena, config, &address, why);
    struct ledger_redis redis = {
        .loop = loop, .password_file = config->ledger_password_file, .timeout_ms = config->ledger_timeout_ms};
    if (err == OK) {
        redis.address = arena_dup(arena, address).at;
        err = ledger_new_redis(&options, &redis, out, why);
    }
    arena_free(arena);
    return err;
}
