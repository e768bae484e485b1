/*
 * tools/call, toolgate/check and toolgate/report: params to a call_request,
 * and a finished call to the reply of its method. What is decided about a
 * call is decided in gate/; here it is only said.
 */
#include "base/arena.h"
#include "gate/call_reply.h"
#include "gate/verdict.h"
#include "server/elicitation.h"
#include "server/mcp_keys.h"
#include "server/method_table.h"
#include "server/subscriptions.h"

#include <math.h>

#define CALL_ID_DIGITS       16u
#define CALLS_LOG_MAX        100u  /* notifications/message of one call; what a tool says beyond is dropped */
#define CALLS_TEXT_MAX_BYTES 4096u /* of one of them, or of one notifications/progress */

/* ---- from params ---------------------------------------------------------- */

/* A label may be a number: models count their steps. */
static struct str label_of(const struct json *value)
{
    return json_is(value, JSON_NUMBER) ? (struct str){value->text, value->len} : json_str(value);
}

static enum err read_meta(struct request *r, struct call_request *c)
{
    static const char where[] = "params._meta.";
    c->step = label_of(json_get_text(r->meta, GATE_STEP_KEY));
    c->label = label_of(json_get_text(r->meta, GATE_CALL_KEY));
    c->ext = label_of(json_get_text(r->meta, GATE_EXT_KEY));
    enum err err = param_session(r, &c->session);
    if (!err)
        err = param_string(r, r->meta, where, GATE_GOAL_KEY, &c->goal);
    if (!err)
        err = param_count(r, r->meta, where, GATE_TURN_KEY, &c->turn);
    return err;
}

static enum err read_tool(struct request *r, struct call_request *c)
{
    const struct json *name = json_get_text(r->params, "name"), *args = json_get_text(r->params, "arguments");
    if (!json_is(name, JSON_STRING)) {
        reply_error(r, RPC_INVALID_PARAMS, "params.name: expected a string, the tool's name, got %s",
                    param_kind(name));
        return ERR_PARSE;
    }
    c->tool = json_str(name);
    c->arguments = json_is(args, JSON_NULL) ? NULL : args; /* some clients write null for none */
    c->arguments_fault = r->fault;
    return OK;
}

static enum err read_call(struct request *r, enum call_mode mode, struct call_request *c)
{
    struct client *client = r->client;
    *c = (struct call_request){
        .mode = mode,
        .connection = str_of(client->name),
        .peer = &client->peer,
        .client_tools = client->client_tools,
    };
    enum err err = read_tool(r, c);
    return err ? err : read_meta(r, c);
}

static bool is_call_id(struct str id)
{
    for (size_t i = 0; i < id.len; i++)
        if (!strchr("0123456789abcdefABCDEF", id.at[i]))
            return false;
    return id.len == CALL_ID_DIGITS;
}

static enum err refuse(struct request *r, const char *message)
{
    reply_error(r, RPC_INVALID_PARAMS, "%s", message);
    return ERR_PARSE;
}

/* {callId?, name, arguments, result} or {callId?, name, arguments, error:{message, transient?}} */
static enum err read_report(struct request *r, struct call_request *c)
{
    const struct json *id = json_get_text(r->params, "callId"), *error = json_get_text(r->params, "error");
    const struct json *message = json_get_text(error, "message"),
                      *transient = json_get_text(error, "transient");
    c->result = json_get_text(r->params, "result");
    c->call_id = json_str(id);
    if (id && !json_is(id, JSON_NULL) && !is_call_id(c->call_id))
        return refuse(r, "params.callId: expected the 16 hex digits that toolgate/check gave, or nothing");
    if (!c->result == !error)
        return refuse(r,
                      "params: expected either result (what the tool gave) or error {message, transient?}");
    if (error && (!json_is(message, JSON_STRING) || (transient && !json_is(transient, JSON_BOOL))))
        return refuse(r, "params.error: expected an object {\"message\":\"…\",\"transient\":false}");
    c->has_error = error != NULL;
    c->error_message = json_str(message);
    c->error_transient = json_is_true(transient);
    c->error_transient_given = transient != NULL;
    return OK;
}

/* ---- to replies ----------------------------------------------------------- */

static struct str verdict_text(struct request *r, const struct verdict *verdict)
{
    struct buf text = buf_in(r->arena);
    verdict_write(&text, verdict);
    return buf_view(&text);
}

