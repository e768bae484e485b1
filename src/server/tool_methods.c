/* toolgate/register and toolgate/tools. */
#include "base/arena.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"
#include "json/build.h"
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
            json_field_bool(out, "policy", tool->policy || tool->overlay_count);
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
               guessed_text = buf_in(r->arena), guards_text = buf_in(r->arena);
    struct json_out warnings = json_out(&warnings_text), *out = reply_open(r);
    now.provider.warn = collect_warning;
    now.provider.owner = &warnings;
    now.places = &places_text;
    now.guessed = &guessed_text;
    now.guards = client_is_operator(r->client) ? &guards_text : NULL; /* file names */
    json_field_text(out, "format", provider_format_name(now.provider.format));
    json_key(out, "tools");
    json_open(&warnings, '[');
    catalog_write(r->arena, r->client->server->gate.generation, &now, out->buf);
    out->comma = true;
    json_close(&warnings, ']');
    json_field_raw(out, "warnings", buf_view(&warnings_text));
    json_field_raw(out, "runs_at", buf_view(&places_text));
    json_field_raw(out, "guessed_effects", buf_view(&guessed_text));
    if (now.guards)
        json_field_raw(out, "guarded_by", buf_view(&guards_text));
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
        param_goal(r, r->meta, "params._meta.", GATE_GOAL_KEY, &wanted.goal) ||
        param_context(r, &wanted.context))
        return REQUEST_DONE;
    return tools_list_begin(r, &wanted, reply_definitions);
}
