/*
 * tools/call, and the methods that are passed on as they are: written, sent,
 * and ended exactly once. The result is parsed from its own bytes into the
 * call's own memory; anything but a CallToolResult, or an object as the result
 * of another method, ends the call as broken.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"
#include "upstream/mcp/mcp_result_repair.h"

#include <stdarg.h>

#define ELICITATION_CANCELLED "{\"action\":\"cancel\"}"
#define RESULT_NODES          400000u /* JSON values in one result: about 25 MB of memory */

/* Removes the request, whose call gets another end. */
static struct upstream_call *take_call(struct pending_request *pending)
{
    struct upstream_call *call = pending->call;
    if (pending->question.len && pending->client->transport) /* a server that asks does nothing else */
        mcp_request_respond(pending->client, pending->question, "result", STR_LIT(ELICITATION_CANCELLED));
    if (pending->question.len)
        call->request->ask(call->request->listener, NULL);
    call->reply = NULL;
    call->answer->reached = pending->sent;
    call->work = NULL;
    call->stop = NULL;
    pending_remove(pending);
    return call;
}

/* Ends a call without a result. The format as that of upstream_call_refuse. */
__attribute__((format(printf, 4, 5))) static void end_call(struct pending_request *pending,
                                                           enum upstream_outcome outcome, const char *code,
                                                           const char *format, ...)
{
    struct upstream_call *call = take_call(pending);
    va_list args;
    va_start(args, format);
    struct str sentence = arena_vprintf(call->arena, format, args);
    va_end(args);
    if (outcome == UPSTREAM_UNAVAILABLE || strcmp(code, "unreachable") == 0 ||
        strcmp(code, "http_429") == 0) /* too many requests: refused before the tool ran */
        call->answer->reached = false;
    upstream_call_refuse(call, outcome, code, STR_FMT, STR_ARG(sentence));
    call->finish(call);
}

static int64_t restart_after_s(const struct mcp_client *client)
{
    int64_t left = client->next_us - clock_mono_us();
    return left > 0 ? (left + 999999) / 1000000 : 1;
}

static void tell_last_stderr(const struct mcp_client *client, struct upstream_call *call)
{
    struct mcp_client_status status;
    mcp_client_view(client, &status);
    call->answer->last_stderr = arena_dup(call->arena, status.last_stderr);
}

static void quote(struct upstream_call *call, struct str quoted)
{
    call->answer->quoted = arena_dup(call->arena, str_cut(quoted, MCP_QUOTE_MAX_BYTES));
}

void mcp_call_crashed(struct pending_request *pending, const char *why, struct str quoted)
{
    pending->call->answer->after_s = restart_after_s(pending->client);
    if (pending->client->kind->last_stderr)
        tell_last_stderr(pending->client, pending->call);
    else
        quote(pending->call, quoted);
    end_call(pending, UPSTREAM_TRANSIENT, "crashed", "died before it answered (%s)", why);
}

static enum upstream_call_state answer_unavailable(struct mcp_client *client, struct upstream_call *call)
{
    tell_last_stderr(client, call);
    call->answer->after_s = restart_after_s(client);
    return upstream_call_refuse(
        call, UPSTREAM_UNAVAILABLE, "down",
        "is down: it failed %u times in a row. The next try is in %lld s; the call was not sent",
        client->failures, (long long)call->answer->after_s);
}

void mcp_call_unavailable(struct pending_request *pending)
{
    struct mcp_client *client = pending->client;
    struct upstream_call *call = take_call(pending);
    answer_unavailable(client, call);
    call->finish(call);
}

void mcp_call_broken(struct pending_request *pending, const char *code, const char *why)
{
    end_call(pending, UPSTREAM_BROKEN, code, "sent an unusable answer: %s", why);
}

void mcp_call_failed(struct pending_request *pending, const struct mcp_failure *failure)
{
    pending->call->answer->after_s = failure->after_s;
    quote(pending->call, failure->quoted);
    if (failure->quoted.len)
        log_event(LOG_WARN, "upstream_error", LOG_STR("upstream", pending->client->spec->name),
                  LOG_TEXT("code", failure->code), LOG_STR("text", str_cut(failure->quoted, 200)));
    end_call(pending, failure->outcome, failure->code, "gave no usable answer: %s", failure->why);
}

