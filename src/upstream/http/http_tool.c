/*
 * One call of an HTTP endpoint: URL, headers and body from templates and arguments, and what the answer
 * means: a value, a refusal in the service's own words (quoted), a transient failure, or a broken result.
 * Secrets that were sent are redacted before anything is read.
 *
 * An argument stays within its place: in the path it is percent-encoded and may not be "." or ".." (not
 * between slashes either, since servers decode before they resolve), in a
 * header it cannot end the line, and it never selects the host.
 */
#include "upstream/http/http_tool.h"

#include "base/address_space.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/trace_context.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/secrets.h"
#include "upstream/upstream_call.h"

#include <ctype.h>

struct http_call {
    struct upstream_call *run;
    struct arena *arena; /* of `run` */
    const struct http_spec *spec;
    const struct upstream_spec *base; /* NULL: the spec has the whole URL */
    const struct json *arguments;     /* an object */
    const struct json **used;         /* those that URL or headers have taken */
    size_t used_count;
    struct secrets secrets; /* sent with the request, to be redacted in the answer */
    struct fetch_request request;
    struct fetch *fetch;
    /* of the answer */
    int status;
    struct str type, redirect;
    const struct name_value *headers; /* the result of HEAD */
    size_t header_count;
    int64_t after_s;
    struct buf body;
};

static const struct method {
    const char *name;
    bool in_query, idempotent;
} methods[] = {
    {"GET", true, true},  {"HEAD", true, true},   {"DELETE", true, true},
    {"PUT", false, true}, {"POST", false, false}, {"PATCH", false, false},
};

static const struct method *find_method(struct str name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (str_is(name, methods[i].name))
            return &methods[i];
    return NULL;
}

bool http_tool_is_idempotent(const struct http_spec *spec)
{
    const struct method *method = find_method(spec->method);
    return method && method->idempotent;
}

/* ---- templates -----------------------------------------------------------------------
 * {name} is an argument, ${NAME} a setting (secrets.h), $${ a literal ${. The value of an argument is data:
 * it is encoded and never read as a template itself. */

enum template_kind {
    TEMPLATE_TEXT,
    TEMPLATE_ARGUMENT, /* `text`: its name */
    TEMPLATE_SETTING,  /* `text`: "${NAME}" as written */
    TEMPLATE_BAD       /* `text`: from a brace that does not close, or encloses no name */
};

struct template_part {
    enum template_kind kind;
    struct str text;
};

/* Takes the next part from the front of *rest; false: the end. */
static bool next_part(struct str *rest, struct template_part *part)
{
    if (!rest->len)
        return false;
    bool setting = str_starts(*rest, "${");
    const char *close = memchr(rest->at, '}', rest->len);
    size_t n = close ? (size_t)(close - rest->at) + 1 : rest->len;
    struct str inside = {rest->at + 1, close ? n - 2 : 0};
    bool names = inside.len > 0;
    for (size_t i = 0; names && i < inside.len; i++)
        names = isalnum((unsigned char)inside.at[i]) || memchr("_-.", inside.at[i], 3);
    if (str_starts(*rest, "$${")) {
        *part = (struct template_part){TEMPLATE_TEXT, {rest->at + 1, 2}};
        n = 3;
    } else if (setting && close) {
        *part = (struct template_part){TEMPLATE_SETTING, {rest->at, n}};
    } else if (rest->at[0] == '{' && close && names) {
        *part = (struct template_part){TEMPLATE_ARGUMENT, inside};
    } else if (setting || rest->at[0] == '{') {
        *part = (struct template_part){TEMPLATE_BAD, {rest->at, n}};
    } else {
        for (n = 1; n < rest->len && rest->at[n] != '{'; n++)
            if (str_starts(str_from(*rest, n), "${") || str_starts(str_from(*rest, n), "$${"))
                break;
        *part = (struct template_part){TEMPLATE_TEXT, {rest->at, n}};
    }
    *rest = str_from(*rest, n);
    return true;
}

