/*
 * tools/call, toolgate/check and toolgate/report: reads params into a call_request, and writes a finished
 * call as the method's reply; puts a policy's question to the client's user. The call itself is gate/'s.
 */
#include "ledger/approvals.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/trace_context.h"
#include "catalog/client_tools.h"
#include "catalog/definition.h"
#include "catalog/mcp_version.h"
#include "gate/call.h"
#include "gate/feedback.h"
#include "gate/verdict.h"
#include "json/build.h"
#include "server/served.h"
#include "server/method_table.h"
#include "policy/policy_set.h"

#include <inttypes.h>

#define LOG_MAX        100u            /* notifications/message of one call; further ones are dropped */
#define QUESTION_KEY   "toolgate/ask"  /* in inputRequests: a policy's question */
#define QUESTION_STATE "toolgate/ask/" /* and its id: the requestState of such a reply */
#define TEXT_MAX_BYTES 4096u           /* of one notifications/message */

static enum err read_call(struct request *r, enum call_mode mode, struct call_request *c)
{
    struct client *client = r->client;
    struct str parent = r->trace_context ? r->trace_context->values[TRACE_PARENT] : STR_NONE;
    const struct json *name = json_get_text(r->params, "name"), *args = json_get_text(r->params, "arguments");
    *c = (struct call_request){
        .mode = mode,
        .connection = str_of(client->name),
        .peer = &client->peer,
        .tool = json_str(name),
        .arguments = mode == CALL_REPORT && json_is(args, JSON_NULL) ? NULL : args,
        .arguments_fault = r->fault,
        .step = param_label(r->meta, GATE_STEP_KEY),
        .notices = r->notices,
        .notice_count = r->notice_count,
        .trace_context = r->trace_context,
        .meta = buf_view(&r->meta_for_server),
        .trace_id = parent.len ? trace_parent_trace_id(parent) : STR_NONE,
        .protocol = request_protocol(r),
        .batch = conn_batch(client->conn),
        .received_ns = conn_read_ns(client->conn),
        .label = param_label(r->meta, GATE_CALL_KEY),
        .ext = param_label(r->meta, GATE_EXT_KEY),
    };
    if (!json_is(name, JSON_STRING) && (name || mode != CALL_REPORT))
        return reply_refuse(r, RPC_INVALID_PARAMS, "params.name: expected a string, the tool's name, got %s",
                            param_kind(name));
    bool refused = param_session(r, &c->session) || param_goal(r, r->meta, GATE_GOAL_KEY, &c->goal) ||
                   param_turn(r, r->meta, GATE_TURN_KEY, &c->turn, &c->turn_text) ||
                   param_by(r, r->meta, GATE_BY_KEY, &c->by_person) || param_agent(r, &c->agent) ||
                   param_context(r, &c->context);
    if (!refused)
        c->client_tools = client_tools_seen(r, c->session, false);
    return refused ? ERR_PARSE : OK;
}

/* A report of an unknown call counts nothing: the error and toolgate/status say why. */
static enum err refuse_report(struct request *r, struct str why)
{
    problems_note(r->client, PROBLEM_REPORT_UNPLACED, why);
    return reply_refuse(r, RPC_INVALID_PARAMS, STR_FMT, STR_ARG(why));
}

/* {coverage, facts?, follow_up?, question?} beside a result or an error, as toolgate/schemas describes it:
 * what a judge in the agent's program made of it. */
static enum err read_coverage(struct request *r, struct call_request *c)
{
    static const char *const names[] = {"SATISFIED", "NEEDS_MORE_TOOLS", "NEED_USER_INPUT", "FAILED"};
    const struct json *coverage = json_get_text(r->params, "coverage"), *from = r->params;
    if (json_is(coverage, JSON_OBJECT)) { /* the judge's answer as it is */
        from = coverage;
        coverage = json_get_text(from, "coverage");
    }
    const struct json *facts = json_get_text(from, "facts"), *follow_up = json_get_text(from, "follow_up");
    const struct json *question = json_get_text(from, "question");
    if (!coverage && from == r->params && !facts && !follow_up && !question)
        return OK;
    if (!STR_IS_ONE_OF(json_str(coverage), names))
        return reply_refuse(
            r, RPC_INVALID_PARAMS,
            "params.coverage: expected SATISFIED, NEEDS_MORE_TOOLS, NEED_USER_INPUT or FAILED, or "
            "an object {coverage, facts?, follow_up?, question?}");
    if (facts && !json_is(facts, JSON_OBJECT))
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params.facts: expected an object, what is known so far by name");
    if (follow_up && (!json_is(json_get_text(follow_up, "tool"), JSON_STRING) ||
                      !json_is(json_get_text(follow_up, "args"), JSON_OBJECT)))
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params.follow_up: expected an object {\"tool\":\"…\",\"args\":{…}}");
    if (question && !json_is(question, JSON_STRING))
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params.question: expected a string, what to ask the user");
    c->coverage = json_str(coverage);
    c->judged_question = json_str(question);
    c->judged_facts = facts;
    c->judged_follow_up = follow_up;
    return OK;
}