static bool is_ours(struct str key)
{
    return str_is(key, GATE_VERDICT_KEY) || str_is(key, GATE_FINAL_KEY) || str_is(key, MCP_SERVER_KEY);
}

static void put_members(struct json_out *out, const struct json *metadata)
{
    for (uint32_t i = 0; i < metadata->len; i++)
        if (!is_ours(metadata->members[i].key)) {
            json_key_str(out, metadata->members[i].key);
            json_put(out, &metadata->members[i].value);
        }
}

/* The tool's own metadata, and beside it what nobody else may write. */
static void put_meta(struct request *r, const struct verdict *verdict, const struct json *metadata)
{
    struct json_out *out = reply_meta(r);
    if (metadata && metadata->type == JSON_OBJECT)
        put_members(out, metadata);
    json_field_raw(out, GATE_VERDICT_KEY, verdict_text(r, verdict));
    if (verdict->final) {
        json_field_bool(out, GATE_FINAL_KEY, true);
    }
    json_close(out, '}');
}

/* Clients of the legacy era take an object only, and would drop all for anything else; the content says it,
 * too. */
static bool shows_structured(const struct request *r, const struct call *call)
{
    const struct json *structured = call_structured(call);
    return structured && (r->modern || structured->type == JSON_OBJECT);
}

/* Clients treat structuredContent on an error each in its own way, so there is none. */
static void put_result(struct request *r, const struct call *call)
{
    const struct verdict *verdict = call_verdict(call);
    struct json_out *out = reply_open(r);
    call_reply_content(out, call);
    if (error_class_info(verdict->class)->is_error) {
        json_field_bool(out, "isError", true);
    } else if (shows_structured(r, call)) {
        json_field(out, "structuredContent", call_structured(call));
    }
    put_meta(r, verdict, call_metadata(call));
}

static void say_too_large(struct request *r, struct verdict *verdict)
{
    verdict->code = r->unread ? STR_LIT("answers_unread") : STR_LIT("result_too_large");
    verdict->detail =
        r->unread
            ? arena_printf(r->arena,
                           "The tool ran, but %zu bytes of earlier answers on this connection are still "
                           "unread, so its result is not sent.",
                           r->unread)
            : arena_printf(r->arena,
                           "The tool ran, but its result is longer than %u bytes, the most that fits "
                           "one message, so it cannot be shown.",
                           SERVER_LINE_MAX_BYTES);
    verdict->hint = r->unread ? STR_LIT("Make fewer calls at a time, and ask for less.")
                              : STR_LIT("Ask for less: fewer items, a page, a narrower range.");
}

/* The tool has run and said more than a client can take: the model must learn of it, and ask for less. */
static enum request_status put_too_large(struct request *r, const struct verdict *given)
{
    struct verdict verdict = *given;
    verdict.class = CLASS_TOOL_ERROR;
    verdict.kind = error_class_info(CLASS_TOOL_ERROR)->verdict;
    say_too_large(r, &verdict);
    verdict.facts = verdict.follow_up = verdict.next_args = NULL;
    struct str text =
        arena_printf(r->arena, STR_FMT "\n" STR_FMT, STR_ARG(verdict.detail), STR_ARG(verdict.hint));
    struct json_out *out = reply_open(r);
    json_field_open(out, "content", '[');
    call_reply_text_block(out, text);
    json_close(out, ']');
    json_field_bool(out, "isError", true);
    put_meta(r, &verdict, NULL);
    return reply_close(r);
}

/* The client asks its user and calls again with the answer. */
static void put_input(struct request *r, const struct json *input)
{
    static const char *const keys[] = {"inputRequests", "requestState"};
    struct json_out *out = reply_open_as(r, "input_required");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (json_get_text(input, keys[i])) {
            json_field(out, keys[i], json_get_text(input, keys[i]));
        }
    put_meta(r, call_verdict(r->call), NULL);
}

static enum request_status tell_run(struct request *r)
{
    const struct json *input = elicitation_requested(r);
    if (input)
        put_input(r, input);
    else
        put_result(r, r->call);
    return reply_fits(r) ? REQUEST_DONE : put_too_large(r, call_verdict(r->call));
}

static enum request_status tell_check(struct request *r)
{
    struct json_out *out = reply_open(r);
    reply_members(r, verdict_text(r, call_verdict(r->call)));
    call_reply_check(out, r->call, json_is_true(json_get_text(r->meta, GATE_TRACE_KEY)));
    return reply_close(r);
}

