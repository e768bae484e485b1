/*
 * One POST and its answer: JSON, a stream of events that may break off and be
 * resumed, or a status that says why not. Whatever comes, the one that waits
 * is told once: after each answer that may not have been one, it "failed",
 * which is nothing to whoever was answered.
 *
 *   post ─▶ head ─▶ JSON ───────────────────▶ told
 *                └▶ events ─▶ told, told … ─▶ broken off ─▶ GET with Last-Event-ID ─▶ events …
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"
#include "upstream/http/http_tool_internal.h"
#include "upstream/mcp/mcp_message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- their lives ---------------------------------------------------------------------- */

struct exchange *exchange_new(struct mcp_transport *t, uint64_t id, const char *method, struct str name,
                              struct str message)
{
    struct exchange *x = calloc(1, sizeof(*x));
    if (!x)
        abort();
    x->transport = t;
    x->id = id;
    snprintf(x->method, sizeof(x->method), "%s", method ? method : "");
    buf_str(&x->name, name);
    buf_str(&x->message, message);
    sse_init(&x->sse, UPSTREAM_LINE_MAX_BYTES);
    x->after_s = -1;
    x->next = t->exchanges;
    if (x->next)
        x->next->previous = x;
    t->exchanges = x;
    return x;
}

void exchange_free(struct exchange *x)
{
    struct mcp_transport *t = x->transport;
    if (t->telling == x)
        t->telling = NULL;
    if (x->fetch)
        fetch_cancel(x->fetch);
    timer_clear(&x->timer);
    if (x->next)
        x->next->previous = x->previous;
    if (x->previous)
        x->previous->next = x->next;
    else
        t->exchanges = x->next;
    sse_clear(&x->sse);
    buf_clear(&x->body);
    buf_clear(&x->name);
    buf_clear(&x->message);
    free(x);
}

void exchange_fail(struct exchange *x, enum upstream_outcome how, const char *code, int64_t after_s,
                   const char *format, ...)
{
    struct mcp_transport *t = x->transport;
    uint64_t id = x->id;
    bool ours = x->ours;
    char why[FETCH_WHY_MAX_BYTES], says[sizeof(x->says)];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    memcpy(says, x->says, sizeof(says));
    exchange_free(x);
    if (ours)
        mcp_http_session_failed(t, why, says);
    else if (id)
        t->hooks->failed(t->owner, id, how, code, why, str_of(says), after_s);
}

/* ---- what a status says -------------------------------------------------------------------- */

static struct str origin(const struct exchange *x)
{
    return fetch_origin(str_of(x->transport->url));
}

static void keep_text(char *into, size_t room, struct str text)
{
    snprintf(into, room, STR_FMT, STR_ARG(str_cut(text, room - 1)));
}

/* Of the body, our secrets hidden. */
static void keep_what_it_says(struct exchange *x)
{
    struct arena *arena = arena_new();
    struct str text = secrets_redact(arena, &x->transport->secrets, buf_view(&x->body));
    keep_text(x->says, sizeof(x->says), http_response_error_message(arena, str_of(x->type), text));
    arena_free(arena);
}