void mcp_call_timed_out(struct pending_request *pending)
{
    long long ms = (clock_mono_us() - pending->since_us) / 1000;
    if (!pending->sent) {
        tell_last_stderr(pending->client, pending->call);
        end_call(pending, UPSTREAM_UNAVAILABLE, "not_up",
                 "did not start within %lld ms; the call was not sent to it", ms);
        return;
    }
    mcp_request_abandon(pending, "timed out");
    end_call(pending, UPSTREAM_TRANSIENT, "timeout", "did not answer within %lld ms; the call was cancelled",
             ms);
}

/* ---- Elicitation: a server asks the user. A modern server answers the call with
 * its questions. A legacy server asks while the call runs. A legacy client that
 * can ask its user does so, and the call goes on; no model can wait for that:
 * the question becomes the answer and the call is cancelled;
 * when the client retries with the user's response, the same question gets it.
 * Responses of earlier rounds travel with the client, in requestState. ---- */
#define FIELDS_MAX         20u /* of a form, described in words */
#define CHOICES_MAX        20u
#define ELICITATIONS_MAX   16u     /* of one call, answered ones included */
#define QUESTION_MAX_BYTES 131072u /* of its params, which stay in the call's memory */
#define FIELD_MAX_BYTES    200u
#define URL_REQUIRED       (-32042)

static void write_choices(struct buf *out, const struct json *choices)
{
    for (uint32_t i = 0; json_is(choices, JSON_ARRAY) && i < choices->len && i < CHOICES_MAX; i++) {
        const struct json *value = json_get_text(&choices->items[i], "const");
        buf_text(out, i ? ", " : ", one of ");
        json_write(out, value ? value : &choices->items[i]);
    }
}

/* size (string, required, one of "s", "m") — which one to send */
static void write_field(struct buf *out, const struct json *schema, const struct json_member *field)
{
    struct str type = str_cut(json_str(json_get_text(&field->value, "type")), FIELD_MAX_BYTES);
    struct str about = str_cut(json_str(json_get_text(&field->value, "description")), FIELD_MAX_BYTES);
    buf_printf(out, "\n- " STR_FMT " (" STR_FMT "%s", STR_ARG(str_cut(field->key, FIELD_MAX_BYTES)),
               STR_ARG(type.len ? type : STR_LIT("any")),
               json_array_has(json_get_text(schema, "required"), field->key) ? ", required" : "");
    write_choices(out, json_get_text(&field->value, "enum"));
    write_choices(out, json_get_text(&field->value, "oneOf"));
    buf_byte(out, ')');
    if (about.len)
        buf_printf(out, " — " STR_FMT, STR_ARG(about));
}

static void write_question(struct buf *out, const struct json *params)
{
    const struct json *schema = json_get_text(params, "requestedSchema");
    const struct json *fields = json_get_text(schema, "properties");
    struct str url = json_str(json_get_text(params, "url"));
    buf_text(out, out->len ? "\n" : "");
    buf_str(out, str_cut(json_str(json_get_text(params, "message")), MCP_QUOTE_MAX_BYTES / 2));
    if (url.len) {
        buf_text(out, "\n- to be opened: ");
        buf_str(out, str_cut(url, MCP_QUOTE_MAX_BYTES / 4));
    }
    for (uint32_t i = 0; json_is(fields, JSON_OBJECT) && i < fields->len && i < FIELDS_MAX; i++)
        write_field(out, schema, &fields->members[i]);
}

static void ask_first(struct pending_request *pending, const struct buf *question, const struct json *input)
{
    struct upstream_answer *answer = pending->call->answer;
    answer->question = str_cut(buf_view(question), MCP_QUOTE_MAX_BYTES);
    answer->input = pending->call->request->can_elicit ? input : NULL;
    end_call(pending, UPSTREAM_INPUT_REQUIRED, "input_required", "has a question for the user first");
}

/* {inputRequests, requestState?} in the arena. */
static const struct json *make_input(struct arena *arena, const struct json *requests,
                                     const struct json *state)
{
    struct json_member members[2] = {json_member(STR_LIT("inputRequests"), *requests)};
    struct json *input = arena_alloc(arena, sizeof(*input));
    if (state)
        members[1] = json_member(STR_LIT("requestState"), *state);
    *input = json_object(arena, members, state ? 2 : 1);
    return input;
}

