/* toolgate/register, toolgate/tools and toolgate/schemas. */
#include "base/arena.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"
#include "catalog/openai_strict.h"
#include "json/build.h"
#include "json/parse.h"
#include "server/tools_list.h"
#include "server/mcp_keys.h"
#include "server/method_table.h"

/* One bad definition does not prevent the others. */
enum request_status tool_methods_register(struct request *r)
{
    struct client *client = r->client;
    const struct json *tools = json_get_text(r->params, "tools");
    struct buf refused_text = buf_in(r->arena);
    struct json_out refused = json_out(&refused_text);
    if (!json_is(tools, JSON_ARRAY))
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.tools: expected an array of tool definitions, got %s", param_kind(tools));
    if (!client->client_tools)
        client->client_tools = client_tools_new(&client->peer);
    if (LIST_EMPTY(&client->pending))
        client_tools_free_replaced(client->client_tools);
    struct json_out *out = reply_open(r);
    json_field_open(out, "tools", '[');
    json_open(&refused, '[');
    for (uint32_t i = 0; i < tools->len; i++) {
        const struct tool *tool;
        struct why why;
        if (client_tools_register(client->client_tools, client->server->gate.generation, &tools->items[i],
                                  &tool, &why) == OK) {
            json_open(out, '{');
            json_field_str(out, "name", tool->name);
            json_field_strs(out, "parameters", tool->parameters, tool->parameter_count);
            json_field_bool(out, "policy", tool->policy != NULL);
            json_field_strs(out, "warnings", tool->warnings, tool->warning_count);
            json_close(out, '}');
            continue;
        }
        json_open(&refused, '{');
        json_field_str(&refused, "name", json_str(json_get_text(&tools->items[i], "name")));
        json_field_text(&refused, "why", why.text);
        json_close(&refused, '}');
    }
    json_close(out, ']');
    json_close(&refused, ']');
    json_field_raw(out, "refused", buf_view(&refused_text));
    return reply_close(r);
}

static void collect_warning(void *owner, struct str tool, const char *text)
{
    struct json_out *out = owner;
    json_open(out, '{');
    json_field_str(out, "tool", tool);
    json_field_text(out, "text", text);
    json_close(out, '}');
}

/* The definitions are for models, the warnings and who runs each tool (`runs_at`) for people. */
static enum request_status reply_definitions(struct request *r, const struct catalog_request *wanted)
{
    struct catalog_request now = *wanted;
    struct buf warnings_text = buf_in(r->arena), places_text = buf_in(r->arena),
               guessed_text = buf_in(r->arena);
    struct json_out warnings = json_out(&warnings_text), *out = reply_open(r);
    now.provider.warn = collect_warning;
    now.provider.owner = &warnings;
    now.places = &places_text;
    now.guessed = &guessed_text;
    json_field_text(out, "format", provider_format_name(now.provider.format));
    json_key(out, "tools");
    json_open(&warnings, '[');
    catalog_write(r->arena, r->client->server->gate.generation, &now, out->buf);
    out->comma = true;
    json_close(&warnings, ']');
    json_field_raw(out, "warnings", buf_view(&warnings_text));
    json_field_raw(out, "runs_at", buf_view(&places_text));
    json_field_raw(out, "guessed_effects", buf_view(&guessed_text));
    return reply_close(r);
}

enum request_status tool_methods_tools(struct request *r)
{
    struct catalog_request wanted = {
        .all = true, .peer = &r->client->peer, .client_tools = r->client->client_tools};
    struct str format;
    if (param_string(r, r->params, "params.", "format", &format))
        return REQUEST_DONE;
    if (provider_format_named(format.len ? format : STR_LIT("mcp"), &wanted.provider.format) != OK)
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.format: expected one of mcp, openai, anthropic, gemini, got '" STR_FMT "'",
                           STR_ARG(str_cut(format, 64)));
    if (param_flag(r, "strict", &wanted.provider.strict) || param_session(r, &wanted.session) ||
        param_string(r, r->meta, "params._meta.", GATE_GOAL_KEY, &wanted.goal) ||
        param_context(r, &wanted.context))
        return REQUEST_DONE;
    return tools_list_begin(r, &wanted, reply_definitions);
}

static const struct schema_entry {
    const char *name;
    struct str (*text)(void);
} schemas[] = {{"verdict", verdict_schema}, {"coverage", coverage_schema}};

/* The request field in which each provider takes a response's schema, and the JSON around the schema. */
static const struct response_format {
    const char *provider, *field, *before, *after;
    bool closed; /* the provider takes closed schemas in which every property is required */
} response_formats[] = {
    {"openai", "response_format",
     "{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"%s\",\"strict\":%s,\"schema\":", "}}", true},
    {"anthropic", "output_format", "{\"type\":\"json_schema\",\"schema\":", "}", true},
    {"gemini", "generationConfig", "{\"responseMimeType\":\"application/json\",\"responseJsonSchema\":", "}",
     false},
};

static void put_response_format(struct request *r, const struct response_format *format,
                                const struct schema_entry *entry)
{
    struct json_out *out = &r->out;
    struct json schema;
    struct json_error fault;
    struct why why;
    if (json_parse(r->arena, entry->text(), NULL, &schema, &fault) != OK)
        return;
    bool strict = format->closed && openai_strict_schema(r->arena, &schema, &schema, &why) == OK;
    json_key(out, format->field);
    buf_printf(out->buf, format->before, entry->name, strict ? "true" : "false");
    json_write(out->buf, &schema);
    buf_text(out->buf, format->after);
    out->comma = true;
}

enum request_status tool_methods_schemas(struct request *r)
{
    struct str name, provider;
    if (param_string(r, r->params, "params.", "name", &name) ||
        param_string(r, r->params, "params.", "format", &provider))
        return REQUEST_DONE;
    const struct schema_entry *entry = NULL;
    const struct response_format *format = NULL;
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++)
        if (str_is(name, schemas[i].name))
            entry = &schemas[i];
    for (size_t i = 0; i < sizeof(response_formats) / sizeof(response_formats[0]); i++)
        if (str_is(provider, response_formats[i].provider))
            format = &response_formats[i];
    if (!entry)
        return reply_error(r, RPC_INVALID_PARAMS, "params.name: expected verdict or coverage, got " STR_FMT,
                           STR_ARG(name.len ? str_cut(name, 64) : STR_LIT("nothing")));
    if (provider.len && !format)
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.format: expected one of openai, anthropic, gemini, or nothing for the schema "
            "alone, got '" STR_FMT "'",
            STR_ARG(str_cut(provider, 64)));
    struct json_out *out = reply_open(r);
    json_field_text(out, "name", entry->name);
    json_field_raw(out, "schema", entry->text());
    if (format)
        put_response_format(r, format, entry);
    return reply_close(r);
}