static void fail_status(struct exchange *x)
{
    struct str from = origin(x);
    char code[16];
    int status = x->status;
    keep_what_it_says(x);
    snprintf(code, sizeof(code), "http_%d", status);
    if (status == 408 || status == 425 || status == 429 || status >= 500)
        exchange_fail(x, UPSTREAM_TRANSIENT, code, x->after_s, STR_FMT " answered with status %d",
                      STR_ARG(from), status);
    else if (status == 401 || status == 403)
        exchange_fail(x, UPSTREAM_UNAVAILABLE, code, -1,
                      STR_FMT " does not let us in (status %d): whoever runs this gateway has to give the "
                              "upstream credentials, as headers = { Authorization = \"Bearer ${NAME}\" }",
                      STR_ARG(from), status);
    else if (status >= 300 && status < 400)
        exchange_fail(x, UPSTREAM_UNAVAILABLE, code, -1,
                      STR_FMT
                      " redirects to %s (status %d), which is not followed: write that address in the "
                      "upstream's url",
                      STR_ARG(from), x->redirect[0] ? x->redirect : "elsewhere", status);
    else if (status == 404 || status == 405)
        exchange_fail(x, UPSTREAM_REFUSED, code, -1,
                      STR_FMT " answered with status %d: there is no MCP server at this path of it, look at "
                              "the upstream's url",
                      STR_ARG(from), status);
    else
        exchange_fail(x, UPSTREAM_REFUSED, code, -1, STR_FMT " answered with status %d", STR_ARG(from),
                      status);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool is_answer_to(const struct exchange *x, struct str text)
{
    struct mcp_message line = mcp_message_scan(text);
    return x->id && line.kind == MCP_MESSAGE_RESPONSE && mcp_message_own_id(line.id) == x->id;
}

/* False: the exchange is gone, forgotten by whoever was told. */
static bool tell(struct exchange *x, struct str text)
{
    struct mcp_transport *t = x->transport;
    x->answered |= is_answer_to(x, text);
    t->telling = x;
    if (x->answered && t->modern && strcmp(x->method, "tools/list") == 0)
        header_mapping_learn(&t->mirror, text, !memmem(x->message.at, x->message.len, "\"cursor\"", 8));
    if (x->ours)
        mcp_http_session_response(x, text);
    else
        mcp_http_deliver(t, x->id, text);
    bool lives = t->telling == x;
    t->telling = NULL;
    return lives;
}

static void on_lingered(void *owner)
{
    exchange_free(owner);
}

static void give_up_too_large(struct exchange *x)
{
    exchange_fail(x, UPSTREAM_BROKEN, "too_large", -1, STR_FMT " sends a message of more than %u MiB",
                  STR_ARG(origin(x)), UPSTREAM_LINE_MAX_BYTES >> 20);
}

static void take_events(struct exchange *x, struct str bytes)
{
    struct sse_event event;
    enum sse_result got;
    while ((got = sse_next(&x->sse, &bytes, &event)) == SSE_EVENT) {
        x->resumes = 0;
        if (!str_is(event.type, "message") || !event.data.len)
            continue;
        if (!tell(x, event.data))
            return;
    }
    if (got == SSE_TOO_LONG)
        give_up_too_large(x);
    else if (x->answered && !timer_is_set(&x->timer))
        timer_set(&x->timer, x->transport->loop, STREAM_LINGER_MS, on_lingered, x);
}

static void on_data(void *owner, struct str bytes)
{
    struct exchange *x = owner;
    if (x->streams)
        take_events(x, bytes);
    else if (x->body.len + bytes.len > UPSTREAM_LINE_MAX_BYTES)
        give_up_too_large(x);
    else
        buf_str(&x->body, bytes);
}

/* A status of success without events: one answer, or none where none is wanted. */
static void take_body(struct exchange *x)
{
    struct str body = str_trim(buf_view(&x->body));
    bool json = str_contains_nocase(str_of(x->type), STR_LIT("json")) || str_starts(body, "{");
    struct mcp_transport *t = x->transport;
    bool starts = strcmp(x->method, "notifications/initialized") == 0;
    if (!x->id) {
        if (x->ours)
            mcp_http_session_response(x, STR_NONE);
        else
            exchange_free(x);
        if (starts)
            mcp_http_listen_start(t);
        return;
    }
    if (!body.len)
        exchange_fail(x, UPSTREAM_BROKEN, "no_answer", -1,
                      STR_FMT " took the request and gave no answer (status %d)", STR_ARG(origin(x)),
                      x->status);
    else if (!json)
        exchange_fail(
            x, UPSTREAM_BROKEN, "invalid_json", -1,
            STR_FMT
            " answered with %s instead of JSON: look whether the upstream's url is that of an MCP server",
            STR_ARG(origin(x)), x->type[0] ? x->type : "something");
    else if (tell(x, body))
        exchange_fail(x, UPSTREAM_BROKEN, "invalid_json", -1,
                      STR_FMT " answered with something else than an answer", STR_ARG(origin(x)));
}

/* A refusal that is an answer all the same; others than these say more by their status. */
static bool is_error_answer(const struct exchange *x)
{
    bool speaks = x->status >= 400 && x->status < 500 && x->status != 401 && x->status != 403 &&
                  x->status != 408 && x->status != 425 && x->status != 429;
    return speaks && is_answer_to(x, str_trim(buf_view(&x->body)));
}

/* ---- streams that break off --------------------------------------------------------------------- */

static void on_head(void *owner, const struct fetch_head *head);
static void on_done(void *owner, const struct fetch_end *end);
static const struct fetch_hooks hooks = {.head = on_head, .data = on_data, .done = on_done};

static void on_trouble(void *owner)
{
    struct exchange *x = owner;
    exchange_fail(x, UPSTREAM_UNAVAILABLE, "unreachable", -1, "%s", x->trouble);
}

/* What could not even begin is told from the loop's turn, as everything is. */
static void begin(struct exchange *x, const struct fetch_request *request)
{
    struct why why = {0};
    x->streams = false;
    x->status = 0;
    x->body.len = 0;
    x->fetch = fetch_start(x->transport->loop, request, &hooks, x, &why);
    if (x->fetch)
        return;
    snprintf(x->trouble, sizeof(x->trouble), "%.500s", why.text);
    timer_set(&x->timer, x->transport->loop, 0, on_trouble, x);
}

static void on_resume(void *owner)
{
    struct exchange *x = owner;
    struct arena *arena = arena_new();
    const struct name_value more[] = {{STR_LIT("Accept"), STR_LIT("text/event-stream")},
                                      {STR_LIT("Last-Event-ID"), sse_last_id(&x->sse)}};
    struct fetch_request request =
        mcp_http_request(x->transport, arena, "GET", (struct name_values){more, 2});
    request.repeatable = true;
    begin(x, &request);
    arena_free(arena);
}

static void resume(struct exchange *x, const char *why)
{
    bool can = x->id && !x->transport->modern && sse_last_id(&x->sse).len && x->resumes < STREAM_RESUMES_MAX;
    if (!can) {
        exchange_fail(x, UPSTREAM_TRANSIENT, "broken_off", -1, "%s before it had answered", why);
        return;
    }
    uint32_t wait_ms = (x->sse.retry_ms ? x->sse.retry_ms : STREAM_RETRY_MS) << x->resumes;
    x->resumes++;
    sse_restart(&x->sse);
    timer_set(&x->timer, x->transport->loop, wait_ms < STREAM_RETRY_MAX_MS ? wait_ms : STREAM_RETRY_MAX_MS,
              on_resume, x);
}

/* ---- what libcurl tells ----------------------------------------------------------------------- */

/* The session that the server gave us; one that can't be sent back is none. */
static void keep_session(struct mcp_transport *t, struct str id)
{
    t->session.len = 0;
    if (id.len && id.len <= STREAM_SESSION_BYTES && fetch_header_is_safe(STR_LIT("x"), id))
        buf_str(&t->session, id);
}

static void on_head(void *owner, const struct fetch_head *head)
{
    struct exchange *x = owner;
    struct str type = fetch_header(head, "content-type");
    x->status = head->status;
    x->after_s = head->after_s;
    keep_text(x->type, sizeof(x->type), type);
    keep_text(x->redirect, sizeof(x->redirect), head->redirect);
    x->streams = x->id && head->status >= 200 && head->status < 300 &&
                 str_contains_nocase(type, STR_LIT("text/event-stream"));
    if (strcmp(x->method, "initialize") == 0 && head->status >= 200 && head->status < 300)
        keep_session(x->transport, fetch_header(head, "mcp-session-id"));
}

static void judge_status(struct exchange *x)
{
    bool in_session = x->transport->session.len && !x->transport->modern && !x->ours;
    if (x->status >= 200 && x->status < 300)
        take_body(x);
    else if (x->status == 404 && in_session && strcmp(x->method, "initialize") != 0)
        mcp_http_session_renew(x);
    else if (is_error_answer(x)) {
        if (tell(x, str_trim(buf_view(&x->body))))
            exchange_free(x);
    } else if (x->status == 401 && !x->renewed && mcp_http_reload_headers(x->transport)) {
        x->renewed = true;
        exchange_post(x);
    } else {
        fail_status(x);
    }
}

static void on_done(void *owner, const struct fetch_end *end)
{
    struct exchange *x = owner;
    char why[FETCH_WHY_MAX_BYTES];
    x->fetch = NULL;
    snprintf(why, sizeof(why), "%s", end->how == FETCH_DONE ? "" : end->why);
    if (x->answered)
        exchange_free(x);
    else if (x->streams)
        resume(x, end->how == FETCH_DONE ? "its stream ended" : why);
    else if (x->resumes && end->how == FETCH_DONE)
        exchange_fail(x, UPSTREAM_TRANSIENT, "broken_off", x->after_s,
                      STR_FMT
                      " broke its stream off before it had answered, and does not go on with it (status %d)",
                      STR_ARG(origin(x)), x->status);
    else if (x->resumes)
        resume(x, why);
    else if (end->how != FETCH_DONE)
        exchange_fail(x, http_failures[end->how].outcome, http_failures[end->how].code, -1, "%s", why);
    else
        judge_status(x);
}

/* ---- sending ------------------------------------------------------------------------------------- */

/* Beside those that every message has. */
static struct name_values headers_of(const struct exchange *x, struct arena *arena)
{
    const struct mcp_transport *t = x->transport;
    struct str name = buf_view(&x->name);
    bool calls = t->modern && strcmp(x->method, "tools/call") == 0;
    struct name_values marked = calls ? header_mapping_headers(&t->mirror, arena, name, buf_view(&x->message))
                                      : (struct name_values){0};
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, marked.count + 4);
    size_t count = 0;
    list[count++] = (struct name_value){STR_LIT("Content-Type"), STR_LIT("application/json")};
    list[count++] = (struct name_value){STR_LIT("Accept"), STR_LIT("application/json, text/event-stream")};
    if (t->modern && x->method[0])
        list[count++] = (struct name_value){STR_LIT("Mcp-Method"), str_of(x->method)};
    if (t->modern && name.len)
        list[count++] = (struct name_value){STR_LIT("Mcp-Name"), header_mapping_encode(arena, name)};
    for (size_t i = 0; i < marked.count; i++)
        list[count++] = marked.list[i];
    return (struct name_values){list, count};
}

void exchange_post(struct exchange *x)
{
    struct arena *arena = arena_new();
    struct fetch_request request = mcp_http_request(x->transport, arena, "POST", headers_of(x, arena));
    request.body = buf_view(&x->message);
    request.has_body = true;
    request.total_ms = x->id ? 0 : STREAM_NOTE_MS;
    begin(x, &request);
    arena_free(arena);
}
