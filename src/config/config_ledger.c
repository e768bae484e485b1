/* The address is held to its form as soon as all of it is known; a secret that is not there yet is missed at
 * start. */
#include "config/config_ledger.h"

#include "base/arena.h"
#include "ledger/address.h"
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

const struct setting config_ledger_keys[] = {
    {AT("namespace", read_namespace, shared_namespace)},
    {AT("ttl_s", key_u32, ledger_ttl_s), .min = 60, .max = 31536000},
    {AT("history", key_u32, ledger_history), .min = 1, .max = 10000},
    {AT("redis", read_redis, ledger_redis)},
    {AT("password_file", key_path, ledger_password_file)},
    {AT("memory", key_size, ledger_memory), .min = MEMORY_LEAST_BYTES, .max = INT64_MAX},
    {AT("timeout_ms", key_u32, ledger_timeout_ms), .min = TIMEOUT_LEAST_MS, .max = TIMEOUT_MOST_MS},
    {AT("on_outage", key_one_of, ledger_on_outage), .choices = outages},
    {AT("settle", key_one_of, ledger_settle), .choices = settles},
    {.read = NULL},
};

static void read_namespace(struct settings *settings, const struct setting *setting, struct str path,
                           const struct json *value, void *into)
{
    if (str_is(json_str(value), "uid") || str_is(json_str(value), "shared"))
        *(bool *)((char *)into + setting->offset) = str_is(json_str(value), "shared");
    else
        key_table_expected(settings, path, "\"uid\" or \"shared\"", value);
}

/* The value is not quoted: it may hold a password. */
static void read_redis(struct settings *settings, const struct setting *setting, struct str path,
                       const struct json *value, void *into)
{
    struct str text = json_str(value), whole;
    struct address address;
    struct why why;
    if (!text.len) {
        key_table_error(settings, path, "expected where Redis is, e.g. \"unix:/run/redis/redis.sock\"");
        return;
    }
    if (secrets_expand(settings->arena, text, NULL, &whole, &why) == OK &&
        address_parse(settings->arena, whole, &address, &why) != OK)
        key_table_error(settings, path, "%s", why.text);
    *(const char **)((char *)into + setting->offset) = arena_dup(settings->arena, text).at;
}

void config_ledger_check(struct settings *settings, const struct config *config)
{
    if (config->ledger_password_file && !config->ledger_redis)
        key_table_error(
            settings, STR_LIT("ledger.password_file"),
            "there is no ledger.redis that it could be the password of; remove one, or name the other");
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

/* A user alone would be nobody: Redis is told one with a password, or none. */
static enum err fill_address(struct arena *arena, const struct config *config, struct str *whole,
                             struct why *why)
{
    struct address address;
    enum err err = secrets_expand(arena, str_of(config->ledger_redis), NULL, whole, why);
    if (err == OK)
        err = address_parse(arena, *whole, &address, why);
    if (err == OK && address.user.len && !address.password.len && !config->ledger_password_file)
        err = err_set(why, ERR_CONFIG,
                      "a user stands there without a password: write user:password@, or name "
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

enum err config_ledger_open(const struct config *config, struct loop *loop, struct ledger **out,
                            struct why *why)
{
    struct ledger_options options = {
        .ttl_s = config->ledger_ttl_s,
        .history = config->ledger_history,
        .memory_bytes = config->ledger_memory,
        .on_outage = (enum ledger_outage)config->ledger_on_outage,
        .settles_unheard = config->ledger_settle != 0,
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
