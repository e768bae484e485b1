/*
 * The handshake. `initialize` comes first, since some servers exit at any
 * other first message. A server that rejects it gets the modern request,
 * server/discover. Then its tools are listed (mcp_lists.c).
 */
#include "base/arena.h"
#include "base/version.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdio.h>

#include "json/parse.h"

#define LEGACY "2025-11-25"

static void keep_server(struct mcp_client *client, const struct json *info)
{
    struct str name = json_str(json_get_text(info, "name")),
               version = json_str(json_get_text(info, "version"));
    snprintf(client->server, sizeof(client->server), STR_FMT "%s" STR_FMT, STR_ARG(str_cut(name, 60)),
             name.len && version.len ? " " : "", STR_ARG(str_cut(version, 60)));
}

/* What it may be asked for. */
static void keep_capabilities(struct mcp_client *client, const struct json *capabilities)
{
    const struct json *prompts = json_get_text(capabilities, "prompts"),
                      *resources = json_get_text(capabilities, "resources");
    struct mcp_list *lists = client->lists;
    lists[UPSTREAM_PROMPTS].offered = json_is(prompts, JSON_OBJECT);
    lists[UPSTREAM_PROMPTS].announces = json_is_true(json_get_text(prompts, "listChanged"));
    lists[UPSTREAM_RESOURCES].offered = lists[UPSTREAM_TEMPLATES].offered = json_is(resources, JSON_OBJECT);
    lists[UPSTREAM_RESOURCES].announces = lists[UPSTREAM_TEMPLATES].announces =
        json_is_true(json_get_text(resources, "listChanged"));
    client->has_subscriptions = json_is_true(json_get_text(resources, "subscribe"));
    client->has_logging = json_is(json_get_text(capabilities, "logging"), JSON_OBJECT);
}

static void finish(struct mcp_client *client, struct str version)
{
    snprintf(client->version, sizeof(client->version), STR_FMT,
             STR_ARG(str_cut(version, sizeof(client->version) - 1)));
    if (client->kind->set_version)
        client->kind->set_version(client->transport, client->version, client->modern);
    if (!client->modern) {
        mcp_request_open(client, 0, "notifications/initialized");
        mcp_request_send(client, 0, "notifications/initialized", STR_NONE, NULL);
    }
    mcp_lists_fetch_tools(client);
}

static void on_discovered(struct mcp_client *client, struct pending_request *pending,
                          const struct mcp_message *message)
{
    struct arena *arena = mcp_client_scratch(client);
    struct json_error error;
    struct json result;
    pending_remove(&client->pending, pending);
    if (!mcp_request_read(arena, message->result, &result, &error)) {
        mcp_client_fail(client, "it rejects both `initialize` (%s) and `server/discover` (" STR_FMT ")",
                        client->error, STR_ARG(mcp_request_error(client, arena, message)));
        return;
    }
    if (!json_array_has(json_get_text(&result, "supportedVersions"), STR_LIT(MCP_MODERN))) {
        mcp_client_fail(client, "it supports no MCP version from " LEGACY " to " MCP_MODERN);
        return;
    }
    keep_server(client,
                json_get(json_get_text(&result, "_meta"), STR_LIT("io.modelcontextprotocol/serverInfo")));
    keep_capabilities(client, json_get_text(&result, "capabilities"));
    finish(client, STR_LIT(MCP_MODERN));
}

static void discover(struct mcp_client *client, struct str why)
{
    snprintf(client->error, sizeof(client->error), STR_FMT, STR_ARG(str_cut(why, MCP_ERROR_MAX_BYTES / 2)));
    client->modern = true;
    if (client->kind->set_version)
        client->kind->set_version(client->transport, MCP_MODERN, true);
    struct pending_request *pending = mcp_request_begin(client, "server/discover", on_discovered, 0);
    if (!pending)
        return;
    mcp_request_meta(client, 0, false, NULL);
    mcp_request_send(client, pending->id, "server/discover", STR_NONE, NULL);
}

/* Older and unknown versions are treated as LEGACY. */
static void on_initialized(struct mcp_client *client, struct pending_request *pending,
                           const struct mcp_message *message)
{
    struct arena *arena = mcp_client_scratch(client);
    struct json_error error;
    struct json result;
    pending_remove(&client->pending, pending);
    if (!mcp_request_read(arena, message->result, &result, &error)) {
        discover(client, mcp_request_error(client, arena, message));
        return;
    }
    struct str version = json_str(json_get_text(&result, "protocolVersion"));
    if (str_is(version, MCP_MODERN)) {
        discover(client, STR_LIT("it answered with a version that has no handshake"));
        return;
    }
    keep_server(client, json_get_text(&result, "serverInfo"));
    keep_capabilities(client, json_get_text(&result, "capabilities"));
    finish(client, version.len ? version : STR_LIT(LEGACY));
}

void mcp_handshake_start(struct mcp_client *client)
{
    client->modern = false;
    struct pending_request *pending = mcp_request_begin(client, "initialize", on_initialized, 0);
    if (!pending)
        return;
    buf_text(&client->out, "\"protocolVersion\":\"" LEGACY "\",\"capabilities\":{\"elicitation\":{}},"
                           "\"clientInfo\":{\"name\":\"toolgate\",\"version\":\"" TOOLGATE_VERSION "\"}");
    mcp_request_send(client, pending->id, "initialize", STR_NONE, NULL);
}