/* {callId, result} or {callId, error:{message, transient?, retry?, cancelled?}}; name and arguments may
 * repeat the check's. */
static enum err read_report(struct request *r, struct call_request *c)
{
    const struct json *id = json_get_text(r->params, "callId"), *error = json_get_text(r->params, "error");
    const struct json *message = json_get_text(error, "message"),
                      *transient = json_get_text(error, "transient"), *retry = json_get_text(error, "retry"),
                      *cancelled = json_get_text(error, "cancelled");
    c->result = json_get_text(r->params, "result");
    if (json_is(error, JSON_NULL)) /* some clients write null for none */
        error = NULL;
    if (json_is(c->result, JSON_NULL) && error)
        c->result = NULL;
    if (!json_is(id, JSON_STRING))
        return refuse_report(
            r,
            arena_printf(r->arena,
                         "params.callId: expected the callId of this call's toolgate/check, got %s: without "
                         "it nothing is counted; check each call before you run it",
                         param_kind(id)));
    struct why why __attribute__((uninitialized)); /* filled in if it is read */
    enum err err = call_read_id(&r->client->server->gate, r->arena, json_str(id), c, &why);
    if (err == ERR_UNAVAILABLE)
        return reply_refuse(r, RPC_UNAVAILABLE, "params.callId: %s", why.text);
    if (err != OK)
        return refuse_report(r, arena_printf(r->arena, "params.callId: %s", why.text));
    c->client_tools = client_tools_of(r->client->client_tools, c->check.session, false);
    unreported_clear(r->client);
    if (!c->result == !error)
        return reply_refuse(
            r, RPC_INVALID_PARAMS,
            "params: expected either result (the tool's) or error {message, transient?, retry?, "
            "cancelled?}");
    if (cancelled && !json_is(cancelled, JSON_BOOL))
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params.error.cancelled: expected true, if the tool's run was stopped");
    c->error_cancelled = json_is_true(cancelled);
    if (json_is(retry, JSON_STRING) && retry->len && !message)
        message = retry;
    if (error && !c->error_cancelled &&
        (!json_is(message, JSON_STRING) || (transient && !json_is(transient, JSON_BOOL))))
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params.error: expected an object {\"message\":\"…\",\"transient\":false}");
    if (retry && !json_is(retry, JSON_BOOL) && !json_str(retry).len)
        return reply_refuse(r, RPC_INVALID_PARAMS,
                            "params.error.retry: expected true, or what the model should do better");
    if (retry && !(json_is(retry, JSON_BOOL) && !retry->truth) && json_is_true(transient))
        return reply_refuse(
            r, RPC_INVALID_PARAMS,
            "params.error: expected either retry (other arguments) or transient (the same later)");
    c->has_error = error != NULL;
    c->error_message = json_str(retry).len ? json_str(retry) : json_str(message);
    c->error_retry = json_is_true(retry) || json_str(retry).len;
    c->error_transient = json_is_true(transient);
    c->error_transient_given = transient != NULL;
    return read_coverage(r, c);
}

