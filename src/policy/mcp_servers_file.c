/* The mcpServers JSON of other clients (Claude Desktop, Cursor, VS Code's `servers`, Zed's
 * `context_servers`), with comments. Entries are read by the readers of `upstreams` (config_upstreams.c).
 * Other programs write these files: an entry that cannot be used is left out, and a key that is not for it
 * is ignored, each with a warning. Only a file that is no JSON is an error. */
#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "policy/config_internal.h"
#include "json/build.h"
#include "json/parse.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MCP_SERVERS_FILE_MAX_BYTES 4194304u
#define SECONDS_BELOW              1000 /* a timeout from here on is in milliseconds */
#define START_MAX_MS               3600000
#define NAME_HASH_BYTES            7u /* "_4f3a9c" */

struct mcp_entry {
    struct config_upstream upstream; /* first: its readers write through it */
    struct str type;
    bool disabled, enabled;
};

struct servers_reader {
    struct config *config;
    struct config_reader reader; /* of the current file */
    struct map *plain;           /* of the current file: plain_name of each entry; true: of several */
    struct buf errors;           /* of all files */
};

#define UPSTREAM(member) .offset = offsetof(struct config_upstream, member)
#define ENTRY(member)    .offset = offsetof(struct mcp_entry, member)

static const struct field fields[] = {
    {"command", UPSTREAM(command), READ_KEY(config_upstream_command)},
    {"args", UPSTREAM(args), READ_KEY(config_upstream_strings), .only = 1u << UPSTREAM_STDIO},
    {"env", UPSTREAM(spec.env), READ_KEY(config_upstream_pairs), .only = 1u << UPSTREAM_STDIO},
    {"cwd", UPSTREAM(spec.cwd), READ_KEY(config_upstream_folder), .only = 1u << UPSTREAM_STDIO},
    {"url", UPSTREAM(url), READ_KEY(config_upstream_string)},
    {"serverUrl", UPSTREAM(url), READ_KEY(config_upstream_string)},
    {"httpUrl", UPSTREAM(url), READ_KEY(config_upstream_string)},
    {"headers", UPSTREAM(spec.headers), READ_KEY(config_upstream_pairs), .only = 1u << UPSTREAM_HTTP},
    {"type", ENTRY(type), READ_KEY(config_upstream_string)},
    {"transport", ENTRY(type), READ_KEY(config_upstream_string)},
    {"includeTools", UPSTREAM(spec.tools), READ_KEY(config_upstream_globs)},
    {"disabledTools", UPSTREAM(spec.excluded), READ_KEY(config_upstream_globs)},
    {"excludeTools", UPSTREAM(spec.excluded), READ_KEY(config_upstream_globs)},
    {"disabled", FIELD_BOOL, ENTRY(disabled)},
    {"enabled", FIELD_BOOL, ENTRY(enabled)},
};
static const struct field_table keys = KEYS(fields);

/* ---- spellings ----
 * The same keys in the words of other clients. Besides, `_` and case do not matter: a list of disabled_tools
 * that was ignored would serve them. */
static const struct {
    const char *theirs, *ours;
} spellings[] = {{"includetools", "includeTools"},
                 {"allowedtools", "includeTools"},
                 {"enabledtools", "includeTools"},
                 {"availabletools", "includeTools"},
                 {"tools", "includeTools"}, /* of GitHub Copilot */
                 {"disabledtools", "disabledTools"},
                 {"excludetools", "excludeTools"},
                 {"excludedtools", "excludeTools"},
                 {"blockedtools", "excludeTools"},
                 {"isactive", "enabled"},
                 {"environment", "env"},
                 {"httpheaders", "headers"},
                 {"starttimeout", "startupTimeout"},
                 {"startuptimeout", "startupTimeout"},
                 {"startuptimeoutsec", "startup_timeout_sec"},
                 {"tooltimeoutsec", "tool_timeout_sec"},
                 {"transporttype", "type"}};
#define KEY_MAX_BYTES 24u

