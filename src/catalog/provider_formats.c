/* Which formats there are; the rules and the writing are lua/provider_formats.lua. */
#include "catalog/provider_formats.h"

#include "base/arena.h"
#include "base/log.h"
#include "catalog/definition.h"
#include "catalog/mcp_version.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "sandbox/lua_json.h"

#define FORMAT_DEPTH_MAX 1000u /* of what Lua has written: references are replaced */
#define FORMAT_LIST_MAX_BYTES                                                                                \
    8388608u /* of a line to a client, which has 9 MiB: one tool must not cost all */
#define FORMAT_WARNINGS_MAX_BYTES 524288u

bool plain_name_fits(struct str name)
{
    return str_is_name(name) && name.len <= PLAIN_NAME_MAX_BYTES;
}

enum err openai_strict_schema(struct arena *arena, const struct json *schema, struct json *out,
                              struct why *why)
{
    static const struct json_limits limits = {.depth = FORMAT_DEPTH_MAX};
    struct json_error error;
    struct json more;
    struct str text = lua_embedded_call(arena, "strict", &schema, 1, &more);
    if (!text.len)
        return err_set(why, ERR_SCHEMA, STR_FMT, STR_ARG(json_str(&more)));
    if (json_parse(arena, text, &limits, out, &error) != OK)
        return err_set(why, ERR_SCHEMA, "%s", error.text);
    return OK;
}

/* ---- formats --------------------------------------------------------------------------------------- */

static const char *const formats[] = {
    [PROVIDER_FORMAT_MCP] = "mcp",
    [PROVIDER_FORMAT_OPENAI] = "openai",
    [PROVIDER_FORMAT_ANTHROPIC] = "anthropic",
    [PROVIDER_FORMAT_GEMINI] = "gemini",
    [PROVIDER_FORMAT_MISTRAL] = "mistral",
    [PROVIDER_FORMAT_BEDROCK] = "bedrock",
};

enum err provider_format_named(struct str name, enum provider_format *out)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (str_is(name, formats[i])) {
            *out = (enum provider_format)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}

const char *provider_format_name(enum provider_format format)
{
    return formats[format];
}

void provider_warn_collect(void *owner, struct str tool, const char *why)
{
    struct json_out *out = owner;
    if (out->buf->len > FORMAT_WARNINGS_MAX_BYTES)
        return;
    json_put_object(out, FIELD_STR("tool", tool), FIELD_TEXT("text", why));
    if (out->buf->len > FORMAT_WARNINGS_MAX_BYTES)
        json_put_object(out, FIELD_TEXT("tool", "*"), FIELD_TEXT("text", "there are more than are listed"));
}

static void warn(const struct provider_options *options, struct str name, const char *why)
{
    if (options->warn)
        options->warn(options->owner, name, why);
    else
        log_event(LOG_WARN, "tool_format_unsupported", LOG_STR("tool", name), LOG_TEXT("why", why));
}

/* False: the provider accepts no tool of this name. */
static bool begin(struct arena *arena, struct provider_options *options, const struct json *definition,
                  struct str name, struct str plain)
{
    if (!plain_name_fits(name)) {
        warn(options, name, "left out: this provider accepts names of 1 to 64 letters, digits, _ and - only");
        return false;
    }
    if (plain.len)
        definition = json_keep(arena, json_with(arena, definition, STR_LIT("name"), json_string(plain)));
    /* What a prepare hook says of this tool; else what the request says of all holds. */
    const struct json *own = json_get_text(json_get_text(definition, "_meta"), DEFINITION_STRICT_KEY);
    bool wanted = own ? json_is_true(own) : options->strict;
    if (own && wanted && options->format != PROVIDER_FORMAT_OPENAI)
        warn(options, name, "strict has no effect: this format has no strict mode");
    struct json format = json_string(str_of(formats[options->format])), strict = json_bool(wanted),
                says = json_bool(wanted || options->strict);
    const struct json *const arguments[] = {&format, definition, &strict, &says, options->left};
    lua_embedded_begin("write", arguments, 5);
    return true;
}

bool provider_format_write(struct arena *arena, struct provider_options *options,
                           const struct json *definition, struct str plain, struct json_out *out)
{
    struct str name = plain.len ? plain : json_str(json_get_text(definition, "name")), text;
    struct json more;
    if (options->format == PROVIDER_FORMAT_MCP) {
        json_put(out, mcp_version_definition(arena, options->protocol, definition));
        return false;
    }
    if (!options->under_way && !begin(arena, options, definition, name, plain))
        return false;
    options->under_way = lua_embedded_next(arena, &text, &more);
    if (options->under_way)
        return true;
    if (json_is(&more, JSON_ARRAY) && more.len)
        options->left = &more.items[0];
    for (uint32_t i = 1; json_is(&more, JSON_ARRAY) && i < more.len; i++)
        warn(options, name, arena_copy(arena, json_str(&more.items[i])));
    if (json_is(&more, JSON_STRING))
        warn(options, name, arena_copy(arena, json_str(&more)));
    if (text.len && out->buf->len + text.len > FORMAT_LIST_MAX_BYTES)
        warn(options, name, "left out: the list is too long with it");
    else if (text.len)
        json_put_raw(out, text);
    return false;
}

void provider_format_end(struct provider_options *options)
{
    if (options->under_way)
        lua_embedded_drop();
    options->under_way = false;
}