/* Percent-encodes everything but letters, digits and -._~ */
static void encode(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (isalnum(c) || memchr("-._~", c, 4))
            buf_byte(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

bool http_tool_argument(const struct http_spec *spec, size_t at, struct str *name)
{
    struct template_part part;
    for (size_t i = 0; i <= spec->headers.count; i++) {
        struct str rest = i ? spec->headers.list[i - 1].value : spec->url;
        while (next_part(&rest, &part))
            if (part.kind == TEMPLATE_ARGUMENT && at-- == 0) {
                *name = part.text;
                return true;
            }
    }
    return false;
}

static enum err check_template(struct str text, const char *where, struct why *why)
{
    struct template_part part;
    while (next_part(&text, &part))
        if (part.kind == TEMPLATE_BAD)
            return err_set(why, ERR_CONFIG, "%s has '" STR_FMT "': expected {argument} or ${SETTING}", where,
                           STR_ARG(str_cut(part.text, 40)));
    return OK;
}

/* An argument that selected the host could send our credentials to any host. */
static enum err check_host(struct str url, struct why *why)
{
    struct template_part part;
    size_t slashes = 0;
    while (slashes < 3 && next_part(&url, &part)) {
        if (part.kind == TEMPLATE_ARGUMENT)
            return err_set(why, ERR_CONFIG,
                           "{" STR_FMT "} is before the path: an argument may be in the path, the query or "
                           "a header, and never select the host",
                           STR_ARG(part.text));
        for (size_t i = 0; part.kind == TEMPLATE_TEXT && i < part.text.len; i++)
            slashes += part.text.at[i] == '/';
        if (part.kind == TEMPLATE_SETTING && !slashes)
            slashes = 2; /* ${BASE}/path: the setting has the scheme */
    }
    return OK;
}

enum err http_tool_check(const struct http_spec *spec, bool has_upstream, struct why *why)
{
    struct str url = spec->url;
    bool absolute = str_starts(url, "http://") || str_starts(url, "https://") || str_starts(url, "${");
    enum err err = OK;
    if (!find_method(spec->method))
        return err_set(why, ERR_CONFIG,
                       "expected \"GET …\", \"POST …\", PUT, PATCH, DELETE or HEAD, got '" STR_FMT "'",
                       STR_ARG(str_cut(spec->method, 20)));
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.at[i] <= ' ' || url.at[i] == '#')
            return err_set(why, ERR_CONFIG, "the URL contains a space, a line break or a '#'");
    if (has_upstream && !str_starts(url, "/"))
        return err_set(why, ERR_CONFIG,
                       "expected a path that begins with \"/\", since an upstream is named, got '" STR_FMT
                       "'",
                       STR_ARG(str_cut(url, 60)));
    if (!has_upstream && !absolute)
        return err_set(why, ERR_CONFIG,
                       "expected an address that begins with http:// or https://, or upstream = \"…\" beside "
                       "it, got '" STR_FMT "'",
                       STR_ARG(str_cut(url, 60)));
    if (!has_upstream)
        err = check_host(url, why);
    if (err == OK)
        err = check_template(url, "the URL", why);
    for (size_t i = 0; err == OK && i < spec->headers.count; i++) {
        const struct name_value *header = &spec->headers.list[i];
        if (!fetch_header_is_safe(header->name, header->value))
            return err_set(why, ERR_CONFIG, "the header '" STR_FMT "' cannot be sent",
                           STR_ARG(str_cut(header->name, 60)));
        err = check_template(header->value, "a header", why);
    }
    return err;
}

static bool is_used(const struct http_call *call, const struct json *argument)
{
    for (size_t i = 0; i < call->used_count; i++)
        if (call->used[i] == argument)
            return true;
    return false;
}

/* All of what is left, if the method has no body; else what `query` names. */
static bool is_in_query(const struct http_call *call, const struct json_member *member)
{
    bool named = !call->request.has_body;
    for (size_t i = 0; !named && i < call->spec->query_count; i++)
        named = str_eq(call->spec->query[i], member->key);
    return named && !is_used(call, &member->value);
}

/* False: a list, an object or null. */
static bool as_text(const struct json *value, struct str *out)
{
    bool plain = value->type == JSON_STRING || value->type == JSON_NUMBER;
    if (value->type == JSON_BOOL)
        *out = str_of(value->truth ? "true" : "false");
    else
        *out = plain ? (struct str){value->text, value->len} : STR_NONE;
    return plain || value->type == JSON_BOOL;
}

static bool has_dot_segment(struct str path)
{
    size_t from = 0;
    for (size_t i = 0; i <= path.len; i++) {
        if (i < path.len && path.at[i] != '/' && path.at[i] != '\\')
            continue;
        struct str segment = {path.at + from, i - from};
        if (str_is(segment, ".") || str_is(segment, ".."))
            return true;
        from = i + 1;
    }
    return false;
}

/* Looks up the argument of a placeholder in the URL or a header, and marks it as used. */
static enum err take_argument(struct http_call *call, struct str name, struct str *text, struct why *why)
{
    const struct json *argument = json_get(call->arguments, name);
    if (!argument || argument->type == JSON_NULL)
        return err_set(why, ERR_PARSE, "the argument '" STR_FMT "' is missing", STR_ARG(name));
    if (!as_text(argument, text))
        return err_set(why, ERR_PARSE,
                       "the argument '" STR_FMT "' must be a string, a number, true or false, got %s",
                       STR_ARG(name), json_type_name(argument->type));
    if (!text->len)
        return err_set(why, ERR_PARSE, "the argument '" STR_FMT "' must not be empty", STR_ARG(name));
    if (!is_used(call, argument))
        call->used[call->used_count++] = argument;
    return OK;
}

enum template_place { IN_URL, IN_HEADER };

/* `literal`: of an upstream, in which {name} is no placeholder. */
static enum err fill_in(struct http_call *call, struct buf *out, enum template_place place, struct str rest,
                        bool literal, struct why *why)
{
    struct template_part part;
    enum err err = OK;
    while (err == OK && next_part(&rest, &part)) {
        struct str text = part.text;
        if (part.kind == TEMPLATE_SETTING) {
            size_t slashes = 0;
            for (size_t i = 0; i < out->len; i++)
                slashes += out->at[i] == '/';
            /* The host is not redacted: it is no secret, and responses repeat it. */
            bool secret = place == IN_HEADER || (call->base && !literal) || slashes >= 3;
            err = secrets_expand(call->arena, text, secret ? &call->secrets : NULL, &text, why);
            err = err ? ERR_CONFIG : OK; /* ERR_PARSE blames an argument */
            buf_str(out, err ? STR_NONE : text);
        } else if (part.kind == TEMPLATE_ARGUMENT && literal && place == IN_HEADER) {
            buf_printf(out, "{" STR_FMT "}", STR_ARG(text));
        } else if (part.kind != TEMPLATE_ARGUMENT || literal) {
            buf_str(out, text);
        } else if ((err = take_argument(call, part.text, &text, why)) != OK) {
            break;
        } else if (place == IN_HEADER && !fetch_header_is_safe(STR_LIT("x"), text)) {
            err = err_set(why, ERR_PARSE,
                          "the argument '" STR_FMT "' goes into a header and must not hold line breaks",
                          STR_ARG(part.text));
        } else if (place == IN_HEADER) {
            buf_str(out, text);
        } else if (!str_has(buf_view(out), '?') && has_dot_segment(text)) {
            err = err_set(why, ERR_PARSE,
                          "the argument '" STR_FMT "' must not be '.' or '..', alone or between slashes",
                          STR_ARG(part.text));
        } else {
            encode(out, text);
        }
    }
    return err;
}

static void add_query(const struct http_call *call, struct buf *out)
{
    char separator = str_has(buf_view(out), '?') ? '&' : '?';
    for (uint32_t i = 0; i < call->arguments->len; i++) {
        const struct json_member *member = &call->arguments->members[i];
        bool is_list = member->value.type == JSON_ARRAY;
        uint32_t count = !is_in_query(call, member) ? 0 : is_list ? member->value.len : 1;
        for (uint32_t n = 0; n < count; n++) {
            const struct json *value = is_list ? &member->value.items[n] : &member->value;
            struct str text;
            if (value->type == JSON_NULL)
                continue;
            if (!as_text(value, &text))
                text = json_to_str(out->arena, value);
            buf_byte(out, separator);
            encode(out, member->key);
            buf_byte(out, '=');
            encode(out, text);
            separator = '&';
        }
    }
}

static enum err build_path(struct http_call *call, struct buf *url, struct why *why)
{
    struct buf path = buf_in(call->arena);
    enum err err = OK;
    if (call->base)
        err = fill_in(call, url, IN_URL, call->base->url, true, why);
    while (url->len && url->at[url->len - 1] == '/')
        url->len--;
    if (err == OK && str_has(buf_view(url), '?'))
        err = err_set(why, ERR_CONFIG,
                      "the upstream's url must not contain a query: put it into the url of each tool");
    if (err == OK)
        err = fill_in(call, &path, IN_URL, call->spec->url, false, why);
    if (err != OK)
        return err;
    struct str clean = {path.at, 0};
    while (clean.len < path.len && !strchr("?#", path.at[clean.len]))
        clean.len++;
    if (has_dot_segment(clean)) /* joined from parts, such as '.' and '.' */
        return err_set(why, ERR_PARSE, "with these arguments the path contains a '.' or '..' segment");
    buf_str(url, buf_view(&path));
    return OK;
}

static bool has_header(const struct name_value *list, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].name.len == name.len && strncasecmp(list[i].name.at, name.at, name.len) == 0)
            return true;
    return false;
}

