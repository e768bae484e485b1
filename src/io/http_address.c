/* Only this host can be listened on: the metrics endpoint has no TLS. */
#include "io/http_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

#define EXPECTED "expected \"unix:PATH\" or a loopback address and port, e.g. \"127.0.0.1:9464\""

static bool read_port(struct str text, uint16_t *out)
{
    uint32_t port = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_digit(text.at[i]) || i == 5)
            return false;
        port = port * 10 + (uint32_t)(text.at[i] - '0');
    }
    *out = (uint16_t)port;
    return port > 0 && port <= UINT16_MAX;
}

/* "127.0.0.1", "localhost" or "[::1]". False: no address at all, or (`foreign`) not this host's own. */
static bool read_host(struct str text, uint16_t port, struct http_address *out, bool *foreign)
{
    char host[64];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool bracketed = text.len > 2 && text.at[0] == '[' && text.at[text.len - 1] == ']';
    if (bracketed)
        text = (struct str){text.at + 1, text.len - 2};
    snprintf(host, sizeof(host), STR_FMT, STR_ARG(str_is(text, "localhost") ? STR_LIT("127.0.0.1") : text));
    *foreign = false;
    if (!bracketed && inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        *foreign = ntohl(v4.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
        memcpy(&out->at, &v4, out->len = sizeof(v4));
        return !*foreign;
    }
    if (bracketed && inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        *foreign = !IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
        memcpy(&out->at, &v6, out->len = sizeof(v6));
        return !*foreign;
    }
    return false;
}

enum err http_address_parse(struct str text, struct http_address *out, struct why *why)
{
    const char *colon = text.len ? memrchr(text.at, ':', text.len) : NULL;
    size_t host_len = colon ? (size_t)(colon - text.at) : 0;
    uint16_t port;
    bool foreign;
    *out = (struct http_address){.is_unix = str_starts(text, "unix:")};
    size_t max = out->is_unix ? strlen("unix:") + sizeof(((struct sockaddr_un *)0)->sun_path) - 1
                              : sizeof(out->text) - 1;
    if (text.len > max)
        return err_set(why, ERR_CONFIG, "expected at most %zu bytes, got %zu; choose a shorter path", max,
                       text.len);
    snprintf(out->text, sizeof(out->text), STR_FMT, STR_ARG(text));
    if (out->is_unix && text.len > strlen("unix:"))
        return OK;
    if (out->is_unix || !colon || !read_port(str_from(text, host_len + 1), &port))
        return err_set(why, ERR_CONFIG, EXPECTED ", got \"%s\"", out->text);
    if (read_host((struct str){text.at, host_len}, port, out, &foreign))
        return OK;
    if (foreign)
        return err_set(
            why, ERR_CONFIG,
            "\"%s\" is no loopback address, and everyone who reaches it could read the metrics: listen on "
            "127.0.0.1:%u or unix:PATH, with a proxy for other hosts in front",
            out->text, port);
    return err_set(why, ERR_CONFIG, EXPECTED ", got \"%s\"", out->text);
}
