/*
 * One message to the server as a POST, and its response: JSON, a stream of events that may break and be
 * resumed, or an error status. Up to 2025-11-25 there is a session, which may have to be renewed, streams can
 * be resumed, and there is a GET stream of server messages: a server may have none (405); a broken one is
 * resumed after its last event, with a delay that doubles while no event comes. From 2026-07-28 on there are
 * headers for method and name instead. The client is notified of each request at its end: a failure of a
 * request that was answered already has no effect.
 *
 *   post ─▶ head ─▶ JSON ───────────────────────▶ delivered
 *                └▶ events ─▶ delivered … ─▶ broken ─▶ GET with Last-Event-ID ─▶ events …
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/address_space.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/trace_context.h"
#include "json/parse.h"
#include "upstream/http/http_tool.h"
#include "upstream/mcp/mcp_header_mapping.h"
#include "upstream/mcp/mcp_message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MCP_HTTP_NOTIFICATION_MS 30000u /* timeout of a notification or a response */
#define MCP_HTTP_LINGER_MS       1000u  /* a stream may stay open this long after its response */
#define MCP_HTTP_RETRY_MS        1000u  /* before a broken stream is resumed … */
#define MCP_HTTP_RETRY_MAX_MS    60000u /* … doubled each time without an event, up to this */
#define MCP_HTTP_RETRY_DOUBLINGS 6u
#define MCP_HTTP_RESUMES_MAX     5u    /* of an answer, in a row without an event */
#define MCP_HTTP_SESSION_BYTES   1024u /* of a session's id */
#define MCP_HTTP_REQUESTS_MAX    64u   /* of the server, within its answer to one of ours */
#define INITIALIZED              "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define SESSION_TEXT_MAX_BYTES   4096u  /* of an error, that is searched for what it says of the session */
#define SESSION_BODY_MAX_BYTES   65536u /* of a longer one the code is not read */
#define MCP_INVALID_PARAMS       (-32602)
#define MCP_SESSION_NOT_FOUND    (-32001)
#define MCP_NOT_INITIALIZED      (-32002)

#define LIST_CHANGED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"

static void post_now(struct exchange *x);

/* Of the message; those of each request are added when it is posted. */
static void set_headers(struct exchange *x, const struct mcp_outgoing *outgoing)
{
    const struct mcp_transport *t = x->transport;
    struct name_values mapped = {0};
    size_t count = 0;
    if (t->modern)
        mapped = header_mapping_headers(x->arena, outgoing->schema, outgoing->arguments);
    struct name_value *list = ARENA_ARRAY(x->arena, struct name_value, mapped.count + 4 + TRACE_KEYS);
    list[count++] = (struct name_value){STR_LIT("Content-Type"), STR_LIT("application/json")};
    list[count++] = (struct name_value){STR_LIT("Accept"), STR_LIT("application/json, text/event-stream")};
    if (t->modern && x->method[0])
        list[count++] = (struct name_value){STR_LIT("Mcp-Method"), str_of(x->method)};
    if (t->modern && outgoing->name.len)
        list[count++] =
            (struct name_value){STR_LIT("Mcp-Name"), header_mapping_encode(x->arena, outgoing->name)};
    for (size_t i = 0; i < mapped.count; i++)
        list[count++] = mapped.list[i];
    count += http_trace_headers(list + count, outgoing->trace, t->headers);
    x->headers = name_values_copy(x->arena, (struct name_values){list, count});
}

struct exchange *exchange_new(struct mcp_transport *t, const struct mcp_outgoing *outgoing)
{
    struct exchange *x = alloc_zeroed(sizeof(*x));
    x->transport = t;
    x->arena = arena_new();
    x->id = outgoing->id;
    x->method = arena_dup(x->arena, str_of(outgoing->method ? outgoing->method : "")).at;
    x->message = arena_dup(x->arena, outgoing->message);
    set_headers(x, outgoing);
    sse_init(&x->sse, UPSTREAM_LINE_MAX_BYTES);
    x->after_s = -1;
    LIST_INSERT_HEAD(&t->exchanges, x, entry);
    x->is_notice = !x->id && x->method[0];
    t->notice_count += x->is_notice;
    x->is_reply = !outgoing->method;
    if (x->is_reply) {
        TAILQ_INSERT_TAIL(&t->replies, x, reply);
        t->reply_count++;
    }
    return x;
}