static struct str usual_key(struct str key)
{
    char plain[KEY_MAX_BYTES];
    size_t len = 0;
    for (size_t i = 0; i < key.len && len < sizeof(plain); i++)
        if (key.at[i] != '_' && key.at[i] != '-')
            plain[len++] = ascii_lower(key.at[i]);
    for (size_t i = 0; len < sizeof(plain) && i < sizeof(spellings) / sizeof(spellings[0]); i++)
        if (str_is((struct str){plain, len}, spellings[i].theirs))
            return str_of(spellings[i].ours);
    return key;
}

static bool is_list_of_strings(const struct json *list)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++)
        if (list->items[i].type != JSON_STRING)
            return false;
    return json_is(list, JSON_ARRAY);
}

/* A value of one reading, as the readers expect it: one name for a list of one, "true", "LOCAL". */
static struct json usual_value(struct arena *arena, struct str key, const struct json *value)
{
    bool has_text = value->type == JSON_STRING || value->type == JSON_NUMBER;
    struct str text = has_text ? arena_dup(arena, (struct str){value->text, value->len}) : STR_NONE;
    bool is_switch = str_is(key, "disabled") || str_is(key, "enabled");
    for (size_t i = 0; i < text.len; i++)
        ((char *)text.at)[i] = ascii_lower(text.at[i]);
    if (is_switch && (str_is(text, "true") || str_is(text, "1")))
        return json_bool(true);
    if (is_switch && (str_is(text, "false") || str_is(text, "0")))
        return json_bool(false);
    if (str_is(key, "type") && text.len)
        return json_string(str_is(text, "local")    ? STR_LIT("stdio")
                           : str_is(text, "remote") ? STR_LIT("http")
                                                    : text);
    if (value->type == JSON_STRING && value->len && str_contains_nocase(key, STR_LIT("tools")))
        return json_array(value, 1);
    return json_without_nulls(arena, value);
}

/* The members with the keys and forms of the table above; what is null is not there. Lists of tools to leave
 * out are one list, under whichever names an entry has them. */
static struct json usual_members(struct arena *arena, const struct json *entry)
{
    static const char *const excluding[] = {"disabledTools", "excludeTools"};
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, entry->len), *excluded = NULL;
    struct json *tools = NULL; /* of `excluded` */
    struct map *taken = map_new(arena);
    size_t count = 0, tool_count = 0;
    for (uint32_t i = 0; i < entry->len; i++) {
        struct str own = entry->members[i].key, key = usual_key(own);
        struct json value = usual_value(arena, key, &entry->members[i].value);
        bool is_cached_list = /* of definitions, perhaps of none */
            str_is(own, "tools") && (!is_list_of_strings(&value) || !value.len);
        if (value.type == JSON_NULL)
            continue;
        if (STR_IS_ONE_OF(key, excluding) && is_list_of_strings(&value)) {
            for (uint32_t item = 0; item < value.len; item++) {
                tools = arena_grow(arena, tools, tool_count, sizeof(*tools));
                tools[tool_count++] = value.items[item];
            }
            if (excluded)
                continue;
            excluded = &members[count];
        } else if (is_cached_list || map_get(taken, key)) {
            key = own;
        }
        members[count++] = json_member(key, value);
        map_add(taken, key, members);
    }
    if (excluded)
        excluded->value = json_array(tools, tool_count);
    return json_object(arena, members, count);
}

/* opencode has the words of a command in one list, Zed had { path, args, env }. */
static struct json usual_entry(struct arena *arena, const struct json *entry)
{
    struct json out = usual_members(arena, entry);
    const struct json *command = json_get_text(&out, "command"), *path = json_get_text(command, "path");
    struct json words = command ? *command : out;
    if (json_str(path).len) {
        static const char *const parts[] = {"args", "env"};
        for (size_t i = 0; i < 2; i++)
            if (json_get_text(&words, parts[i]))
                out = json_with(arena, &out, str_of(parts[i]), *json_get_text(&words, parts[i]));
        return json_with(arena, &out, STR_LIT("command"), *json_get_text(&words, "path"));
    }
    if (!command || !is_list_of_strings(command) || !words.len)
        return out;
    const struct json *args = json_get_text(&out, "args");
    uint32_t first = words.len - 1, more = json_is(args, JSON_ARRAY) ? args->len : 0;
    struct json *all = ARENA_ARRAY(arena, struct json, first + more);
    for (uint32_t i = 0; i < first + more; i++)
        all[i] = i < first ? words.items[i + 1] : args->items[i - first];
    out = json_with(arena, &out, STR_LIT("command"), words.items[0]);
    return first + more ? json_with(arena, &out, STR_LIT("args"), json_array(all, first + more)) : out;
}

