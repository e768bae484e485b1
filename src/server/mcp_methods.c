/* The methods of MCP itself, of both eras; subscriptions/listen is in subscriptions.c, tools/call in
 * call_methods.c. */
#include "server/elicitation.h"
#include "server/mcp_keys.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/version.h"
#include "server/method_table.h"
#include "server/subscriptions.h"
#include "policy/policy_set.h"

static const char *const legacy_versions[] = {MCP_NEWEST_LEGACY, MCP_2025_06_18, MCP_2025_03_26,
                                              MCP_2024_11_05};

/* "capabilities":{"tools":{…},"prompts":{…},"experimental" or
 * "extensions":{"dev.toolgate/gate":{"methods":[…]}}}, and "instructions", if any. */
static void put_capabilities(struct request *r, struct json_out *out)
{
    json_field_open(out, "capabilities", '{');
    json_field_raw(out, "tools", STR_LIT("{\"listChanged\":true}"));
    json_field_raw(out, "prompts", STR_LIT("{\"listChanged\":true}"));
    json_field_raw(out, "resources", STR_LIT("{\"subscribe\":true,\"listChanged\":true}"));
    if (!mcp_version_before(request_protocol(r), MCP_2025_03_26))
        json_field_raw(out, "completions", STR_LIT("{}"));
    if (!r->modern)
        json_field_raw(out, "logging", STR_LIT("{}"));
    json_field_open(out, r->modern ? "extensions" : "experimental", '{');
    json_field_open(out, GATE_EXTENSION, '{');
    json_field_open(out, "methods", '[');
    method_write_extensions(out);
    json_close(out, ']');
    json_close(out, '}');
    json_close(out, '}');
    json_close(out, '}');
    json_field_optional_str(out, "instructions",
                            policy_set_gateway(r->client->server->gate.generation->policies)->instructions);
}

/* {"elicitation":{}} means forms; a client that lists modes must list that one. */
bool mcp_has_form_elicitation(const struct json *capabilities)
{
    const struct json *modes = json_get_text(capabilities, "elicitation");
    return json_is(modes, JSON_OBJECT) && (!modes->len || json_get_text(modes, "form"));
}

enum request_status mcp_initialize(struct request *r)
{
    const struct json *info = json_get_text(r->params, "clientInfo");
    struct str requested, served = STR_LIT(MCP_NEWEST_LEGACY);
    if (param_string(r, r->params, "params.", "protocolVersion", &requested))
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

enum request_status mcp_discover(struct request *r)
{
    struct json_out *out = reply_open(r);
    json_field_raw(out, "supportedVersions", STR_LIT("[\"" MCP_MODERN "\"]"));
    put_capabilities(r, out);
    json_fields(out, FIELD_NUM("ttlMs", MCP_TTL_MS), FIELD_TEXT("cacheScope", MCP_CACHE_SCOPE));
    return reply_close(r);
}

enum request_status mcp_ping(struct request *r)
{
    reply_open(r);
    return reply_close(r);
}

/* In the modern era only the request itself can ask for log messages. */
bool mcp_wants_log(const struct request *r, struct str level)
{
    int least =
        r->modern ? param_log_level(json_str(json_get_text(r->meta, MCP_LEVEL_KEY))) : r->client->log_level;
    return least >= 0 && param_log_level(level) >= least;
}

/* Servers send to all clients what the most curious one wants; each client gets what it wants itself. */
static void tell_servers(struct server *server)
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
    tell_servers(client->server);
}

enum request_status mcp_set_level(struct request *r)
{
    int level = param_log_level(json_str(json_get_text(r->params, "level")));
    if (level < 0)
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.level: expected one of debug, info, notice, warning, error, critical, alert, "
            "emergency");
    r->client->log_level = level;
    tell_servers(r->client->server);
    reply_open(r);
    return reply_close(r);
}

void mcp_initialized(struct request *r)
{
    r->client->wants_list_changed = true;
}

/* Nothing more is sent for that id. An unknown id is ignored: the reply and the notification have crossed. */
void mcp_cancelled(struct request *r)
{
    struct client *client = r->client;
    const struct json *id = json_get_text(r->params, "requestId");
    struct request *pending = id ? request_find(client, id) : NULL;
    if (pending) {
        elicitation_take_back(pending);
        request_cancel(pending);
    } else if (id) {
        subscriptions_cancel(client, id);
    }
    client_close_if_done(client);
}