/* Whether the client supports elicitation, and its answers to earlier questions. */
static enum err read_elicitation(struct request *r, struct call_request *call)
{
    const struct json *responses = json_get_text(r->params, "inputResponses");
    if (!r->modern)
        return OK;
    call->supports_elicitation = mcp_has_form_elicitation(json_get_text(r->meta, MCP_CAPABILITIES_KEY));
    if (responses && !json_is(responses, JSON_OBJECT))
        return reply_refuse(
            r, RPC_INVALID_PARAMS,
            "params.inputResponses: expected an object with an answer for each key of inputRequests, got %s",
            param_kind(responses));
    call->asks = call->supports_elicitation ? CALL_ASKS_REPLY : CALL_ASKS_NOBODY;
    call->input_responses = responses;
    enum err err = param_string(r, r->params, "requestState", &call->request_state);
    /* The answer to a policy's question. The state is only its id: an invented one names no question of this
     * call. */
    if (!err && str_starts(call->request_state, QUESTION_STATE)) {
        call->answered = approvals_read_id(str_from(call->request_state, strlen(QUESTION_STATE)));
        call->answer = json_get_text(responses, QUESTION_KEY);
        call->input_responses = NULL;
        call->request_state = STR_NONE;
    }
    return err;
}

/* The tool's own metadata and the verdict. */
static void put_meta(struct request *r, const struct verdict *verdict, const struct json *metadata)
{
    struct json_out *out = reply_meta(r);
    reply_meta_of_tool(r, metadata);
    json_field_open(out, GATE_VERDICT_KEY, '{');
    verdict_write(out, verdict);
    json_close(out, '}');
    if (verdict->final)
        json_field_bool(out, GATE_FINAL_KEY, true);
    json_close(out, '}');
}

/* What the result names can be read, although no list has it. An error has no structuredContent: clients
 * disagree on what to do with it. Clients of the legacy era accept only an object there and would drop the
 * whole result; before 2025-06-18 they know no such member. */
static void put_result(struct request *r, const struct call *call)
{
    const struct call_outcome *outcome = call_outcome(call);
    const struct json *structured = verdict_replaces_result(outcome->verdict) ? NULL : outcome->structured;
    bool sends = structured && (r->modern || structured->type == JSON_OBJECT) &&
                 !mcp_version_before(request_protocol(r), MCP_2025_06_18);
    const struct tool *tool = call_tool(call);
    if (tool && tool->target.kind == TARGET_MCP && tool->target.upstream.len)
        resource_links_keep(&r->client->resource_links, outcome->content, tool->target.upstream);
    struct json_out *out = reply_open(r);
    call_reply_content(r->arena, out, call, request_protocol(r), sends ? NULL : structured);
    if (verdict_replaces_result(outcome->verdict))
        json_field_bool(out, "isError", true);
    else if (sends)
        json_field(out, "structuredContent", structured);
    put_meta(r, outcome->verdict, outcome->metadata);
}

/* The tool ran, but its result does not fit the reply: the model must ask for less. Of a failure it reads the
 * beginning. */
static enum request_status reply_too_large(struct request *r)
{
    struct verdict verdict = *call_outcome(r->call)->verdict;
    struct str unread =
        arena_printf(r->arena, "%zu bytes of earlier replies on this connection are unread.", r->unread);
    struct str too_long = arena_printf(r->arena, "it is longer than %u bytes.", SERVER_LINE_MAX_BYTES);
    bool failed = verdict_replaces_result(&verdict);
    struct buf said = buf_in(r->arena);
    if (failed && verdict.quoted.len && !r->unread) {
        buf_text(&said, "\nIt began: ");
        json_write_string(&said, str_cut(verdict.quoted, FEEDBACK_QUOTE_MAX_BYTES));
    }
    verdict.class = CLASS_TOOL_ERROR;
    verdict.as_sent = false;
    verdict.kind = error_class_info(CLASS_TOOL_ERROR)->verdict;
    verdict.facts = verdict.follow_up = verdict.next_args = NULL;
    verdict.code = r->unread ? STR_LIT("answers_unread") : STR_LIT("result_too_large");
    verdict.detail = ARENA_JOIN(r->arena,
                                failed ? STR_LIT("The tool failed, and what it said is not sent whole: ")
                                       : STR_LIT("The tool ran, but its result is not sent: "),
                                r->unread ? unread : too_long);
    verdict.hint = r->unread ? STR_LIT("Make fewer calls at a time, and ask for less.")
                             : STR_LIT("Ask for less: fewer items, a page, a narrower range.");
    struct json_out *out = reply_open(r);
    json_field_open(out, "content", '[');
    call_reply_text_block(out,
                          ARENA_JOIN(r->arena, verdict.detail, buf_view(&said), STR_LIT("\n"), verdict.hint));
    json_close(out, ']');
    json_field_bool(out, "isError", true);
    put_meta(r, &verdict, NULL);
    return reply_close(r);
}

