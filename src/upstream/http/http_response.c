/*
 * What an answer means for the model: a value, a refusal of the service in
 * its own words (quoted), a failure that will pass, or nonsense. What went out
 * as a secret is hidden before anything is read.
 */
#include "upstream/http/http_tool_internal.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"

#include <stdio.h>

#define BYTE_ORDER_MARK "\xEF\xBB\xBF" /* some services begin their texts with it */

static struct str origin(const struct http_call *call)
{
    return fetch_origin(str_of(call->request.url));
}

/* ---- failures --------------------------------------------------------------------- */

const struct http_failure http_failures[] = {
    [FETCH_UNREACHABLE] = {UPSTREAM_TRANSIENT, "unreachable"},
    [FETCH_TIMEOUT] = {UPSTREAM_TRANSIENT, "timeout"},
    [FETCH_DISCONNECTED] = {UPSTREAM_TRANSIENT, "broken_off"},
    [FETCH_TOO_LARGE] = {UPSTREAM_BROKEN, "too_large"},
    [FETCH_NOT_HTTP] = {UPSTREAM_BROKEN, "invalid_http"},
};

void http_response_fail(struct upstream_call *run, const struct fetch_end *end)
{
    upstream_call_answer(run, http_failures[end->how].outcome, http_failures[end->how].code, "%s", end->why);
    run->answer->reached = end->sent;
}

bool http_response_is_transient(int status)
{
    return status == 408 || status == 425 || status == 429 || status >= 500;
}

static void judge_error(struct upstream_call *run, const struct http_call *call, struct http_answer *answer,
                        struct str body)
{
    struct str from = origin(call);
    char code[16];
    snprintf(code, sizeof(code), "http_%d", answer->status);
    run->answer->quoted = http_response_error_message(run->arena, answer->type, body);
    if (http_response_is_transient(answer->status))
        upstream_call_answer(run, UPSTREAM_TRANSIENT, code, STR_FMT " answered with status %d%s",
                             STR_ARG(from), answer->status,
                             answer->status == 429 ? ": too many requests" : "");
    else if (answer->status == 401 || answer->status == 403)
        upstream_call_answer(
            run, answer->status == 401 ? UPSTREAM_UNAVAILABLE : UPSTREAM_REFUSED, code,
            STR_FMT " does not let us do this (status %d): whoever runs this gateway may have to set other "
                    "credentials (headers of %s), the same call will not pass before",
            STR_ARG(from), answer->status, call->base ? "the upstream" : "http");
    else if (answer->status < 400)
        upstream_call_answer(run, UPSTREAM_BROKEN, code,
                             STR_FMT " redirects to " STR_FMT
                                     " (status %d), which is not followed: the address of the tool is "
                                     "for its operator to mend",
                             STR_ARG(from),
                             STR_ARG(answer->redirect.len ? answer->redirect : STR_LIT("elsewhere")),
                             answer->status);
    else
        upstream_call_answer(run, UPSTREAM_REFUSED, code, STR_FMT " answered with status %d", STR_ARG(from),
                             answer->status);
}

/* ---- values ------------------------------------------------------------------------- */

static bool is_utf8(struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = str_utf8_length(text.at + i, text.at + text.len);
        if (!n || !text.at[i])
            return false;
        i += n;
    }
    return true;
}

/* Also where it isn't declared: services call JSON text/plain, or nothing at all. */
static bool should_be_json(struct str type, struct str body)
{
    return str_contains_nocase(type, STR_LIT("json")) || str_starts(body, "{") || str_starts(body, "[");
}

static bool read_value(struct upstream_call *run, const struct http_call *call,
                       const struct http_answer *answer, struct str body, struct json *value)
{
    struct json_error fault = {0};
    if (str_starts(body, BYTE_ORDER_MARK))
        body = str_from(body, sizeof(BYTE_ORDER_MARK) - 1);
    struct str trimmed = str_trim(body);
    bool declared = str_contains_nocase(answer->type, STR_LIT("json"));
    if (!trimmed.len) {
        *value = json_null();
        return true;
    }
    if (should_be_json(answer->type, trimmed) &&
        (json_parse(run->arena, body, NULL, value, &fault) == OK || fault.soft))
        return true;
    if (declared) {
        upstream_call_answer(run, UPSTREAM_BROKEN, "invalid_json",
                             STR_FMT " answered with JSON that is none: %s", STR_ARG(origin(call)),
                             fault.text);
        return false;
    }
    if (!is_utf8(body)) {
        upstream_call_answer(run, UPSTREAM_BROKEN, "not_text",
                             STR_FMT " answered with %zu bytes that are neither JSON nor text",
                             STR_ARG(origin(call)), body.len);
        return false;
    }
    *value = json_string(body);
    return true;
}

/* "data.items", "rows.0.name": a number takes an item of a list. */
static const struct json *step_into(const struct json *value, struct str name)
{
    size_t at = 0, i = 0;
    if (!json_is(value, JSON_ARRAY))
        return json_get(value, name);
    for (; i < name.len && i < 9 && name.at[i] >= '0' && name.at[i] <= '9'; i++)
        at = at * 10 + (size_t)(name.at[i] - '0');
    return i == name.len && at < value->len ? &value->items[at] : NULL;
}

static const struct json *pick(const struct json *value, struct str path)
{
    while (value && path.len) {
        const char *dot = memchr(path.at, '.', path.len);
        struct str name = {path.at, dot ? (size_t)(dot - path.at) : path.len};
        value = step_into(value, name);
        path = str_from(path, name.len + 1);
    }
    return value;
}

/* The answer to HEAD has nothing but these. */
static struct json head_value(struct arena *arena, const struct http_answer *answer)
{
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, answer->told_count + 1);
    members[0] = json_member(STR_LIT("status"), json_integer(arena, answer->status));
    for (size_t i = 0; i < answer->told_count; i++)
        members[i + 1] = json_member(answer->told[i].name, json_string(answer->told[i].value));
    return json_object(arena, members, answer->told_count + 1);
}

static void judge_value(struct upstream_call *run, const struct http_call *call,
                        const struct http_answer *answer, struct str body)
{
    struct json *value = ARENA_NEW(run->arena, struct json);
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

void http_response_read(struct upstream_call *run, const struct http_call *call, struct http_answer *answer)
{
    struct str body = arena_dup(run->arena, buf_view(&answer->body));
    body = secrets_redact(run->arena, &call->secrets, body);
    run->answer->reached = true;
    run->answer->after_s = answer->after_s;
    if (answer->status < 200 || answer->status > 299)
        judge_error(run, call, answer, body);
    else
        judge_value(run, call, answer, body);
}
