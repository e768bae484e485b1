/* One table of keys, then the checks of the whole entry: its kind, the keys of that kind, its name. Values
 * of env, headers, args and url are never quoted in an error: they may be secrets. */
#include "policy/config_internal.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "upstream/http/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define AT(member) .offset = offsetof(struct config_upstream, member)

#define STRING_MAX_BYTES 65536u /* of one argument, variable or header */

/* Without the value. */
static void expected_type(const struct key_value *value, const char *what)
{
    bool empty = value->json->type == JSON_STRING && !value->json->len;
    key_table_error(value->reader, value->path, "expected %s, got %s", what,
                    empty ? "an empty one" : json_type_name((enum json_type)value->json->type));
}

/* Numbers and booleans become strings: PORT = 8080. */
static bool read_string(const struct key_value *value, struct str *out)
{
    const struct json *json = value->json;
    *out = STR_NONE;
    if (json->type == JSON_STRING || json->type == JSON_NUMBER)
        *out = arena_dup(value->reader->arena, (struct str){json->text, json->len});
    else if (json->type == JSON_BOOL)
        *out = json->truth ? STR_LIT("true") : STR_LIT("false");
    else {
        expected_type(value, "a string");
        return false;
    }
    if (str_has(*out, '\0'))
        key_table_error(value->reader, value->path, "must not hold a NUL byte");
    else if (out->len > STRING_MAX_BYTES)
        key_table_error(value->reader, value->path, "longer than %u bytes", STRING_MAX_BYTES);
    else
        return true;
    return false;
}

void config_upstream_string(const struct key_value *value)
{
    if (value->json->type != JSON_STRING || !value->json->len)
        expected_type(value, "a string");
    else
        read_string(value, key_target(value));
}

void config_upstream_strings(const struct key_value *value)
{
    uint32_t count = value->json->len;
    if (value->json->type != JSON_ARRAY && (value->json->type != JSON_OBJECT || count)) { /* Lua's {} */
        expected_type(value, "a list of strings");
        return;
    }
    struct str *list = ARENA_ARRAY(value->reader->arena, struct str, count);
    for (uint32_t i = 0; i < count; i++) {
        struct key_value item = key_item(value, &value->json->items[i], i);
        read_string(&item, &list[i]);
    }
    *(struct strings *)key_target(value) = (struct strings){list, count};
}

/* {} means none; only a key that is left out means all. */
void config_upstream_globs(const struct key_value *value)
{
    struct name_globs *globs = key_target(value); /* its first two members are those of struct strings */
    config_upstream_strings(value);
    if (!globs->list) /* no list, which is said */
        return;
    globs->given = true;
    for (size_t i = 0; i < globs->count; i++)
        key_refuse_negation(value, globs->list[i]);
}

/* A name of an environment variable or an HTTP header. */
static bool is_token(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return name.len != 0;
}

static void read_pairs(const struct key_value *value, struct name_values *out)
{
    struct config_reader *reader = value->reader;
    uint32_t count = value->json->len;
    bool is_header = value->key->offset == offsetof(struct config_upstream, spec.headers);
    if (value->json->type != JSON_OBJECT && (value->json->type != JSON_ARRAY || count)) {
        expected_type(value, "a table of names and strings, e.g. { NAME = \"value\" }");
        return;
    }
    struct name_value *list = ARENA_ARRAY(reader->arena, struct name_value, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct json_member *member = &value->json->members[i];
        struct key_value item = key_member(value, member);
        list[i].name = arena_dup(reader->arena, member->key);
        if (!is_token(member->key))
            key_table_error(reader, item.path, "expected a name of letters, digits and '_' or '-'");
        if (read_string(&item, &list[i].value) && is_header &&
            (str_has(list[i].value, '\n') || str_has(list[i].value, '\r')))
            key_table_error(reader, item.path, "a header must not hold a line break");
    }
    *out = (struct name_values){list, count};
}

void config_upstream_pairs(const struct key_value *value)
{
    read_pairs(value, key_target(value));
}

void config_upstream_folder(const struct key_value *value)
{
    struct str *out = key_target(value);
    config_upstream_string(value);
    if (out->len && !str_starts(*out, "${"))
        *out = str_of(key_table_path(value->reader, *out));
}