/* A tool's questions to the user (MCP: input_required) go to a client that can put them to its user. The
 * model of any other client reads them in the result (gate/feedback.c). NULL: none. All or none: the tool
 * cannot use half of the answers. */
static const struct json *client_questions(const struct request *r)
{
    const struct json *input = call_outcome(r->call)->input_requests;
    const struct json *requests = json_get_text(input, "inputRequests");
    uint32_t count = json_is(requests, JSON_OBJECT) ? requests->len : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct json *request = &requests->members[i].value;
        struct str mode = json_str(json_get_text(json_get_text(request, "params"), "mode"));
        if (!str_is(json_str(json_get_text(request, "method")), "elicitation/create") ||
            (mode.len && !str_is(mode, "form")))
            return NULL;
    }
    return count || json_get_text(input, "requestState") ? input : NULL;
}

static enum request_status reply_result(struct request *r)
{
    static const char *const keys[] = {"inputRequests", "requestState"};
    const struct call_outcome *outcome = call_outcome(r->call);
    const struct verdict *v = outcome->verdict;
    const struct json *input = r->modern ? client_questions(r) : NULL;
    if (outcome->question) { /* a policy's question in the form of the modern era */
        struct json_out *out = reply_open_as(r, "input_required");
        char id[APPROVAL_ID_CHARS + 1];
        approvals_write_id(outcome->question, id);
        json_field_open(out, "inputRequests", '{');
        json_field_open(out, QUESTION_KEY, '{');
        json_field_text(out, "method", "elicitation/create");
        json_field_open(out, "params", '{');
        json_field_text(out, "mode", "form");
        consent_write_form(out, r->arena, v->detail, v->choices);
        json_close(out, '}');
        json_close(out, '}');
        json_close(out, '}');
        json_field_str(out, "requestState", ARENA_JOIN(r->arena, str_of(QUESTION_STATE), str_of(id)));
        put_meta(r, v, NULL);
    } else if (input) { /* the client asks its user and calls again with the answer */
        struct json_out *out = reply_open_as(r, "input_required");
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            json_field_optional(out, keys[i], json_get_text(input, keys[i]));
        put_meta(r, v, NULL);
    } else {
        put_result(r, r->call);
    }
    return reply_fits(r) ? REQUEST_DONE : reply_too_large(r);
}

/* ---- elicitation: a policy's question (ask) put to the user of a client of the legacy era that declared it
 *
 *   client               daemon
 *   tools/call       ─▶  the check hook asks
 *                    ◀─  elicitation/create, whose schema has one property: the choices, or yes and no
 *   its user's answer ─▶ the same call again, with that question answered
 *                    ◀─  the result; or the refusal `declined`
 *
 * toolgate/check asks in the same way, of an agent that runs its own tools: then the check's reply follows. A
 * client that does not answer within ELICITATION_MS, answers with an error or with what fits no schema gets
 * the question as text, with an approval, as any other client does. The question waits as a part of its
 * request: a request that is cancelled or lost takes its question back ---- */

#define ELICITATION_MS          UPSTREAM_ASK_MS /* for a person to read and decide */
#define ELICITATION_ROUNDS_MAX  16u             /* in which one call's server asks */
#define ELICITATION_AT_ONCE_MAX 16u             /* questions of a round */
#define FORM_MAX_BYTES          65536u          /* of a server's form: no person reads a longer one */

struct elicitation {
    struct call_request call;              /* which is made again after the answer */
    struct consent consents[CONSENTS_MAX]; /* of the call; the last one is being asked about */
    bool is_servers;                       /* a server of the legacy era waits for the answer, in its call */
    const struct json *inputs; /* of one of the modern era, which has ended its call: all its questions */
    struct json answers;       /* to the first ones */
    uint32_t rounds;
    struct timer deadline;
    struct str id; /* of the request to the client; empty: none is on its way */
};

static enum request_status start(struct request *r, struct call_request *request);

/* NULL: no question of the request is on its way. */
static struct elicitation *asked(const struct request *r)
{
    bool asks = r->method->handle == call_methods_call || r->method->handle == call_methods_check;
    struct elicitation *e = asks ? r->work : NULL;
    return e && e->id.len ? e : NULL;
}