/* A reply waits for those before it, and everything for a session that is being renewed. */
void exchange_post_if_due(struct exchange *x)
{
    const struct mcp_transport *t = x->transport;
    bool waits = x->is_reply && x != TAILQ_FIRST(&t->replies);
    if (!waits && !t->renewing && !x->fetch && !timer_is_set(&x->timer))
        post_now(x);
}

static void on_next_reply(void *owner)
{
    struct mcp_transport *t = owner;
    if (!TAILQ_EMPTY(&t->replies))
        exchange_post_if_due(TAILQ_FIRST(&t->replies));
}

void exchange_free(struct exchange *x)
{
    struct mcp_transport *t = x->transport;
    if (t->delivering == x)
        t->delivering = NULL;
    if (t->listener == x)
        t->listener = NULL;
    if (x->fetch)
        fetch_cancel(x->fetch);
    timer_clear(&x->timer);
    if (x->is_reply) {
        TAILQ_REMOVE(&t->replies, x, reply);
        t->reply_count--;
        timer_set(&t->next_reply, t->loop, 0, on_next_reply, t);
    }
    t->notice_count -= x->is_notice;
    LIST_REMOVE(x, entry);
    sse_clear(&x->sse);
    buf_clear(&x->body);
    arena_free(x->arena);
    free(x);
}

/* Reports that there will be no response, with x->quoted, and frees it. */
__attribute__((format(printf, 5, 6))) static void fail(struct exchange *x, enum upstream_outcome outcome,
                                                       const char *code, int64_t after_s, const char *format,
                                                       ...)
{
    struct mcp_transport *t = x->transport;
    uint64_t id = x->id;
    bool renews = x->renews;
    char why[FETCH_WHY_MAX_BYTES], quoted[sizeof(x->quoted)], text[FETCH_WHY_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    memcpy(quoted, x->quoted, sizeof(quoted));
    const struct mcp_failure failure = {outcome, code, why, str_of(quoted), after_s};
    exchange_free(x);
    if (renews) {
        snprintf(text, sizeof(text), "its session ended, and a new one could not be begun: %.400s", why);
        mcp_http_report_later(t, text, quoted);
    } else if (id) {
        mcp_client_failed(t->client, id, &failure);
    }
}

static struct str origin(const struct exchange *x)
{
    return fetch_origin(str_of(x->transport->url));
}

static void fail_status(struct exchange *x)
{
    struct str from = origin(x);
    struct arena *arena = arena_new();
    char code[16];
    int status = x->status;
    struct str body = secrets_redact(arena, &x->transport->secrets, buf_view(&x->body));
    struct str text = http_response_error_message(arena, str_of(x->type), body);
    snprintf(x->quoted, sizeof(x->quoted), STR_FMT, STR_ARG(str_cut(text, MCP_HTTP_QUOTED_BYTES)));
    arena_free(arena);
    snprintf(code, sizeof(code), "http_%d", status);
    bool transient = http_response_is_transient(status);
    if (status == 401 || status == 403)
        fail(x, UPSTREAM_UNAVAILABLE, code, -1,
             STR_FMT " denies access (status %d): the operator has to give the upstream "
                     "credentials, as headers = { Authorization = \"Bearer ${NAME}\" }",
             STR_ARG(from), status);
    else if (status >= 300 && status < 400)
        fail(x, UPSTREAM_UNAVAILABLE, code, -1,
             STR_FMT " redirects to %s (status %d), which is not followed: set the upstream's url "
                     "to that address",
             STR_ARG(from), x->redirect[0] ? x->redirect : "elsewhere", status);
    else
        fail(x, transient ? UPSTREAM_TRANSIENT : UPSTREAM_REFUSED, code, transient ? x->after_s : -1,
             STR_FMT " answered with status %d%s", STR_ARG(from), status,
             status == 404 || status == 405
                 ? ": there is no MCP server at this path, check the upstream's url; a server of the older "
                   "transport HTTP+SSE has another one for streamable HTTP, or none"
                 : "");
}

/* ---- the session -------------------------------------------------------------------------------
 * A session that the server no longer knows (it restarted, or the session expired) is renewed: the first
 * `initialize` is sent again, then the rejected messages, which certainly did not run; and the tools are
 * listed again, as the server may have changed. */

static void post(struct mcp_transport *t, uint64_t id, const char *method, struct str message)
{
    const struct mcp_outgoing outgoing = {.id = id, .method = method, .message = message};
    struct exchange *x = exchange_new(t, &outgoing);
    x->renews = true;
    post_now(x);
}

/* Drops what has come of the answer, begins another session and asks again; all others wait. */
static void ask_in_next_session(struct exchange *x)
{
    struct mcp_transport *t = x->transport;
    if (x->fetch)
        fetch_cancel(x->fetch);
    x->fetch = NULL;
    x->resumes = 0;
    sse_clear(&x->sse);
    sse_init(&x->sse, UPSTREAM_LINE_MAX_BYTES);
    if (x->renewed || !t->initialize.len) {
        fail(x, UPSTREAM_TRANSIENT, "session_lost", 1, "its session ended, and so did the next one");
        if (!t->renewing)
            mcp_http_report_later(t, "its sessions end as soon as they begin", "");
        return;
    }
    x->renewed = true;
    if (t->renewing)
        return;
    t->renewing = true;
    t->session.len = 0;
    if (t->listener)
        exchange_free(t->listener);
    post(t, t->initialize_id, "initialize", buf_view(&t->initialize));
}

static bool says_one_of(struct str text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_contains_nocase(text, str_of(words[i])))
            return true;
    return false;
}
#define SAYS_ONE_OF(text, words) says_one_of(text, words, sizeof(words) / sizeof(*(words)))