void config_upstream_command(const struct key_value *value)
{
    struct str *out = key_target(value);
    if (value->json->type != JSON_STRING) {
        expected_type(value, "a program's name as a string, its arguments in args");
        return;
    }
    config_upstream_string(value);
    if (!out->len || str_starts(*out, "${"))
        return;
    const char *slash = memchr(out->at, '/', out->len), *space = memchr(out->at, ' ', out->len);
    bool in_path = !slash || (space && space < slash); /* "npx -y @scope/server" names no file */
    if (!in_path)
        *out = str_of(key_table_path(value->reader, *out));
    else if (space)
        key_table_error(value->reader, value->path,
                        "expected a program's name, got several words: put the others into args, since no "
                        "shell splits them");
}

/* "on_collision", "always", or a boolean: always or not. */
static void read_prefix(const struct key_value *value)
{
    if (value->json->type != JSON_BOOL)
        key_read_plain(value);
    else
        *(unsigned *)key_target(value) =
            value->json->truth ? UPSTREAM_PREFIX_ALWAYS : UPSTREAM_PREFIX_ON_COLLISION;
}

static void read_paths(const struct key_value *value)
{
    struct config_upstream *entry = value->base;
    struct strings *list = key_target(value);
    size_t errors = value->reader->errors.len;
    config_upstream_strings(value);
    entry->spec.sandbox.reads_given |= strcmp(value->key->name, "read") == 0;
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

/* A list of variables that the process inherits, or a table of variables with their values. */
static void read_env(const struct key_value *value)
{
    struct config_upstream *entry = value->base;
    if (value->json->type == JSON_OBJECT && value->json->len)
        read_pairs(value, &entry->sandbox_env);
    else
        config_upstream_strings(value);
}

static const struct field sandbox_fields[] = {
    {"read", AT(spec.sandbox.read), READ_KEY(read_paths)},
    {"write", AT(spec.sandbox.write), READ_KEY(read_paths)},
    {"network", FIELD_BOOL, AT(spec.sandbox.network)},
    {"env", AT(spec.sandbox.env), READ_KEY(read_env)},
    {"memory", FIELD_SIZE, AT(spec.sandbox.memory_bytes), RANGE(16777216, INT64_MAX)},
    {"processes", FIELD_WHOLE, AT(spec.sandbox.processes), RANGE(1, 1048576)},
    {"best_effort", FIELD_BOOL, AT(spec.sandbox.best_effort)},
};
static const struct field_table sandbox_table = KEYS(sandbox_fields);

/* `sandbox` of an upstream that toolgate starts: true, "best_effort" or a table. Paths are made absolute and
 * real folders are not demanded here: a start checks them, since they may be created later. */
static void read_sandbox(const struct key_value *value)
{
    struct config_upstream *entry = value->base;
    struct confine_spec *sandbox = &entry->spec.sandbox;
    const struct json *json = value->json;
    bool empty = json->type == JSON_ARRAY && !json->len; /* Lua's {} */
    *sandbox = (struct confine_spec){.on = json->type != JSON_BOOL || json->truth};
    if (json->type == JSON_STRING && str_is(json_str(json), "best_effort"))
        sandbox->best_effort = true;
    else if (json->type == JSON_OBJECT)
        key_table_read(value->reader, &sandbox_table, value->path, json, entry);
    else if (json->type != JSON_BOOL && !empty)
        key_expected(value, "a table such as { write = { \"/srv/files\" }, network = true }, true, or "
                            "\"best_effort\"");
}

/* The kinds that have a key; a key without is for all. */
#define STDIO                 .only = (1u << UPSTREAM_STDIO)
#define MCP                   .only = (1u << UPSTREAM_STDIO | 1u << UPSTREAM_HTTP)
#define REQUESTS              .only = (1u << UPSTREAM_HTTP | 1u << UPSTREAM_REST)
#define STRING(key, member)   key, AT(member), READ_KEY(config_upstream_string)
#define STRINGS(key, member)  key, AT(member), READ_KEY(config_upstream_strings)
#define DURATION(key, member) key, FIELD_DURATION, AT(member), RANGE(10, 86400000)

static const struct field entry_fields[] = {
    {"command", AT(command), READ_KEY(config_upstream_command)},
    {STRINGS("args", args), STDIO},
    {"env", AT(spec.env), READ_KEY(config_upstream_pairs), STDIO},
    {"cwd", AT(spec.cwd), READ_KEY(config_upstream_folder), STDIO},
    {"sandbox", AT(spec.sandbox), .table = &sandbox_table, READ_KEY(read_sandbox), STDIO},
    {STRING("user", spec.user), STDIO},
    {"spawned", FIELD_BOOL, AT(spawned), STDIO},
    {"per_user", FIELD_BOOL, AT(spec.per_user)},
    {DURATION("user_idle", spec.user_idle_ms)},
    {STRING("url", url)},
    {STRING("rest", rest)},
    {"headers", AT(spec.headers), READ_KEY(config_upstream_pairs), REQUESTS},
    {"ca_file", AT(spec.ca_file), READ_KEY(config_upstream_folder), REQUESTS},
    {"start", FIELD_CHOICE, AT(lazy), CHOICES("at_once lazy", 0), MCP},
    {"prefix", FIELD_CHOICE, AT(spec.prefix), CHOICES("on_collision always", UPSTREAM_PREFIX_ON_COLLISION),
     .read_key = read_prefix, MCP},
    {"tools", AT(spec.tools), READ_KEY(config_upstream_globs), MCP},
    {"prompts", AT(spec.prompts), READ_KEY(config_upstream_globs), MCP},
    {"resources", AT(spec.resources), READ_KEY(config_upstream_globs), MCP},
    {"instructions", FIELD_BOOL, AT(spec.instructions), MCP},
    {"forward_meta", FIELD_BOOL, AT(spec.forward_meta), MCP},
    {DURATION("timeout", spec.timeout_ms)},
    {DURATION("start_timeout", spec.start_ms), MCP},
    {DURATION("resubscribe", spec.resubscribe_ms), MCP},
    {"schema", FIELD_CHOICE, AT(spec.schema_mode), CHOICES("strict learn advise", SCHEMA_STRICT), MCP},
    {"in_flight", FIELD_WHOLE, AT(spec.in_flight), RANGE(1, 65536)},
};
const struct field_table config_upstream_table = KEYS(entry_fields);

void config_upstream_init(struct config_upstream *entry)
{
    *entry = (struct config_upstream){
        .spec = {.timeout_ms = UPSTREAM_TIMEOUT_MS,
                 .start_ms = UPSTREAM_START_MS,
                 .forward_meta = true,
                 .instructions = true},
    };
}

static struct str member_path(struct config_reader *reader, struct str path, const char *name)
{
    return ARENA_JOIN(reader->arena, path, STR_LIT("."), str_of(name));
}

static void check_name(struct config_reader *reader, struct str path, struct str name)
{
    if (str_is_name(name) && name.len <= UPSTREAM_NAME_MAX_BYTES)
        return;
    struct str head = str_cut(name, UPSTREAM_NAME_MAX_BYTES);
    char *near = arena_copy(reader->arena, head);
    for (size_t i = 0; i < head.len; i++)
        if (!str_is_name((struct str){near + i, 1}))
            near[i] = '_';
    key_table_error(reader, path,
                    "expected a name of 1 to %u letters, digits, '_' or '-', since it is a prefix of tool "
                    "names, e.g. '%s'",
                    UPSTREAM_NAME_MAX_BYTES, head.len ? near : "files");
}

/* Its kind, from the one of command, url and rest that is given; and no key of another kind. */
static void check_kind(struct config_reader *reader, struct str path, const struct json *given,
                       struct config_upstream *entry)
{
    static const char *const descriptions[] = {
        [UPSTREAM_STDIO] = "a command that toolgate starts (its secrets go into env)",
        [UPSTREAM_HTTP] = "an MCP server with a url",
        [UPSTREAM_REST] = "an address for the http = {…} of policies (rest), which has no tools of its own",
    };
    int count = (entry->command.len != 0 || entry->spawned) + (entry->url.len != 0) + (entry->rest.len != 0);
    enum upstream_kind kind = entry->command.len || entry->spawned ? UPSTREAM_STDIO
                              : entry->url.len                     ? UPSTREAM_HTTP
                                                                   : UPSTREAM_REST;
    entry->spec.kind = kind;
    if (count != 1) {
        /* " ('comand' looks like 'command')", or nothing. An mcpServers file may have any other key. */
        static const struct str names[] = {STR("command"), STR("url"), STR("rest")};
        struct str near = STR_NONE, slip = STR_NONE;
        for (uint32_t i = 0; i < given->len && !count && !near.len; i++) {
            near = suggest_closest(given->members[i].key, names, sizeof(names) / sizeof(*names));
            if (near.len)
                slip = arena_printf(reader->arena, " ('" STR_FMT "' looks like '" STR_FMT "')",
                                    STR_ARG(str_cut(given->members[i].key, 32)), STR_ARG(near));
        }
        key_table_error(reader, path,
                        "expected one of command (an MCP server to start), url (an MCP server over HTTP) and "
                        "rest (an address for policies' http), got %s" STR_FMT,
                        count ? "several" : "none", STR_ARG(slip));
        return;
    }
    const struct field *key;
    for (size_t at = 0; (key = field_next(&config_upstream_table, &at));) {
        const struct json *value = json_get_text(given, key->name);
        if (value && value->type != JSON_NULL && key->only && !(key->only & 1u << kind))
            key_table_error(reader, member_path(reader, path, key->name), "no such key for %s; remove it",
                            descriptions[kind]);
    }
}

static void check_url(struct config_reader *reader, struct str path, const char *key, struct str url)
{
    bool composed = url.len && memmem(url.at, url.len, "${", 2); /* read when it is used */
    bool valid = str_starts(url, "https://") || str_starts(url, "http://") || str_starts(url, "${");
    for (size_t i = 0; i < url.len && valid; i++)
        valid = (unsigned char)url.at[i] > ' ' && url.at[i] != 0x7f;
    if (url.len && !(valid && (composed || fetch_origin(url).len)))
        key_table_error(
            reader, member_path(reader, path, key),
            "expected an address that begins with https:// or http:// and a host, without spaces, "
            "user and password (headers hold those)");
}

/* Instances that differ in nothing would share one credential, and %u alone would be a file of that name. */
static void check_per_user(struct config_reader *reader, struct str path, const struct config_upstream *entry)
{
    const struct name_values *const pairs[] = {&entry->spec.env, &entry->sandbox_env, &entry->spec.headers};
    bool named = upstream_spec_names_user(entry->url) || upstream_spec_names_user(entry->rest);
    for (size_t i = 0; i < entry->args.count; i++)
        named |= upstream_spec_names_user(entry->args.list[i]);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        for (size_t n = 0; n < pairs[i]->count; n++)
            named |= upstream_spec_names_user(pairs[i]->list[n].value);
    if (entry->spec.per_user && entry->spawned)
        key_table_error(reader, member_path(reader, path, "per_user"),
                        "is not possible with spawned = true: the spawner starts one process for all users");
    else if (entry->spec.per_user && !named)
        key_table_error(
            reader, member_path(reader, path, "per_user"),
            "has no effect: no string names the user; write %%u where the user's name belongs, e.g. "
            "env = { TOKEN = \"${file:/etc/toolgate/tokens/%%u}\" }");
    else if (named && !entry->spec.per_user)
        key_table_error(reader, path,
                        "%%u in ${file:…} is the user's name with per_user = true alone: set it");
    if (entry->spec.user_idle_ms && !entry->spec.per_user)
        key_table_error(reader, member_path(reader, path, "user_idle"),
                        "has no effect without per_user = true");
}

void config_upstream_add(struct config_reader *reader, struct str path, struct str name,
                         const struct json *given, struct config_upstream *entry, struct config *config)
{
    struct upstream_spec *spec = &entry->spec;
    size_t errors = reader->errors.len;
    check_name(reader, path, name);
    check_kind(reader, path, given, entry);
    check_url(reader, path, "url", entry->url);
    check_url(reader, path, "rest", entry->rest);
    /* What the spawner starts is in its own configuration, which the daemon cannot change. */
    static const char *const own[] = {"command", "args", "env", "cwd", "sandbox", "user"};
    for (size_t i = 0; entry->spawned && i < sizeof(own) / sizeof(*own); i++)
        if (json_get_text(given, own[i]))
            key_table_error(
                reader, member_path(reader, path, own[i]),
                "belongs into the configuration of `toolgate spawner`, which starts this one (spawned "
                "= true); remove it here");
    check_per_user(reader, path, entry);
    const char *ca_file = spec->ca_file.len ? arena_dup(reader->arena, spec->ca_file).at : NULL;
    if (ca_file && access(ca_file, R_OK) != 0)
        key_table_error(reader, member_path(reader, path, "ca_file"),
                        "expected a file with certificates (PEM), cannot read %s: %s", ca_file,
                        strerror(errno));
    const struct upstream_spec *other = config_find_upstream(config, name);
    if (other)
        key_table_error(reader, path,
                        "an upstream of this name is already in " STR_FMT ": rename one of them",
                        STR_ARG(other->from));
    if (config->upstream_count == CONFIG_UPSTREAMS_MAX)
        key_table_error(reader, path, "more than %u upstreams; remove some", CONFIG_UPSTREAMS_MAX);
    if (reader->errors.len != errors)
        return;
    struct str *argv = ARENA_ARRAY(reader->arena, struct str, entry->args.count + 1);
    argv[0] = entry->command;
    for (size_t i = 0; i < entry->args.count; i++)
        argv[i + 1] = entry->args.list[i];
    const struct name_values env = spec->env, more = entry->sandbox_env;
    struct name_value *pairs = ARENA_ARRAY(reader->arena, struct name_value, env.count + more.count);
    for (size_t i = 0; i < env.count + more.count; i++)
        pairs[i] = i < env.count ? env.list[i] : more.list[i - env.count];
    spec->env = (struct name_values){pairs, env.count + more.count};
    if (spec->kind == UPSTREAM_STDIO) {
        spec->argv = argv;
        spec->argc = entry->spawned ? 0 : entry->args.count + 1;
        spec->spawner = entry->spawned ? STR_LIT("?") : STR_NONE; /* config.c knows its socket */
    }
    spec->name = arena_dup(reader->arena, name);
    spec->url = spec->kind == UPSTREAM_REST ? entry->rest : entry->url;
    spec->lazy = entry->lazy;
    spec->from = arena_dup(reader->arena, str_of(reader->file));
    if (!config->upstreams)
        config->upstreams = ARENA_ARRAY(reader->arena, const struct upstream_spec *, CONFIG_UPSTREAMS_MAX);
    struct upstream_spec *kept = arena_alloc(reader->arena, sizeof(*kept));
    *kept = *spec;
    config->upstreams[config->upstream_count++] = kept;
}

void config_upstreams_read(const struct key_value *value)
{
    struct config_reader *reader = value->reader;
    if (value->json->len && value->json->type != JSON_OBJECT) {
        expected_type(value,
                      "a table of upstreams by name, e.g. { files = { command = \"npx\", args = { … } } }");
        return;
    }
    for (uint32_t i = 0; value->json->type == JSON_OBJECT && i < value->json->len; i++) {
        const struct json_member *member = &value->json->members[i];
        struct key_value item = key_member(value, member);
        struct config_upstream entry;
        size_t errors = reader->errors.len;
        config_upstream_init(&entry);
        if (member->value.type != JSON_OBJECT)
            expected_type(&item, "a table of keys");
        else
            key_table_read(reader, &config_upstream_table, item.path, item.json, &entry);
        if (reader->errors.len == errors)
            config_upstream_add(reader, item.path, member->key, item.json, &entry, value->base);
    }
}

static int by_name(const void *a, const void *b)
{
    return str_cmp((*(const struct upstream_spec *const *)a)->name,
                   (*(const struct upstream_spec *const *)b)->name);
}

void config_upstreams_sort(struct config *config)
{
    if (config->upstream_count)
        qsort(config->upstreams, config->upstream_count, sizeof(*config->upstreams), by_name);
}

void config_upstreams_set_spawner(struct config_reader *reader, struct config *config)
{
    for (size_t i = 0; i < config->upstream_count; i++) {
        struct upstream_spec *spec =
            (struct upstream_spec *)config->upstreams[i]; /* made by config_upstream_add */
        if (!spec->spawner.len)
            continue;
        if (config->spawner)
            spec->spawner = str_of(config->spawner);
        else
            key_table_error(reader,
                            ARENA_JOIN(reader->arena, STR_LIT("upstreams."), spec->name, STR_LIT(".spawned")),
                            "needs the key spawner, the socket of `toolgate spawner`, e.g. "
                            "spawner = \"/run/toolgate/spawner.sock\"");
    }
}
