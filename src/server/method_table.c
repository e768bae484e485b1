/*
 * Every method and notification, and the methods of MCP itself, of both eras. Another one needs its row in
 * the table and its handler.
 */
#include "server/method_table.h"

#include "base/log.h"
#include "base/suggest.h"
#include "base/version.h"
#include "policy/policy_set.h"
#include "server/served.h"

/* ---- the table: it is searched from the top, so the most frequent methods come first ---- */

static method_handler mcp_initialize, mcp_discover, mcp_set_level;

static const struct method methods[] = {
    {"tools/call", ERA_BOTH | MAY_WAIT | TAKES_FAULT, call_methods_call},
    {"toolgate/check", ERA_BOTH | MAY_WAIT | TAKES_FAULT, call_methods_check},
    {"toolgate/report", ERA_BOTH | MAY_WAIT | TAKES_FAULT, call_methods_report},
    {"toolgate/turn", ERA_BOTH | MAY_WAIT, session_methods_turn},
    {"tools/list", ERA_BOTH | MAY_WAIT, mcp_tools_list},
    {"prompts/list", ERA_BOTH, passing_list},
    {"prompts/get", ERA_BOTH | MAY_WAIT, passing_prompts_get},
    {"resources/list", ERA_BOTH, passing_list},
    {"resources/templates/list", ERA_BOTH, passing_list},
    {"resources/read", ERA_BOTH | MAY_WAIT, passing_resources_read},
    {"resources/subscribe", ERA_LEGACY, passing_subscribe},
    {"resources/unsubscribe", ERA_LEGACY, passing_unsubscribe},
    {"completion/complete", ERA_BOTH | MAY_WAIT, passing_complete},
    {"ping", ERA_LEGACY, reply_empty},
    {"initialize", ERA_LEGACY, mcp_initialize},
    {"server/discover", ERA_MODERN, mcp_discover},
    {"subscriptions/listen", ERA_MODERN, subscriptions_listen},
    {"logging/setLevel", ERA_LEGACY, mcp_set_level},
    {"toolgate/register", ERA_BOTH | MAY_WAIT, tool_methods_register},
    {"toolgate/servers", ERA_BOTH, tool_methods_servers},
    {"toolgate/tools", ERA_BOTH | MAY_WAIT, tool_methods_tools},
    {"toolgate/schemas", ERA_BOTH, tool_methods_schemas},
    {"toolgate/session", ERA_BOTH | MAY_WAIT, session_methods_session},
    {"toolgate/sessions", ERA_BOTH | FOR_OPERATORS, session_methods_sessions},
    {"toolgate/status", ERA_BOTH, status_method},
    {"toolgate/reload", ERA_BOTH | MAY_WAIT | FOR_OPERATORS, reload_method},
    {"toolgate/pins", ERA_BOTH | MAY_WAIT | FOR_OPERATORS, pins_method},
    {"toolgate/approvals", ERA_BOTH | MAY_WAIT | FOR_OPERATORS, approvals_method},
    {"toolgate/approve", ERA_BOTH | MAY_WAIT | FOR_OPERATORS, approval_answer_method},
    {"toolgate/deny", ERA_BOTH | MAY_WAIT | FOR_OPERATORS, approval_answer_method},
};

#define METHOD_COUNT (sizeof(methods) / sizeof(methods[0]))

const struct method *method_find(struct str name)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (str_is(name, methods[i].name))
            return &methods[i];
    return NULL;
}

struct str method_suggest(struct str name)
{
    struct str names[METHOD_COUNT];
    for (size_t i = 0; i < METHOD_COUNT; i++)
        names[i] = str_of(methods[i].name);
    return suggest_closest(name, names, METHOD_COUNT);
}

/* ---- MCP itself ---- */

static const char *const legacy_versions[] = {MCP_NEWEST_LEGACY, MCP_2025_06_18, MCP_2025_03_26,
                                              MCP_2024_11_05};

/* "capabilities":{"tools":{…},"prompts":{…},"experimental" or
 * "extensions":{"dev.toolgate/gate":{"methods":[…]}}}, and "instructions", if any: the operator's, then those
 * of the servers. */
static void put_capabilities(struct request *r, struct json_out *out)
{
    bool completions = !mcp_version_before(request_protocol(r), MCP_2025_03_26);
    json_field_open(out, "capabilities", '{');
    json_fields(out, FIELD_RAW("tools", STR_LIT("{\"listChanged\":true}")),
                FIELD_RAW("prompts", STR_LIT("{\"listChanged\":true}")),
                FIELD_RAW("resources", STR_LIT("{\"subscribe\":true,\"listChanged\":true}")),
                FIELD_IF(completions, FIELD_RAW("completions", STR_LIT("{}"))),
                FIELD_IF(!r->modern, FIELD_RAW("logging", STR_LIT("{}"))));
    json_field_open(out, r->modern ? "extensions" : "experimental", '{');
    json_field_open(out, GATE_EXTENSION, '{');
    json_field_open(out, "methods", '[');
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (str_starts(str_of(methods[i].name), "toolgate/"))
            json_put_text(out, methods[i].name);
    json_close(out, ']');
    json_close(out, '}');
    json_close(out, '}');
    json_close(out, '}');
    struct buf instructions = buf_in(r->arena);
    buf_str(&instructions, policy_set_gateway(r->client->server->gate.generation->policies)->instructions);
    served_write_instructions(r, &instructions);
    json_field_optional_str(out, "instructions", buf_view(&instructions));
}

