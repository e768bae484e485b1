/*
 * Each entry is read by the readers of `upstreams` (config/config_upstreams.c).
 * What is another client's business is ignored; what an operator might believe
 * to be in force and is not, is said in a warning.
 */
#include "config/mcp_servers_file.h"

#include "base/arena.h"
#include "base/log.h"
#include "config/config_upstreams.h"
#include "json/parse.h"
#include "base/suggest.h"

struct mcp_entry {
    struct config_upstream entry; /* first: its readers write through it */
    struct str type;
    bool disabled, enabled;
};

struct mcp_reading {
    struct config *config;
    struct settings settings; /* of the file being read */
    struct buf faults;        /* of all */
};

#define OF_UPSTREAM(text, reader, field)                                                                     \
    {                                                                                                        \
        .name = STR(text), .read = (reader), .offset = offsetof(struct config_upstream, field)               \
    }
#define OWN(text, reader, field)                                                                             \
    {                                                                                                        \
        .name = STR(text), .read = (reader), .offset = offsetof(struct mcp_entry, field)                     \
    }

static const struct setting keys[] = {
    OF_UPSTREAM("command", config_upstream_command, command),
    OF_UPSTREAM("args", config_upstream_strings, args),
    OF_UPSTREAM("env", config_upstream_pairs, spec.env),
    OF_UPSTREAM("cwd", config_upstream_folder, spec.cwd),
    OF_UPSTREAM("url", config_upstream_string, url),
    OF_UPSTREAM("serverUrl", config_upstream_string, url),
    OF_UPSTREAM("httpUrl", config_upstream_string, url),
    OF_UPSTREAM("headers", config_upstream_pairs, spec.headers),
    OWN("type", config_upstream_string, type),
    OWN("transport", config_upstream_string, type),
    OWN("disabled", key_bool, disabled),
    OWN("enabled", key_bool, enabled),
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* Where the entries stand in which client's file; "/" goes a level down. */
static const char *const places[] = {"mcpServers", "servers", "context_servers", "mcp"};

/* What other clients keep there and no operator misses here. */
static const char *const harmless[] = {"alwaysAllow", "autoApprove", "autoapprove", "description", "dev",
                                       "gallery",     "icon",        "id",          "metadata",    "name",
                                       "timeout",     "title",       "trust",       "version"};

static void warn(struct mcp_reading *r, struct str text)
{
    struct config *config = r->config;
    struct str *list = ARENA_ARRAY(config->arena, struct str, config->warning_count + 1);
    for (size_t i = 0; i < config->warning_count; i++)
        list[i] = config->warnings[i];
    list[config->warning_count++] = text;
    config->warnings = list;
}

/* ---- keys ------------------------------------------------------------------- */

static const struct setting *find_key(struct str name)
{
    for (size_t i = 0; i < KEYS; i++)
        if (str_eq(keys[i].name, name))
            return &keys[i];
    return NULL;
}

static bool is_harmless(struct str name)
{
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        if (str_is(name, harmless[i]))
            return true;
    return false;
}

static void ignore_key(struct mcp_reading *r, struct str path, struct str key)
{
    struct str names[KEYS], near;
    for (size_t i = 0; i < KEYS; i++)
        names[i] = keys[i].name;
    near = suggest_closest(key, names, KEYS);
    if (is_harmless(key))
        log_event(LOG_DEBUG, "mcp_config_key_ignored", LOG_TEXT("file", r->settings.file),
                  LOG_STR("entry", path), LOG_STR("key", key));
    else if (near.len)
        warn(r, arena_printf(r->config->arena,
                             "%s: " STR_FMT ": unknown key '" STR_FMT "' is ignored (did you mean '" STR_FMT
                             "'?)",
                             r->settings.file, STR_ARG(path), STR_ARG(key), STR_ARG(near)));
    else
        warn(r, arena_printf(r->config->arena, "%s: " STR_FMT ": unknown key '" STR_FMT "' is ignored",
                             r->settings.file, STR_ARG(path), STR_ARG(key)));
}

static struct str join(struct mcp_reading *r, struct str path, struct str name)
{
    return arena_printf(r->config->arena, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(name));
}

static void read_keys(struct mcp_reading *r, struct str path, const struct json *table, struct mcp_entry *out)
{
    for (uint32_t i = 0; i < table->len; i++) {
        const struct json_member *member = &table->members[i];
        const struct setting *setting = find_key(member->key);
        if (member->value.type == JSON_NULL)
            continue; /* as if it were not there */
        if (setting)
            setting->read(&r->settings, setting, join(r, path, member->key), &member->value, out);
        else
            ignore_key(r, path, member->key);
    }
}

/* ---- one entry -------------------------------------------------------------- */

/* The file may well be that of a client which has toolgate in it. */
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

/* A command needs no type, and a url says it all but for the transport that MCP gave up in 2025. */
static void check_type(struct mcp_reading *r, struct str path, const struct mcp_entry *entry)
{
    static const char *const http[] = {"http", "streamable-http", "streamableHttp", "streamable_http"};
    bool fits = !entry->type.len || (str_is(entry->type, "stdio") && entry->entry.command.len);
    for (size_t i = 0; i < sizeof(http) / sizeof(http[0]); i++)
        fits |= str_is(entry->type, http[i]) && entry->entry.url.len;
    if (str_is(entry->type, "sse"))
        key_table_error(&r->settings, join(r, path, STR_LIT("type")),
                        "HTTP with SSE (\"sse\") is the transport that MCP replaced by streamable HTTP, and "
                        "toolgate speaks only the latter: if the server does, too, give its new url and "
                        "\"type\": \"http\", else set \"disabled\": true");
    else if (!fits)
        key_table_error(&r->settings, join(r, path, STR_LIT("type")),
                        "expected \"stdio\" with a command or \"http\" with a url, got \"" STR_FMT
                        "\" with %s",
                        STR_ARG(str_cut(entry->type, 32)),
                        entry->entry.command.len ? "a command"
                        : entry->entry.url.len   ? "a url"
                                                 : "neither");
}

static void read_entry(struct mcp_reading *r, struct str path, const struct json_member *member)
{
    struct mcp_entry entry = {.enabled = true};
    struct settings *settings = &r->settings;
    size_t faults = settings->faults.len;
    if (member->value.type != JSON_OBJECT) {
        key_table_error(settings, path, "expected an object with a command or a url, got %s",
                        json_type_name((enum json_type)member->value.type));
        return;
    }
    config_upstream_init(&entry.entry);
    read_keys(r, path, &member->value, &entry);
    if (entry.disabled || !entry.enabled) {
        log_event(LOG_DEBUG, "mcp_config_entry_disabled", LOG_TEXT("file", settings->file),
                  LOG_STR("entry", path));
        settings->faults.len = faults; /* it is none of ours */
        return;
    }
    if (is_toolgate(&entry.entry)) {
        warn(r, arena_printf(r->config->arena, "%s: " STR_FMT ": toolgate itself, left out", settings->file,
                             STR_ARG(path)));
        return;
    }
    check_type(r, path, &entry);
    if (settings->faults.len == faults)
        config_upstream_add(settings, path, member->key, &member->value, &entry.entry, r->config);
}

/* ---- files ------------------------------------------------------------------- */

/* VS Code's settings have {"mcp": {"servers": …}}. */
static const struct json *find_servers(const struct json *file, struct str *path)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const struct json *found = json_get_text(file, places[i]);
        const struct json *below = json_get_text(found, "servers");
        if (str_is(str_of(places[i]), "mcp"))
            found = below;
        *path = str_of(places[i]);
        if (json_is(found, JSON_OBJECT))
            return found;
    }
    return NULL;
}

