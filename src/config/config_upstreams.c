/*
 * One table of keys, then what no single key can say: what kind of upstream it
 * is, which keys that kind has, and that its name is its own. Values of env,
 * headers, args and url are never quoted in a complaint: they may be secrets.
 */
#include "config/config_upstreams.h"

#include "base/arena.h"
#include "base/suggest.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define KEY(text, reader, field)                                                                             \
    .name = STR(text), .read = (reader), .offset = offsetof(struct config_upstream, field)

#define UPSTREAM_WAIT_MIN_MS    10
#define UPSTREAM_WAIT_MAX_MS    86400000
#define UPSTREAM_IN_FLIGHT_MAX  65536
#define UPSTREAM_TEXT_MAX_BYTES 65536u /* of one argument, variable or header */

/* ---- the keys of one entry ---- */

enum start { START_AT_ONCE, START_LAZY };

static key_reader read_prefix;

static const struct key_choice starts[] = {{"at_once", START_AT_ONCE}, {"lazy", START_LAZY}, {0}};
static const struct key_choice prefixes[] = {
    {"on_collision", UPSTREAM_PREFIX_ON_COLLISION}, {"always", UPSTREAM_PREFIX_ALWAYS}, {0}};

static const struct setting entry_keys[] = {
    {KEY("command", config_upstream_command, command)},
    {KEY("args", config_upstream_strings, args)},
    {KEY("env", config_upstream_pairs, spec.env)},
    {KEY("cwd", config_upstream_folder, spec.cwd)},
    {KEY("url", config_upstream_string, url)},
    {KEY("rest", config_upstream_string, rest)},
    {KEY("headers", config_upstream_pairs, spec.headers)},
    {KEY("ca_file", config_upstream_folder, spec.ca_file)},
    {KEY("start", key_one_of, start), .choices = starts},
    {KEY("prefix", read_prefix, prefix), .choices = prefixes},
    {KEY("tools", config_upstream_strings, tools)},
    {KEY("timeout", key_duration, spec.timeout_ms), .min = UPSTREAM_WAIT_MIN_MS, .max = UPSTREAM_WAIT_MAX_MS},
    {KEY("start_timeout", key_duration, spec.start_ms), .min = UPSTREAM_WAIT_MIN_MS,
     .max = UPSTREAM_WAIT_MAX_MS},
    {KEY("in_flight", key_u32, spec.in_flight), .min = 1, .max = UPSTREAM_IN_FLIGHT_MAX},
    {.read = NULL},
};

/* Which kinds have a key; a key that is not here is for all. */
static const struct kind_key {
    const char *name;
    unsigned kinds; /* bits, by enum upstream_kind */
} kind_keys[] = {
    {"args", 1u << UPSTREAM_STDIO},
    {"env", 1u << UPSTREAM_STDIO},
    {"cwd", 1u << UPSTREAM_STDIO},
    {"headers", 1u << UPSTREAM_HTTP | 1u << UPSTREAM_REST},
    {"ca_file", 1u << UPSTREAM_HTTP | 1u << UPSTREAM_REST},
    {"start", 1u << UPSTREAM_STDIO | 1u << UPSTREAM_HTTP},
    {"start_timeout", 1u << UPSTREAM_STDIO | 1u << UPSTREAM_HTTP},
    {"prefix", 1u << UPSTREAM_STDIO | 1u << UPSTREAM_HTTP},
    {"tools", 1u << UPSTREAM_STDIO | 1u << UPSTREAM_HTTP},
};

static const char *const kind_words[] = {
    [UPSTREAM_STDIO] = "a command that toolgate starts (its secrets go into env)",
    [UPSTREAM_HTTP] = "an MCP server with a url",
    [UPSTREAM_REST] = "an address for the http = {…} of policies (rest), which offers no tools itself",
};

/* ---- readers ---- */

/* Without the value. */
static void expected_kind(struct settings *settings, struct str path, const char *what,
                          const struct json *value)
{
    bool empty = value->type == JSON_STRING && !value->len;
    key_table_error(settings, path, "expected %s, got %s", what,
                    empty ? "an empty one" : json_type_name((enum json_type)value->type));
}

static bool has_nul(struct str text)
{
    return text.len && memchr(text.at, '\0', text.len);
}

