/*
 * The mcpServers JSON of other clients (Claude Desktop, Cursor, VS Code's
 * `servers`, Zed's `context_servers`), with comments.
 * Entries are read by the readers of `upstreams` (config_upstreams.c). Keys of
 * other clients are ignored; a key that an operator might believe to be in
 * force gets a warning.
 */
#include "base/arena.h"
#include "base/log.h"
#include "base/suggest.h"
#include "config/config_upstreams.h"
#include "json/parse.h"

#define MCP_SERVERS_FILE_MAX_BYTES 4194304u

struct mcp_entry {
    struct config_upstream upstream; /* first: its readers write through it */
    struct str type;
    bool disabled, enabled;
};

struct servers_reader {
    struct config *config;
    struct config_reader reader; /* of the current file */
    struct buf errors;           /* of all files */
};

#define UPSTREAM_KEY(text, reader, field)                                                                    \
    {                                                                                                        \
        .name = STR(text), .read = (reader), .offset = offsetof(struct config_upstream, field)               \
    }
#define ENTRY_KEY(text, reader, field)                                                                       \
    {                                                                                                        \
        .name = STR(text), .read = (reader), .offset = offsetof(struct mcp_entry, field)                     \
    }

static const struct config_key keys[] = {
    UPSTREAM_KEY("command", config_upstream_command, command),
    UPSTREAM_KEY("args", config_upstream_strings, args),
    UPSTREAM_KEY("env", config_upstream_pairs, spec.env),
    UPSTREAM_KEY("cwd", config_upstream_folder, spec.cwd),
    UPSTREAM_KEY("url", config_upstream_string, url),
    UPSTREAM_KEY("serverUrl", config_upstream_string, url),
    UPSTREAM_KEY("httpUrl", config_upstream_string, url),
    UPSTREAM_KEY("headers", config_upstream_pairs, spec.headers),
    ENTRY_KEY("type", config_upstream_string, type),
    ENTRY_KEY("transport", config_upstream_string, type),
    ENTRY_KEY("disabled", key_bool, disabled),
    ENTRY_KEY("enabled", key_bool, enabled),
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static void warn(struct servers_reader *r, struct str text)
{
    struct config *config = r->config;
    struct str *list = ARENA_ARRAY(config->arena, struct str, config->warning_count + 1);
    for (size_t i = 0; i < config->warning_count; i++)
        list[i] = config->warnings[i];
    list[config->warning_count++] = text;
    config->warnings = list;
}

static void ignore_key(struct servers_reader *r, struct str path, struct str key)
{
    /* Settings of other clients that toolgate has no use for. */
    static const char *const harmless[] = {"alwaysAllow", "autoApprove", "autoapprove", "description", "dev",
                                           "gallery",     "icon",        "id",          "metadata",    "name",
                                           "timeout",     "title",       "trust",       "version"};
    struct str names[KEYS], hint = STR_NONE;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        if (str_is(key, harmless[i])) {
            log_event(LOG_DEBUG, "mcp_config_key_ignored", LOG_TEXT("file", r->reader.file),
                      LOG_STR("entry", path), LOG_STR("key", key));
            return;
        }
    for (size_t i = 0; i < KEYS; i++)
        names[i] = keys[i].name;
    struct str near = suggest_closest(key, names, KEYS);
    if (near.len)
        hint = arena_printf(r->config->arena, " (did you mean '" STR_FMT "'?)", STR_ARG(near));
    warn(r, arena_printf(r->config->arena, "%s: " STR_FMT ": unknown key '" STR_FMT "' is ignored" STR_FMT,
                         r->reader.file, STR_ARG(path), STR_ARG(key), STR_ARG(hint)));
}

static void read_keys(struct servers_reader *r, struct str path, const struct json *table,
                      struct mcp_entry *entry)
{
    struct key_value whole = {.reader = &r->reader, .path = path, .base = entry};
    for (uint32_t i = 0; i < table->len; i++) {
        const struct json_member *member = &table->members[i];
        struct key_value value = key_member(&whole, member);
        if (member->value.type == JSON_NULL)
            continue;
        for (size_t k = 0; k < KEYS && !value.key; k++)
            if (str_eq(keys[k].name, member->key))
                value.key = &keys[k];
        if (value.key)
            value.key->read(&value);
        else
            ignore_key(r, path, member->key);
    }
}

/* `toolgate connect`: the file may be that of a client which uses toolgate. */
static bool is_toolgate(const struct config_upstream *entry)
{
    struct str command = entry->command;
    const char *slash = command.len ? memrchr(command.at, '/', command.len) : NULL;
    bool named = str_is(slash ? str_from(command, (size_t)(slash + 1 - command.at)) : command, "toolgate");
    for (size_t i = 0; named && i < entry->args.count; i++)
        if (str_is(entry->args.list[i], "connect"))
            return true;
    return false;
}

static void check_type(struct servers_reader *r, struct str path, const struct mcp_entry *entry)
{
    static const char *const http[] = {"http", "streamable-http", "streamableHttp", "streamable_http"};
    struct str command = entry->upstream.command, url = entry->upstream.url, type = entry->type;
    bool fits = !type.len || (str_is(type, "stdio") && command.len);
    path = ARENA_JOIN(r->config->arena, path, STR_LIT(".type"));
    for (size_t i = 0; i < sizeof(http) / sizeof(http[0]); i++)
        fits |= str_is(type, http[i]) && url.len;
    if (str_is(type, "sse"))
        key_table_error(&r->reader, path,
                        "toolgate does not support the transport \"sse\", which MCP replaced by streamable "
                        "HTTP: if the server has that, too, set its new url and \"type\": \"http\", else set "
                        "\"disabled\": true");
    else if (!fits)
        key_table_error(&r->reader, path,
                        "expected \"stdio\" with a command or \"http\" with a url, got \"" STR_FMT
                        "\" with %s",
                        STR_ARG(str_cut(type, 32)),
                        command.len ? "a command"
                        : url.len   ? "a url"
                                    : "neither");
}

static void read_entry(struct servers_reader *r, struct str path, const struct json_member *member)
{
    struct mcp_entry entry = {.enabled = true};
    struct config_reader *reader = &r->reader;
    size_t errors = reader->errors.len;
    if (member->value.type != JSON_OBJECT) {
        key_table_error(reader, path, "expected an object with a command or a url, got %s",
                        json_type_name((enum json_type)member->value.type));
        return;
    }
    config_upstream_init(&entry.upstream);
    read_keys(r, path, &member->value, &entry);
    if (entry.disabled || !entry.enabled) {
        log_event(LOG_DEBUG, "mcp_config_entry_disabled", LOG_TEXT("file", reader->file),
                  LOG_STR("entry", path));
        reader->errors.len = errors; /* errors of a disabled entry do not matter */
        return;
    }
    if (is_toolgate(&entry.upstream)) {
        warn(r, arena_printf(r->config->arena, "%s: " STR_FMT ": toolgate itself, left out", reader->file,
                             STR_ARG(path)));
        return;
    }
    check_type(r, path, &entry);
    if (reader->errors.len == errors)
        config_upstream_add(reader, path, member->key, &member->value, &entry.upstream, r->config);
}

static void read_servers(struct servers_reader *r, const struct json *file)
{
    static const char *const places[] = {"mcpServers", "servers", "context_servers", "mcp"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const struct json *servers = json_get_text(file, places[i]);
        if (str_is(str_of(places[i]), "mcp")) /* VS Code's settings: {"mcp": {"servers": …}} */
            servers = json_get_text(servers, "servers");
        if (!json_is(servers, JSON_OBJECT))
            continue;
        for (uint32_t n = 0; n < servers->len; n++)
            read_entry(r,
                       ARENA_JOIN(r->config->arena, str_of(places[i]), STR_LIT("."), servers->members[n].key),
                       &servers->members[n]);
        return;
    }
    key_table_error(&r->reader, STR_NONE,
                    "expected an object with \"mcpServers\" (or \"servers\"): { name: { \"command\": …, "
                    "\"args\": […] } }, found neither");
}

enum err mcp_servers_file_read(struct config *config, struct why *why)
{
    struct servers_reader r = {.config = config, .errors = buf_in(config->arena)};
    for (size_t i = 0; i < config->mcp_configs.count; i++) {
        const char *path = config->mcp_configs.list[i];
        struct json file;
        struct why parse_error;
        r.reader = (struct config_reader){config->arena, path, buf_in(config->arena)};
        if (json_read_commented_file(config->arena, path, MCP_SERVERS_FILE_MAX_BYTES, &file, &parse_error) ==
            OK) {
            config->hash = key_table_hash(config->hash, &file);
            read_servers(&r, &file);
        } else {
            buf_text(&r.reader.errors, parse_error.text);
        }
        if (r.errors.len && r.reader.errors.len)
            buf_byte(&r.errors, '\n');
        buf_str(&r.errors, buf_view(&r.reader.errors));
    }
    if (!r.errors.len)
        return OK;
    return err_set(why, ERR_CONFIG, STR_FMT, STR_ARG(buf_view(&r.errors)));
}
