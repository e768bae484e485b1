/*
 * tools/call, and the methods that are passed on as they are: written, sent,
 * and ended exactly once. The result is parsed from its own bytes into the
 * call's own memory; anything but a CallToolResult, or an object as the result
 * of another method, ends the call as broken.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdarg.h>

#define RESULT_NODES 400000u /* JSON values in one result: about 25 MB of memory */

/* The format continues "the server '…', which runs this tool, "; see upstream_call_service. */
__attribute__((format(printf, 5, 6))) static enum upstream_call_state
answer(const struct mcp_client *client, struct upstream_call *call, enum upstream_outcome outcome,
       const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str sentence = arena_vprintf(call->arena, format, args);
    va_end(args);
    return upstream_call_answer(call, outcome, code, "the server '" STR_FMT "', which %s, " STR_FMT,
                                STR_ARG(client->spec->name), upstream_call_service(call), STR_ARG(sentence));
}

static int64_t restart_after_s(const struct mcp_client *client)
{
    int64_t left = client->next_us - clock_mono_us();
    if (client->stopping)
        return -1;
    return left > 0 ? (left + 999999) / 1000000 : 1;
}

static void quote(struct upstream_call *call, struct str quoted)
{
    call->answer->quoted = arena_dup(call->arena, str_cut(quoted, MCP_QUOTE_MAX_BYTES));
}

void mcp_call_crashed(struct pending_request *pending, const char *why, struct str quoted)
{
    struct upstream_call *call = mcp_request_end(pending);
    call->answer->after_s = restart_after_s(pending->client);
    quote(call, quoted);
    answer(pending->client, call, UPSTREAM_TRANSIENT, "crashed", "died before it answered (%s)", why);
    call->finish(call);
}

/* Why it is down is for the log and status: its last words do not help a model. */
static enum upstream_call_state answer_unavailable(struct mcp_client *client, struct upstream_call *call)
{
    if (client->stopping)
        return answer(client, call, UPSTREAM_UNAVAILABLE, "stopping",
                      "is being stopped; the call was not sent to it");
    call->answer->after_s = restart_after_s(client);
    return answer(client, call, UPSTREAM_UNAVAILABLE, "down",
                  "is down: it failed %u times in a row. The next try is in %lld s; the call was not sent",
                  client->failures, (long long)call->answer->after_s);
}

void mcp_call_unavailable(struct pending_request *pending)
{
    struct upstream_call *call = mcp_request_end(pending);
    answer_unavailable(pending->client, call);
    call->finish(call);
}

void mcp_call_broken(struct pending_request *pending, const char *code, const char *why)
{
    struct upstream_call *call = mcp_request_end(pending);
    answer(pending->client, call, UPSTREAM_BROKEN, code, "sent an unusable answer: %s", why);
    call->finish(call);
}

void mcp_call_failed(struct pending_request *pending, const struct mcp_failure *failure)
{
    struct mcp_client *client = pending->client;
    struct upstream_call *call = mcp_request_end(pending);
    call->answer->after_s = failure->after_s;
    quote(call, failure->quoted);
    if (failure->quoted.len)
        log_event(LOG_WARN, "upstream_error", LOG_STR("upstream", client->spec->name),
                  LOG_TEXT("code", failure->code), LOG_STR("text", str_cut(failure->quoted, 200)));
    call->answer->reached =
        failure->outcome != UPSTREAM_UNAVAILABLE && strcmp(failure->code, "unreachable") != 0;
    answer(client, call, failure->outcome, failure->code, "gave no usable answer: %s", failure->why);
    call->finish(call);
}

void mcp_call_timed_out(struct pending_request *pending)
{
    struct mcp_client *client = pending->client;
    uint64_t id = pending->id;
    long long ms = (clock_mono_us() - pending->since_us) / 1000;
    struct upstream_call *call = mcp_request_end(pending);
    if (call->answer->reached) {
        mcp_request_abandon(client, id, call->request->caller, "timed out");
        answer(client, call, UPSTREAM_TRANSIENT, "timeout",
               "did not answer within %lld ms; the call was cancelled", ms);
    } else {
        answer(client, call, UPSTREAM_UNAVAILABLE, "not_up",
               "did not start within %lld ms; the call was not sent to it", ms);
    }
    call->finish(call);
}

/* NULL: a CallToolResult. */
static const char *problem_of(const struct json *result)
{
    if (!json_is(result, JSON_OBJECT))
        return "the result is no object";
    const struct json *content = json_get_text(result, "content");
    if (!content && json_get_text(result, "task"))
        return "it began a task, although the call did not ask for one";
    if (!content && !json_get_text(result, "structuredContent"))
        return "the result has neither `content` nor `structuredContent`";
    if (content && !json_is(content, JSON_ARRAY))
        return "`content` of the result is no array";
    for (uint32_t i = 0; content && i < content->len; i++)
        if (!json_str(json_get_text(&content->items[i], "type")).len)
            return "an item of the result's `content` has no `type`";
    return NULL;
}

