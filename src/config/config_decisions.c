/* The keys of the decision log. On by default: a guard without a record cannot be reviewed. */
#include "config/config_decisions.h"

#include "base/arena.h"

#include <sys/un.h>

#define AT(text, reader, field)                                                                              \
    .name = STR(text), .read = (reader), .offset = offsetof(struct config_decisions, field)

static key_reader read_file, read_journald, read_mask;

static const struct key_choice argument_details[] = {{"none", DECISIONS_NONE},
                                                     {"hash", DECISIONS_HASH},
                                                     {"masked", DECISIONS_MASKED},
                                                     {"full", DECISIONS_FULL},
                                                     {0}};

const struct config_key config_decisions_keys[] = {
    {AT("file", read_file, file)},
    {AT("arguments", key_one_of, arguments), .choices = argument_details},
    {AT("results", key_one_of, results), .choices = argument_details},
    {AT("mask", read_mask, mask)},
    {AT("max_mb", key_u32, max_mb), .min = 1, .max = DECISIONS_MAX_MB_MAX},
    {AT("keep", key_u32, keep), .min = 1, .max = DECISIONS_KEEP_MAX},
    {AT("journald", read_journald, journald)},
    {.read = NULL},
};

/* Names are compared without case, '_' and '-': apiKey, API_KEY and x-api-key are one name. The last that
 * fits decides; those with '!' are not masked: what asks for the next page opens nothing. */
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
    STR("credential*"),
    STR("set-cookie"),
    STR("cookie"),
    STR("session_cookie"),
};

void config_decisions_init(struct config_decisions *d)
{
    *d = (struct config_decisions){
        .on = true,
        .to_file = true,
        .arguments = DECISIONS_MASKED,
        .results = DECISIONS_HASH,
        .mask = default_mask,
        .mask_count = sizeof(default_mask) / sizeof(*default_mask),
        .keep = DECISIONS_KEEP,
    };
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

bool config_decisions_same_sinks(const struct config_decisions *a, const struct config_decisions *b)
{
    return a->on == b->on && a->to_file == b->to_file && same_text(a->file, b->file) &&
           same_text(a->journald, b->journald) && a->max_mb == b->max_mb && a->keep == b->keep;
}

/* A path, or false: no file. */
static void read_file(const struct key_value *value)
{
    struct config_decisions *d = value->base;
    if (value->json->type != JSON_BOOL)
        key_path(value);
    else
        d->to_file = value->json->truth;
}

static void read_socket_path(const struct key_value *value)
{
    const char **target = key_target(value);
    key_path(value);
    size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
    if (*target && strlen(*target) > most)
        key_table_error(value->reader, value->path,
                        "expected a path of at most %zu bytes, got %zu; choose a shorter one", most,
                        strlen(*target));
}

/* true: the system's journal; a path: of another one, such as a namespace's. */
static void read_journald(const struct key_value *value)
{
    if (value->json->type != JSON_BOOL)
        read_socket_path(value);
    else
        *(const char **)key_target(value) = value->json->truth ? DECISIONS_JOURNAL : NULL;
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

void config_decisions_read(const struct key_value *value)
{
    struct config_decisions *d = key_target(value);
    if (value->json->type == JSON_BOOL)
        d->on = value->json->truth;
    else
        key_table_read(value->reader, config_decisions_keys, value->path, value->json, d);
    if (d->on && !d->to_file && !d->journald && value->json->type != JSON_BOOL)
        key_table_error(value->reader, value->path,
                        "file = false leaves no place for the records; set journald, or write "
                        "decisions = false to switch the decision log off");
}
