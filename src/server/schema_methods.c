/* toolgate/schemas: toolgate's own schemas and the operator's, as they are and as response formats of
 * providers.
 */
#include "base/arena.h"
#include "catalog/openai_strict.h"
#include "catalog/response_schemas.h"
#include "gate/verdict.h"
#include "json/parse.h"
#include "server/method_table.h"

static const struct own_schema {
    const char *name;
    struct str (*text)(void);
} own_schemas[] = {{RESPONSE_SCHEMA_VERDICT, verdict_schema}, {RESPONSE_SCHEMA_COVERAGE, coverage_schema}};

#define OWN_COUNT (sizeof(own_schemas) / sizeof(own_schemas[0]))

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

static const struct response_schemas *operators(const struct request *r)
{
    return &r->client->server->gate.generation->schemas;
}

/* NULL: there is none of that name. */
static const struct json *find_schema(const struct request *r, struct str name)
{
    const struct response_schema *theirs = response_schemas_find(operators(r), name);
    for (size_t i = 0; i < OWN_COUNT; i++) {
        struct json *schema = ARENA_NEW(r->arena, struct json);
        struct json_error fault;
        if (str_is(name, own_schemas[i].name) &&
            json_parse(r->arena, own_schemas[i].text(), NULL, schema, &fault) == OK)
            return schema;
    }
    return theirs ? theirs->schema : NULL;
}

static void put_warnings(struct json_out *out, bool strict, const struct openai_strict_notes *notes,
                         const struct why *why)
{
    json_field_open(out, "warnings", '[');
    if (!strict) {
        struct buf text = {0};
        buf_printf(&text, "strict is not possible, the schema is as it was written: %s", why->text);
        json_put_str(out, buf_view(&text));
        buf_clear(&text);
    }
    for (size_t i = 0; strict && i < notes->count; i++)
        json_put_str(out, notes->list[i]);
    if (strict && notes->more) {
        struct buf text = {0};
        buf_printf(&text, "and %zu more changes", notes->more);
        json_put_str(out, buf_view(&text));
        buf_clear(&text);
    }
    json_close(out, ']');
}

static void put_response_format(struct request *r, const struct response_format *format, struct str name,
                                const struct json *schema)
{
    struct json_out *out = &r->out;
    struct openai_strict_notes notes = {.count = 0};
    struct json closed;
    struct why why = {.text = ""};
    bool strict = format->closed && openai_strict_schema(r->arena, schema, &closed, &notes, &why) == OK;
    json_key(out, format->field);
    buf_printf(out->buf, format->before, name.at, strict ? "true" : "false");
    json_write(out->buf, strict ? &closed : schema);
    buf_text(out->buf, format->after);
    out->comma = true;
    put_warnings(out, strict || !format->closed, &notes, &why);
}

static void put_entry(struct json_out *out, struct str name, const char *source,
                      const struct json *description)
{
    json_open(out, '{');
    json_field_str(out, "name", name);
    json_field_text(out, "source", source);
    json_field_optional_str(out, "description", json_str(description));
    json_close(out, '}');
}

static enum request_status reply_names(struct request *r)
{
    const struct response_schemas *theirs = operators(r);
    struct json_out *out = reply_open(r);
    json_field_open(out, "schemas", '[');
    for (size_t i = 0; i < OWN_COUNT; i++)
        put_entry(out, str_of(own_schemas[i].name), "toolgate", NULL);
    for (size_t i = 0; i < theirs->count; i++)
        put_entry(out, theirs->list[i].name, "operator",
                  json_get_text(theirs->list[i].schema, "description"));
    json_close(out, ']');
    return reply_close(r);
}

static enum request_status refuse_name(struct request *r, struct str name)
{
    const struct response_schemas *theirs = operators(r);
    struct buf names = buf_in(r->arena);
    for (size_t i = 0; i < OWN_COUNT; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", own_schemas[i].name);
    for (size_t i = 0; i < theirs->count; i++)
        buf_printf(&names, ", " STR_FMT, STR_ARG(theirs->list[i].name));
    return reply_error(r, RPC_INVALID_PARAMS, "params.name: expected one of " STR_FMT ", got '" STR_FMT "'",
                       STR_ARG(str_cut(buf_view(&names), 1000)), STR_ARG(str_cut(name, 64)));
}

enum request_status schema_methods_schemas(struct request *r)
{
    struct str name, provider;
    if (param_string(r, r->params, "params.", "name", &name) ||
        param_string(r, r->params, "params.", "format", &provider))
        return REQUEST_DONE;
    const struct response_format *format = NULL;
    for (size_t i = 0; i < sizeof(response_formats) / sizeof(response_formats[0]); i++)
        if (str_is(provider, response_formats[i].provider))
            format = &response_formats[i];
    if (provider.len && !format)
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.format: expected one of openai, anthropic, gemini, or nothing for the schema "
            "alone, got '" STR_FMT "'",
            STR_ARG(str_cut(provider, 64)));
    if (!json_get_text(r->params, "name"))
        return reply_names(r);
    const struct json *schema = find_schema(r, name);
    if (!schema)
        return refuse_name(r, name);
    struct json_out *out = reply_open(r);
    json_field_str(out, "name", name);
    json_field(out, "schema", schema);
    if (format)
        put_response_format(r, format, arena_dup(r->arena, name), schema);
    return reply_close(r);
}