/* Numbers and truths are written as they are: PORT = 8080. */
static bool text_of(struct settings *settings, struct str path, const char *what, const struct json *value,
                    struct str *out)
{
    *out = STR_NONE;
    if (value->type == JSON_STRING)
        *out = arena_dup(settings->arena, json_str(value));
    else if (value->type == JSON_NUMBER)
        *out = arena_dup(settings->arena, (struct str){value->text, value->len});
    else if (value->type == JSON_BOOL)
        *out = value->truth ? STR_LIT("true") : STR_LIT("false");
    else {
        expected_kind(settings, path, what, value);
        return false;
    }
    if (!has_nul(*out) && out->len <= UPSTREAM_TEXT_MAX_BYTES)
        return true;
    key_table_error(settings, path, has_nul(*out) ? "a NUL byte cannot be passed on" : "longer than %u bytes",
                    UPSTREAM_TEXT_MAX_BYTES);
    return false;
}

void config_upstream_string(struct settings *settings, const struct setting *setting, struct str path,
                            const struct json *value, void *into)
{
    struct str *out = (struct str *)((char *)into + setting->offset);
    if (value->type != JSON_STRING || !value->len)
        expected_kind(settings, path, "a text", value);
    else
        text_of(settings, path, "a text", value, out);
}

void config_upstream_strings(struct settings *settings, const struct setting *setting, struct str path,
                             const struct json *value, void *into)
{
    struct texts *texts = (struct texts *)((char *)into + setting->offset);
    bool nothing = value->type == JSON_OBJECT && !value->len; /* Lua's {} */
    if (value->type != JSON_ARRAY && !nothing) {
        expected_kind(settings, path, "a list of texts", value);
        return;
    }
    struct str *list = ARENA_ARRAY(settings->arena, struct str, value->len);
    for (uint32_t i = 0; i < value->len; i++) {
        struct str at = arena_printf(settings->arena, STR_FMT "[%u]", STR_ARG(path), i + 1);
        text_of(settings, at, "a text", &value->items[i], &list[i]);
    }
    *texts = (struct texts){list, value->len};
}

static struct str member_path(struct settings *settings, struct str path, struct str name)
{
    return arena_printf(settings->arena, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(name));
}

/* What an environment or an HTTP header can be named. */
static bool is_token(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return name.len != 0;
}

void config_upstream_pairs(struct settings *settings, const struct setting *setting, struct str path,
                           const struct json *value, void *into)
{
    struct name_values *pairs = (struct name_values *)((char *)into + setting->offset);
    bool table = value->type == JSON_OBJECT || (value->type == JSON_ARRAY && !value->len);
    if (!table) {
        expected_kind(settings, path, "a table of names and texts, e.g. { NAME = \"value\" }", value);
        return;
    }
    struct name_value *list = ARENA_ARRAY(settings->arena, struct name_value, value->len);
    for (uint32_t i = 0; i < value->len; i++) {
        const struct json_member *member = &value->members[i];
        struct str at = member_path(settings, path, member->key);
        list[i].name = arena_dup(settings->arena, member->key);
        if (!is_token(member->key))
            key_table_error(settings, at, "expected a name of letters, digits and '_' or '-'");
        if (text_of(settings, at, "a text", &member->value, &list[i].value) && list[i].value.len &&
            (memchr(list[i].value.at, '\n', list[i].value.len) ||
             memchr(list[i].value.at, '\r', list[i].value.len)) &&
            setting->offset == offsetof(struct config_upstream, spec.headers))
            key_table_error(settings, at, "a header cannot hold a line break");
    }
    *pairs = (struct name_values){list, value->len};
}

static bool is_filled_in(struct str text)
{
    return str_starts(text, "${");
}

void config_upstream_folder(struct settings *settings, const struct setting *setting, struct str path,
                            const struct json *value, void *into)
{
    struct str *out = (struct str *)((char *)into + setting->offset);
    config_upstream_string(settings, setting, path, value, into);
    if (out->len && !is_filled_in(*out))
        *out = str_of(key_table_path(settings, *out));
}

void config_upstream_command(struct settings *settings, const struct setting *setting, struct str path,
                             const struct json *value, void *into)
{
    struct str *out = (struct str *)((char *)into + setting->offset);
    if (value->type != JSON_STRING) {
        expected_kind(settings, path, "a program's name as a text, its arguments in args", value);
        return;
    }
    config_upstream_string(settings, setting, path, value, into);
    if (!out->len || is_filled_in(*out))
        return;
    const char *slash = memchr(out->at, '/', out->len), *space = memchr(out->at, ' ', out->len);
    bool in_path = !slash || (space && space < slash); /* "npx -y @scope/server" names no file */
    if (!in_path)
        *out = str_of(key_table_path(settings, *out));
    else if (space)
        key_table_error(settings, path,
                        "expected a program's name alone, got words: the others go into args, since no shell "
                        "takes them apart");
}

