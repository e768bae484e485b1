/* One function a form, and the table that names them. */
#include "catalog/provider_formats.h"

#include "base/arena.h"
#include "base/log.h"
#include "catalog/openai_strict.h"
#include "json/write.h"

static void warn(const struct catalog_request *request, const struct json *definition, const char *text)
{
    struct str name = json_str(json_get_text(definition, "name"));
    if (request->warn)
        request->warn(request->owner, name, text);
    else
        log_event(LOG_WARN, "tool_format_unsupported", LOG_STR("tool", name), LOG_TEXT("why", text));
}

static void put_member(struct json_out *out, const char *key, const struct json *value)
{
    if (!value)
        return;
    json_key(out, key);
    json_put(out, value);
}

static void put_name(struct json_out *out, const struct json *definition)
{
    put_member(out, "name", json_get_text(definition, "name"));
    put_member(out, "description", json_get_text(definition, "description"));
}

static void mcp(struct arena *arena, const struct catalog_request *request, const struct json *definition,
                struct json_out *out)
{
    (void)arena, (void)request;
    json_put(out, definition);
}

/* A schema that strict mode cannot say is sent as it is, with strict false: better a tool than none. */
static void openai(struct arena *arena, const struct catalog_request *request, const struct json *definition,
                   struct json_out *out)
{
    const struct json *schema = json_get_text(definition, "inputSchema");
    struct json closed = *schema;
    struct why why;
    bool strict = request->strict && openai_strict_schema(arena, schema, &closed, &why) == OK;
    if (request->strict && !strict)
        warn(request, definition, why.text);
    json_open(out, '{');
    json_key(out, "type");
    json_put_text(out, "function");
    json_key(out, "function");
    json_open(out, '{');
    put_name(out, definition);
    put_member(out, "parameters", &closed);
    if (request->strict) {
        json_key(out, "strict");
        json_put_bool(out, strict);
    }
    json_close(out, '}');
    json_close(out, '}');
}

static void anthropic(struct arena *arena, const struct catalog_request *request,
                      const struct json *definition, struct json_out *out)
{
    static const char *const refused[] = {"oneOf", "anyOf", "allOf"};
    const struct json *schema = json_get_text(definition, "inputSchema");
    (void)arena;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (json_get_text(schema, refused[i])) {
            warn(request, definition,
                 "Anthropic's API refuses oneOf, anyOf and allOf at the root of an input schema: say it in "
                 "rules "
                 "or in the properties");
            break;
        }
    json_open(out, '{');
    put_name(out, definition);
    put_member(out, "input_schema", schema);
    json_close(out, '}');
}

static void gemini(struct arena *arena, const struct catalog_request *request, const struct json *definition,
                   struct json_out *out)
{
    (void)arena, (void)request;
    json_open(out, '{');
    put_name(out, definition);
    put_member(out, "parametersJsonSchema", json_get_text(definition, "inputSchema"));
    json_close(out, '}');
}

static const struct form {
    const char *name;
    bool takes_any_name;
    void (*write)(struct arena *arena, const struct catalog_request *request, const struct json *definition,
                  struct json_out *out);
} forms[] = {
    [PROVIDER_FORMAT_MCP] = {"mcp", true, mcp},
    [PROVIDER_FORMAT_OPENAI] = {"openai", false, openai},
    [PROVIDER_FORMAT_ANTHROPIC] = {"anthropic", false, anthropic},
    [PROVIDER_FORMAT_GEMINI] = {"gemini", false, gemini},
};

enum err provider_format_named(struct str name, enum provider_format *out)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (str_is(name, forms[i].name)) {
            *out = (enum provider_format)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}

const char *provider_format_name(enum provider_format format)
{
    return forms[format].name;
}

/* What all three take: [A-Za-z0-9_-]{1,64}; Gemini wants a letter or underscore first. */
static bool name_fits(const struct form *form, struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && c != '-' && !(c >= '0' && c <= '9'))
            return false;
        if (i == 0 && !letter && form->write == gemini)
            return false;
    }
    return name.len >= 1 && name.len <= TOOL_NAME_MAX_BYTES;
}

bool provider_format_write(struct arena *arena, const struct catalog_request *request,
                           const struct json *definition, struct json_out *out)
{
    const struct form *form = &forms[request->format];
    if (!form->takes_any_name && !name_fits(form, json_str(json_get_text(definition, "name")))) {
        warn(request, definition,
             "left out: this provider takes names of 1 to 64 letters, digits, _ and - only");
        return false;
    }
    form->write(arena, request, definition, out);
    return true;
}