static void read_servers(struct mcp_reading *r, const struct json *file)
{
    struct str path;
    const struct json *servers = find_servers(file, &path);
    if (!servers)
        key_table_error(&r->settings, STR_NONE,
                        "expected an object with \"mcpServers\" (or \"servers\"): { name: { \"command\": …, "
                        "\"args\": […] } }, found neither");
    for (uint32_t i = 0; servers && i < servers->len; i++)
        read_entry(r, join(r, path, servers->members[i].key), &servers->members[i]);
}

static void read_file(struct mcp_reading *r, const char *path)
{
    struct json file;
    struct why why;
    r->settings = (struct settings){r->config->arena, path, buf_in(r->config->arena)};
    if (json_read_commented_file(r->config->arena, path, MCP_SERVERS_FILE_MAX_BYTES, &file, &why) != OK) {
        buf_printf(&r->faults, "%s%s", r->faults.len ? "\n" : "", why.text);
        return;
    }
    config_hash(r->config, &file);
    read_servers(r, &file);
    if (r->settings.faults.len)
        buf_printf(&r->faults, "%s" STR_FMT, r->faults.len ? "\n" : "",
                   STR_ARG(buf_view(&r->settings.faults)));
}

enum err mcp_servers_file_read(struct config *config, struct why *why)
{
    struct mcp_reading reading = {.config = config, .faults = buf_in(config->arena)};
    for (size_t i = 0; i < config->mcp_configs.count; i++)
        read_file(&reading, config->mcp_configs.list[i]);
    if (!reading.faults.len)
        return OK;
    return err_set(why, ERR_CONFIG, STR_FMT, STR_ARG(buf_view(&reading.faults)));
}