/* False: there is no elicitation. */
static bool elicitation_from_result(struct pending_request *pending, const struct json *result)
{
    const struct json *requests = json_get_text(result, "inputRequests");
    struct buf question = buf_in(pending->call->arena);
    if (!str_is(json_str(json_get_text(result, "resultType")), "input_required"))
        return false;
    if (!json_is(requests, JSON_OBJECT) || !requests->len) {
        pending->call->answer->after_s = 1;
        end_call(pending, UPSTREAM_TRANSIENT, "come_again", "is busy and asks for a retry");
        return true;
    }
    for (uint32_t i = 0; i < requests->len; i++) {
        const struct json *request = &requests->members[i].value;
        if (!str_is(json_str(json_get_text(request, "method")), "elicitation/create"))
            return false;
        if (question.len < MCP_QUOTE_MAX_BYTES)
            write_question(&question, json_get_text(request, "params"));
    }
    ask_first(pending, &question,
              make_input(pending->call->arena, requests, json_get_text(result, "requestState")));
    return true;
}

/* The user has to open a page before the call can succeed. False: no. */
static bool elicitation_from_error(struct pending_request *pending, const struct json *error)
{
    const struct json *pages = json_get_text(json_get_text(error, "data"), "elicitations");
    struct buf question = buf_in(pending->call->arena);
    int64_t code;
    if (!json_int(json_get_text(error, "code"), &code) || code != URL_REQUIRED ||
        !json_is(pages, JSON_ARRAY) || !pages->len)
        return false;
    for (uint32_t i = 0; i < pages->len && question.len < MCP_QUOTE_MAX_BYTES; i++)
        write_question(&question, &pages->items[i]);
    ask_first(pending, &question, NULL);
    return true;
}

/* A call whose user is being asked ends at its last deadline, which is not that of a tool. */
void mcp_call_set_deadline(struct pending_request *pending)
{
    int64_t left_ms = (pending->last_deadline_us - clock_mono_us()) / 1000 + 1;
    bool waits = pending->question.len != 0;
    pending_end_after(pending, !waits && left_ms > pending->timeout_ms ? pending->timeout_ms
                               : left_ms > 0                           ? (uint32_t)left_ms
                                                                       : 0);
}

static void answer_question(struct upstream_call *call, struct str result)
{
    struct pending_request *pending = call->work;
    mcp_request_respond(pending->client, pending->question, "result", result);
    pending->question = STR_NONE;
    call->reply = NULL;
    mcp_call_set_deadline(pending);
}

static bool ask_now(struct pending_request *pending, struct str id, const struct json *params)
{
    const struct upstream_request *request = pending->call->request;
    if (!request->ask || !request->ask(request->listener, params))
        return false;
    if (pending->elicitations == 1)
        pending->last_deadline_us += (int64_t)UPSTREAM_ASK_MS * 1000;
    pending->question = arena_dup(pending->call->arena, id);
    pending->call->reply = answer_question;
    mcp_call_set_deadline(pending);
    return true;
}

/* The user's: those of earlier rounds, which travel in requestState, and those of this one. */
static struct json responses_of(struct arena *arena, const struct upstream_request *request)
{
    struct json before;
    if (!request->request_state.len || json_parse(arena, request->request_state, NULL, &before, NULL) != OK)
        before = json_null();
    return json_merge(arena, &before, request->input_responses);
}

