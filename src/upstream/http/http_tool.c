/*
 * One call of an HTTP endpoint. http_request.c builds the request; what an answer means is decided here: a
 * value, a refusal in the service's own words (quoted), a transient failure, or a broken result. Secrets that
 * were sent are redacted before anything is read.
 */
#include "upstream/http/http_tool_internal.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#include <stdio.h>

struct http_answer {
    int status;
    struct str type, redirect;        /* of the head */
    const struct name_value *headers; /* the result of HEAD */
    size_t header_count;
    int64_t after_s;
    struct buf body;
};

static struct str origin(const struct http_call *call)
{
    return fetch_origin(str_of(call->request.url));
}

static bool is_text(struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = str_utf8_length(text.at + i, text.at + text.len);
        if (!n || !text.at[i])
            return false;
        i += n;
    }
    return true;
}

const struct http_failure http_failures[] = {
    [FETCH_UNREACHABLE] = {UPSTREAM_TRANSIENT, "unreachable"},
    [FETCH_TIMEOUT] = {UPSTREAM_TRANSIENT, "timeout"},
    [FETCH_DISCONNECTED] = {UPSTREAM_TRANSIENT, "broken_off"},
    [FETCH_TOO_LARGE] = {UPSTREAM_BROKEN, "too_large"},
    [FETCH_NOT_HTTP] = {UPSTREAM_BROKEN, "invalid_http"},
};

bool http_response_is_transient(int status)
{
    return status == 408 || status == 425 || status == 429 || status >= 500;
}

/* RFC 9457's problem details, {"error": {"message"}}, {"message"}, {"errors": […]}. An object inside often
 * has a better sentence than a member of the root, so it is searched first. */
static struct str find_message(const struct json *value, unsigned depth)
{
    static const char *const messages[] = {"detail", "message", "error_description", "error", "msg",
                                           "reason", "title",   "description",       NULL};
    static const char *const containers[] = {"error", "errors", "detail", "fault", "data", NULL};
    struct str found = STR_NONE;
    if (!value || depth > 3)
        return STR_NONE;
    if (value->type == JSON_ARRAY)
        return value->len ? find_message(&value->items[0], depth + 1) : STR_NONE;
    if (value->type != JSON_OBJECT)
        return json_str(value);
    for (unsigned pass = 0; pass < 2 && !found.len; pass++) {
        bool inside = (pass == 0) == (depth == 0);
        const char *const *names = inside ? containers : messages;
        for (; !found.len && *names; names++) {
            const struct json *member = json_get_text(value, *names);
            found = inside ? find_message(member, depth + 1) : json_str(member);
        }
    }
    return found;
}

struct str http_response_error_message(struct arena *arena, struct str type, struct str body)
{
    struct json value;
    struct json_error error;
    struct str found = STR_NONE;
    if (json_parse(arena, body, NULL, &value, &error) == OK) {
        found = find_message(&value, 0);
        if (!found.len && (value.type == JSON_OBJECT || value.type == JSON_ARRAY) && value.len)
            found = json_to_str(arena, &value);
    } else if (!str_contains_nocase(type, STR_LIT("html")) && !str_contains_nocase(type, STR_LIT("xml")) &&
               !str_starts(str_trim(body), "<") && is_text(body)) {
        found = str_trim(body);
    }
    return str_cut(found, HTTP_QUOTED_BYTES);
}