size_t http_trace_headers(struct name_value *list, const struct trace_context *trace,
                          struct name_values configured)
{
    size_t count = 0;
    for (unsigned i = 0; trace && i < TRACE_KEYS; i++)
        if (trace->values[i].len && !has_header(configured.list, configured.count, trace_key_names[i]))
            list[count++] = (struct name_value){trace_key_names[i], trace->values[i]};
    return count;
}

static enum err build_headers(struct http_call *call, struct why *why)
{
    const struct name_values own = call->spec->headers;
    const struct name_values base = call->base ? call->base->headers : (struct name_values){0};
    struct name_value *list =
        ARENA_ARRAY(call->arena, struct name_value, own.count + base.count + 2 + TRACE_KEYS);
    size_t count = 0;
    enum err err = OK;
    for (size_t i = 0; err == OK && i < own.count + base.count; i++) {
        bool inherited = i >= own.count;
        const struct name_value *header = inherited ? &base.list[i - own.count] : &own.list[i];
        struct buf value = buf_in(call->arena);
        if (inherited && has_header(list, own.count, header->name))
            continue;
        err = fill_in(call, &value, IN_HEADER, header->value, inherited, why);
        if (inherited && !err)
            secrets_add_named(call->arena, &call->secrets, header->name, buf_view(&value));
        list[count++] = (struct name_value){header->name, buf_view(&value)};
    }
    if (!has_header(list, count, STR_LIT("accept")))
        list[count++] = (struct name_value){STR_LIT("Accept"), STR_LIT("application/json, */*;q=0.5")};
    if (call->request.has_body && !has_header(list, count, STR_LIT("content-type")))
        list[count++] = (struct name_value){STR_LIT("Content-Type"), STR_LIT("application/json")};
    count += http_trace_headers(list + count, call->run->request->trace_context,
                                (struct name_values){list, count});
    call->request.headers = (struct name_values){list, count};
    return err;
}