void elicitation_take_back(struct request *r)
{
    struct elicitation *e = asked(r);
    struct buf params = buf_in(r->arena);
    if (!e)
        return;
    buf_printf(&params, "{\"requestId\":\"" STR_FMT "\",\"reason\":\"the call has ended\"}", STR_ARG(e->id));
    reply_notification(r->client, "notifications/cancelled", buf_view(&params));
    timer_clear(&e->deadline);
    e->id = STR_NONE;
}

static void call_again(struct request *r)
{
    struct elicitation *e = r->work;
    call_free(r->call);
    if (start(r, &e->call) == REQUEST_DONE)
        request_done(r);
}

static void take_answer(struct request *r, const struct json *result, const char *fault);

static void on_question_late(void *owner)
{
    struct request *r = owner;
    elicitation_take_back(r);
    take_answer(r, NULL, r->client->at_eof ? "the client sends no more" : "nobody answered in time");
}

void elicitation_end(struct client *client)
{
    struct request *r;
    LIST_FOREACH (r, &client->pending, link)
        if (asked(r)) /* in a turn of its own, as it may end the request */
            timer_set(&asked(r)->deadline, client->server->loop, 0, on_question_late, r);
}

/* `params`: of elicitation/create. */
static void put_question(struct request *r, bool is_servers, struct str params)
{
    static uint64_t questions;
    struct elicitation *e = r->work;
    e->is_servers = is_servers;
    e->id = arena_printf(r->arena, "toolgate/ask/%" PRIu64, ++questions);
    timer_set(&e->deadline, r->client->server->loop, r->client->at_eof ? 0 : ELICITATION_MS, on_question_late,
              r);
    reply_ask(r->client, e->id, "elicitation/create", params);
}

/* The request's call has finished. True: its question is on its way to the user, and the request waits. */
static bool ask_user(struct request *r)
{
    struct elicitation *e = r->work;
    const struct verdict *v = call_outcome(r->call)->verdict;
    if (!e || e->call.asks != CALL_ASKS_CONNECTION || v->kind != VERDICT_ASK ||
        e->call.consent_count == CONSENTS_MAX || !v->stage || strcmp(v->stage, "check") != 0 ||
        !consent_fits_form(v->detail, v->choices))
        return false;
    e->consents[e->call.consent_count++] = (struct consent){.question = arena_dup(r->arena, v->detail)};
    struct buf form = buf_in(r->arena);
    struct json_out out = json_out(&form);
    json_open(&out, '{');
    consent_write_form(&out, r->arena, v->detail, v->choices);
    json_close(&out, '}');
    put_question(r, false, buf_view(&form));
    return true;
}

/* ---- a server's own question: the user sees who asks, and no character that nobody sees. One that cannot be
 * shown whole is not put, and the model reads its beginning ---- */

static bool is_form(struct request *r, const struct json *params)
{
    struct str mode = json_str(json_get_text(params, "mode"));
    const struct json *schema = json_get_text(params, "requestedSchema");
    return json_str(json_get_text(params, "message")).len <= CONSENT_TEXT_MAX_BYTES &&
           (!mode.len || str_is(mode, "form")) && json_is(schema, JSON_OBJECT) &&
           json_to_str(r->arena, schema).len <= FORM_MAX_BYTES;
}

/* `params`: of a server that waits; NULL: the next one of the call's own. */
static void put_form(struct request *r, const struct json *params)
{
    const struct elicitation *e = r->work;
    struct hidden_text hidden;
    bool is_servers = params;
    if (!params)
        params = json_get_text(&e->inputs->members[e->answers.len].value, "params");
    params = hidden_text_strip(r->arena, params, &hidden);
    struct buf form = buf_in(r->arena);
    struct json_out out = json_out(&form);
    json_open(&out, '{');
    json_field_str(&out, "message",
                   arena_printf(r->arena, "The server '" STR_FMT "' asks: " STR_FMT,
                                STR_ARG(call_tool(r->call)->target.upstream),
                                STR_ARG(json_str(json_get_text(params, "message")))));
    json_field_optional(&out, "mode", json_get_text(params, "mode"));
    json_field_optional(&out, "requestedSchema", json_get_text(params, "requestedSchema"));
    json_close(&out, '}');
    put_question(r, is_servers, buf_view(&form));
}

