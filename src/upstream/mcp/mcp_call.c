/*
 * Calls: written, sent, and ended once, however it goes. The result of a call
 * is parsed from its own bytes into the call's own memory; a server that
 * answers something else has answered nothing.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#define RESULT_NODES 400000u /* JSON values in one result: about 25 MB of memory */

#define WHO       "the server '" STR_FMT "', which runs this tool, "
#define NAME(mcp) STR_ARG((mcp)->spec->name)

/* ---- the end of one ---------------------------------------------------------- */

struct upstream_call *mcp_call_end(struct mcp_client *mcp, struct pending *pending)
{
    struct upstream_call *run = pending->run;
    run->answer->reached = pending->sent;
    run->answer->after_s = -1;
    run->work = NULL;
    run->stop = NULL;
    pending_remove(&mcp->pendings, pending);
    if (mcp->stopping)
        mcp_client_schedule(mcp);
    return run;
}

static int64_t seconds_until(int64_t us)
{
    int64_t left = us - clock_mono_us();
    return left > 0 ? (left + 999999) / 1000000 : 1;
}

void mcp_call_died(struct mcp_client *mcp, struct pending *pending, const char *why, struct str quoted)
{
    struct upstream_call *run = mcp_call_end(mcp, pending);
    run->answer->after_s = mcp->stopping ? -1 : seconds_until(mcp->next_us);
    run->answer->quoted = arena_dup(run->arena, str_cut(quoted, MCP_QUOTE_MAX_BYTES));
    upstream_call_answer(run, UPSTREAM_TRANSIENT, "crashed", WHO "died before it answered (%s)", NAME(mcp),
                         why);
    upstream_call_finish(run);
}

/* Why it is down is for people, in log and status: to a model its last words say nothing that helps. */
static void say_unavailable(struct mcp_client *mcp, struct upstream_call *run)
{
    run->answer->reached = false;
    run->answer->after_s = mcp->stopping ? -1 : seconds_until(mcp->next_us);
    if (mcp->stopping)
        upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "stopping",
                             WHO "is being ended; the call was not sent to it", NAME(mcp));
    else
        upstream_call_answer(
            run, UPSTREAM_UNAVAILABLE, "down",
            WHO "is down: it failed %u times in a row. It is tried again in %lld s; the call was not "
                "sent to it",
            NAME(mcp), mcp->failures, (long long)run->answer->after_s);
}

void mcp_call_unavailable(struct mcp_client *mcp, struct pending *pending)
{
    struct upstream_call *run = mcp_call_end(mcp, pending);
    say_unavailable(mcp, run);
    upstream_call_finish(run);
}

void mcp_call_broken(struct mcp_client *mcp, struct pending *pending, const char *code, const char *detail)
{
    struct upstream_call *run = mcp_call_end(mcp, pending);
    upstream_call_answer(run, UPSTREAM_BROKEN, code, WHO "answered with what cannot be used: %s", NAME(mcp),
                         detail);
    upstream_call_finish(run);
}

void mcp_call_failed(struct mcp_client *mcp, struct pending *pending, enum upstream_outcome how,
                     const char *code, const char *why, struct str quoted, int64_t after_s)
{
    struct upstream_call *run = mcp_call_end(mcp, pending);
    run->answer->after_s = after_s;
    run->answer->quoted = arena_dup(run->arena, str_cut(quoted, MCP_QUOTE_MAX_BYTES));
    if (quoted.len)
        log_event(LOG_WARN, "upstream_error", LOG_STR("upstream", mcp->spec->name), LOG_TEXT("code", code),
                  LOG_STR("text", str_cut(quoted, 200)));
    run->answer->reached = how != UPSTREAM_UNAVAILABLE && strcmp(code, "unreachable") != 0;
    upstream_call_answer(run, how, code, WHO "gave no usable answer: %s", NAME(mcp), why);
    upstream_call_finish(run);
}

