/*
 * Address, headers and body from templates and arguments. An argument stays
 * in its place: within a segment of the path it is percent-encoded and can't
 * be "." or ".." (also not between slashes: servers decode before they
 * resolve), within a header it can't end the line.
 */
#include "upstream/http/http_tool_internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/write.h"
#include "upstream/http/http_template.h"

#include <ctype.h>
#include <strings.h>

static const struct {
    const char *name;
    bool in_query, idempotent;
} methods[] = {
    {"GET", true, true},  {"HEAD", true, true},   {"DELETE", true, true},
    {"PUT", false, true}, {"POST", false, false}, {"PATCH", false, false},
};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

static size_t method_row(struct str method)
{
    size_t row = 0;
    while (row < METHODS && !str_is(method, methods[row].name))
        row++;
    return row;
}

bool http_tool_is_idempotent(const struct http_spec *spec)
{
    size_t row = method_row(spec->method);
    return row < METHODS && methods[row].idempotent;
}

/* ---- what is wrong before any call ----------------------------------------------- */

bool http_tool_argument(const struct http_spec *spec, size_t at, struct str *name)
{
    struct http_template_part part;
    for (size_t i = 0; i <= spec->headers.count; i++) {
        struct str rest = i ? spec->headers.list[i - 1].value : spec->url;
        while (http_template_next(&rest, &part))
            if (part.kind == HTTP_TEMPLATE_ARGUMENT && at-- == 0) {
                *name = part.text;
                return true;
            }
    }
    return false;
}

static enum err check_braces(struct str text, const char *where, struct why *why)
{
    struct http_template_part part;
    while (http_template_next(&text, &part))
        if (part.kind == HTTP_TEMPLATE_BAD)
            return err_set(why, ERR_CONFIG, "%s has '" STR_FMT "': expected {argument} or ${SETTING}", where,
                           STR_ARG(str_cut(part.text, 40)));
    return OK;
}

/* An argument that chose the host would send our headers to anybody. */
static enum err check_host(struct str url, struct why *why)
{
    struct str rest = url;
    struct http_template_part part;
    size_t slashes = 0;
    while (slashes < 3 && http_template_next(&rest, &part)) {
        if (part.kind == HTTP_TEMPLATE_ARGUMENT)
            return err_set(why, ERR_CONFIG,
                           "{" STR_FMT
                           "} stands before the path: an argument may stand in the path, in the query or in "
                           "a header, and never say which host is asked",
                           STR_ARG(part.text));
        for (size_t i = 0; part.kind == HTTP_TEMPLATE_TEXT && i < part.text.len; i++)
            slashes += part.text.at[i] == '/';
        if (part.kind == HTTP_TEMPLATE_SETTING)
            slashes = slashes ? slashes : 2; /* ${BASE}/path: it has the scheme with it */
    }
    return OK;
}

static enum err check_url(const struct http_spec *spec, bool has_upstream, struct why *why)
{
    bool whole =
        str_starts(spec->url, "http://") || str_starts(spec->url, "https://") || str_starts(spec->url, "${");
    if (has_upstream && !str_starts(spec->url, "/"))
        return err_set(why, ERR_CONFIG,
                       "expected a path from \"/\" on, since an upstream is named, got '" STR_FMT "'",
                       STR_ARG(str_cut(spec->url, 60)));
    if (!has_upstream && !whole)
        return err_set(why, ERR_CONFIG,
                       "expected an address that begins with http:// or https://, or upstream = \"…\" beside "
                       "it, got '" STR_FMT "'",
                       STR_ARG(str_cut(spec->url, 60)));
    return has_upstream ? OK : check_host(spec->url, why);
}

static enum err check_headers(const struct http_spec *spec, struct why *why)
{
    enum err err = OK;
    for (size_t i = 0; err == OK && i < spec->headers.count; i++) {
        const struct name_value *pair = &spec->headers.list[i];
        if (!fetch_header_is_safe(pair->name, pair->value))
            return err_set(why, ERR_CONFIG, "the header '" STR_FMT "' is none that can be sent",
                           STR_ARG(str_cut(pair->name, 60)));
        err = check_braces(pair->value, "a header", why);
    }
    return err;
}