static bool on_elicit(void *owner, const struct json *params)
{
    bool puts = params && is_form(owner, params);
    if (puts)
        put_form(owner, params);
    else if (!params)
        elicitation_take_back(owner);
    return puts;
}

/* The call has ended with questions: they are put one after the other, and it is made again with the answers.
 */
static bool ask_inputs(struct request *r)
{
    struct elicitation *e = r->modern ? NULL : r->work;
    const struct json *requests = e ? json_get_text(client_questions(r), "inputRequests") : NULL;
    for (uint32_t i = 0; requests && i < requests->len; i++)
        if (!is_form(r, json_get_text(&requests->members[i].value, "params")))
            return false;
    if (!requests || !requests->len || requests->len > ELICITATION_AT_ONCE_MAX ||
        e->rounds++ == ELICITATION_ROUNDS_MAX)
        return false;
    e->inputs = requests;
    e->answers = json_object(r->arena, NULL, 0);
    put_form(r, NULL);
    return true;
}

/* What is no answer cancels. */
static void answer_server(struct request *r, const struct json *result)
{
    static const char *const actions[] = {"accept", "decline", "cancel"};
    static const struct json_member cancelled = {STR("action"),
                                                 {.type = JSON_STRING, .text = "cancel", .len = 6}};
    struct elicitation *e = r->work;
    struct json form = STR_IS_ONE_OF(json_str(json_get_text(result, "action")), actions)
                           ? json_copy(r->arena, result)
                           : json_object(r->arena, &cancelled, 1);
    if (e->is_servers) {
        upstream_reply(r->client->server->gate.upstreams, r->call, json_to_str(r->arena, &form));
        return;
    }
    struct str key = e->inputs->members[e->answers.len].key;
    e->answers = json_with(r->arena, &e->answers, key, form);
    if (e->answers.len < e->inputs->len) {
        put_form(r, NULL);
        return;
    }
    e->inputs = NULL;
    e->call.input_responses = &e->answers;
    e->call.request_state = json_str(json_get_text(call_outcome(r->call)->input_requests, "requestState"));
    call_again(r);
}

bool elicitation_answer(struct client *client, const struct json *message)
{
    struct str id = json_str(json_get_text(message, "id"));
    const struct json *result = json_get_text(message, "result");
    struct request *r;
    LIST_FOREACH (r, &client->pending, link)
        if (asked(r) && str_eq(asked(r)->id, id))
            break;
    if (!r)
        return false;
    struct elicitation *e = r->work;
    timer_clear(&e->deadline);
    e->id = STR_NONE;
    take_answer(r, result,
                result ? "the answer fits no schema that was sent" : "the client answered with an error");
    return true;
}

/* `result`: NULL if there is none. `fault`: why it is no answer, if it is none. */
static void take_answer(struct request *r, const struct json *result, const char *fault)
{
    struct elicitation *e = r->work;
    if (e->is_servers || e->inputs) {
        answer_server(r, result);
        return;
    }
    struct consent *consent = &e->consents[e->call.consent_count - 1];
    if (result && consent_read(r->arena, result, call_outcome(r->call)->verdict->choices, consent)) {
        log_event(LOG_INFO, "question_answered", LOG_TEXT("connection", r->client->name),
                  LOG_TEXT("answer", consent->given ? "given" : "declined"));
    } else { /* as for a client that cannot ask its user */
        log_event(LOG_INFO, "question_unanswered", LOG_TEXT("connection", r->client->name),
                  LOG_TEXT("why", fault));
        e->call.asks = CALL_ASKS_NOBODY;
        e->call.consent_count--; /* the question that was not answered */
    }
    call_again(r);
}

/* ---- replies ---- */

/* A policy's or a server's question goes to the user, if the client can put it. */
static enum request_status reply_call(struct request *r)
{
    return ask_user(r) || ask_inputs(r) ? REQUEST_PENDING : reply_result(r);
}

static enum request_status reply_check(struct request *r)
{
    if (ask_user(r))
        return REQUEST_PENDING;
    const struct verdict *verdict = call_outcome(r->call)->verdict;
    struct json_out *out = reply_open(r);
    verdict_write(out, verdict);
    bool runs = verdict->kind == VERDICT_PASS && !call_is_dry_run(r->call);
    uint32_t unreported = runs ? unreported_add(r->client, param_label(r->meta, GATE_STEP_KEY)) : 0;
    if (unreported)
        json_field_int(out, "unreported", unreported);
    call_reply_check(out, r->call);
    return reply_close(r);
}