void mcp_call_notify_cancelled(struct mcp_client *mcp, uint64_t id, const char *reason)
{
    if (!mcp->open)
        return;
    mcp_client_begin_message(mcp, 0, "notifications/cancelled");
    buf_text(&mcp->out, "\"requestId\":");
    buf_int(&mcp->out, (int64_t)id);
    buf_text(&mcp->out, ",\"reason\":\"");
    buf_text(&mcp->out, reason);
    buf_byte(&mcp->out, '"');
    if (mcp->modern) {
        buf_byte(&mcp->out, ',');
        mcp_client_write_meta(mcp, 0);
    }
    buf_text(&mcp->out, "}}");
    mcp_client_send(mcp, 0, "notifications/cancelled", STR_NONE);
    mcp->kind->forget(mcp->transport, id);
}

void mcp_call_timed_out(struct mcp_client *mcp, struct pending *pending)
{
    bool sent = pending->sent;
    uint64_t id = pending->id;
    long long ms = (clock_mono_us() - pending->since_us) / 1000;
    struct upstream_call *run = mcp_call_end(mcp, pending);
    if (sent) {
        abandoned_calls_add(&mcp->abandoned_calls, id, run->request->caller, clock_mono_us());
        mcp_call_notify_cancelled(mcp, id, "timed out");
        upstream_call_answer(run, UPSTREAM_TRANSIENT, "timeout",
                             WHO "did not answer within %lld ms and was told to stop", NAME(mcp), ms);
    } else {
        upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "not_up",
                             WHO "did not come up within %lld ms; the call was not sent to it", NAME(mcp),
                             ms);
    }
    upstream_call_finish(run);
}

/* ---- its answer ------------------------------------------------------------------ */

static bool is_block(const struct json *block)
{
    return json_str(json_get_text(block, "type")).len > 0;
}

/* NULL: it is a CallToolResult; else what is missing. */
static const char *what_is_wrong(const struct json *result)
{
    if (!json_is(result, JSON_OBJECT))
        return "the result is no object";
    const struct json *content = json_get_text(result, "content");
    if (!content && json_get_text(result, "task"))
        return "it began a task instead of answering, which was not asked of it";
    if (!content && !json_get_text(result, "structuredContent"))
        return "the result has neither `content` nor `structuredContent`";
    if (content && !json_is(content, JSON_ARRAY))
        return "`content` of the result is no array";
    for (uint32_t i = 0; content && i < content->len; i++)
        if (!is_block(&content->items[i]))
            return "an item of the result's `content` is no block with a `type`";
    return NULL;
}

static bool is_complete(const struct json *result)
{
    const struct json *type = json_get_text(result, "resultType");
    return !type || str_is(json_str(type), "complete");
}

static void hear_result(struct mcp_client *mcp, struct pending *pending, struct str text)
{
    static const struct json_limits limits = {.nodes = RESULT_NODES};
    struct upstream_call *run = pending->run;
    struct json *result = arena_alloc(run->arena, sizeof(*result));
    struct json_error fault;
    enum err err = json_parse(run->arena, arena_dup(run->arena, text), &limits, result, &fault);
    if (err != OK && !fault.soft) {
        bool large = err == ERR_LIMIT;
        mcp_call_broken(mcp, pending, large ? "result_too_large" : "invalid_json", fault.text);
        return;
    }
    if (!is_complete(result) && mcp_elicitation_from_result(mcp, pending, result))
        return;
    const char *wrong = is_complete(result) ? what_is_wrong(result) : "its `resultType` is unknown";
    if (wrong) {
        mcp_call_broken(mcp, pending, "no_tool_result", wrong);
        return;
    }
    mcp_call_end(mcp, pending);
    run->answer->outcome = UPSTREAM_RESULT;
    run->answer->result = result;
    upstream_call_finish(run);
}