/* "on_collision", "always", or whether always. */
static void read_prefix(struct settings *settings, const struct setting *setting, struct str path,
                        const struct json *value, void *into)
{
    if (value->type == JSON_BOOL)
        *(unsigned *)((char *)into + setting->offset) =
            value->truth ? (unsigned)UPSTREAM_PREFIX_ALWAYS : (unsigned)UPSTREAM_PREFIX_ON_COLLISION;
    else
        key_one_of(settings, setting, path, value, into);
}

/* ---- one entry as a whole ---- */

void config_upstream_init(struct config_upstream *entry)
{
    *entry = (struct config_upstream){
        .spec = {.timeout_ms = UPSTREAM_TIMEOUT_MS, .start_ms = UPSTREAM_START_MS},
        .start = START_AT_ONCE,
        .prefix = UPSTREAM_PREFIX_ON_COLLISION,
    };
}

static bool fits_name(struct str name)
{
    return str_is_name(name) && name.len <= UPSTREAM_NAME_MAX_BYTES;
}

static struct str closest_name(struct arena *arena, struct str name)
{
    struct str near = arena_dup(arena, str_cut(name, UPSTREAM_NAME_MAX_BYTES));
    for (size_t i = 0; i < near.len; i++)
        if (!fits_name((struct str){near.at + i, 1}))
            ((char *)near.at)[i] = '_';
    return near.len ? near : STR_LIT("files");
}

static void check_name(struct settings *settings, struct str path, struct str name)
{
    struct str near = closest_name(settings->arena, name);
    if (!fits_name(name))
        key_table_error(settings, path,
                        "expected a name of 1 to %u letters, digits, '_' or '-', since it goes before names "
                        "of tools, e.g. '" STR_FMT "'",
                        UPSTREAM_NAME_MAX_BYTES, STR_ARG(near));
}

/* " ('comand' looks like 'command')", where something does; in other clients' files unknown keys are none of
 * our business but here. */
static struct str misspelt(struct arena *arena, const struct json *given)
{
    static const struct str names[] = {STR("command"), STR("url"), STR("rest")};
    for (uint32_t i = 0; i < given->len; i++) {
        struct str near = suggest_closest(given->members[i].key, names, sizeof(names) / sizeof(*names));
        if (near.len)
            return arena_printf(arena, " ('" STR_FMT "' looks like '" STR_FMT "')",
                                STR_ARG(str_cut(given->members[i].key, 32)), STR_ARG(near));
    }
    return STR_NONE;
}

/* False, with a complaint, where it is not clear what it is. */
static bool find_kind(struct settings *settings, struct str path, const struct json *given,
                      struct config_upstream *entry)
{
    int told = (entry->command.len != 0) + (entry->url.len != 0) + (entry->rest.len != 0);
    entry->spec.kind = entry->command.len ? UPSTREAM_STDIO : entry->url.len ? UPSTREAM_HTTP : UPSTREAM_REST;
    if (told != 1)
        key_table_error(settings, path,
                        "expected one of command (an MCP server to start), url (an MCP server over HTTP) and "
                        "rest (an address for policies' http), got %s" STR_FMT,
                        told ? "several" : "none",
                        STR_ARG(told ? STR_NONE : misspelt(settings->arena, given)));
    return told == 1;
}

static bool is_given(const struct json *entry, const char *key)
{
    const struct json *value = json_get_text(entry, key);
    return value && value->type != JSON_NULL;
}

static void check_keys(struct settings *settings, struct str path, enum upstream_kind kind,
                       const struct json *given)
{
    for (size_t i = 0; i < sizeof(kind_keys) / sizeof(kind_keys[0]); i++)
        if (is_given(given, kind_keys[i].name) && !(kind_keys[i].kinds & 1u << kind))
            key_table_error(settings, member_path(settings, path, str_of(kind_keys[i].name)),
                            "no such key for %s; remove it", kind_words[kind]);
}

static void check_url(struct settings *settings, struct str path, const char *key, struct str url)
{
    bool fits = str_starts(url, "https://") || str_starts(url, "http://") || is_filled_in(url);
    for (size_t i = 0; i < url.len && fits; i++)
        fits = (unsigned char)url.at[i] > ' ' && url.at[i] != 0x7f;
    if (!fits)
        key_table_error(settings, member_path(settings, path, str_of(key)),
                        "expected an address that begins with https:// or http://, without spaces");
}