static enum request_status reply_report(struct request *r)
{
    const struct verdict *verdict = call_outcome(r->call)->verdict;
    struct json_out *out = reply_open(r);
    if (str_is(verdict->code, "call_forgotten"))
        problems_note(r->client, PROBLEM_REPORT_UNPLACED,
                      STR_LIT("a callId whose call is forgotten: report it with its name and arguments"));
    verdict_write(out, verdict);
    call_reply_report(out, r->call);
    return reply_close(r);
}

/* A tool's log message goes to the agent's program. */
static void on_log(void *owner, struct str level, struct str text)
{
    struct request *r = owner;
    if (!mcp_wants_log(r, level) || r->log_count++ >= LOG_MAX)
        return;
    struct buf params = {0};
    struct json_out out = json_out(&params);
    json_put_object(&out, FIELD_STR("level", level), FIELD_STR("logger", call_tool(r->call)->name),
                    FIELD_STR("data", str_cut(text, TEXT_MAX_BYTES)));
    reply_notification(r->client, "notifications/message", buf_view(&params));
    buf_clear(&params);
}

static enum request_status answer(struct request *r)
{
    method_handler *method = r->method->handle;
    enum request_status status = method == call_methods_call    ? reply_call(r)
                                 : method == call_methods_check ? reply_check(r)
                                                                : reply_report(r);
    if (status == REQUEST_PENDING)
        return status;
    /* A session without progress may be shown other tools. */
    if (call_outcome(r->call)->verdict->no_progress == VERDICT_NO_PROGRESS &&
        policy_set_gateway(r->client->server->gate.generation->policies)->hooks[HOOK_PREPARE])
        subscriptions_client_changed(r->client, LIST_CHANGED_TOOLS);
    call_free(r->call);
    return status;
}

static void cancel(struct request *r)
{
    struct elicitation *e = asked(r);
    if (e) { /* the connection may be gone: nothing is sent */
        timer_clear(&e->deadline);
        e->id = STR_NONE;
    }
    call_cancel(r->call);
    call_free(r->call);
}

static enum request_status start(struct request *r, struct call_request *request)
{
    request->progress = reply_progress_begin(r);
    request->log = on_log;
    request->elicit = r->work ? on_elicit : NULL;
    request->listener = r;
    r->answer = answer;
    r->call = call_new(&r->client->server->gate, r->arena, request);
    r->cancel = cancel;
    return request_wait(r, !call_start(r->call, request_answer, r));
}

/* A client of the legacy era is asked over its connection. */
static void keep_to_ask(struct request *r, struct call_request *request)
{
    if (!r->client->elicits || r->modern)
        return;
    struct elicitation *e = ARENA_NEW(r->arena, struct elicitation);
    request->asks = CALL_ASKS_CONNECTION;
    request->supports_elicitation = true;
    e->call = *request;
    e->call.consents = e->consents;
    r->work = e;
}

enum request_status call_methods_call(struct request *r)
{
    struct call_request request __attribute__((uninitialized)); /* read_call fills it in */
    if (read_call(r, CALL_RUN, &request) || read_elicitation(r, &request))
        return REQUEST_DONE;
    keep_to_ask(r, &request);
    return start(r, &request);
}

enum request_status call_methods_check(struct request *r)
{
    struct call_request request __attribute__((uninitialized)); /* read_call fills it in */
    if (read_call(r, CALL_CHECK, &request))
        return REQUEST_DONE;
    request.trace = json_is_true(json_get_text(r->meta, GATE_TRACE_KEY));
    request.dry_run = request.trace && !request.session.len; /* a person asks: nothing is counted */
    bool asks;
    if (param_flag(r, "asks", &asks))
        return REQUEST_DONE;
    if (asks) /* the agent's program puts the question to its user itself */
        request.asks = CALL_ASKS_CONNECTION;
    else if (!request.dry_run)
        keep_to_ask(r, &request);
    return start(r, &request);
}

enum request_status call_methods_report(struct request *r)
{
    struct call_request request __attribute__((uninitialized)); /* read_call fills it in */
    if (read_call(r, CALL_REPORT, &request) || read_report(r, &request))
        return REQUEST_DONE;
    return start(r, &request);
}