void mcp_elicitation_request(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    static const struct str without[] = {STR("_meta")};
    struct pending_request *pending = pending_subject(client, about);
    struct json_error error;
    struct json params;
    if (!pending || pending->question.len || ++pending->elicitations > ELICITATIONS_MAX) {
        mcp_client_ignore(client,
                          "an elicitation for no call, for one of several, beside another, or one too many",
                          STR_NONE);
        mcp_request_respond(client, message->id, "result", STR_LIT(ELICITATION_CANCELLED));
        return;
    }
    struct arena *arena = pending->call->arena;
    bool read = message->params.len <= QUESTION_MAX_BYTES &&
                mcp_request_read(client, arena, arena_dup(arena, message->params), &params, &error);
    if (!read || !str_trim(json_str(json_get_text(&params, "message"))).len) {
        mcp_request_respond(client, message->id, "error",
                            read ? STR_LIT("{\"code\":-32602,\"message\":\"Invalid params: expected a "
                                           "question to the user in `message`\"}")
                                 : STR_LIT("{\"code\":-32602,\"message\":\"Invalid params: no valid JSON "
                                           "of at most 128 KiB\"}"));
        return;
    }
    if (ask_now(pending, message->id, &params))
        return;
    struct buf name = buf_in(arena); /* equal questions have equal names, in every round */
    buf_text(&name, "question-");
    buf_hex64(&name, json_fingerprint(arena, &params, without, 1).low);
    struct json responses = responses_of(arena, pending->call->request);
    const struct json *response = json_get(&responses, buf_view(&name));
    if (response && json_str(json_get_text(response, "action")).len) {
        mcp_request_respond(client, message->id, "result", json_to_str(arena, response));
        return;
    }
    mcp_request_respond(client, message->id, "result", STR_LIT(ELICITATION_CANCELLED));
    struct buf question = buf_in(arena);
    write_question(&question, &params);
    const struct json_member asked[2] = {
        json_member(STR_LIT("method"), json_string(STR_LIT("elicitation/create"))),
        json_member(STR_LIT("params"), params)};
    const struct json_member named = json_member(buf_view(&name), json_object(arena, asked, 2));
    struct json requests = json_object(arena, &named, 1);
    struct json state = json_string(json_to_str(arena, &responses));
    const struct json *input = make_input(arena, &requests, responses.len ? &state : NULL);
    mcp_request_cancel(client, pending->id, "the user is asked first");
    ask_first(pending, &question, input);
}

/* ---- results and errors ---- */

/* One line for the operator a repair: the server needs the fix, the model has its data. */
static void log_repair(struct pending_request *pending, const char *what)
{
    uint64_t held;
    if (what && rate_limit_allow(&pending->client->ignored_rate, MCP_IGNORED_PER_S, &held))
        log_event(LOG_WARN, "upstream_result_repaired", LOG_STR("upstream", pending->client->spec->name),
                  LOG_STR("tool", pending->call->request->target->tool), LOG_TEXT("why", what),
                  LOG_NUM("not_logged", held));
}