/* Fills in call->request. ERR_PARSE: an argument is at fault; other errors: a setting is. */
static enum err build_request(struct http_call *call, struct why *why)
{
    const struct http_spec *spec = call->spec;
    const struct method *method = find_method(spec->method);
    uint32_t count = call->arguments->len;
    struct str ca_file = spec->ca_file.len || !call->base ? spec->ca_file : call->base->ca_file;
    struct buf url = buf_in(call->arena);
    call->used = ARENA_ARRAY(call->arena, const struct json *, count);
    call->request = (struct fetch_request){.method = arena_dup(call->arena, spec->method).at,
                                           .repeatable = http_tool_is_idempotent(spec),
                                           .has_body = method && !method->in_query,
                                           .ca_file = ca_file.len ? arena_dup(call->arena, ca_file).at : NULL,
                                           .body_max = address_space_for_text(HTTP_BODY_BYTES)};
    enum err err = build_path(call, &url, why);
    if (err == OK)
        err = build_headers(call, why);
    if (err != OK)
        return err;
    add_query(call, &url);
    if (url.len > HTTP_URL_BYTES)
        return err_set(why, ERR_PARSE, "the arguments make an address of %zu bytes; at most %u can be sent",
                       url.len, HTTP_URL_BYTES);
    call->request.url = arena_dup(call->arena, buf_view(&url)).at;
    if (!call->request.has_body)
        return OK;
    /* The body has the arguments that neither URL, headers nor query have used. */
    struct buf body = buf_in(call->arena);
    struct json_out out = json_out(&body);
    json_open(&out, '{');
    for (uint32_t i = 0; i < count; i++) {
        const struct json_member *member = &call->arguments->members[i];
        if (is_used(call, &member->value) || is_in_query(call, member))
            continue;
        json_key_str(&out, member->key);
        json_put(&out, &member->value);
    }
    json_close(&out, '}');
    call->request.body = buf_view(&body);
    return OK;
}

