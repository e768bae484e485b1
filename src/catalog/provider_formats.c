/* One writer per format, the table that names them, and names that every provider accepts. */
#include "catalog/provider_formats.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "catalog/mcp_version.h"
#include "catalog/openai_strict.h"
#include "json/build.h"
#include "json/write.h"

#define HASH_SUFFIX_BYTES 9u /* "_" and eight hex digits */

/* ---- names; the hash is stable: the same server gives the same names on every host ------------------- */

bool plain_name_fits(struct str name)
{
    return str_is_name(name) && name.len <= PLAIN_NAME_MAX_BYTES;
}

struct str plain_name_with_hash(struct arena *arena, struct str name, struct str hashed, size_t max)
{
    struct str head = str_cut(name, max - HASH_SUFFIX_BYTES);
    return arena_printf(arena, STR_FMT "_%08x", STR_ARG(head), (unsigned)hash_stable(hashed).low);
}

struct str name_replaced(struct arena *arena, struct str name, bool (*fits)(struct str name))
{
    char *copy = arena_copy(arena, name);
    for (size_t i = 0; i < name.len; i++)
        if (!fits((struct str){copy + i, 1}))
            copy[i] = '_';
    return (struct str){copy, name.len};
}

struct str plain_name(struct arena *arena, struct str name)
{
    if (plain_name_fits(name))
        return name;
    struct str plain = name_replaced(arena, name, str_is_name);
    return plain.len <= PLAIN_NAME_MAX_BYTES ? plain
                                             : plain_name_with_hash(arena, plain, name, PLAIN_NAME_MAX_BYTES);
}

struct str plain_name_apart(struct arena *arena, struct str name)
{
    return plain_name_with_hash(arena, name_replaced(arena, name, str_is_name), name, PLAIN_NAME_MAX_BYTES);
}

/* ---- formats --------------------------------------------------------------------------------------- */

static void warn(const struct provider_options *options, const struct json *definition, const char *why)
{
    struct str name = json_str(json_get_text(definition, "name"));
    if (options->warn)
        options->warn(options->owner, name, why);
    else
        log_event(LOG_WARN, "tool_format_unsupported", LOG_STR("tool", name), LOG_TEXT("why", why));
}

static void write_name(struct json_out *out, const struct json *definition)
{
    json_field_optional(out, "name", json_get_text(definition, "name"));
    json_field_optional(out, "description", json_get_text(definition, "description"));
}

static void write_mcp(struct arena *arena, const struct provider_options *options,
                      const struct json *definition, struct json_out *out)
{
    json_put(out, mcp_version_definition(arena, options->protocol, definition));
}

/* A schema that strict mode cannot express is sent unchanged with strict = false. */
static void write_openai(struct arena *arena, const struct provider_options *options,
                         const struct json *definition, struct json_out *out)
{
    const struct json *schema = json_get_text(definition, "inputSchema");
    struct json closed = *schema;
    struct why why;
    bool strict = options->strict && openai_strict_schema(arena, schema, &closed, NULL, &why) == OK;
    if (options->strict && !strict)
        warn(options, definition, why.text);
    json_open(out, '{');
    json_field_text(out, "type", "function");
    json_field_open(out, "function", '{');
    write_name(out, definition);
    json_field(out, "parameters", &closed);
    if (options->strict)
        json_field_bool(out, "strict", strict);
    json_close(out, '}');
    json_close(out, '}');
}

static void write_anthropic(struct arena *arena, const struct provider_options *options,
                            const struct json *definition, struct json_out *out)
{
    const struct json *schema = json_get_text(definition, "inputSchema");
    (void)arena;
    if (json_get_text(schema, "oneOf") || json_get_text(schema, "anyOf") || json_get_text(schema, "allOf"))
        warn(options, definition,
             "Anthropic's API refuses oneOf, anyOf and allOf at the root of an input schema: use rules or "
             "the properties instead");
    json_open(out, '{');
    write_name(out, definition);
    json_field_optional(out, "input_schema", schema);
    json_close(out, '}');
}

static void write_gemini(struct arena *arena, const struct provider_options *options,
                         const struct json *definition, struct json_out *out)
{
    (void)arena, (void)options;
    json_open(out, '{');
    write_name(out, definition);
    json_field_optional(out, "parametersJsonSchema", json_get_text(definition, "inputSchema"));
    json_close(out, '}');
}

static const struct format {
    const char *name;
    bool any_name;     /* accepts names beyond [A-Za-z0-9_-]{1,64} */
    bool letter_first; /* a name begins with a letter or '_' */
    void (*write)(struct arena *arena, const struct provider_options *options, const struct json *definition,
                  struct json_out *out);
} formats[] = {
    [PROVIDER_FORMAT_MCP] = {"mcp", true, false, write_mcp},
    [PROVIDER_FORMAT_OPENAI] = {"openai", false, false, write_openai},
    [PROVIDER_FORMAT_ANTHROPIC] = {"anthropic", false, false, write_anthropic},
    [PROVIDER_FORMAT_GEMINI] = {"gemini", false, true, write_gemini},
};

enum err provider_format_named(struct str name, enum provider_format *out)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (str_is(name, formats[i].name)) {
            *out = (enum provider_format)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}

const char *provider_format_name(enum provider_format format)
{
    return formats[format].name;
}

bool provider_format_write(struct arena *arena, const struct provider_options *options,
                           const struct json *definition, struct str plain, struct json_out *out)
{
    const struct format *format = &formats[options->format];
    struct str name = json_str(json_get_text(definition, "name"));
    if (!format->any_name && plain.len) {
        definition = json_keep(arena, json_with(arena, definition, STR_LIT("name"), json_string(plain)));
        name = plain;
    }
    bool starts_well = name.len && name.at[0] != '-' && !(name.at[0] >= '0' && name.at[0] <= '9');
    bool fits = plain_name_fits(name) && (starts_well || !format->letter_first);
    if (!format->any_name && !fits) {
        warn(options, definition,
             "left out: this provider accepts names of 1 to 64 letters, digits, _ and - only");
        return false;
    }
    format->write(arena, options, definition, out);
    return true;
}
