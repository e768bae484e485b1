/*
 * What an answer means: a value, a refusal in the service's own words
 * (quoted), a transient failure, or a broken result. Secrets that were sent
 * are redacted before anything is read.
 */
#include "upstream/http/http_tool_internal.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#include <stdio.h>

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
        if (!found.len && (value.type == JSON_OBJECT || value.type == JSON_ARRAY) && value.len) {
            struct buf whole = buf_in(arena);
            json_write(&whole, &value);
            found = buf_view(&whole);
        }
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

/* The answer to HEAD has only a status and headers. */
static struct json head_value(struct arena *arena, const struct http_answer *answer)
{
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, answer->header_count + 1);
    members[0] = json_member(STR_LIT("status"), json_integer(arena, answer->status));
    for (size_t i = 0; i < answer->header_count; i++)
        members[i + 1] = json_member(answer->headers[i].name, json_string(answer->headers[i].value));
    return json_object(arena, members, answer->header_count + 1);
}

void http_response_read(struct upstream_call *run, const struct http_call *call, struct http_answer *answer)
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
    if (str_is(call->spec->method, "HEAD"))
        *value = head_value(run->arena, answer);
    else if (!read_value(run, call, answer, body, value))
        return;
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
