/*
 * Paths are made absolute and real folders are not demanded here: a start
 * checks them, since they may be created later. `env` is a list of variables
 * that the process inherits, or a table of variables with their values.
 */
#include "config/config_sandbox.h"

#include "base/arena.h"

#include <string.h>

#define KEY(text, reader, field)                                                                             \
    .name = STR(text), .read = (reader), .offset = offsetof(struct config_upstream, field)

#define MEMORY_MIN_BYTES 16777216
#define PROCESSES_MAX    1048576

static key_reader read_paths, read_env;

const struct config_key config_sandbox_keys[] = {
    {KEY("read", read_paths, spec.sandbox.read)},
    {KEY("write", read_paths, spec.sandbox.write)},
    {KEY("network", key_bool, spec.sandbox.network)},
    {KEY("env", read_env, spec.sandbox.env)},
    {KEY("memory", key_size, spec.sandbox.memory_bytes), .min = MEMORY_MIN_BYTES, .max = INT64_MAX},
    {KEY("processes", key_u32, spec.sandbox.processes), .min = 1, .max = PROCESSES_MAX},
    {KEY("best_effort", key_bool, spec.sandbox.best_effort)},
    {.read = NULL},
};

static void read_paths(const struct key_value *value)
{
    struct config_upstream *entry = value->base;
    struct string_list *list = key_target(value);
    size_t errors = value->reader->errors.len;
    config_upstream_strings(value);
    entry->spec.sandbox.reads_given |= str_is(value->key->name, "read");
    if (value->reader->errors.len != errors)
        return;
    struct str *paths = (struct str *)list->list;
    if (list->count > CONFINE_PATHS_MAX)
        key_table_error(value->reader, value->path, "more than %u paths; name a folder that holds them",
                        CONFINE_PATHS_MAX);
    for (size_t i = 0; i < list->count; i++)
        if (!paths[i].len || str_starts(paths[i], "~") || str_starts(paths[i], "${"))
            key_table_error(
                value->reader, value->path,
                "expected paths of files and folders, without '~' and ${NAME}, e.g. { \"/srv/files\" }");
        else
            paths[i] = str_of(key_table_path(value->reader, paths[i]));
}

static void read_env(const struct key_value *value)
{
    struct config_upstream *entry = value->base;
    struct key_value pairs = *value;
    struct config_key key = *value->key;
    if (value->json->type != JSON_OBJECT || !value->json->len) {
        config_upstream_strings(value);
        return;
    }
    key.offset = offsetof(struct config_upstream, sandbox_env);
    pairs.key = &key;
    pairs.base = entry;
    config_upstream_pairs(&pairs);
}

void config_sandbox_read(const struct key_value *value)
{
    struct config_upstream *entry = value->base;
    struct confine_spec *sandbox = &entry->spec.sandbox;
    const struct json *json = value->json;
    bool empty = json->type == JSON_ARRAY && !json->len; /* Lua's {} */
    *sandbox = (struct confine_spec){.on = json->type != JSON_BOOL || json->truth};
    if (json->type == JSON_STRING && str_is(json_str(json), "best_effort"))
        sandbox->best_effort = true;
    else if (json->type == JSON_OBJECT)
        key_table_read(value->reader, config_sandbox_keys, value->path, json, entry);
    else if (json->type != JSON_BOOL && !empty)
        key_expected(value, "a table such as { write = { \"/srv/files\" }, network = true }, true, or "
                            "\"best_effort\"");
}
