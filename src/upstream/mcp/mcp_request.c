/*
 * The messages that the client writes, and the requests that await a response.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace_context.h"
#include "json/parse.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdlib.h>

#define RESPONSE_NODES 1000000u /* JSON values of one page of tools */

/* ---- pending requests ----------------------------------------------------------- */

struct pending_request *pending_add(struct mcp_client *client)
{
    struct pending_requests *all = &client->pending;
    struct pending_request *pending = alloc_zeroed(sizeof(*pending));
    all->count++;
    all->waiting_count++;
    pending->client = client;
    pending->id = ++all->last_id;
    pending->since_us = clock_mono_us();
    LIST_INSERT_HEAD(&all->by_id[pending->id % PENDING_BUCKETS], pending, same_bucket);
    TAILQ_INSERT_TAIL(&all->waiting, pending, entry);
    return pending;
}

static void on_deadline(void *owner)
{
    static const struct mcp_message late = {.kind = MCP_MESSAGE_MALFORMED,
                                            .problem = "there was no response in time"};
    struct pending_request *pending = owner;
    struct mcp_client *client = pending->client;
    uint64_t id = pending->id;
    if (pending->call) {
        mcp_call_timed_out(pending);
        return;
    }
    pending->on_response(pending, &late);
    mcp_request_cancel(client, id, "timed out"); /* over HTTP it would keep its connection */
}

void pending_end_after(struct pending_request *pending, uint32_t ms)
{
    timer_set(&pending->deadline, pending->client->loop, ms, on_deadline, pending);
}

void pending_mark_sent(struct pending_request *pending)
{
    struct pending_requests *all = &pending->client->pending;
    TAILQ_REMOVE(&all->waiting, pending, entry);
    all->waiting_count--;
    pending->sent = true;
    TAILQ_INSERT_TAIL(&all->sent, pending, entry);
}

void pending_remove(struct pending_request *pending)
{
    struct pending_requests *all = &pending->client->pending;
    TAILQ_REMOVE(pending->sent ? &all->sent : &all->waiting, pending, entry);
    LIST_REMOVE(pending, same_bucket);
    timer_clear(&pending->deadline);
    all->waiting_count -= !pending->sent;
    all->count--;
    free(pending);
}

struct pending_request *pending_find(const struct mcp_client *client, uint64_t id)
{
    struct pending_request *pending;
    LIST_FOREACH (pending, &client->pending.by_id[id % PENDING_BUCKETS], same_bucket)
        if (pending->id == id)
            return pending->sent ? pending : NULL;
    return NULL;
}

struct pending_request *pending_subject(struct mcp_client *client, uint64_t about)
{
    struct pending_request *pending, *found = NULL;
    int64_t now = clock_mono_us();
    if (about) {
        found = pending_find(client, about);
        return found && found->call ? found : NULL;
    }
    TAILQ_FOREACH (pending, &client->pending.sent, entry) {
        if (found && pending->call)
            return NULL;
        if (pending->call)
            found = pending;
    }
    for (size_t i = 0; found && i < MCP_ABANDONED_MAX; i++) /* may it be about one of another caller? */
        if (client->abandoned[i].until_us > now &&
            client->abandoned[i].caller != found->call->request->caller)
            return NULL;
    return found;
}

/* ---- writing ----------------------------------------------------------------------- */

struct json_out mcp_message_open(struct mcp_client *client, uint64_t id, const char *method)
{
    struct json_out out = json_out(&client->out);
    client->out.len = 0;
    json_open(&out, '{');
    json_fields(&out, FIELD_TEXT("jsonrpc", "2.0"), FIELD_IF(id != 0, FIELD_NUM("id", id)),
                FIELD_TEXT("method", method));
    json_field_open(&out, "params", '{');
    return out;
}

static void put_meta(struct json_out *out, const struct mcp_client *client, uint64_t progress_token,
                     const struct mcp_outgoing *outgoing)
{
    const struct trace_context *trace = outgoing->trace;
    if (!client->modern && !progress_token && !trace && !outgoing->meta.len)
        return;
    json_field_open(out, "_meta", '{');
    if (client->modern)
        json_fields(out, FIELD_TEXT("io.modelcontextprotocol/protocolVersion", MCP_MODERN),
                    FIELD_RAW("io.modelcontextprotocol/clientCapabilities", STR_LIT(MCP_CAPABILITIES)),
                    FIELD_RAW("io.modelcontextprotocol/clientInfo", STR_LIT(MCP_CLIENT_INFO)));
    if (client->modern && client->log_level >= 0)
        json_field_text(out, "io.modelcontextprotocol/logLevel", mcp_log_level_name(client->log_level));
    if (progress_token)
        json_field_int(out, "progressToken", (int64_t)progress_token);
    for (unsigned i = 0; trace && i < TRACE_KEYS; i++)
        if (trace->values[i].len) {
            json_key_str(out, trace_key_names[i]);
            json_put_str(out, trace->values[i]);
        }
    if (outgoing->meta.len)
        json_put_raw(out, outgoing->meta);
    json_close(out, '}');
}