static void warn(struct servers_reader *r, struct str text)
{
    config_warn(r->config, text);
}

static void read_keys(struct servers_reader *r, struct str path, const struct json *table,
                      struct mcp_entry *entry)
{
    /* Settings of other clients that toolgate has no use for. */
    static const char *const harmless[] = {"alwaysAllow",
                                           "autoApprove",
                                           "autoapprove",
                                           "description",
                                           "dev",
                                           "gallery",
                                           "icon",
                                           "id",
                                           "metadata",
                                           "name",
                                           "startupTimeout",
                                           "startup_timeout_sec",
                                           "timeout",
                                           "title",
                                           "tool_timeout_sec",
                                           "trust",
                                           "version"};
    struct key_value whole = {.reader = &r->reader, .path = path, .base = entry};
    for (uint32_t i = 0; i < table->len; i++) {
        const struct json_member *member = &table->members[i];
        struct key_value value = key_member(&whole, member);
        bool empty = member->value.type == JSON_STRING && !member->value.len;
        if (member->value.type == JSON_NULL || empty)
            continue;
        struct str near;
        value.key = field_find(&keys, member->key, &near);
        if (value.key)
            key_read(&value);
        else if (str_is(member->key, "alwaysAllow") && member->value.len)
            log_event(LOG_INFO, "mcp_config_key_ignored", LOG_TEXT("file", r->reader.file),
                      LOG_STR("entry", path), LOG_STR("key", member->key),
                      LOG_TEXT("why", "policies alone decide what may be called"));
        else if (STR_IS_ONE_OF(member->key, harmless))
            log_event(LOG_DEBUG, "mcp_config_key_ignored", LOG_TEXT("file", r->reader.file),
                      LOG_STR("entry", path), LOG_STR("key", member->key));
        else
            warn(r, arena_printf(r->config->arena, "%s: " STR_FMT ": unknown key '" STR_FMT "' is ignored%s",
                                 r->reader.file, STR_ARG(path), STR_ARG(member->key),
                                 field_hint(r->config->arena, near)));
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
    static const char *const http[] = {"http", "streamable-http", "streamableHttp", "streamablehttp",
                                       "streamable_http"};
    struct str command = entry->upstream.command, url = entry->upstream.url, type = entry->type;
    bool fits = !type.len || (str_is(type, "stdio") && command.len);
    path = ARENA_JOIN(r->config->arena, path, STR_LIT(".type"));
    fits |= STR_IS_ONE_OF(type, http) && url.len;
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

/* ---- names ---- */

static bool fits(struct str name)
{
    return str_is_name(name) && name.len <= UPSTREAM_NAME_MAX_BYTES;
}

/* '_' for each byte that names of upstreams do not have; "server" if nothing else is left. */
static struct str plain_name(struct arena *arena, struct str name)
{
    struct buf out = buf_in(arena);
    bool says = false;
    for (size_t i = 0; i < name.len; i++) {
        bool is_plain = str_is_name((struct str){name.at + i, 1});
        says |= is_plain && name.at[i] != '_';
        buf_byte(&out, is_plain ? name.at[i] : '_');
    }
    return says ? buf_view(&out) : STR_LIT("server");
}

/* The entry's own name, or one derived from it. Every one of several that would be alike has a hash of its
 * own name: a policy that names one must not guard another when an entry is added or removed. */
static struct str name_of(struct servers_reader *r, struct str own)
{
    struct arena *arena = r->config->arena;
    if (fits(own))
        return own;
    struct str name = plain_name(arena, own);
    const bool *twice = map_get(r->plain, name);
    bool usable = own.len && !str_is(name, "server") && fits(name) && !(twice && *twice);
    for (size_t i = 0; i < r->config->upstream_count; i++)
        usable &= !str_eq(r->config->upstreams[i]->name, name);
    if (!usable)
        name = arena_printf(arena, STR_FMT "_%06x",
                            STR_ARG(str_cut(name, UPSTREAM_NAME_MAX_BYTES - NAME_HASH_BYTES)),
                            (unsigned)(hash_stable(own).low & 0xffffff));
    log_event(LOG_INFO, "mcp_config_name_derived", LOG_TEXT("file", r->reader.file), LOG_STR("entry", own),
              LOG_STR("upstream", name));
    return name;
}

/* ---- entries ---- */

/* Some clients write every key they know, whether it is for a command or a url. */
static struct json without_other_keys(struct servers_reader *r, struct str path, const struct json *given,
                                      struct mcp_entry *entry)
{
    bool is_url = entry->upstream.url.len && !entry->upstream.command.len;
    unsigned kind = 1u << (is_url ? UPSTREAM_HTTP : UPSTREAM_STDIO);
    struct json out = *given;
    const struct field *key;
    for (size_t at = 0; (key = field_next(&keys, &at));) {
        const struct json *value = json_get_text(given, key->name);
        if (!key->only || key->only & kind)
            continue;
        if (value && value->type != JSON_NULL && !(value->type != JSON_BOOL && !value->len))
            warn(r, arena_printf(r->config->arena, "%s: " STR_FMT ": '%s' is ignored: it is not for a %s",
                                 r->reader.file, STR_ARG(path), key->name, is_url ? "url" : "command"));
        out = json_without(r->config->arena, &out, str_of(key->name));
    }
    return out;
}

/* What is wrong with an entry leaves out that entry alone. */
static void leave_out(struct servers_reader *r, size_t errors)
{
    struct buf *all = &r->reader.errors;
    struct str text = {all->at + errors, all->len - errors};
    text = str_trim(text);
    const char *end = text.len ? memchr(text.at, '\n', text.len) : NULL;
    if (end)
        text.len = (size_t)(end - text.at);
    warn(r, arena_printf(r->config->arena, STR_FMT "; this entry is left out", STR_ARG(text)));
    all->len = errors;
}

/* Clients write seconds or milliseconds, Codex seconds, which need not be whole. 0: none that can be used. */
static uint32_t time_ms(struct servers_reader *r, struct str path, const struct json *entry, const char *key,
                        const char *seconds_key)
{
    const struct json *value = json_get_text(entry, key), *seconds = json_get_text(entry, seconds_key);
    int64_t n = 0;
    double s = 0;
    if (value && (!json_int(value, &n) || n < 0 || n > START_MAX_MS) && value->type != JSON_NULL) {
        warn(r,
             arena_printf(r->config->arena,
                          "%s: " STR_FMT ".%s is ignored: expected seconds (below %u) or milliseconds as a "
                          "whole number up to %u",
                          r->reader.file, STR_ARG(path), key, SECONDS_BELOW, START_MAX_MS));
        return 0;
    }
    if (seconds && (!json_double(seconds, &s) || s < 0 || s * 1000 > START_MAX_MS) &&
        seconds->type != JSON_NULL) {
        warn(r, arena_printf(r->config->arena, "%s: " STR_FMT ".%s is ignored: expected seconds up to %u",
                             r->reader.file, STR_ARG(path), seconds_key, START_MAX_MS / 1000));
        return 0;
    }
    return (uint32_t)(n >= SECONDS_BELOW ? n : n > 0 ? n * 1000 : (int64_t)(s * 1000));
}

static void read_entry(struct servers_reader *r, struct str path, const struct json_member *member)
{
    struct mcp_entry entry = {.enabled = true};
    struct config_reader *reader = &r->reader;
    size_t errors = reader->errors.len;
    if (member->value.type != JSON_OBJECT) {
        key_table_error(reader, path, "expected an object with a command or a url, got %s",
                        json_type_name((enum json_type)member->value.type));
        leave_out(r, errors);
        return;
    }
    struct json usual = usual_entry(r->config->arena, &member->value);
    config_upstream_init(&entry.upstream);
    read_keys(r, path, &usual, &entry);
    if (entry.disabled || !entry.enabled) {
        log_event(LOG_DEBUG, "mcp_config_entry_disabled", LOG_TEXT("file", reader->file),
                  LOG_STR("entry", path));
        reader->errors.len = errors; /* errors of a disabled entry do not matter */
        return;
    }
    if (is_toolgate(&entry.upstream)) {
        warn(r, arena_printf(r->config->arena, "%s: " STR_FMT ": toolgate itself, left out", reader->file,
                             STR_ARG(path)));
        reader->errors.len = errors;
        return;
    }
    /* A `timeout` is that of a call; a start may take as long. */
    struct upstream_spec *spec = &entry.upstream.spec;
    uint32_t start_ms = time_ms(r, path, &usual, "startupTimeout", "startup_timeout_sec"),
             call_ms = time_ms(r, path, &usual, "timeout", "tool_timeout_sec");
    spec->timeout_ms = call_ms ? call_ms : spec->timeout_ms;
    spec->start_ms = start_ms ? start_ms : call_ms > spec->start_ms ? call_ms : spec->start_ms;
    check_type(r, path, &entry);
    if (reader->errors.len == errors) {
        struct json given = without_other_keys(r, path, &usual, &entry);
        config_upstream_add(reader, path, name_of(r, member->key), &given, &entry.upstream, r->config);
    }
    if (reader->errors.len != errors)
        leave_out(r, errors);
}

static void read_servers(struct servers_reader *r, const struct json *file)
{
    static const char *const places[] = {"mcpServers", "servers", "context_servers", "mcp"};
    bool found = false;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const struct json *servers = json_get_text(file, places[i]);
        if (str_is(str_of(places[i]), "mcp")) /* VS Code's settings: {"mcp": {"servers": …}} */
            servers = json_get_text(servers, "servers");
        if (!json_is(servers, JSON_OBJECT))
            continue;
        found = true;
        r->plain = map_new(r->config->arena);
        for (uint32_t n = 0; n < servers->len; n++) {
            struct str name = plain_name(r->config->arena, servers->members[n].key);
            bool *twice = map_get(r->plain, name);
            if (twice)
                *twice = true;
            else
                map_add(r->plain, name, ARENA_NEW(r->config->arena, bool));
        }
        for (uint32_t n = 0; n < servers->len; n++)
            read_entry(r,
                       ARENA_JOIN(r->config->arena, str_of(places[i]), STR_LIT("."), servers->members[n].key),
                       &servers->members[n]);
    }
    if (!found)
        warn(r, arena_printf(
                    r->config->arena,
                    "%s: expected an object with \"mcpServers\" (or \"servers\"): { name: { \"command\": …, "
                    "\"args\": […] } }, found neither",
                    r->reader.file));
}

static void read_file(struct servers_reader *r, const char *path)
{
    struct config *config = r->config;
    struct json file;
    struct why parse_error = {0};
    r->reader = (struct config_reader){config->arena, path, buf_in(config->arena), NULL};
    if (json_read_commented_file(config->arena, path, MCP_SERVERS_FILE_MAX_BYTES, &file, &parse_error) ==
        OK) {
        config->hash = key_table_hash(config->hash, &file);
        if (parse_error.text[0])
            warn(r, arena_dup(config->arena, str_of(parse_error.text)));
        read_servers(r, &file);
    } else {
        buf_text(&r->reader.errors, parse_error.text);
    }
    if (r->errors.len && r->reader.errors.len)
        buf_byte(&r->errors, '\n');
    buf_str(&r->errors, buf_view(&r->reader.errors));
}

static int is_json(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && end && strcmp(end, ".json") == 0;
}

/* A folder's files, in the order of their names; false: it is none. */
static bool read_folder(struct servers_reader *r, const char *path)
{
    struct stat st;
    struct dirent **list;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    int count = scandir(path, &list, is_json, alphasort);
    for (int i = 0; i < count; i++) {
        read_file(r, arena_printf(r->config->arena, "%s/%s", path, list[i]->d_name).at);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
    return true;
}

enum err mcp_servers_file_read(struct config *config, struct why *why)
{
    struct servers_reader r = {.config = config, .errors = buf_in(config->arena)};
    for (size_t i = 0; i < config->mcp_configs.count; i++)
        if (!read_folder(&r, config->mcp_configs.list[i]))
            read_file(&r, config->mcp_configs.list[i]);
    if (!r.errors.len)
        return OK;
    return err_set(why, ERR_CONFIG, STR_FMT, STR_ARG(buf_view(&r.errors)));
}