static enum request_status tell_report(struct request *r)
{
    struct json_out *out = reply_open(r);
    reply_members(r, verdict_text(r, call_verdict(r->call)));
    call_reply_report(out, r->call);
    return reply_close(r);
}

/* ---- between -------------------------------------------------------------- */

/* A session that has just become stuck is shown more than before. */
static void tell_widened(struct request *r)
{
    struct generation *generation = r->client->server->gate.generation;
    if (call_verdict(r->call)->no_progress == VERDICT_NO_PROGRESS &&
        policy_set_has_gateway(generation_policies(generation)))
        subscriptions_client_list_changed(r->client);
}

static enum request_status answer(struct request *r)
{
    enum request_status status = r->answer(r);
    tell_widened(r);
    call_free(r->call);
    return status;
}

static void on_done(void *owner, struct call *call)
{
    struct request *r = owner;
    (void)call;
    answer(r);
    request_done(r);
}

static void cancel(struct request *r)
{
    call_cancel(r->call);
    call_free(r->call);
}

/* Who does not read what was sent has no use for more of it. */
static bool is_behind(const struct request *r)
{
    return conn_out(r->client->conn)->len > CONN_OUT_HIGH_BYTES;
}

/* Strictly increasing, as the protocol demands: a step back is not told. A tool may tell of itself for as
 * long as it runs, so nothing of it stays in the request's memory. */
static void on_progress(void *owner, double progress, double total, struct str message)
{
    struct request *r = owner;
    if (!isfinite(progress) || progress <= r->progress || is_behind(r))
        return;
    r->progress = progress;
    struct buf params = {0};
    struct json_out out = json_out(&params);
    json_open(&out, '{');
    json_field(&out, "progressToken", json_get_text(r->meta, "progressToken"));
    json_key(&out, "progress");
    json_put_double(&out, progress);
    if (isfinite(total) && total > 0) {
        json_key(&out, "total");
        json_put_double(&out, total);
    }
    if (message.len) {
        json_field_str(&out, "message", str_cut(message, CALLS_TEXT_MAX_BYTES));
    }
    json_close(&out, '}');
    client_notify(r->client, "notifications/progress", buf_view(&params));
    buf_clear(&params);
}

static bool wants_progress(const struct request *r)
{
    const struct json *token = json_get_text(r->meta, "progressToken");
    return json_is(token, JSON_STRING) || json_is(token, JSON_NUMBER);
}

/* What a tool says while it runs, for the agent's program. */
static void on_log(void *owner, struct str level, struct str text)
{
    struct request *r = owner;
    if (!mcp_wants_log(r, level) || r->log_count++ >= CALLS_LOG_MAX)
        return;
    struct buf params = {0};
    struct json_out out = json_out(&params);
    json_open(&out, '{');
    json_field_str(&out, "level", level);
    json_field_str(&out, "logger", call_tool(r->call)->name);
    json_field_str(&out, "data", str_cut(text, CALLS_TEXT_MAX_BYTES));
    json_close(&out, '}');
    client_notify(r->client, "notifications/message", buf_view(&params));
    buf_clear(&params);
}

static enum request_status start(struct request *r, const struct call_request *request,
                                 enum request_status (*answer_as)(struct request *r))
{
    r->answer = answer_as;
    r->call = call_new(&r->client->server->gate, r->arena, request);
    r->progress = -INFINITY;
    r->cancel = cancel;
    if (wants_progress(r))
        call_on_progress(r->call, on_progress, r);
    call_on_log(r->call, on_log, r);
    return call_start(r->call, on_done, r) ? answer(r) : REQUEST_PENDING;
}

enum request_status call_methods_call(struct request *r)
{
    struct call_request request;
    if (read_call(r, CALL_RUN, &request) || elicitation_read(r, &request))
        return REQUEST_DONE;
    return start(r, &request, tell_run);
}

/* A trace without a session is a person's question: it is counted nowhere. */
enum request_status call_methods_check(struct request *r)
{
    struct call_request request;
    if (read_call(r, CALL_CHECK, &request))
        return REQUEST_DONE;
    request.trace = json_is_true(json_get_text(r->meta, GATE_TRACE_KEY));
    request.dry_run = request.trace && !request.session.len;
    return start(r, &request, tell_check);
}

enum request_status call_methods_report(struct request *r)
{
    struct call_request request;
    if (read_call(r, CALL_REPORT, &request) || read_report(r, &request))
        return REQUEST_DONE;
    return start(r, &request, tell_report);
}