void mcp_message_send(struct mcp_client *client, struct json_out *out, struct mcp_outgoing *outgoing,
                      uint64_t progress_token)
{
    put_meta(out, client, progress_token, outgoing);
    json_close(out, '}');
    json_close(out, '}');
    outgoing->message = buf_view(&client->out);
    client->kind->send(client->transport, outgoing);
    if (client->out.cap > MCP_SCRATCH_KEEP)
        buf_clear(&client->out);
}

/* `id` 0: a notification. */
static void send_own(struct mcp_client *client, uint64_t id, const char *method,
                     const struct json_field *params)
{
    struct mcp_outgoing outgoing = {.id = id, .method = method};
    struct json_out out = mcp_message_open(client, id, method);
    json_write_fields(&out, params);
    mcp_message_send(client, &out, &outgoing, 0);
}

void mcp_notify(struct mcp_client *client, const char *method, const struct json_field *params)
{
    client->notified_before = client->pending.last_id + 1;
    send_own(client, 0, method, params);
}

struct pending_request *mcp_request(struct mcp_client *client, const char *method,
                                    mcp_response_handler *on_response, uint32_t ms,
                                    const struct json_field *params)
{
    if (client->pending.count >= MCP_CALLS_MAX + MCP_OWN_REQUESTS_MAX || mcp_request_blocked(client))
        return NULL;
    struct pending_request *pending = pending_add(client);
    pending->on_response = on_response;
    if (ms)
        pending_end_after(pending, ms);
    pending_mark_sent(pending);
    send_own(client, pending->id, method, params);
    return pending;
}

const char *mcp_request_blocked(const struct mcp_client *client)
{
    return client->kind->blocked ? client->kind->blocked(client->transport) : NULL;
}

/* A server that sends requests but does not read gets no responses. */
void mcp_request_respond(struct mcp_client *client, struct str id, const char *member, struct str json)
{
    struct json_out out = json_out(&client->out);
    client->out.len = 0;
    json_put_object(&out, FIELD_TEXT("jsonrpc", "2.0"), FIELD_RAW("id", id), FIELD_RAW(member, json));
    const struct mcp_outgoing outgoing = {.message = buf_view(&client->out)};
    if (!mcp_request_blocked(client))
        client->kind->send(client->transport, &outgoing);
}

void mcp_request_cancel(struct mcp_client *client, uint64_t id, const char *reason)
{
    if (!client->open)
        return;
    mcp_notify(client, "notifications/cancelled",
               MCP_PARAMS(FIELD_NUM("requestId", id), FIELD_TEXT("reason", reason)));
    if (client->kind->forget)
        client->kind->forget(client->transport, id);
}

/* If there is no room, the oldest entry is reused for an unknown caller, which differs from every other. */
void mcp_request_abandon(struct pending_request *pending, const char *reason)
{
    struct mcp_client *client = pending->client;
    struct abandoned_call *oldest = client->abandoned;
    int64_t now = clock_mono_us();
    for (struct abandoned_call *call = oldest + 1; call < client->abandoned + MCP_ABANDONED_MAX; call++)
        if (call->until_us < oldest->until_us)
            oldest = call;
    bool taken = oldest->until_us > now;
    *oldest = (struct abandoned_call){taken ? 0 : pending->id, taken ? 0 : pending->call->request->caller,
                                      now + (int64_t)MCP_ABANDONED_MS * 1000};
    mcp_request_cancel(client, pending->id, reason);
}

/* ---- reading --------------------------------------------------------------------------- */

bool mcp_request_read(struct mcp_client *client, struct arena *arena, struct str text, struct json *value,
                      struct json_error *error)
{
    static const struct json_limits limits = {.nodes = RESPONSE_NODES};
    struct json_error ignored;
    const char *what;
    uint64_t held;
    if (!text.len || json_parse_repaired(arena, text, &limits, value, error ? error : &ignored, &what))
        return false;
    if (what && rate_limit_allow(&client->ignored_rate, MCP_IGNORED_PER_S, &held))
        log_event(LOG_WARN, "upstream_message_repaired", LOG_STR("upstream", client->spec->name),
                  LOG_TEXT("why", what), LOG_NUM("not_logged", held));
    return true;
}

struct str mcp_request_error(struct mcp_client *client, struct arena *arena,
                             const struct mcp_message *message)
{
    struct json error;
    int64_t code = 0;
    if (!message->error.len)
        return str_of(message->problem ? message->problem : "the response has no result");
    if (!mcp_request_read(client, arena, message->error, &error, NULL))
        return STR_LIT("an error that is no valid JSON");
    json_int(json_get_text(&error, "code"), &code);
    struct str text = mcp_client_redact(client, arena, json_str(json_get_text(&error, "message")));
    return arena_printf(arena, "error %lld \"" STR_FMT "\"", (long long)code, STR_ARG(str_cut(text, 200)));
}
