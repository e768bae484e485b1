/*
 * RFC 9112, strictly: one reading of each message, or a refusal. A line may end in LF alone, as people type
 * it into a socket; folded headers, repeated Host or Content-Length, and transfer codings are refused.
 */
#include "io/http_request.h"

size_t http_head_length(struct str bytes)
{
    const char *end = bytes.at + bytes.len, *at = bytes.at;
    while (bytes.len && (at = memchr(at, '\n', (size_t)(end - at)))) {
        at++;
        if (at < end && *at == '\n')
            return (size_t)(at + 1 - bytes.at);
        if (at + 1 < end && at[0] == '\r' && at[1] == '\n')
            return (size_t)(at + 2 - bytes.at);
    }
    return 0;
}

/* The next line without its end. */
static struct str next_line(struct str *rest)
{
    const char *end = memchr(rest->at, '\n', rest->len);
    size_t len = end ? (size_t)(end - rest->at) : rest->len;
    struct str line = {rest->at, len};
    *rest = str_from(*rest, len + 1);
    if (line.len && line.at[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* Up to the next space, which is skipped. */
static struct str next_word(struct str *rest)
{
    const char *end = rest->len ? memchr(rest->at, ' ', rest->len) : NULL;
    struct str word = {rest->at, end ? (size_t)(end - rest->at) : rest->len};
    *rest = str_from(*rest, word.len + 1);
    return word;
}

static bool is_token(struct str s)
{
    bool good = s.len > 0;
    for (size_t i = 0; good && i < s.len; i++)
        good = ascii_is_letter(s.at[i]) || ascii_is_digit(s.at[i]) || strchr("!#$%&'*+-.^_`|~", s.at[i]);
    return good && !memchr(s.at, '\0', s.len);
}

/* Visible ASCII: what a target may consist of. */
static bool is_visible(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] <= ' ' || s.at[i] > '~')
            return false;
    return s.len > 0;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.at[i] < ' ' && s.at[i] != '\t')
            return true;
    return s.len && memchr(s.at, 0x7f, s.len) != NULL;
}

static unsigned read_request_line(struct str line, struct http_request *out, const char **why)
{
    out->method = next_word(&line);
    struct str target = next_word(&line);
    *why = "the request line is not METHOD /path HTTP/1.1";
    if (!is_token(out->method) || !is_visible(target) || !str_starts(target, "/") || line.len != 8 ||
        !str_starts(line, "HTTP/") || !ascii_is_digit(line.at[5]) || line.at[6] != '.' ||
        !ascii_is_digit(line.at[7]))
        return 400;
    *why = "only HTTP/1.0 and HTTP/1.1 are spoken here";
    if (line.at[5] != '1')
        return 505;
    out->minor = (unsigned)(line.at[7] - '0');
    const char *mark = memchr(target.at, '?', target.len);
    out->path = (struct str){target.at, mark ? (size_t)(mark - target.at) : target.len};
    out->query = mark ? str_from(target, out->path.len + 1) : STR_NONE;
    return 0;
}

static bool read_length(struct str value, size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (!ascii_is_digit(value.at[i]) || i == 15)
            return false;
        *out = *out * 10 + (size_t)(value.at[i] - '0');
    }
    return value.len > 0;
}

static bool name_is(struct str name, const char *lower)
{
    return name.len == strlen(lower) && strncasecmp(name.at, lower, name.len) == 0;
}

static unsigned read_header(struct str line, struct http_request *out, const char **why)
{
    const char *colon = memchr(line.at, ':', line.len);
    struct str name = {line.at, colon ? (size_t)(colon - line.at) : 0};
    struct str value = str_trim(str_from(line, name.len + 1));
    *why = "a header is not \"Name: value\" on one line";
    if (!is_token(name) || has_control(value))
        return 400;
    *why = "a header that decides on the request was sent twice";
    if (name_is(name, "host")) {
        if (out->has_host)
            return 400;
        out->has_host = true;
        out->host = value;
    } else if (name_is(name, "origin")) {
        if (out->has_origin)
            return 400;
        out->has_origin = true;
        out->origin = value;
    } else if (name_is(name, "authorization")) {
        if (out->authorization.len)
            return 400;
        out->authorization = value;
    } else if (name_is(name, "content-type")) {
        out->content_type = value;
    } else if (name_is(name, "content-length")) {
        if (out->has_length)
            return 400;
        *why = "Content-Length is not a number";
        out->has_length = true;
        return read_length(value, &out->length) ? 0 : 400;
    } else if (name_is(name, "transfer-encoding")) {
        *why = "a body needs a Content-Length; transfer codings are not supported";
        return 501;
    }
    return 0;
}

unsigned http_request_parse(struct str head, struct http_request *out, const char **why)
{
    *out = (struct http_request){.minor = 0};
    unsigned status = read_request_line(next_line(&head), out, why);
    for (struct str line; !status && head.len && (line = next_line(&head)).len;)
        status = read_header(line, out, why);
    if (!status && out->minor > 0 && !out->has_host) {
        *why = "HTTP/1.1 needs a Host header";
        return 400;
    }
    return status;
}