static void take_result(struct pending_request *pending, struct str text)
{
    static const struct json_limits limits = {.nodes = RESULT_NODES};
    struct upstream_call *call = pending->call;
    struct json *result = arena_alloc(call->arena, sizeof(*result));
    const struct json *usable;
    struct json_error error;
    const char *what;
    enum err err =
        json_parse_repaired(call->arena, arena_dup(call->arena, text), &limits, result, &error, &what);
    if (err) {
        mcp_call_broken(pending, err == ERR_LIMIT ? "result_too_large" : "invalid_json", error.text);
        return;
    }
    log_repair(pending, what);
    const struct json *type = json_get_text(result, "resultType");
    bool complete = !type || str_is(json_str(type), "complete");
    if (!complete && elicitation_from_result(pending, result))
        return;
    const char *problem = "its `resultType` is unknown";
    if (complete && call->request->method)
        problem = json_is(result, JSON_OBJECT) ? NULL : "the result is no object";
    else if (complete)
        problem = json_get_text(result, "task") && !json_get_text(result, "content")
                      ? "it began a task, although the call did not ask for one"
                      : NULL;
    if (problem) {
        mcp_call_broken(pending, "no_tool_result", problem);
        return;
    }
    usable = call->request->method ? mcp_result_without_nulls(call->arena, result, &what)
                                   : mcp_result_repair(call->arena, result, &what);
    log_repair(pending, what);
    take_call(pending);
    call->answer->outcome = UPSTREAM_RESULT;
    call->answer->result = usable;
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

static struct str redact_text(const void *client, struct arena *arena, struct str text)
{
    return mcp_client_redact(client, arena, text);
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
    if (!mcp_request_read(client, call->arena, arena_dup(call->arena, text), &error, &parse_error)) {
        mcp_call_broken(pending, "invalid_json", parse_error.text);
        return;
    }
    if (elicitation_from_error(pending, &error))
        return;
    json_int(json_get_text(&error, "code"), &code);
    const struct json *shown =
        json_map_strings(call->arena, json_keep(call->arena, error), redact_text, client);
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
    call->answer->rpc_code = code;
    if (call->request->method) /* whose errors are the client's to read */
        i = sizeof(known) / sizeof(*known) - 1;
    call->answer->rpc_error = shown;
    call->answer->quoted = json_str(shown->type == JSON_STRING ? shown : json_get_text(shown, "message"));
    end_call(pending, UPSTREAM_REFUSED, known[i].name, "%s (JSON-RPC error %lld)", known[i].sentence,
             (long long)code);
}

static void on_response(struct pending_request *pending, const struct mcp_message *message)
{
    if (message->error.len)
        take_error(pending, message->error);
    else
        take_result(pending, message->result);
}

static void send_call(struct mcp_client *client, struct pending_request *pending)
{
    static const struct json no_arguments = {.type = JSON_OBJECT};
    const struct upstream_request *request = pending->call->request;
    const struct json *params = request->params;
    struct mcp_outgoing outgoing = {.id = pending->id,
                                    .method = request->method ? request->method : "tools/call",
                                    .name = request->target->tool,
                                    .trace = request->trace_context,
                                    .meta = client->spec->forward_meta ? request->meta : STR_NONE};
    pending_mark_sent(pending);
    struct json_out out = mcp_message_open(client, pending->id, outgoing.method);
    if (request->method) {
        struct str name = json_str(json_get_text(params, "name"));
        outgoing.name = name.len ? name : json_str(json_get_text(params, "uri"));
        for (uint32_t i = 0; json_is(params, JSON_OBJECT) && i < params->len; i++)
            if (!str_is(params->members[i].key, "_meta")) {
                json_key_str(&out, params->members[i].key);
                json_put(&out, &params->members[i].value);
            }
    } else {
        json_field_str(&out, "name", request->target->tool);
        json_field(&out, "arguments", request->arguments ? request->arguments : &no_arguments);
        json_field_optional(&out, "inputResponses", client->modern ? request->input_responses : NULL);
        json_field_optional_str(&out, "requestState", client->modern ? request->request_state : STR_NONE);
        outgoing.arguments = request->arguments;
        outgoing.schema =
            client->modern ? json_get_text(tool_of(client, pending->call), "inputSchema") : NULL;
    }
    mcp_message_send(client, &out, &outgoing, request->progress ? pending->id : 0);
}

#define NOT_READING "%s; the call was not sent to it"

void mcp_call_send_waiting(struct mcp_client *client)
{
    struct pending_request *pending;
    while (client->ready && (pending = TAILQ_FIRST(&client->pending.waiting))) {
        const char *why = mcp_request_blocked(client);
        if (!why) {
            send_call(client, pending);
            continue;
        }
        pending->call->answer->after_s = 1;
        end_call(pending, UPSTREAM_UNAVAILABLE, "not_reading", NOT_READING, why);
    }
}

static void stop_call(struct upstream_call *call)
{
    struct pending_request *pending = call->work;
    if (pending->sent)
        mcp_request_abandon(pending, "cancelled by the client");
    take_call(pending);
}

enum upstream_call_state mcp_client_call(struct mcp_client *client, struct upstream_call *call)
{
    if (client->state == MCP_DOWN)
        return answer_unavailable(client, call);
    const char *blocked = client->ready ? mcp_request_blocked(client) : NULL;
    call->answer->after_s = 1;
    if (blocked)
        return upstream_call_refuse(call, UPSTREAM_UNAVAILABLE, "not_reading", NOT_READING, blocked);
    if (client->pending.count >= MCP_CALLS_MAX)
        return upstream_call_refuse(call, UPSTREAM_UNAVAILABLE, "busy",
                                    "has %u pending calls already; this one was not sent to it",
                                    MCP_CALLS_MAX);
    call->answer->after_s = -1;
    uint32_t ms = upstream_call_timeout_ms(call);
    uint32_t times = call->request->max_ms ? 1 : MCP_PROGRESS_TIMES;
    struct pending_request *pending = pending_add(client);
    pending->call = call;
    pending->on_response = on_response;
    pending->timeout_ms = ms;
    pending->last_deadline_us = pending->since_us + (int64_t)ms * 1000 * times;
    call->work = pending;
    call->stop = stop_call;
    pending_end_after(pending, ms);
    if (client->ready)
        send_call(client, pending);
    else if (client->state == MCP_STOPPED)
        mcp_client_start(client);
    return UPSTREAM_PENDING;
}