/* Of a server that was restarted, or whose session expired, in the words of several SDKs. `rejected`: by an
 * HTTP status, so that no tool said it. */
static bool says_session_lost(struct str text, bool rejected)
{
    static const char *const lost[] = {"not found", "no valid",   "not valid", "invalid",
                                       "expired",   "unknown",    "missing",   "required",
                                       "not exist", "terminated", "no longer"};
    static const char *const begin[] = {"server not initialized", "expect initialize",
                                        "before initialization was complete"};
    text = str_cut(text, SESSION_TEXT_MAX_BYTES);
    return (rejected && SAYS_ONE_OF(text, begin)) ||
           (str_contains_nocase(text, STR_LIT("session")) && SAYS_ONE_OF(text, lost));
}

/* `body`: of an answer to `x`. */
static bool has_lost_session(const struct exchange *x, struct str body)
{
    static const char *const logins[] = {"token", "bearer",  "credential", "log in",
                                         "login", "sign in", "oauth",      "api key"};
    const struct mcp_transport *t = x->transport;
    bool rejected = x->status >= 400, denied = x->status == 401 || x->status == 403;
    if (t->modern || x->renews || !t->initialize.len || strcmp(x->method, "initialize") == 0 ||
        x->status >= 500 || (denied && x->challenged))
        return false;
    if (t->session.len && (x->status == 404 || x->status == 410))
        return true;
    if (denied && SAYS_ONE_OF(str_cut(body, SESSION_TEXT_MAX_BYTES), logins))
        return false;
    struct arena *arena = arena_new();
    struct json message;
    bool small = body.len && body.len <= SESSION_BODY_MAX_BYTES;
    bool read = small && json_parse(arena, body, NULL, &message, NULL) == OK;
    const struct json *error = read ? json_get_text(&message, "error") : NULL;
    bool lost = rejected && says_session_lost(body, true);
    if (json_is(error, JSON_OBJECT) && json_get_text(error, "code")) {
        struct str text = json_str(json_get_text(error, "message"));
        int64_t code = MCP_INVALID_PARAMS;
        json_int(json_get_text(error, "code"), &code);
        /* -32602 is about arguments, of which one may be called session. -32001 is also what some SDKs say of
         * a request that timed out, which may have run. */
        lost =
            code != MCP_INVALID_PARAMS && (says_session_lost(text, rejected || code == MCP_NOT_INITIALIZED) ||
                                           (code == MCP_SESSION_NOT_FOUND && (rejected || !text.len)));
        /* The Python SDK's, with the code of invalid params. */
        lost |= str_contains_nocase(text, STR_LIT("request before initialization was complete"));
    }
    arena_free(arena);
    return lost;
}

/* A response to a message with `renews`. */
static void take_session_response(struct exchange *x, struct str text)
{
    struct mcp_transport *t = x->transport;
    struct mcp_message message = mcp_message_scan(text);
    if (x->id) { /* initialize */
        if (message.kind != MCP_MESSAGE_RESPONSE)
            return; /* a notification before the response */
        if (!message.result.len) {
            fail(x, UPSTREAM_TRANSIENT, "session_lost", 1, "it rejects a new session");
            return;
        }
        exchange_free(x);
        post(t, 0, "notifications/initialized", STR_LIT(INITIALIZED));
        return;
    }
    exchange_free(x);
    t->renewing = false;
    struct exchange *next;
    for (x = LIST_FIRST(&t->exchanges); x; x = next) {
        next = LIST_NEXT(x, entry);
        exchange_post_if_due(x);
    }
    mcp_http_pass_on(t, 0, STR_LIT(LIST_CHANGED));
}

