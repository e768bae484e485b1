/* A table from libcurl's codes to outcomes and sentences. */
#include "upstream/http/fetch_errors.h"

#include <string.h>

static const struct {
    CURLcode code;
    enum fetch_outcome how;
    const char *text;
    bool keeps_more;
} errors[] = {
    {CURLE_OPERATION_TIMEDOUT, FETCH_TIMEOUT, "did not answer in time", false},
    {CURLE_COULDNT_RESOLVE_HOST, FETCH_UNREACHABLE, "its name could not be resolved", false},
    {CURLE_COULDNT_RESOLVE_PROXY, FETCH_UNREACHABLE, "the proxy's name could not be resolved", false},
    {CURLE_COULDNT_CONNECT, FETCH_UNREACHABLE, "could not connect", false},
    {CURLE_SSL_CONNECT_ERROR, FETCH_UNREACHABLE, "no TLS connection could be made", true},
    {CURLE_PEER_FAILED_VERIFICATION, FETCH_UNREACHABLE,
     "its certificate is not trusted (ca_file names the authorities that are)", true},
    {CURLE_SSL_CACERT_BADFILE, FETCH_UNREACHABLE, "ca_file could not be read", false},
    {CURLE_UNSUPPORTED_PROTOCOL, FETCH_UNREACHABLE, "is not an http or https address", false},
    {CURLE_URL_MALFORMAT, FETCH_UNREACHABLE, "is not an address", false},
    {CURLE_PARTIAL_FILE, FETCH_DISCONNECTED, "the connection broke off before the answer was whole", false},
    {CURLE_GOT_NOTHING, FETCH_DISCONNECTED, "the connection broke off without an answer", false},
    {CURLE_RECV_ERROR, FETCH_DISCONNECTED, "the connection broke off", true},
    {CURLE_SEND_ERROR, FETCH_DISCONNECTED, "the connection broke off", true},
    {CURLE_WEIRD_SERVER_REPLY, FETCH_NOT_HTTP, "did not answer in HTTP", false},
    {CURLE_HTTP2, FETCH_DISCONNECTED, "broke HTTP/2 off", false},
    {CURLE_HTTP2_STREAM, FETCH_DISCONNECTED, "broke HTTP/2 off", false},
};

enum fetch_outcome fetch_errors_describe(const struct curl_library *curl, CURLcode code, bool sent,
                                         int number, const char **text, const char **more)
{
    size_t row = 0, count = sizeof(errors) / sizeof(errors[0]);
    while (row < count && errors[row].code != code)
        row++;
    bool known = row < count;
    enum fetch_outcome how = known ? errors[row].how : sent ? FETCH_DISCONNECTED : FETCH_UNREACHABLE;
    *text = known ? errors[row].text : curl->easy_strerror(code);
    if (code == CURLE_COULDNT_CONNECT)
        *more = number ? strerror(number) : "";
    else if (!known || !errors[row].keeps_more)
        *more = "";
    if (code == CURLE_OPERATION_TIMEDOUT && !sent)
        *text = "could not connect in time";
    if (sent && code == CURLE_UNSUPPORTED_PROTOCOL) {
        *text = "did not answer in HTTP";
        how = FETCH_NOT_HTTP;
    } else if (sent && how == FETCH_UNREACHABLE) { /* a kept connection broke, and no other could be made */
        *text = "the connection broke off without an answer";
        *more = "";
        how = FETCH_DISCONNECTED;
    }
    return how;
}
