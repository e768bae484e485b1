/* Loading a configuration: defaults, then one Lua file checked against the rows of config_keys.c, then the
 * command line. The ledger of a configuration is opened here, too. */
#include "policy/config.h"

#include "base/arena.h"
#include "policy/config_internal.h"
#include "ledger/ledger.h"
#include "ledger/redis_address.h"
#include "policy/policy_internal.h"
#include "policy/source_location.h"
#include "io/file.h"
#include "sandbox/bridge.h"
#include "sandbox/deadline.h"
#include "upstream/secrets.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* In $XDG_RUNTIME_DIR, else (an SDK may start a program without that variable) in /run/user/UID. NULL: this
 * user has no such folder. */
static const char *user_socket(struct arena *arena)
{
    const char *given = getenv("XDG_RUNTIME_DIR");
    const char *own = arena_printf(arena, CONFIG_RUNTIME_FOLDERS "/%u", (unsigned)geteuid()).at;
    struct stat st;
    if (given && given[0] == '/')
        own = given;
    else if (lstat(own, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return NULL;
    return arena_printf(arena, "%s/toolgate/" CONFIG_SOCKET_NAME, own).at;
}

const char *config_default_socket(struct arena *arena)
{
    const char *named = getenv("TOOLGATE_SOCKET"), *own = user_socket(arena);
    if (named && *named)
        return named;
    return own ? own : CONFIG_SYSTEM_FOLDER "/" CONFIG_SOCKET_NAME;
}

/* Whether this user may write there, or make it. */
static bool may_write(struct arena *arena, const char *folder)
{
    char *path = arena_copy(arena, str_of(folder));
    while (access(path, F_OK) != 0 && strrchr(path, '/') > path)
        *strrchr(path, '/') = '\0';
    return access(path, W_OK | X_OK) == 0;
}

/* Of the daemon at the user's own socket, whose folder does not outlive the login. NULL: it is another
 * socket, systemd has given a folder, or none can be made. */
static const char *user_state(struct arena *arena, const char *socket)
{
    const char *own = user_socket(arena), *given = getenv("STATE_DIRECTORY");
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (!own || strcmp(own, socket) != 0 || (given && *given))
        return NULL;
    if (state && state[0] == '/')
        state = arena_printf(arena, "%s/toolgate", state).at;
    else
        state = home && home[0] == '/' ? arena_printf(arena, "%s/.local/state/toolgate", home).at : NULL;
    return state && may_write(arena, state) ? state : NULL;
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

/* The command line wins: the key's own value, or a copy of the option. */
static const char *option(struct arena *arena, const char *given, const char *own)
{
    return given ? arena_dup(arena, str_of(given)).at : own;
}

/* The defaults that depend on other keys come last. */
static void complete(const struct config_sources *sources, struct config *config)
{
    config->socket = option(config->arena, sources->socket, config->socket);
    if (!config->socket)
        config->socket = arena_dup(config->arena, str_of(config_default_socket(config->arena))).at;
    if (!config->state)
        config->state = user_state(config->arena, config->socket);
    config->policies = option(config->arena, sources->policies, config->policies);
    const char *folder = sources->default_policies ? sources->default_policies : CONFIG_DEFAULT_FOLDER;
    if (!config->policies && is_folder(folder))
        config->policies = arena_dup(config->arena, str_of(folder)).at;
    const char *policies = is_folder(config->policies) ? config->policies : NULL;
    const char *own = schemas_beside(config->arena, config->file),
               *theirs = schemas_beside(config->arena, policies);
    if (!config->schemas)
        config->schemas = own && (is_folder(own) || !is_folder(theirs)) ? own : theirs;
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

/* ---- the file: Lua, for comments and keys without quotes. Its sandbox is freed once it is read. ---- */

#define CONFIG_MEMORY_KB 16384u

struct config_load {
    struct arena *arena;
    struct str source;
    const char *file;
    const struct json *out;
};

static void read_step(lua_State *L, void *context)
{
    struct config_load *r = context;
    sandbox_load(L, r->source, r->file);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1) || sandbox_mark(L, -1) == MARK_DECLARATION) {
        diagnostics_push_value(L, -1);
        luaL_error(L, "%s: expected the file to return a table { key = value, … }, got %s",
                   sandbox_chunk(r->file), lua_tostring(L, -1));
    }
    r->out = bridge_read(L, -1, "config", NULL, r->arena);
    if (r->out->type != JSON_OBJECT)
        luaL_error(L, "%s: expected the file to return a table { key = value, … }, got a list",
                   sandbox_chunk(r->file));
}

/* A second `allow` would take back what the first one grants, and nobody would be told. */
static enum err check_repeated(const struct config_load *r, struct why *why)
{
    struct repeated_field *list;
    struct buf out = buf_in(r->arena);
    size_t count = location_repeated_fields(r->arena, location_tokens(r->arena, r->source), &list);
    for (size_t i = 0; i < count; i++)
        buf_printf(&out, "%s%s:%d: " REPEATED_FIELD, i ? "\n" : "", r->file, list[i].line,
                   STR_ARG(str_cut(list[i].name, 60)), list[i].first);
    return count ? err_set(why, ERR_CONFIG, STR_FMT, STR_ARG(buf_view(&out))) : OK;
}

enum err lua_config_read(const char *path, struct arena *arena, struct json *out, struct why *why)
{
    struct config_load r = {.arena = arena, .file = path};
    enum err err = file_read(arena, path, SANDBOX_SOURCE_MAX_BYTES, &r.source, why);
    if (err != OK)
        return err;
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_dup(arena, (struct str){path, (size_t)(slash - path)}).at : ".";
    struct sandbox *sandbox = sandbox_new(CONFIG_MEMORY_KB, vocabulary_open);
    struct json_files files = {.arena = arena};
    struct sandbox_context now = {
        .arena = arena, .folder = folder, .file = path, .files = &files, .loading = true};
    if (sandbox_run(sandbox, SANDBOX_LOAD_DEADLINE_MS, &now, read_step, &r, why) == OK)
        *out = *r.out;
    else
        err = ERR_CONFIG;
    sandbox_free(sandbox);
    return err ? err : check_repeated(&r, why);
}

enum err config_load(const struct config_sources *sources, struct config *out, struct why *why)
{
    *out = (struct config){.arena = arena_new()};
    config_init(out);
    struct json table;
    struct config_reader reader = {out->arena, sources->file, buf_in(out->arena), NULL};
    enum err err = sources->file ? lua_config_read(sources->file, out->arena, &table, why) : OK;
    if (!err && sources->file) {
        out->file = arena_dup(out->arena, str_of(sources->file)).at;
        out->hash = key_table_hash(out->hash, &table);
        key_table_read(&reader, &config_table, STR_NONE, &table, out);
    }
    out->ledger_redis = option(out->arena, sources->redis, out->ledger_redis);
    if (!err)
        config_check_keys(&reader, out);
    if (reader.errors.len)
        err = err_set(why, ERR_CONFIG, STR_FMT, STR_ARG(buf_view(&reader.errors)));
    const char *schemas = out->schemas; /* as the file names it; the default may be missing */
    if (err == OK) {
        complete(sources, out);
        err = check_paths(out, why);
    }
    if (err == OK && schemas && !is_folder(schemas))
        err = err_set(why, ERR_CONFIG, "schemas %s: expected a folder of *.json files, found none", schemas);
    if (err == OK && sources->file && !sources->offline) /* else other options may be meant to complete it */
        config_check_effects(&reader, out);
    if (err == OK)
        err = mcp_servers_file_read(out, why);
    config_upstreams_sort(out);
    return err;
}

const struct upstream_spec *config_find_upstream(const struct config *config, struct str name)
{
    for (size_t i = 0; i < config->upstream_count; i++)
        if (str_eq(config->upstreams[i]->name, name))
            return config->upstreams[i];
    return NULL;
}

void config_free(struct config *config)
{
    arena_free(config->arena);
    *config = (struct config){0};
}

/* ---- what needs a restart, and the ledger ---- */

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

bool config_decisions_same_sinks(const struct config_decisions *a, const struct config_decisions *b)
{
    return a->on == b->on && a->to_file == b->to_file && same_text(a->file, b->file) &&
           same_text(a->journald, b->journald) && a->max_mb == b->max_mb && a->keep == b->keep;
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
                      "it has a user but no password: write user:password@, or set ledger.password_file");
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
    struct ledger_options options = {.ttl_s = config->ledger_ttl_s,
                                     .history = config->ledger_history,
                                     .memory_bytes = config->ledger_memory,
                                     .on_outage = (enum ledger_outage)config->ledger_on_outage,
                                     .settles_unheard = config->ledger_settle != 0,
                                     .key_file = key_file,
                                     .loop = loop,
                                     .password_file = config->ledger_password_file,
                                     .timeout_ms = config->ledger_timeout_ms};
    *out = config->ledger_redis ? NULL : ledger_new_local(&options);
    if (*out)
        return OK;
    struct arena *arena = arena_new();
    struct str address;
    enum err err = fill_address(arena, config, &address, why);
    options.address = err == OK ? arena_dup(arena, address).at : NULL;
    if (err == OK)
        err = ledger_new_redis(&options, out, why);
    arena_free(arena);
    return err;
}