enum err http_tool_check(const struct http_spec *spec, bool has_upstream, struct why *why)
{
    if (method_row(spec->method) == METHODS)
        return err_set(why, ERR_CONFIG,
                       "expected \"GET …\", \"POST …\", PUT, PATCH, DELETE or HEAD, got '" STR_FMT "'",
                       STR_ARG(str_cut(spec->method, 20)));
    for (size_t i = 0; i < spec->url.len; i++)
        if ((unsigned char)spec->url.at[i] <= ' ' || spec->url.at[i] == '#')
            return err_set(why, ERR_CONFIG, "the address holds a space, a line break or a '#'");
    enum err err = check_url(spec, has_upstream, why);
    if (err == OK)
        err = check_braces(spec->url, "the address", why);
    return err == OK ? check_headers(spec, why) : err;
}

/* ---- arguments as texts ------------------------------------------------------------ */

static void take(struct http_call *call, const struct json_member *member)
{
    call->used[call->used_count++] = member->key.at;
}

static bool is_taken(const struct http_call *call, const struct json_member *member)
{
    for (size_t i = 0; i < call->used_count; i++)
        if (call->used[i] == member->key.at)
            return true;
    return false;
}

static const struct json_member *find(const struct json *arguments, struct str name)
{
    for (size_t i = 0; json_is(arguments, JSON_OBJECT) && i < arguments->len; i++)
        if (str_eq(arguments->members[i].key, name))
            return &arguments->members[i];
    return NULL;
}

/* As people write it; false: a list, an object or null, which is none. */
static bool as_text(const struct json *value, struct str *out)
{
    *out = value->type == JSON_BOOL ? str_of(value->truth ? "true" : "false")
           : value->type == JSON_STRING || value->type == JSON_NUMBER ? (struct str){value->text, value->len}
                                                                      : STR_NONE;
    return value->type == JSON_BOOL || value->type == JSON_STRING || value->type == JSON_NUMBER;
}

static bool leaves_its_segment(struct str text)
{
    size_t from = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.at[i] != '/' && text.at[i] != '\\')
            continue;
        struct str piece = {text.at + from, i - from};
        if (str_is(piece, ".") || str_is(piece, ".."))
            return true;
        from = i + 1;
    }
    return false;
}

/* The argument for a place in the address or a header. */
static enum err place_text(struct http_call *call, struct str name, struct str *text, struct why *why)
{
    const struct json_member *member = find(call->arguments, name);
    if (!member || member->value.type == JSON_NULL)
        return err_set(why, ERR_PARSE,
                       "the argument '" STR_FMT "' is missing, which the request can't be made without",
                       STR_ARG(name));
    if (!as_text(&member->value, text))
        return err_set(why, ERR_PARSE,
                       "the argument '" STR_FMT "' must be a text, a number, true or false, got %s",
                       STR_ARG(name), json_type_name(member->value.type));
    if (!text->len)
        return err_set(why, ERR_PARSE, "the argument '" STR_FMT "' must not be empty", STR_ARG(name));
    if (!is_taken(call, member))
        take(call, member);
    return OK;
}

/* A host is no secret, and answers are full of it. */
static bool is_before_path(const struct buf *url)
{
    size_t slashes = 0;
    for (size_t i = 0; i < url->len; i++)
        slashes += url->at[i] == '/';
    return slashes < 3;
}

static enum err add_setting(struct http_call *call, struct buf *out, bool secret, struct str setting,
                            struct why *why)
{
    struct str value = STR_NONE;
    enum err err = secrets_expand(call->arena, setting, secret ? &call->secrets : NULL, &value, why);
    if (err == OK)
        buf_str(out, value);
    return err;
}

/* ---- the address --------------------------------------------------------------------- */

/* A segment made of several parts may become what none of them is. */
static enum err check_segments(struct str path, struct why *why)
{
    struct str clean = {path.at, 0};
    while (clean.len < path.len && !strchr("?#", path.at[clean.len]))
        clean.len++;
    return leaves_its_segment(clean)
               ? err_set(why, ERR_PARSE, "the arguments make '.' or '..' a part of the path")
               : OK;
}