static void take_result(struct pending_request *pending, struct str text)
{
    static const struct json_limits limits = {.nodes = RESULT_NODES};
    struct upstream_call *call = pending->call;
    struct json *result = arena_alloc(call->arena, sizeof(*result));
    struct json_error error;
    enum err err = json_parse(call->arena, arena_dup(call->arena, text), &limits, result, &error);
    if (err != OK && !error.soft) {
        mcp_call_broken(pending, err == ERR_LIMIT ? "result_too_large" : "invalid_json", error.text);
        return;
    }
    const struct json *type = json_get_text(result, "resultType");
    bool complete = !type || str_is(json_str(type), "complete");
    if (!complete && mcp_elicitation_from_result(pending, result))
        return;
    const char *problem = "its `resultType` is unknown";
    if (complete && call->request->method)
        problem = json_is(result, JSON_OBJECT) ? NULL : "the result is no object";
    else if (complete)
        problem = problem_of(result);
    if (problem) {
        mcp_call_broken(pending, "no_tool_result", problem);
        return;
    }
    mcp_request_end(pending);
    call->answer->outcome = UPSTREAM_RESULT;
    call->answer->result = result;
    call->finish(call);
}

/* The definition of the call's tool; NULL: it is not listed. */
static const struct json *tool_of(const struct mcp_client *client, const struct upstream_call *call)
{
    const struct tool_list *list = client->lists[UPSTREAM_TOOLS].list;
    const struct json *tools = list ? tool_list_array(list) : NULL;
    for (uint32_t i = 0; tools && i < tools->len; i++)
        if (str_eq(json_str(json_get_text(&tools->items[i], "name")), call->request->target->tool))
            return &tools->items[i];
    return NULL;
}

static void take_error(struct pending_request *pending, struct str text)
{
    static const struct {
        int64_t code;
        const char *name, *sentence;
    } known[] = {
        {-32602, "unknown_tool", "does not know this tool (any more)"},
        {-32602, "invalid_params", "rejects the arguments as invalid"},
        {-32601, "task_only", "runs this tool only as a task, which the gateway does not support"},
        {-32601, "method_not_found", "has no such method"},
        {-32603, "internal_error", "failed internally"},
        {0, "rpc_error", "answered with an error"},
    };
    struct mcp_client *client = pending->client;
    struct upstream_call *call = pending->call;
    struct json_error parse_error;
    struct json error;
    int64_t code = 0;
    size_t i = 0;
    if (!mcp_request_read(call->arena, arena_dup(call->arena, text), &error, &parse_error)) {
        mcp_call_broken(pending, "invalid_json", parse_error.text);
        return;
    }
    if (mcp_elicitation_from_error(pending, &error))
        return;
    json_int(json_get_text(&error, "code"), &code);
    struct str message = json_str(error.type == JSON_STRING ? &error : json_get_text(&error, "message"));
    while (known[i].code && known[i].code != code)
        i++;
    bool unknown_tool = str_contains_nocase(message, STR_LIT("tool")) &&
                        (str_contains_nocase(message, STR_LIT("unknown")) ||
                         str_contains_nocase(message, STR_LIT("no such")) ||
                         str_contains_nocase(message, STR_LIT("not found")) ||
                         str_contains_nocase(message, STR_LIT("does not exist")));
    /* A server answers "method not found" to a plain call of a tool that only runs as a task. */
    const struct json *execution = json_get_text(tool_of(client, call), "execution");
    if ((code == -32602 && !unknown_tool) ||
        (code == -32601 && !str_is(json_str(json_get_text(execution, "taskSupport")), "required")))
        i++;
    mcp_request_end(pending);
    call->answer->rpc_code = code;
    if (call->request->method) { /* whose errors are the client's to read, without configured secrets */
        const struct json *data = json_get_text(&error, "data");
        struct str written = data ? json_to_str(call->arena, data) : STR_NONE;
        i = sizeof(known) / sizeof(*known) - 1;
        if (written.len <= MCP_QUOTE_MAX_BYTES)
            call->answer->rpc_data = mcp_client_redact(client, call->arena, written);
    }
    call->answer->quoted = str_cut(mcp_client_redact(client, call->arena, message), MCP_QUOTE_MAX_BYTES);
    answer(client, call, UPSTREAM_REFUSED, known[i].name, "%s (JSON-RPC error %lld)", known[i].sentence,
           (long long)code);
    call->finish(call);
}