/* A tool that runs as a task only says "method not found" to a plain call. */
static bool wants_task(struct mcp_client *mcp, struct str name)
{
    const struct json *tools = mcp->offer ? tool_list_array(mcp->offer) : NULL;
    for (uint32_t i = 0; tools && i < tools->len; i++)
        if (str_eq(json_str(json_get_text(&tools->items[i], "name")), name)) {
            const struct json *execution = json_get_text(&tools->items[i], "execution");
            return str_is(json_str(json_get_text(execution, "taskSupport")), "required");
        }
    return false;
}

static bool says_unknown_tool(struct str message)
{
    static const char *const words[] = {"unknown tool", "no such tool", "tool not found",
                                        "not found",    "unknown name", "does not exist"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (str_contains_nocase(message, str_of(words[i])))
            return str_contains_nocase(message, STR_LIT("tool"));
    return false;
}

struct refusal {
    int64_t code;
    const char *name, *words;
};

static const struct refusal *refusal_of(struct mcp_client *mcp, const struct upstream_call *run, int64_t code,
                                        struct str message)
{
    static const struct refusal known[] = {
        {-32602, "unknown_tool", "does not know this tool (any more)"},
        {-32602, "invalid_params", "says that the arguments are not valid"},
        {-32601, "task_only", "runs this tool as a task only, which the gateway does not ask for"},
        {-32601, "method_not_found", "says that it has no such method"},
        {-32603, "internal_error", "says that it failed inside"},
        {0, "rpc_error", "answered with an error"},
    };
    bool told_apart = code == -32602   ? says_unknown_tool(message)
                      : code == -32601 ? wants_task(mcp, run->request->target->tool)
                                       : true;
    size_t i = 0;
    while (known[i].code && known[i].code != code)
        i++;
    return &known[told_apart ? i : i + 1];
}

static void hear_error(struct mcp_client *mcp, struct pending *pending, struct str text)
{
    struct upstream_call *run = pending->run;
    struct json_error fault;
    struct json error;
    int64_t code = 0;
    if (json_parse(run->arena, arena_dup(run->arena, text), NULL, &error, &fault) != OK && !fault.soft) {
        mcp_call_broken(mcp, pending, "invalid_json", fault.text);
        return;
    }
    if (mcp_elicitation_from_error(mcp, pending, &error))
        return;
    json_int(json_get_text(&error, "code"), &code);
    struct str message = json_str(error.type == JSON_STRING ? &error : json_get_text(&error, "message"));
    const struct refusal *refusal = refusal_of(mcp, run, code, message);
    mcp_call_end(mcp, pending);
    run->answer->quoted = str_cut(mcp_client_redact(mcp, run->arena, message), MCP_QUOTE_MAX_BYTES);
    upstream_call_answer(run, UPSTREAM_REFUSED, refusal->name, WHO "%s (JSON-RPC error %lld)", NAME(mcp),
                         refusal->words, (long long)code);
    upstream_call_finish(run);
}

static void hear_call(struct mcp_client *mcp, struct pending *pending, const struct mcp_message *line)
{
    if (line->error.len)
        hear_error(mcp, pending, line->error);
    else
        hear_result(mcp, pending, line->result);
}

/* ---- the beginning of one ---------------------------------------------------------- */

static void write_call(struct mcp_client *mcp, const struct pending *pending)
{
    const struct upstream_request *request = pending->run->request;
    struct buf *out = &mcp->out;
    uint64_t token = request->progress ? pending->id : 0;
    mcp_client_begin_message(mcp, pending->id, "tools/call");
    buf_text(out, "\"name\":");
    json_write_string(out, request->target->tool);
    buf_text(out, ",\"arguments\":");
    if (request->arguments)
        json_write(out, request->arguments);
    else
        buf_text(out, "{}");
    if (mcp->modern && request->input_responses) {
        buf_text(out, ",\"inputResponses\":");
        json_write(out, request->input_responses);
    }
    if (mcp->modern && request->request_state.len) {
        buf_text(out, ",\"requestState\":");
        json_write_string(out, request->request_state);
    }
    if (mcp_client_has_meta(mcp, token)) {
        buf_byte(out, ',');
        mcp_client_write_meta(mcp, token);
    }
    buf_text(out, "}}");
}

static void send_call(struct mcp_client *mcp, struct pending *pending)
{
    pending_send(&mcp->pendings, pending);
    write_call(mcp, pending);
    mcp_client_send(mcp, pending->id, "tools/call", pending->run->request->target->tool);
}

const char *mcp_call_blocked(const struct mcp_client *mcp)
{
    return mcp->kind->full ? mcp->kind->full(mcp->transport) : NULL;
}

static void say_full(struct mcp_client *mcp, struct upstream_call *run, const char *why)
{
    run->answer->reached = false;
    run->answer->after_s = 1;
    upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "not_reading", WHO "%s; the call was not sent to it",
                         NAME(mcp), why);
}

