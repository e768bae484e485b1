/* Writing the requests, notifications and responses of the client, and reading the JSON of responses. */
#include "base/arena.h"
#include "base/trace_context.h"
#include "base/version.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#define RESPONSE_NODES 1000000u /* JSON values of one page of tools */

#define MODERN_META                                                                                          \
    "\"io.modelcontextprotocol/protocolVersion\":\"" MCP_MODERN "\","                                        \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}},"                                   \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"toolgate\",\"version\":\"" TOOLGATE_VERSION "\"}"

void mcp_request_open(struct mcp_client *client, uint64_t id, const char *method)
{
    struct buf *out = &client->out;
    out->len = 0;
    buf_text(out, "{\"jsonrpc\":\"2.0\",");
    if (id) {
        buf_text(out, "\"id\":");
        buf_int(out, (int64_t)id);
        buf_byte(out, ',');
    }
    buf_text(out, "\"method\":\"");
    buf_text(out, method);
    buf_text(out, "\",\"params\":{");
}

struct pending_request *mcp_request_begin(struct mcp_client *client, const char *method,
                                          mcp_response_handler *on_response, uint32_t ms)
{
    struct pending_request *pending = pending_add(&client->pending);
    if (!pending)
        return NULL;
    pending->on_response = on_response;
    pending->since_us = clock_mono_us();
    if (ms) {
        pending->deadline_us = pending->since_us + (int64_t)ms * 1000;
        mcp_client_watch_deadline(client, pending->deadline_us);
    }
    pending_mark_sent(&client->pending, pending);
    mcp_request_open(client, pending->id, method);
    return pending;
}

void mcp_request_meta(struct mcp_client *client, uint64_t progress_token, bool comma,
                      const struct trace_context *trace)
{
    struct buf *out = &client->out;
    const char *separator = client->modern ? "," : "";
    if (!client->modern && !progress_token && !trace)
        return;
    buf_text(out, comma ? ",\"_meta\":{" : "\"_meta\":{");
    if (client->modern)
        buf_text(out, MODERN_META);
    if (client->modern && client->log_level >= 0)
        buf_printf(out, ",\"io.modelcontextprotocol/logLevel\":\"%s\"",
                   mcp_log_level_name(client->log_level));
    if (progress_token) {
        buf_text(out, separator);
        buf_text(out, "\"progressToken\":");
        buf_int(out, (int64_t)progress_token);
        separator = ",";
    }
    for (unsigned i = 0; trace && i < TRACE_KEYS; i++) {
        if (!trace->values[i].len)
            continue;
        buf_text(out, separator);
        json_write_string(out, trace_key_names[i]);
        buf_byte(out, ':');
        json_write_string(out, trace->values[i]);
        separator = ",";
    }
    buf_byte(out, '}');
}

void mcp_request_send(struct mcp_client *client, uint64_t id, const char *method, struct str name,
                      const struct trace_context *trace)
{
    buf_text(&client->out, "}}");
    const struct mcp_outgoing outgoing = {id, method, name, trace, buf_view(&client->out)};
    client->kind->send(client->transport, &outgoing);
    if (client->out.cap > MCP_SCRATCH_KEEP)
        buf_clear(&client->out);
}

const char *mcp_request_blocked(const struct mcp_client *client)
{
    return client->kind->blocked ? client->kind->blocked(client->transport) : NULL;
}

/* A server that sends requests but does not read gets no responses. */
void mcp_request_respond(struct mcp_client *client, struct str id, const char *member, struct str json)
{
    struct buf *out = &client->out;
    out->len = 0;
    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":" STR_FMT ",\"%s\":", STR_ARG(id), member);
    buf_str(out, json);
    buf_byte(out, '}');
    const struct mcp_outgoing outgoing = {.message = buf_view(out)};
    if (!mcp_request_blocked(client))
        client->kind->send(client->transport, &outgoing);
}

bool mcp_request_read(struct arena *arena, struct str text, struct json *value, struct json_error *error)
{
    static const struct json_limits limits = {.nodes = RESPONSE_NODES};
    return text.len && (json_parse(arena, text, &limits, value, error) == OK || error->soft);
}

struct str mcp_request_error(const struct mcp_client *client, struct arena *arena,
                             const struct mcp_message *message)
{
    struct json_error parse_error;
    struct json error;
    int64_t code = 0;
    if (!message->error.len)
        return str_of(message->problem ? message->problem : "the response has no result");
    if (!mcp_request_read(arena, message->error, &error, &parse_error))
        return STR_LIT("an error that is no valid JSON");
    json_int(json_get_text(&error, "code"), &code);
    struct str text = mcp_client_redact(client, arena, json_str(json_get_text(&error, "message")));
    return arena_printf(arena, "error %lld \"" STR_FMT "\"", (long long)code, STR_ARG(str_cut(text, 200)));
}

void mcp_request_cancel(struct mcp_client *client, uint64_t id, const char *reason)
{
    if (!client->open)
        return;
    mcp_request_open(client, 0, "notifications/cancelled");
    buf_printf(&client->out, "\"requestId\":%llu,\"reason\":\"%s\"", (unsigned long long)id, reason);
    mcp_request_meta(client, 0, true, NULL);
    mcp_request_send(client, 0, "notifications/cancelled", STR_NONE, NULL);
    if (client->kind->forget)
        client->kind->forget(client->transport, id);
}

struct upstream_call *mcp_request_end(struct pending_request *pending)
{
    struct mcp_client *client = pending->client;
    struct upstream_call *call = pending->call;
    call->answer->reached = pending->sent;
    call->work = NULL;
    call->stop = NULL;
    pending_remove(&client->pending, pending);
    if (client->stopping)
        mcp_client_schedule(client);
    return call;
}
