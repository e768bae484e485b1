/* Failures in words, and the small things that addresses and headers are looked at for. */
#include "upstream/http/fetch_errors.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- failures --------------------------------------------------------------------------- */

static const struct {
    CURLcode code;
    enum fetch_outcome how;
    const char *text;
} errors[] = {
    {CURLE_OPERATION_TIMEDOUT, FETCH_TIMEOUT, "did not answer in time"},
    {CURLE_COULDNT_RESOLVE_HOST, FETCH_UNREACHABLE, "its name could not be resolved"},
    {CURLE_COULDNT_RESOLVE_PROXY, FETCH_UNREACHABLE, "the proxy's name could not be resolved"},
    {CURLE_COULDNT_CONNECT, FETCH_UNREACHABLE, "could not connect"},
    {CURLE_SSL_CONNECT_ERROR, FETCH_UNREACHABLE, "no TLS connection could be made"},
    {CURLE_PEER_FAILED_VERIFICATION, FETCH_UNREACHABLE,
     "its certificate is not trusted (ca_file names the authorities that are)"},
    {CURLE_SSL_CACERT_BADFILE, FETCH_UNREACHABLE, "ca_file could not be read"},
    {CURLE_UNSUPPORTED_PROTOCOL, FETCH_UNREACHABLE, "is not an http or https address"},
    {CURLE_URL_MALFORMAT, FETCH_UNREACHABLE, "is not an address"},
    {CURLE_PARTIAL_FILE, FETCH_DISCONNECTED, "the connection broke off before the answer was whole"},
    {CURLE_GOT_NOTHING, FETCH_DISCONNECTED, "the connection broke off without an answer"},
    {CURLE_RECV_ERROR, FETCH_DISCONNECTED, "the connection broke off"},
    {CURLE_SEND_ERROR, FETCH_DISCONNECTED, "the connection broke off"},
    {CURLE_WEIRD_SERVER_REPLY, FETCH_NOT_HTTP, "did not answer in HTTP"},
    {CURLE_HTTP2, FETCH_DISCONNECTED, "broke HTTP/2 off"},
    {CURLE_HTTP2_STREAM, FETCH_DISCONNECTED, "broke HTTP/2 off"},
};

static bool tells_more(CURLcode code)
{
    return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR;
}

/* The same code before and after the request went out is not the same failure. */
static enum fetch_outcome judge_sent(CURLcode code, enum fetch_outcome how, const char **text,
                                     const char **more)
{
    if (code == CURLE_UNSUPPORTED_PROTOCOL) {
        *text = "did not answer in HTTP";
        return FETCH_NOT_HTTP;
    }
    if (how != FETCH_UNREACHABLE)
        return how;
    *text = "the connection broke off without an answer"; /* a kept one did, and then no other could be had */
    *more = "";
    return FETCH_DISCONNECTED;
}

enum fetch_outcome fetch_errors_describe(const struct curl_library *curl, CURLcode code, bool sent,
                                         int number, const char **text, const char **more)
{
    size_t at = 0, count = sizeof(errors) / sizeof(errors[0]);
    while (at < count && errors[at].code != code)
        at++;
    enum fetch_outcome how = at < count ? errors[at].how : sent ? FETCH_DISCONNECTED : FETCH_UNREACHABLE;
    *text = at < count ? errors[at].text : curl->easy_strerror(code);
    if (code == CURLE_COULDNT_CONNECT)
        *more = number ? strerror(number) : "";
    else if (!tells_more(code))
        *more = "";
    if (code == CURLE_OPERATION_TIMEDOUT && !sent)
        *text = "could not connect in time";
    return sent ? judge_sent(code, how, text, more) : how;
}

/* ---- small things ------------------------------------------------------------------------- */

struct str fetch_header(const struct fetch_head *head, const char *name)
{
    for (size_t i = 0; i < head->count; i++)
        if (str_is(head->headers[i].name, name))
            return head->headers[i].value;
    return STR_NONE;
}

/* Up to the end of the host and port, without user and password; STR_NONE where it is no http address. */
struct str fetch_origin(struct str url)
{
    size_t scheme = url.len > 8 && strncasecmp(url.at, "https://", 8) == 0  ? 8
                    : url.len > 7 && strncasecmp(url.at, "http://", 7) == 0 ? 7
                                                                            : 0;
    size_t end = scheme;
    while (end < url.len && !strchr("/?#", url.at[end]))
        end++;
    bool has_user = memchr(url.at + scheme, '@', end - scheme) != NULL;
    return scheme && end > scheme && !has_user ? (struct str){url.at, end} : STR_NONE;
}

static bool is_token_byte(unsigned char c)
{
    return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool fetch_header_is_safe(struct str name, struct str value)
{
    bool safe = name.len > 0;
    for (size_t i = 0; safe && i < name.len; i++)
        safe = is_token_byte((unsigned char)name.at[i]);
    for (size_t i = 0; safe && i < value.len; i++)
        safe = ((unsigned char)value.at[i] >= ' ' || value.at[i] == '\t') && value.at[i] != 0x7F;
    return safe;
}