/* Found out here, or by the first call at night. */
static void check_ca_file(struct settings *settings, struct str path, const struct upstream_spec *spec)
{
    const char *file = spec->ca_file.len ? arena_dup(settings->arena, spec->ca_file).at : NULL;
    if (file && access(file, R_OK) != 0)
        key_table_error(settings, member_path(settings, path, STR_LIT("ca_file")),
                        "expected a file with certificates (PEM), cannot read %s: %s", file, strerror(errno));
}

static struct texts argv_of(struct arena *arena, struct str command, const struct texts *args)
{
    struct str *argv = ARENA_ARRAY(arena, struct str, args->count + 1);
    argv[0] = command;
    for (size_t i = 0; i < args->count; i++)
        argv[i + 1] = args->list[i];
    return (struct texts){argv, args->count + 1};
}

static const struct upstream_spec *taken(const struct config *config, struct str name)
{
    for (size_t i = 0; i < config->upstream_count; i++)
        if (str_eq(config->upstreams[i]->name, name))
            return config->upstreams[i];
    return NULL;
}

static void keep(struct settings *settings, const struct upstream_spec *spec, struct config *config)
{
    struct upstream_spec *kept = arena_alloc(settings->arena, sizeof(*kept));
    *kept = *spec;
    if (!config->upstreams)
        config->upstreams = ARENA_ARRAY(settings->arena, const struct upstream_spec *, CONFIG_UPSTREAMS_MAX);
    config->upstreams[config->upstream_count++] = kept;
}

static void finish(struct settings *settings, struct config_upstream *entry)
{
    struct upstream_spec *spec = &entry->spec;
    struct texts argv = argv_of(settings->arena, entry->command, &entry->args);
    if (spec->kind == UPSTREAM_STDIO) {
        spec->argv = argv.list;
        spec->argc = argv.count;
    }
    spec->url = spec->kind == UPSTREAM_REST ? entry->rest : entry->url;
    spec->lazy = entry->start == START_LAZY;
    spec->prefix = (enum upstream_prefix)entry->prefix;
    spec->tools = entry->tools.list;
    spec->tool_count = entry->tools.count;
    spec->from = arena_dup(settings->arena, str_of(settings->file));
}

void config_upstream_add(struct settings *settings, struct str path, struct str name,
                         const struct json *given, struct config_upstream *entry, struct config *config)
{
    const struct upstream_spec *other = taken(config, name);
    size_t faults = settings->faults.len;
    entry->spec.name = arena_dup(settings->arena, name);
    check_name(settings, path, name);
    check_ca_file(settings, path, &entry->spec);
    if (find_kind(settings, path, given, entry)) {
        check_keys(settings, path, entry->spec.kind, given);
        if (entry->url.len)
            check_url(settings, path, "url", entry->url);
        if (entry->rest.len)
            check_url(settings, path, "rest", entry->rest);
    }
    if (other)
        key_table_error(settings, path,
                        "an upstream of this name is already in " STR_FMT ": rename one of them",
                        STR_ARG(other->from));
    if (config->upstream_count == CONFIG_UPSTREAMS_MAX)
        key_table_error(settings, path, "more than %u upstreams; take some out", CONFIG_UPSTREAMS_MAX);
    if (settings->faults.len != faults)
        return;
    finish(settings, entry);
    keep(settings, &entry->spec, config);
}

/* ---- all of the Lua file's ---- */

void config_upstreams_read(struct settings *settings, const struct setting *setting, struct str path,
                           const struct json *value, void *into)
{
    (void)setting;
    if (value->len && value->type != JSON_OBJECT) {
        expected_kind(settings, path,
                      "a table of upstreams by name, e.g. { files = { command = \"npx\", args = { … } } }",
                      value);
        return;
    }
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->len; i++) {
        const struct json_member *member = &value->members[i];
        struct str at = member_path(settings, path, member->key);
        struct config_upstream entry;
        size_t faults = settings->faults.len;
        config_upstream_init(&entry);
        if (member->value.type != JSON_OBJECT)
            expected_kind(settings, at, "a table of keys", &member->value);
        else
            key_table_read(settings, entry_keys, at, &member->value, &entry);
        if (settings->faults.len == faults)
            config_upstream_add(settings, at, member->key, &member->value, &entry, into);
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