static enum err add_place(struct http_call *call, struct buf *out, struct str name, struct why *why)
{
    struct str text = STR_NONE;
    enum err err = place_text(call, name, &text, why);
    bool in_path = out->len == 0 || !memchr(out->at, '?', out->len);
    if (err == OK && in_path && leaves_its_segment(text))
        err = err_set(why, ERR_PARSE,
                      "the argument '" STR_FMT "' must not be '.' or '..', alone or between slashes",
                      STR_ARG(name));
    if (err == OK)
        http_template_encode(out, text);
    return err;
}

static enum err add_template(struct http_call *call, struct buf *out, struct str rest, struct why *why)
{
    struct http_template_part part;
    enum err err = OK;
    while (err == OK && http_template_next(&rest, &part)) {
        if (part.kind == HTTP_TEMPLATE_ARGUMENT)
            err = add_place(call, out, part.text, why);
        else if (part.kind == HTTP_TEMPLATE_SETTING)
            err = add_setting(call, out, call->base || !is_before_path(out), part.text, why);
        else
            buf_str(out, part.text);
    }
    return err;
}

static enum err add_base(struct http_call *call, struct buf *out, struct why *why)
{
    struct http_template_part part;
    enum err err = OK;
    struct str rest = call->base ? call->base->url : STR_NONE;
    while (err == OK && http_template_next(&rest, &part)) {
        if (part.kind == HTTP_TEMPLATE_SETTING)
            err = add_setting(call, out, !is_before_path(out), part.text, why);
        else
            buf_str(out, part.text);
    }
    while (out->len && out->at[out->len - 1] == '/')
        out->len--;
    if (err == OK && out->len && memchr(out->at, '?', out->len))
        err = err_set(why, ERR_CONFIG,
                      "the address of an upstream for http = {…} has a query; that belongs into each url");
    return err;
}

static void add_query(struct buf *out, struct str name, const struct json *value)
{
    struct str text;
    struct buf json = buf_in(out->arena);
    if (value->type == JSON_NULL)
        return;
    if (!as_text(value, &text)) {
        json_write(&json, value);
        text = buf_view(&json);
    }
    buf_byte(out, out->len && memchr(out->at, '?', out->len) ? '&' : '?');
    http_template_encode(out, name);
    buf_byte(out, '=');
    http_template_encode(out, text);
}

static bool goes_into_query(const struct http_call *call, struct str name)
{
    size_t row = method_row(call->spec->method);
    bool goes = row < METHODS && methods[row].in_query;
    for (size_t i = 0; !goes && i < call->spec->query_count; i++)
        goes = str_eq(call->spec->query[i], name);
    return goes;
}

static void add_queries(struct http_call *call, struct buf *out)
{
    const struct json *arguments = call->arguments;
    for (size_t i = 0; json_is(arguments, JSON_OBJECT) && i < arguments->len; i++) {
        const struct json_member *member = &arguments->members[i];
        if (is_taken(call, member) || !goes_into_query(call, member->key))
            continue;
        take(call, member);
        if (member->value.type != JSON_ARRAY)
            add_query(out, member->key, &member->value);
        for (size_t n = 0; member->value.type == JSON_ARRAY && n < member->value.len; n++)
            add_query(out, member->key, &member->value.items[n]);
    }
}

static enum err build_path(struct http_call *call, struct buf *url, struct why *why)
{
    struct buf path = buf_in(call->arena);
    enum err err = add_base(call, url, why);
    if (err == OK)
        err = add_template(call, &path, call->spec->url, why);
    if (err == OK)
        err = check_segments(buf_view(&path), why);
    buf_str(url, buf_view(&path));
    return err;
}

static enum err finish_url(struct http_call *call, struct buf *url, struct why *why)
{
    add_queries(call, url);
    if (url->len > HTTP_URL_BYTES)
        return err_set(why, ERR_PARSE, "the arguments make an address of %zu bytes; at most %u can be sent",
                       url->len, HTTP_URL_BYTES);
    call->request.url = arena_dup(call->arena, buf_view(url)).at;
    return OK;
}

/* ---- headers and body ------------------------------------------------------------------ */

static bool has_header(const struct name_value *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].name.len == strlen(name) && strncasecmp(list[i].name.at, name, list[i].name.len) == 0)
            return true;
    return false;
}