void mcp_call_send_waiting(struct mcp_client *mcp)
{
    struct pending *pending;
    while (mcp->ready && (pending = mcp->pendings.waiting.first)) {
        const char *why = mcp_call_blocked(mcp);
        if (!why) {
            send_call(mcp, pending);
            continue;
        }
        struct upstream_call *run = mcp_call_end(mcp, pending);
        say_full(mcp, run, why);
        upstream_call_finish(run);
    }
}

/* Nobody waits any more. */
static void stop_call(struct upstream_call *run)
{
    struct pending *pending = run->work;
    struct mcp_client *mcp = pending->mcp;
    uint64_t id = pending->sent ? pending->id : 0;
    mcp_call_end(mcp, pending);
    if (!id)
        return;
    abandoned_calls_add(&mcp->abandoned_calls, id, run->request->caller, clock_mono_us());
    mcp_call_notify_cancelled(mcp, id, "nobody waits for it any more");
}

static void add_call(struct mcp_client *mcp, struct pending *pending, struct upstream_call *run)
{
    uint32_t ms = upstream_call_timeout_ms(run, target_timeout_ms(run->request->target, mcp->spec));
    uint32_t times = run->request->max_ms ? 1 : MCP_PROGRESS_TIMES;
    pending->run = run;
    pending->mcp = mcp;
    pending->heard = hear_call;
    pending->since_us = clock_mono_us();
    pending->deadline_us = pending->since_us + (int64_t)ms * 1000;
    pending->time_us = (int64_t)ms * 1000;
    pending->last_us = pending->since_us + pending->time_us * times;
    run->work = pending;
    run->stop = stop_call;
    mcp_client_watch_deadline(mcp, pending->deadline_us);
}

static enum upstream_call_state say_too_many(struct mcp_client *mcp, struct upstream_call *run)
{
    run->answer->reached = false;
    run->answer->after_s = 1;
    upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "busy",
                         WHO "has %u calls to answer already; this one was not sent to it", NAME(mcp),
                         MCP_CALLS_MAX);
    return UPSTREAM_DONE;
}

enum upstream_call_state mcp_client_call(struct mcp_client *mcp, struct upstream_call *run)
{
    const char *full = mcp->ready ? mcp_call_blocked(mcp) : NULL;
    if (mcp->stopping || mcp->state == MCP_DOWN) {
        say_unavailable(mcp, run);
        return UPSTREAM_DONE;
    }
    if (full) {
        say_full(mcp, run, full);
        return UPSTREAM_DONE;
    }
    struct pending *pending = pending_add(&mcp->pendings);
    if (!pending)
        return say_too_many(mcp, run);
    add_call(mcp, pending, run);
    if (mcp->ready)
        send_call(mcp, pending);
    else if (mcp->state == MCP_STOPPED)
        mcp_client_start(mcp);
    return UPSTREAM_PENDING;
}