static bool is_response_to(const struct exchange *x, const struct mcp_message *message)
{
    bool is_unnamed = !message->id.len && message->error.len; /* "id": null */
    return x->id && message->kind == MCP_MESSAGE_RESPONSE &&
           (is_unnamed || mcp_message_own_id(message->id) == x->id);
}

static bool deliver_message(struct exchange *x, struct mcp_message message, struct str text)
{
    struct mcp_transport *t = x->transport;
    if (message.kind == MCP_MESSAGE_REQUEST && !x->listens && ++x->requests > MCP_HTTP_REQUESTS_MAX) {
        /* Each costs us a POST, and a server can put any number of them into one answer. */
        fail(x, UPSTREAM_TRANSIENT, UPSTREAM_CODE_TOO_MANY_REQUESTS, -1,
             STR_FMT " put more than %u requests of its own into one answer", STR_ARG(origin(x)),
             MCP_HTTP_REQUESTS_MAX);
        return false;
    }
    if (is_response_to(x, &message) && message.error.len && !x->renewed && has_lost_session(x, text)) {
        ask_in_next_session(x);
        return false;
    }
    /* One that cannot be read ends its request, too (mcp_client.c), but begins no session. */
    bool is_broken = x->id && !x->renews && message.is_response &&
                     (!message.id.len || mcp_message_own_id(message.id) == x->id);
    x->answered |= is_broken || is_response_to(x, &message);
    t->delivering = x;
    if (x->renews)
        take_session_response(x, text);
    else
        mcp_http_pass_on(t, x->id, text);
    bool lives = t->delivering == x;
    t->delivering = NULL;
    return lives;
}

/* False: the exchange is gone, or waits for another session. A batch is delivered message by message. */
static bool deliver(struct exchange *x, struct str text)
{
    struct str rest = text;
    bool lives;
    do {
        struct str from = rest;
        struct mcp_message message = mcp_message_next(&rest);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): `lives` says that it was not freed */
        lives = deliver_message(x, message, str_cut(from, from.len - rest.len));
    } while (lives && rest.len);
    return lives;
}

static void on_linger_over(void *owner)
{
    exchange_free(owner);
}

static void fail_too_large(struct exchange *x)
{
    fail(x, UPSTREAM_BROKEN, "too_large", -1, STR_FMT " sends a message of more than %u MiB",
         STR_ARG(origin(x)), UPSTREAM_LINE_MAX_BYTES >> 20);
}

/* What has come of an answer may be refused before all of it is there. */
static bool has_room(struct exchange *x, size_t bytes)
{
    if (address_space_for_text(bytes) == bytes)
        return true;
    fail(x, UPSTREAM_TRANSIENT, "no_memory", 1,
         "the gateway's address space (ulimit -v) has no room for an answer of more than %zu bytes", bytes);
    return false;
}

/* Some servers name their events otherwise: what is a message counts, whatever its name. */
static bool is_message(const struct sse_event *event)
{
    return str_is(event->type, "message") ? event->data.len != 0
                                          : mcp_message_scan(event->data).kind >= MCP_MESSAGE_RESPONSE;
}

static void on_data(void *owner, struct str bytes)
{
    struct exchange *x = owner;
    struct sse_event event;
    enum sse_result got;
    x->streams &= x->begun || bytes.at[0] != '{'; /* JSON under the type of a stream */
    x->begun = true;
    if (!x->streams) {
        if (x->body.len + bytes.len > (x->listens ? MCP_HTTP_SESSION_BYTES : UPSTREAM_LINE_MAX_BYTES))
            fail_too_large(x);
        else if (has_room(x, x->body.len + bytes.len))
            buf_str(&x->body, bytes);
        return;
    }
    while ((got = sse_next(&x->sse, &bytes, &event)) == SSE_EVENT) {
        x->resumes = 0;
        if (is_message(&event) && !deliver(x, event.data))
            return;
    }
    if (got == SSE_TOO_LONG)
        fail_too_large(x);
    else if (!has_room(x, x->sse.line.len + x->sse.data.len))
        return;
    else if (x->answered && !timer_is_set(&x->timer))
        timer_set(&x->timer, x->transport->loop, MCP_HTTP_LINGER_MS, on_linger_over, x);
}