static void on_response(struct pending_request *pending, const struct mcp_message *message)
{
    if (message->error.len)
        take_error(pending, message->error);
    else
        take_result(pending, message->result);
}

static void put_tool_call(const struct mcp_client *client, struct buf *out,
                          const struct upstream_request *request)
{
    buf_text(out, "\"name\":");
    json_write_string(out, request->target->tool);
    buf_text(out, ",\"arguments\":");
    if (request->arguments)
        json_write(out, request->arguments);
    else
        buf_text(out, "{}");
    if (client->modern && request->input_responses) {
        buf_text(out, ",\"inputResponses\":");
        json_write(out, request->input_responses);
    }
    if (client->modern && request->request_state.len) {
        buf_text(out, ",\"requestState\":");
        json_write_string(out, request->request_state);
    }
}

static void send_call(struct mcp_client *client, struct pending_request *pending)
{
    const struct upstream_request *request = pending->call->request;
    const struct json *params = request->params;
    const char *separator = "";
    struct buf *out = &client->out;
    struct mcp_outgoing outgoing = {.id = pending->id,
                                    .method = request->method ? request->method : "tools/call",
                                    .name = request->target->tool,
                                    .trace = request->trace_context};
    pending_mark_sent(pending);
    mcp_message_open(client, pending->id, outgoing.method);
    if (request->method) {
        struct str name = json_str(json_get_text(params, "name"));
        outgoing.name = name.len ? name : json_str(json_get_text(params, "uri"));
        for (uint32_t i = 0; json_is(params, JSON_OBJECT) && i < params->len; i++) {
            if (str_is(params->members[i].key, "_meta"))
                continue;
            buf_text(out, separator);
            json_write_string(out, params->members[i].key);
            buf_byte(out, ':');
            json_write(out, &params->members[i].value);
            separator = ",";
        }
    } else {
        put_tool_call(client, out, request);
        outgoing.arguments = request->arguments;
        outgoing.schema =
            client->modern ? json_get_text(tool_of(client, pending->call), "inputSchema") : NULL;
    }
    mcp_message_send(client, &outgoing, request->progress ? pending->id : 0);
}

static enum upstream_call_state answer_blocked(struct mcp_client *client, struct upstream_call *call,
                                               const char *why)
{
    call->answer->after_s = 1;
    return answer(client, call, UPSTREAM_UNAVAILABLE, "not_reading", "%s; the call was not sent to it", why);
}

void mcp_call_send_waiting(struct mcp_client *client)
{
    struct pending_request *pending;
    while (client->ready && (pending = TAILQ_FIRST(&client->pending.waiting))) {
        const char *why = mcp_request_blocked(client);
        if (!why) {
            send_call(client, pending);
            continue;
        }
        struct upstream_call *call = mcp_request_end(pending);
        answer_blocked(client, call, why);
        call->finish(call);
    }
}

static void stop_call(struct upstream_call *call)
{
    struct pending_request *pending = call->work;
    struct mcp_client *client = pending->client;
    uint64_t id = pending->sent ? pending->id : 0;
    mcp_request_end(pending);
    if (id)
        mcp_request_abandon(client, id, call->request->caller, "cancelled by the client");
}

enum upstream_call_state mcp_client_call(struct mcp_client *client, struct upstream_call *call)
{
    if (client->stopping || client->state == MCP_DOWN)
        return answer_unavailable(client, call);
    const char *blocked = client->ready ? mcp_request_blocked(client) : NULL;
    if (blocked)
        return answer_blocked(client, call, blocked);
    struct pending_request *pending = pending_add(client);
    if (!pending) {
        call->answer->after_s = 1;
        return answer(client, call, UPSTREAM_UNAVAILABLE, "busy",
                      "has %u pending calls already; this one was not sent to it", MCP_CALLS_MAX);
    }
    uint32_t ms = upstream_call_timeout_ms(call, target_timeout_ms(call->request->target, client->spec));
    uint32_t times = call->request->max_ms ? 1 : MCP_PROGRESS_TIMES;
    pending->call = call;
    pending->on_response = on_response;
    pending->timeout_us = (int64_t)ms * 1000;
    pending->deadline_us = pending->since_us + pending->timeout_us;
    pending->last_deadline_us = pending->since_us + pending->timeout_us * times;
    call->work = pending;
    call->stop = stop_call;
    mcp_client_watch_deadline(client, pending->deadline_us);
    if (client->ready)
        send_call(client, pending);
    else if (client->state == MCP_STOPPED)
        mcp_client_start(client);
    return UPSTREAM_PENDING;
}
