/*
 * What a server sends unasked. Requests: ping, and elicitation during a call
 * (mcp_elicitation.c); any other is answered "method not found".
 * Notifications: progress and log messages are relayed to the call that they
 * are about, and to no other; list_changed makes mcp_lists.c list again; a
 * changed resource is told to those who asked for that.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <math.h>

#define MESSAGE_MAX_BYTES 4096u /* of relayed text */

void mcp_notifications_request(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    if (mcp_message_is(message, "ping"))
        mcp_request_respond(client, message->id, "result", STR_LIT("{}"));
    else if (mcp_message_is(message, "elicitation/create"))
        mcp_elicitation_request(client, about, message);
    else
        mcp_request_respond(client, message->id, "error",
                            STR_LIT("{\"code\":-32601,\"message\":\"Method not found: this client only "
                                    "calls tools; it has no roots and no sampling\"}"));
}

static bool read_params(struct mcp_client *client, const struct mcp_message *message, struct json *params)
{
    struct json_error error;
    if (mcp_request_read(mcp_client_scratch(client), message->params, params, &error))
        return true;
    mcp_client_ignore(client, "a notification without readable params", message->method);
    return false;
}

/* Progress renews the call's timeout. It is relayed if it advances, and not too often. */
static void on_progress(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    struct pending_request *pending = NULL;
    struct json params;
    int64_t token = 0;
    double progress = 0, total = 0;
    uint64_t held;
    (void)about;
    if (!read_params(client, message, &params))
        return;
    if (json_int(json_get_text(&params, "progressToken"), &token) && token > 0)
        pending = pending_find(&client->pending, (uint64_t)token);
    if (!pending || !pending->call || !pending->call->request->progress ||
        !json_double(json_get_text(&params, "progress"), &progress)) {
        mcp_client_ignore(client, "progress of an unknown request", STR_NONE);
        return;
    }
    int64_t deadline = clock_mono_us() + pending->timeout_us;
    pending->deadline_us = deadline < pending->last_deadline_us ? deadline : pending->last_deadline_us;
    if (!isfinite(progress) || (pending->has_progress && progress <= pending->progress))
        return;
    pending->has_progress = true;
    pending->progress = progress;
    if (!rate_limit_allow(&pending->progress_rate, MCP_RELAYED_PER_S, &held))
        return;
    if (!json_double(json_get_text(&params, "total"), &total) || !isfinite(total))
        total = 0;
    const struct upstream_request *request = pending->call->request;
    struct str text = str_cut(json_str(json_get_text(&params, "message")), MESSAGE_MAX_BYTES);
    request->progress(request->listener, progress, total, text);
}

/* Relayed to the call that it concerns; if that is unknown, only logged. */
static void on_message(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    struct json params;
    uint64_t held;
    if (!rate_limit_allow(&client->message_rate, MCP_RELAYED_PER_S, &held) ||
        !read_params(client, message, &params))
        return;
    const struct json *data = json_get_text(&params, "data");
    struct str level = json_str(json_get_text(&params, "level")), text = json_str(data);
    struct buf written = buf_in(client->scratch);
    if (data && data->type != JSON_STRING) {
        json_write(&written, data);
        text = buf_view(&written);
    }
    text = str_cut(text, MESSAGE_MAX_BYTES);
    log_event(LOG_DEBUG, "upstream_message", LOG_STR("upstream", client->spec->name),
              LOG_STR("message_level", str_cut(level, 16)), LOG_STR("text", text),
              LOG_NUM("not_logged", held));
    struct pending_request *pending = mcp_client_subject(client, about);
    const struct upstream_request *request = pending ? pending->call->request : NULL;
    if (request && request->log && level.len)
        request->log(request->listener, level, text);
}

static void on_tools_changed(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    (void)about, (void)message;
    mcp_lists_changed(client, UPSTREAM_TOOLS);
}

static void on_prompts_changed(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    (void)about, (void)message;
    mcp_lists_changed(client, UPSTREAM_PROMPTS);
}

static void on_resources_changed(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    (void)about, (void)message;
    mcp_lists_changed(client, UPSTREAM_RESOURCES);
    mcp_lists_changed(client, UPSTREAM_TEMPLATES);
}

/* Whoever subscribed reads it again: a burst is dropped, not kept. */
static void on_updated(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    struct json params;
    uint64_t held;
    (void)about;
    if (!rate_limit_allow(&client->update_rate, MCP_RELAYED_PER_S, &held) ||
        !read_params(client, message, &params))
        return;
    struct str uri = json_str(json_get_text(&params, "uri"));
    if (uri.len)
        client->hooks->updated(client->owner, uri);
}

void mcp_notifications_notify(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    static const struct {
        const char *method;
        void (*handle)(struct mcp_client *client, uint64_t about, const struct mcp_message *message);
    } known[] = {
        {"notifications/progress", on_progress},
        {"notifications/message", on_message},
        {"notifications/tools/list_changed", on_tools_changed},
        {"notifications/prompts/list_changed", on_prompts_changed},
        {"notifications/resources/list_changed", on_resources_changed},
        {"notifications/resources/updated", on_updated},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (mcp_message_is(message, known[i].method)) {
            known[i].handle(client, about, message);
            return;
        }
}