/* ---- what a failed exchange means, and the message in the body of an error; for MCP, too ---- */

const struct http_failure http_failures[] = {
    [FETCH_UNREACHABLE] = {UPSTREAM_TRANSIENT, "unreachable"},
    [FETCH_MISCONFIGURED] = {UPSTREAM_UNAVAILABLE, "misconfigured"},
    [FETCH_TIMEOUT] = {UPSTREAM_TRANSIENT, "timeout"},
    [FETCH_DISCONNECTED] = {UPSTREAM_TRANSIENT, "broken_off"},
    [FETCH_TOO_LARGE] = {UPSTREAM_BROKEN, "too_large"},
    [FETCH_NOT_HTTP] = {UPSTREAM_BROKEN, "invalid_http"},
};

/* UTF-8 without NUL. */
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

bool http_response_is_transient(int status)
{
    return status == 408 || status == 425 || status == HTTP_TOO_MANY || status >= 500;
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
    struct str found = STR_NONE;
    if (json_parse(arena, body, NULL, &value, NULL) == OK) {
        found = find_message(&value, 0);
        if (!found.len && (value.type == JSON_OBJECT || value.type == JSON_ARRAY) && value.len)
            found = json_to_str(arena, &value);
    } else if (!str_contains_nocase(type, STR_LIT("html")) && !str_contains_nocase(type, STR_LIT("xml")) &&
               !str_starts(str_trim(body), "<") && is_text(body)) {
        found = str_trim(body);
    }
    return str_cut(found, HTTP_QUOTED_BYTES);
}

/* ---- the answer ---- */

static struct str origin(const struct http_call *call)
{
    return fetch_origin(str_of(call->request.url));
}

static void read_error(const struct http_call *call, struct str body)
{
    struct upstream_call *run = call->run;
    struct str from = origin(call);
    int status = call->status;
    const char *code = arena_printf(run->arena, "http_%d", status).at;
    run->answer->quoted = http_response_error_message(run->arena, call->type, body);
    if (status == 401 || status == 403)
        upstream_call_answer(run, status == 401 ? UPSTREAM_UNAVAILABLE : UPSTREAM_REFUSED, code,
                             STR_FMT " denies access (status %d): the operator may have to set other "
                                     "credentials (headers of %s); until then the same call fails",
                             STR_ARG(from), status, call->base ? "the upstream" : "http");
    else if (status < 400)
        upstream_call_answer(
            run, UPSTREAM_BROKEN, code,
            STR_FMT " redirects to " STR_FMT
                    " (status %d), which is not followed: the operator has to fix the tool's address",
            STR_ARG(from), STR_ARG(call->redirect.len ? call->redirect : STR_LIT("elsewhere")), status);
    else
        upstream_call_answer(run, http_response_is_transient(status) ? UPSTREAM_TRANSIENT : UPSTREAM_REFUSED,
                             code, STR_FMT " answered with status %d%s", STR_ARG(from), status,
                             status == HTTP_TOO_MANY ? ": too many requests" : "");
}

/* JSON, also if it is not declared: services call it text/plain, or nothing at all. Else text. */
static bool read_value(const struct http_call *call, struct str body, struct json *value)
{
    struct json_error error = {0};
    body = json_skip_byte_order_mark(body);
    struct str trimmed = str_trim(body);
    bool declared = str_contains_nocase(call->type, STR_LIT("json"));
    bool is_json = trimmed.len && (declared || str_starts(trimmed, "{") || str_starts(trimmed, "["));
    if (is_json && (json_parse(call->arena, body, NULL, value, &error) == OK || error.soft))
        return true;
    *value = trimmed.len ? json_string(body) : json_null();
    if (!trimmed.len || (!declared && is_text(body)))
        return true;
    if (declared)
        upstream_call_answer(call->run, UPSTREAM_BROKEN, "invalid_json",
                             STR_FMT " answered with invalid JSON: %s", STR_ARG(origin(call)), error.text);
    else
        upstream_call_answer(call->run, UPSTREAM_BROKEN, "not_text",
                             STR_FMT " answered with %zu bytes that are neither JSON nor text",
                             STR_ARG(origin(call)), body.len);
    return false;
}