static void on_head(void *owner, const struct fetch_head *head);
static void on_done(void *owner, const struct fetch_end *end);

static void on_start_failure(void *owner)
{
    struct exchange *x = owner;
    fail(x, UPSTREAM_UNAVAILABLE, "unreachable", -1, "%s", x->failure);
}

static void begin(struct exchange *x, struct fetch_request request)
{
    static const struct fetch_hooks hooks = {.head = on_head, .data = on_data, .done = on_done};
    struct why why = {0};
    x->streams = x->begun = false;
    x->status = 0;
    x->body.len = 0;
    x->fetch = mcp_http_fetch(x->transport, request, &hooks, x, &why);
    if (x->fetch)
        return;
    snprintf(x->failure, sizeof(x->failure), "%.500s", why.text);
    timer_set(&x->timer, x->transport->loop, 0, on_start_failure, x);
}

/* A request ends with its call, or with the server's start; only time ends one that renews a session. */
static void post_now(struct exchange *x)
{
    uint32_t start_ms = x->transport->spec->start_ms ? x->transport->spec->start_ms : UPSTREAM_START_MS;
    uint32_t ms = x->renews ? start_ms : x->id ? 0 : MCP_HTTP_NOTIFICATION_MS;
    begin(x,
          (struct fetch_request){
              .method = "POST", .headers = x->headers, .body = x->message, .has_body = true, .total_ms = ms});
}

static void on_resume(void *owner)
{
    struct exchange *x = owner;
    struct str last_id = sse_last_id(&x->sse);
    const struct name_value more[] = {{STR_LIT("Accept"), STR_LIT("text/event-stream")},
                                      {STR_LIT("Last-Event-ID"), last_id}};
    begin(x, (struct fetch_request){
                 .method = "GET", .headers = {more, last_id.len ? 2 : 1}, .repeatable = true});
}

/* After what the server asked for, or MCP_HTTP_RETRY_MS, doubled with each attempt without an event. */
static void resume(struct exchange *x, const char *why)
{
    bool possible = x->listens || (x->id && !x->renews && !x->transport->modern && sse_last_id(&x->sse).len &&
                                   x->resumes < MCP_HTTP_RESUMES_MAX);
    if (!possible) {
        fail(x, UPSTREAM_TRANSIENT, "broken_off", -1, "%s before it had answered", why);
        return;
    }
    uint32_t ms = (x->sse.retry_ms ? x->sse.retry_ms : MCP_HTTP_RETRY_MS) << x->resumes;
    timer_set(&x->timer, x->transport->loop, ms < MCP_HTTP_RETRY_MAX_MS ? ms : MCP_HTTP_RETRY_MAX_MS,
              on_resume, x);
    x->resumes += x->resumes < MCP_HTTP_RETRY_DOUBLINGS;
    sse_restart(&x->sse);
}

/* Opens the GET stream, unless there is one. */
static void listen_to_server(struct mcp_transport *t)
{
    static const struct mcp_outgoing nothing = {.method = ""};
    if (t->modern || t->listener || t->closed)
        return;
    t->listener = exchange_new(t, &nothing);
    t->listener->listens = true;
    on_resume(t->listener);
}

static void on_head(void *owner, const struct fetch_head *head)
{
    struct exchange *x = owner;
    struct buf *session = &x->transport->session;
    struct str type = fetch_header(head, "content-type");
    bool success = head->status >= 200 && head->status < 300;
    x->status = head->status;
    x->after_s = head->after_s;
    x->challenged = fetch_header(head, "www-authenticate").len != 0;
    snprintf(x->type, sizeof(x->type), STR_FMT, STR_ARG(str_cut(type, sizeof(x->type) - 1)));
    struct str redirect = secrets_redact(x->arena, &x->transport->secrets, head->redirect);
    snprintf(x->redirect, sizeof(x->redirect), STR_FMT, STR_ARG(str_cut(redirect, FETCH_REDIRECT_BYTES)));
    x->streams = (x->id || x->listens) && success && str_contains_nocase(type, STR_LIT("text/event-stream"));
    if (!success || strcmp(x->method, "initialize") != 0)
        return;
    struct str id = fetch_header(head, "mcp-session-id");
    session->len = 0;
    if (id.len <= MCP_HTTP_SESSION_BYTES && fetch_header_is_safe(STR_LIT("x"), id))
        buf_str(session, id);
}