static enum err fill_header(struct http_call *call, struct str template, bool arguments, struct str *value,
                            struct why *why)
{
    struct buf out = buf_in(call->arena);
    struct http_template_part part;
    enum err err = OK;
    while (err == OK && http_template_next(&template, &part)) {
        struct str text = part.text;
        if (part.kind == HTTP_TEMPLATE_SETTING)
            err = add_setting(call, &out, true, part.text, why);
        else if (part.kind == HTTP_TEMPLATE_ARGUMENT && arguments)
            err = place_text(call, part.text, &text, why);
        if (err == OK && part.kind == HTTP_TEMPLATE_ARGUMENT && arguments &&
            !fetch_header_is_safe(STR_LIT("x"), text))
            err = err_set(why, ERR_PARSE,
                          "the argument '" STR_FMT "' goes into a header and must not hold line breaks",
                          STR_ARG(part.text));
        if (err == OK && part.kind == HTTP_TEMPLATE_ARGUMENT && !arguments)
            buf_printf(&out, "{" STR_FMT "}", STR_ARG(text));
        else if (err == OK && part.kind != HTTP_TEMPLATE_SETTING)
            buf_str(&out, text);
    }
    *value = buf_view(&out);
    return err;
}

static enum err build_headers(struct http_call *call, struct why *why)
{
    const struct name_values own = call->spec->headers;
    const struct name_values base = call->base ? call->base->headers : (struct name_values){0};
    struct name_value *list = ARENA_ARRAY(call->arena, struct name_value, own.count + base.count + 2);
    size_t count = 0;
    enum err err = OK;
    for (size_t i = 0; err == OK && i < own.count; i++, count++) {
        list[count].name = own.list[i].name;
        err = fill_header(call, own.list[i].value, true, &list[count].value, why);
    }
    for (size_t i = 0; err == OK && i < base.count; i++) {
        if (has_header(list, own.count, arena_dup(call->arena, base.list[i].name).at))
            continue;
        list[count].name = base.list[i].name;
        err = fill_header(call, base.list[i].value, false, &list[count++].value, why);
    }
    if (!has_header(list, count, "accept"))
        list[count++] = (struct name_value){STR_LIT("Accept"), STR_LIT("application/json, */*;q=0.5")};
    if (call->request.has_body && !has_header(list, count, "content-type"))
        list[count++] = (struct name_value){STR_LIT("Content-Type"), STR_LIT("application/json")};
    call->request.headers = (struct name_values){list, count};
    return err;
}

/* What neither address, header nor query has taken. */
static void build_body(struct http_call *call)
{
    struct buf body = buf_in(call->arena);
    struct json_out out = json_out(&body);
    if (!call->request.has_body)
        return;
    json_open(&out, '{');
    for (size_t i = 0; json_is(call->arguments, JSON_OBJECT) && i < call->arguments->len; i++) {
        if (is_taken(call, &call->arguments->members[i]))
            continue;
        json_key_str(&out, call->arguments->members[i].key);
        json_put(&out, &call->arguments->members[i].value);
    }
    json_close(&out, '}');
    call->request.body = buf_view(&body);
}

static void begin(struct http_call *call)
{
    const struct http_spec *spec = call->spec;
    size_t row = method_row(spec->method),
           count = json_is(call->arguments, JSON_OBJECT) ? call->arguments->len : 0;
    struct str ca_file = spec->ca_file.len ? spec->ca_file : call->base ? call->base->ca_file : STR_NONE;
    call->used = ARENA_ARRAY(call->arena, const char *, count);
    call->request = (struct fetch_request){.method = arena_dup(call->arena, spec->method).at,
                                           .repeatable = http_tool_is_idempotent(spec),
                                           .has_body = row < METHODS && !methods[row].in_query,
                                           .ca_file = ca_file.len ? arena_dup(call->arena, ca_file).at : NULL,
                                           .body_max = HTTP_BODY_BYTES};
}

/* Path and headers take the arguments that they name, then the query, and the body what is left. */
enum err http_request_build(struct http_call *call, struct why *why)
{
    struct buf url = buf_in(call->arena);
    begin(call);
    enum err err = build_path(call, &url, why);
    if (err == OK)
        err = build_headers(call, why);
    if (err == OK)
        err = finish_url(call, &url, why);
    if (err == OK)
        build_body(call);
    return err;
}