static void read_error(struct upstream_call *run, const struct http_call *call,
                       const struct http_answer *answer, struct str body)
{
    struct str from = origin(call);
    int status = answer->status;
    char code[16];
    snprintf(code, sizeof(code), "http_%d", status);
    run->answer->quoted = http_response_error_message(run->arena, answer->type, body);
    if (http_response_is_transient(status))
        upstream_call_answer(run, UPSTREAM_TRANSIENT, code, STR_FMT " answered with status %d%s",
                             STR_ARG(from), status, status == 429 ? ": too many requests" : "");
    else if (status == 401 || status == 403)
        upstream_call_answer(run, status == 401 ? UPSTREAM_UNAVAILABLE : UPSTREAM_REFUSED, code,
                             STR_FMT " denies access (status %d): the operator may have to set other "
                                     "credentials (headers of %s); until then the same call fails",
                             STR_ARG(from), status, call->base ? "the upstream" : "http");
    else if (status < 400)
        upstream_call_answer(
            run, UPSTREAM_BROKEN, code,
            STR_FMT " redirects to " STR_FMT
                    " (status %d), which is not followed: the operator has to fix the tool's address",
            STR_ARG(from), STR_ARG(answer->redirect.len ? answer->redirect : STR_LIT("elsewhere")), status);
    else
        upstream_call_answer(run, UPSTREAM_REFUSED, code, STR_FMT " answered with status %d", STR_ARG(from),
                             status);
}

/* JSON, also if it is not declared: services call it text/plain, or nothing at all. Else text. */
static bool read_value(struct upstream_call *run, const struct http_call *call,
                       const struct http_answer *answer, struct str body, struct json *value)
{
    struct json_error error = {0};
    body = json_skip_byte_order_mark(body);
    struct str trimmed = str_trim(body);
    bool declared = str_contains_nocase(answer->type, STR_LIT("json"));
    if (!trimmed.len) {
        *value = json_null();
        return true;
    }
    if ((declared || str_starts(trimmed, "{") || str_starts(trimmed, "[")) &&
        (json_parse(run->arena, body, NULL, value, &error) == OK || error.soft))
        return true;
    if (declared) {
        upstream_call_answer(run, UPSTREAM_BROKEN, "invalid_json", STR_FMT " answered with invalid JSON: %s",
                             STR_ARG(origin(call)), error.text);
        return false;
    }
    if (!is_text(body)) {
        upstream_call_answer(run, UPSTREAM_BROKEN, "not_text",
                             STR_FMT " answered with %zu bytes that are neither JSON nor text",
                             STR_ARG(origin(call)), body.len);
        return false;
    }
    *value = json_string(body);
    return true;
}

/* "data.items", "rows.0.name": a number selects an item of a list. */
static const struct json *pick(const struct json *value, struct str path)
{
    while (value && path.len) {
        const char *dot = memchr(path.at, '.', path.len);
        struct str name = {path.at, dot ? (size_t)(dot - path.at) : path.len};
        size_t at = 0, i = 0;
        while (i < name.len && i < 9 && name.at[i] >= '0' && name.at[i] <= '9')
            at = at * 10 + (size_t)(name.at[i++] - '0');
        if (json_is(value, JSON_ARRAY))
            value = i == name.len && at < value->len ? &value->items[at] : NULL;
        else
            value = json_get(value, name);
        path = str_from(path, name.len + 1);
    }
    return value;
}

/* Fills in the answer of `run`. */
static void read_answer(struct upstream_call *run, const struct http_call *call,
                        const struct http_answer *answer)
{
    struct str body = arena_dup(run->arena, buf_view(&answer->body));
    struct json *value = ARENA_NEW(run->arena, struct json);
    body = secrets_redact(run->arena, &call->secrets, body);
    run->answer->reached = true;
    run->answer->after_s = answer->after_s;
    if (answer->status < 200 || answer->status > 299) {
        read_error(run, call, answer, body);
        return;
    }
    if (str_is(call->spec->method, "HEAD")) { /* whose answer has only a status and headers */
        struct json_member *members = ARENA_ARRAY(run->arena, struct json_member, answer->header_count + 1);
        members[0] = json_member(STR_LIT("status"), json_integer(run->arena, answer->status));
        for (size_t i = 0; i < answer->header_count; i++)
            members[i + 1] = json_member(answer->headers[i].name, json_string(answer->headers[i].value));
        *value = json_object(run->arena, members, answer->header_count + 1);
    } else if (!read_value(run, call, answer, body, value)) {
        return;
    }
    const struct json *picked = pick(value, call->spec->pick);
    if (!picked) {
        upstream_call_answer(run, UPSTREAM_BROKEN, "pick_missing",
                             "the answer of " STR_FMT " has no '" STR_FMT "', which is its result",
                             STR_ARG(origin(call)), STR_ARG(call->spec->pick));
        return;
    }
    run->answer->outcome = UPSTREAM_RESULT;
    run->answer->result = picked;
}