/* Success without events: one response, or none if none is due. */
static void take_body(struct exchange *x)
{
    struct str body = str_trim(buf_view(&x->body));
    bool json = str_contains_nocase(str_of(x->type), STR_LIT("json")) || str_starts(body, "{");
    struct mcp_transport *t = x->transport;
    bool initialized = strcmp(x->method, "notifications/initialized") == 0;
    if (!x->id) {
        if (x->renews)
            take_session_response(x, STR_NONE);
        else
            exchange_free(x);
        if (initialized)
            listen_to_server(t);
    } else if (!body.len) {
        fail(x, UPSTREAM_BROKEN, "no_answer", -1, STR_FMT " sent no response (status %d)", STR_ARG(origin(x)),
             x->status);
    } else if (!json) {
        fail(x, UPSTREAM_BROKEN, "invalid_json", -1,
             STR_FMT " answered with %s instead of JSON: check that the upstream's url is that of "
                     "an MCP server",
             STR_ARG(origin(x)), x->type[0] ? x->type : "something");
    } else if (deliver(x, body)) {
        /* NOLINTBEGIN(clang-analyzer-unix.Malloc): deliver returned true, so x lives */
        fail(x, UPSTREAM_BROKEN, "invalid_json", -1, STR_FMT " answered with no JSON-RPC response",
             STR_ARG(origin(x)));
        /* NOLINTEND(clang-analyzer-unix.Malloc) */
    }
}

static void take_status(struct exchange *x)
{
    int status = x->status;
    struct str body = str_trim(buf_view(&x->body));
    struct mcp_message message = {0};
    if (status >= 400)
        message = mcp_message_scan(body);
    if (status >= 200 && status < 300) {
        take_body(x);
    } else if ((status == 404 || !x->renewed) && has_lost_session(x, body)) {
        ask_in_next_session(x);
    } else if (status >= 400 && status != 401 && status != 403 && is_response_to(x, &message) &&
               (status == 500 ? message.id.len : !http_response_is_transient(status))) {
        if (deliver(x, body)) /* a JSON-RPC error with an HTTP status */
            exchange_free(x); /* NOLINT(clang-analyzer-unix.Malloc): deliver returned true, so x lives */
    } else if (status == 401 && !x->renewed && mcp_http_reload_headers(x->transport)) {
        x->renewed = true;
        post_now(x);
    } else {
        fail_status(x);
    }
}

/* A stream that ended in order may lack the empty line behind its last event. An event that was broken off is
 * none: the stream is resumed before it. False: the exchange is gone, or waits for another session. */
static bool take_last_event(struct exchange *x)
{
    struct str last_id = arena_dup(x->arena, sse_last_id(&x->sse)), end = STR_LIT("\n\n\n");
    struct sse_event event;
    if (sse_next(&x->sse, &end, &event) == SSE_EVENT &&
        mcp_message_scan(event.data).kind >= MCP_MESSAGE_RESPONSE)
        return deliver(x, event.data);
    x->sse.last_id.len = 0;
    buf_str(&x->sse.last_id, last_id);
    return true;
}

static void on_done(void *owner, const struct fetch_end *end)
{
    struct exchange *x = owner;
    bool done = end->how == FETCH_DONE;
    char why[FETCH_WHY_MAX_BYTES];
    x->fetch = NULL;
    snprintf(why, sizeof(why), "%s", done ? "" : end->why);
    if (x->streams && done && x->id && !x->answered && !take_last_event(x))
        return;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): take_last_event returned true, so x lives */
    bool refused = x->status && x->status < 500 && x->status != 429; /* a server need not have a GET stream */
    if (x->answered || (x->listens && !x->streams && refused))
        exchange_free(x);
    else if (x->listens || x->streams)
        resume(x, done && !x->listens ? "its stream ended" : why);
    else if (x->resumes && done)
        fail(x, UPSTREAM_TRANSIENT, "broken_off", x->after_s,
             STR_FMT " broke its stream off before it had answered, and does not resume it "
                     "(status %d)",
             STR_ARG(origin(x)), x->status);
    else if (x->resumes)
        resume(x, why);
    else if (!done)
        fail(x, http_failures[end->how].outcome, http_failures[end->how].code, -1, "%s", why);
    else
        take_status(x);
}