/* "data.items", "rows.0.name": a number selects an item of a list. */
static const struct json *pick(const struct json *value, struct str path)
{
    while (value && path.len) {
        struct str name = str_split(&path, '.');
        size_t at = 0, i = 0;
        while (i < name.len && i < 9 && name.at[i] >= '0' && name.at[i] <= '9')
            at = at * 10 + (size_t)(name.at[i++] - '0');
        if (json_is(value, JSON_ARRAY))
            value = i == name.len && at < value->len ? &value->items[at] : NULL;
        else
            value = json_get(value, name);
    }
    return value;
}

static void read_answer(const struct http_call *call)
{
    struct upstream_call *run = call->run;
    struct str body = arena_dup(run->arena, buf_view(&call->body));
    struct json *value = ARENA_NEW(run->arena, struct json);
    body = secrets_redact(run->arena, &call->secrets, body);
    run->answer->reached = call->status != HTTP_TOO_MANY;
    run->answer->after_s = call->after_s;
    if (call->status < 200 || call->status > 299) {
        read_error(call, body);
        return;
    }
    if (str_is(call->spec->method, "HEAD")) { /* whose answer has only a status and headers */
        struct json_member *members = ARENA_ARRAY(run->arena, struct json_member, call->header_count + 1);
        members[0] = json_member(STR_LIT("status"), json_integer(run->arena, call->status));
        for (size_t i = 0; i < call->header_count; i++)
            members[i + 1] = json_member(call->headers[i].name, json_string(call->headers[i].value));
        *value = json_object(run->arena, members, call->header_count + 1);
    } else if (!read_value(call, body, value)) {
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

static struct str keep(const struct http_call *call, struct str text)
{
    return secrets_redact(call->arena, &call->secrets, arena_dup(call->arena, text));
}

static void on_head(void *owner, const struct fetch_head *head)
{
    static const char *const names[] = {"content-type", "content-length", "last-modified", "etag",
                                        "location"};
    struct http_call *call = owner;
    size_t count = sizeof(names) / sizeof(names[0]);
    struct name_value *headers = ARENA_ARRAY(call->arena, struct name_value, count);
    call->status = head->status;
    call->after_s = head->after_s;
    call->type = keep(call, fetch_header(head, "content-type"));
    call->redirect = str_cut(keep(call, head->redirect), FETCH_REDIRECT_BYTES);
    call->headers = headers;
    for (size_t i = 0; i < count; i++) {
        struct str value = fetch_header(head, names[i]);
        if (value.len)
            headers[call->header_count++] = (struct name_value){str_of(names[i]), keep(call, value)};
    }
}

static void on_data(void *owner, struct str bytes)
{
    struct http_call *call = owner;
    buf_str(&call->body, bytes);
}

static void on_done(void *owner, const struct fetch_end *end)
{
    struct http_call *call = owner;
    struct upstream_call *run = call->run;
    if (end->how == FETCH_DONE) {
        read_answer(call);
    } else {
        upstream_call_answer(run, http_failures[end->how].outcome, http_failures[end->how].code, "%s",
                             end->why);
        run->answer->reached = end->sent;
    }
    buf_clear(&call->body);
    run->finish(run);
}

static void stop(struct upstream_call *run)
{
    struct http_call *call = run->work;
    fetch_cancel(call->fetch);
    buf_clear(&call->body);
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
    static const struct json none = {.type = JSON_OBJECT};
    struct http_call *call = ARENA_NEW(run->arena, struct http_call);
    *call = (struct http_call){
        .run = run,
        .arena = run->arena,
        .spec = run->request->target->http,
        .base = run->spec,
        .arguments = json_is(run->request->arguments, JSON_OBJECT) ? run->request->arguments : &none,
        .after_s = -1};
    run->work = call;
    enum err err = build_request(call, &why);
    if (err != OK)
        return reject(run, err, &why);
    call->request.total_ms = upstream_call_timeout_ms(run);
    call->fetch = fetch_start(run->loop, &call->request, &hooks, call, &why);
    if (!call->fetch)
        return reject(run, ERR_UNAVAILABLE, &why);
    run->stop = stop;
    return UPSTREAM_PENDING;
}