/* ---- a call ---- */

struct work {
    struct http_call call;
    struct http_answer answer;
    struct fetch *fetch;
};

static struct str keep(struct upstream_call *run, struct str text)
{
    const struct work *work = run->work;
    return secrets_redact(run->arena, &work->call.secrets, arena_dup(run->arena, text));
}

static void on_head(void *owner, const struct fetch_head *head)
{
    static const char *const names[] = {"content-type", "content-length", "last-modified", "etag",
                                        "location"};
    struct upstream_call *run = owner;
    struct http_answer *answer = &((struct work *)run->work)->answer;
    size_t count = sizeof(names) / sizeof(names[0]);
    struct name_value *headers = ARENA_ARRAY(run->arena, struct name_value, count);
    answer->status = head->status;
    answer->after_s = head->after_s;
    answer->type = keep(run, fetch_header(head, "content-type"));
    answer->redirect = keep(run, head->redirect);
    answer->headers = headers;
    for (size_t i = 0; i < count; i++) {
        struct str value = fetch_header(head, names[i]);
        if (value.len)
            headers[answer->header_count++] = (struct name_value){str_of(names[i]), keep(run, value)};
    }
}

static void on_data(void *owner, struct str bytes)
{
    struct work *work = ((struct upstream_call *)owner)->work;
    buf_str(&work->answer.body, bytes);
}

static void on_done(void *owner, const struct fetch_end *end)
{
    struct upstream_call *run = owner;
    struct work *work = run->work;
    if (end->how == FETCH_DONE) {
        read_answer(run, &work->call, &work->answer);
    } else {
        upstream_call_answer(run, http_failures[end->how].outcome, http_failures[end->how].code, "%s",
                             end->why);
        run->answer->reached = end->sent;
    }
    buf_clear(&work->answer.body);
    run->finish(run);
}

static void stop(struct upstream_call *run)
{
    struct work *work = run->work;
    fetch_cancel(work->fetch);
    buf_clear(&work->answer.body);
}

/* The model can fix arguments, only the operator a setting. */
static enum upstream_call_state reject(struct upstream_call *run, enum err err, const struct why *why)
{
    if (err == ERR_PARSE)
        return upstream_call_answer(run, UPSTREAM_REFUSED, "invalid_arguments", "%s; nothing was sent",
                                    why->text);
    upstream_call_log_failure(run, STR_LIT("not_configured"), str_of(why->text));
    return upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "not_configured",
                                "a setting that its endpoint needs is missing: only the operator can fix "
                                "that; nothing was sent");
}

enum upstream_call_state http_tool_call(struct upstream_call *run)
{
    static const struct fetch_hooks hooks = {.head = on_head, .data = on_data, .done = on_done};
    struct why why = {0};
    struct work *work = ARENA_NEW(run->arena, struct work);
    work->call = (struct http_call){.arena = run->arena,
                                    .spec = run->request->target->http,
                                    .base = run->spec,
                                    .arguments = run->request->arguments,
                                    .trace = run->request->trace_context};
    work->answer.after_s = -1;
    run->work = work;
    enum err err = http_request_build(&work->call, &why);
    if (err != OK)
        return reject(run, err, &why);
    work->call.request.total_ms =
        upstream_call_timeout_ms(run, target_timeout_ms(run->request->target, run->spec));
    work->fetch = fetch_start(run->loop, &work->call.request, &hooks, run, &why);
    if (!work->fetch)
        return reject(run, ERR_UNAVAILABLE, &why);
    run->stop = stop;
    return UPSTREAM_PENDING;
}