/* {"elicitation":{}} means forms; a client that lists modes must list that one. */
bool mcp_has_form_elicitation(const struct json *capabilities)
{
    const struct json *modes = json_get_text(capabilities, "elicitation");
    return json_is(modes, JSON_OBJECT) && (!modes->len || json_get_text(modes, "form"));
}

static enum request_status mcp_initialize(struct request *r)
{
    const struct json *info = json_get_text(r->params, "clientInfo");
    struct str requested, served = STR_LIT(MCP_NEWEST_LEGACY);
    if (param_string(r, r->params, "protocolVersion", &requested))
        return REQUEST_DONE;
    if (!requested.len)
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.protocolVersion: expected a string such as \"" MCP_NEWEST_LEGACY
                           "\", got nothing");
    for (size_t i = 0; i < sizeof(legacy_versions) / sizeof(legacy_versions[0]); i++)
        if (str_is(requested, legacy_versions[i]))
            served = str_of(legacy_versions[i]);
    r->client->protocol = served.at;
    r->client->elicits = mcp_has_form_elicitation(json_get_text(r->params, "capabilities"));
    log_event(LOG_DEBUG, "client_initialized", LOG_TEXT("connection", r->client->name),
              LOG_STR("client", json_str(json_get_text(info, "name"))), LOG_STR("version", requested));
    r->client->wants_list_changed = true;
    struct json_out *out = reply_open(r);
    json_field_str(out, "protocolVersion", served);
    put_capabilities(r, out);
    json_field_raw(out, "serverInfo",
                   STR_LIT("{\"name\":\"toolgate\",\"version\":\"" TOOLGATE_VERSION "\"}"));
    return reply_close(r);
}

static enum request_status mcp_discover(struct request *r)
{
    struct json_out *out = reply_open(r);
    json_field_raw(out, "supportedVersions", STR_LIT("[\"" MCP_MODERN "\"]"));
    put_capabilities(r, out);
    json_fields(out, FIELD_NUM("ttlMs", MCP_TTL_MS), FIELD_TEXT("cacheScope", MCP_CACHE_SCOPE));
    return reply_close(r);
}

/* In the modern era only the request itself can ask for log messages. */
bool mcp_wants_log(const struct request *r, struct str level)
{
    int least =
        r->modern ? param_log_level(json_str(json_get_text(r->meta, MCP_LEVEL_KEY))) : r->client->log_level;
    return least >= 0 && param_log_level(level) >= least;
}

/* Servers send the log messages of the lowest level that a client wants; each client gets its own level. */
static void set_level_of_servers(struct server *server)
{
    const struct client *client;
    int least = param_log_level(STR_LIT("emergency"));
    LIST_FOREACH (client, &server->clients, link) {
        int level = client->log_level < client->asked_level ? client->log_level : client->asked_level;
        least = level < least ? level : least;
    }
    upstreams_set_log_level(server->gate.upstreams, least);
}

void mcp_wants_level(struct client *client, int level)
{
    if (level >= client->asked_level)
        return;
    client->asked_level = level;
    set_level_of_servers(client->server);
}

static enum request_status mcp_set_level(struct request *r)
{
    int level = param_log_level(json_str(json_get_text(r->params, "level")));
    if (level < 0)
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.level: expected one of debug, info, notice, warning, error, critical, alert, "
            "emergency");
    r->client->log_level = level;
    set_level_of_servers(r->client->server);
    return reply_empty(r);
}

/* Nothing more is sent for that id. An unknown id is ignored: the reply and the notification have crossed. */
static void cancelled(struct request *r)
{
    struct client *client = r->client;
    const struct json *id = json_get_text(r->params, "requestId");
    struct request *pending = NULL;
    if (id)
        LIST_FOREACH (pending, &client->pending, link)
            if (json_equal(pending->id_value, id))
                break;
    if (pending) {
        elicitation_take_back(pending);
        request_cancel(pending);
    } else if (id) {
        subscriptions_cancel(client, id);
    }
    client_close_if_done(client);
}

bool notification_handle(struct request *r)
{
    if (str_is(r->method_name, "notifications/initialized"))
        r->client->wants_list_changed = true;
    else if (str_is(r->method_name, "notifications/cancelled"))
        cancelled(r);
    else
        return false;
    return true;
}
