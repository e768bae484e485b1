/* Routes, access, and replies that several clients share. */
#include "server/http_endpoint.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/embedded.h"
#include "base/log.h"
#include "policy/config.h"
#include "io/file.h"
#include "json/write.h"
#include "server/server_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define HTTP_TOKEN_MIN_BYTES 16u /* of token_file, without the white space around it */
#define HTTP_TOKEN_MAX_BYTES 4096u
/* No inline script or style, nothing from elsewhere, in no frame; JSON needs no more than a file. */
#define PAGE_HEADERS                                                                                         \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'\r\n"                                        \
    "Referrer-Policy: no-referrer\r\n"                                                                       \
    "Cross-Origin-Resource-Policy: same-origin\r\n"                                                          \
    "Cross-Origin-Opener-Policy: same-origin\r\n"

/* Who asks without end gets the same text again: writing replies takes at most a twentieth of the time, after
 * a burst. */
#define SHARE_OF_TIME 20
#define BURST_US      100000
#define PAGE          "src/server/page/"

enum route_kind {
    ROUTE_METRICS, /* the reply is the same for everyone: one may answer requests that come at once */
    ROUTE_FILE,    /* of the page, embedded; exists only with metrics.page, as the next kind */
    ROUTE_CONTENT  /* JSON for the page's script, with users' content: needs a private endpoint */
};

static const struct http_route {
    enum route_kind kind;
    const char *method; /* "GET", which answers HEAD, too; "POST": Content-Type must be application/json */
    const char *path, *content_type;
    const char *file;        /* of ROUTE_FILE */
    http_route_write *write; /* of the others: makes the body */
} routes[] = {
    {ROUTE_METRICS, "GET", "/metrics", "text/plain; version=0.0.4; charset=utf-8", NULL, metrics_text_route},
    {ROUTE_FILE, "GET", "/", "text/html; charset=utf-8", PAGE "index.html", NULL},
    {ROUTE_FILE, "GET", "/app.js", "text/javascript; charset=utf-8", PAGE "app.js", NULL},
    {ROUTE_FILE, "GET", "/app.css", "text/css; charset=utf-8", PAGE "app.css", NULL},
    {ROUTE_CONTENT, "GET", "/api/status.json", "application/json", NULL, page_status},
    {ROUTE_CONTENT, "GET", "/api/decisions.json", "application/json", NULL, page_decisions},
    {ROUTE_CONTENT, "GET", "/api/tools.json", "application/json", NULL, page_tools},
    {ROUTE_CONTENT, "GET", "/api/tool.json", "application/json", NULL, page_tool},
    {ROUTE_CONTENT, "GET", "/api/sessions.json", "application/json", NULL, page_sessions},
    {ROUTE_CONTENT, "POST", "/api/check.json", "application/json", NULL, page_check},
};

struct http_endpoint {
    struct server *server;
    struct http_listener *listener;
    struct arena *arena; /* of the token */
    struct str token;    /* empty: none */
    bool page;
    struct http_text *metrics;     /* the last reply; NULL: none yet */
    uint64_t metrics_turn;         /* of the loop in which it was written */
    int64_t spent_us, spent_at_us; /* on writing replies, less the share of the time since */
};

/* ---- access ---- */

/* "Bearer TOKEN" of a program, or the password that a browser asks for, with any user name: "Basic " and
 * "user:password" in base64. */
static bool knows_token(const struct http_endpoint *e, struct str authorization)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buf decoded = {0};
    struct str guess = STR_NONE;
    if (str_starts_nocase(authorization, "bearer ")) {
        guess = str_trim(str_from(authorization, strlen("bearer ")));
    } else if (str_starts_nocase(authorization, "basic ")) {
        struct str encoded = str_trim(str_from(authorization, strlen("basic ")));
        unsigned bits = 0;
        for (size_t i = 0; i < encoded.len && encoded.at[i] != '='; i++) {
            const char *digit = memchr(digits, encoded.at[i], sizeof(digits) - 1);
            if (!digit) {
                decoded.len = 0;
                break;
            }
            bits = bits << 6 | (unsigned)(digit - digits);
            if (i % 4)
                buf_byte(&decoded, (char)(bits >> (6 - 2 * (i % 4))));
        }
        const char *colon = decoded.len ? memchr(decoded.at, ':', decoded.len) : NULL;
        if (colon)
            guess = str_from(buf_view(&decoded), (size_t)(colon - decoded.at) + 1);
    }
    /* Its time does not tell how much of a guess is right. */
    unsigned difference = guess.len != e->token.len;
    for (size_t i = 0; i < guess.len && i < e->token.len; i++)
        difference |= (unsigned char)(guess.at[i] ^ e->token.at[i]);
    buf_clear(&decoded);
    return e->token.len && !difference;
}

/* "localhost:9464", "127.0.0.1", "[::1]:9464": no name that somebody else's DNS resolves. */
static bool is_this_host(struct str host)
{
    char name[32];
    struct in_addr v4;
    bool v6 = str_starts(host, "[::1]");
    const char *end = v6 ? host.at + strlen("[::1]") : memchr(host.at, ':', host.len);
    size_t len = end ? (size_t)(end - host.at) : host.len;
    struct str port = str_from(host, len); /* nothing, or ":" and digits */
    if (len >= sizeof(name) || (port.len && port.at[0] != ':'))
        return false;
    for (size_t i = 1; i < port.len; i++)
        if (!ascii_is_digit(port.at[i]))
            return false;
    snprintf(name, sizeof(name), "%.*s", (int)len, host.at);
    return v6 || strcasecmp(name, "localhost") == 0 ||
           (inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

/* False: answered. `of_path`: a route of this path, NULL: none; `route`: also of this method. */
static bool may_ask(const struct http_endpoint *e, struct http_exchange *x, const struct http_request *r,
                    const struct http_route *of_path, const struct http_route *route)
{
    const struct http_address *address = http_listener_address(e->listener);
    /* Host may be the address of a page in a browser. On a Unix socket it matters for the page alone: `ssh
     * -L` brings browsers there, and scrapers send any name. */
    bool any_host = !r->has_host || (address->is_unix && (!of_path || of_path->kind == ROUTE_METRICS));
    /* A page of this endpoint has the origin http://HOST, behind a proxy perhaps https://HOST. */
    struct str scheme = str_starts(r->origin, "https://") ? STR_LIT("https://") : STR_LIT("http://");
    struct str origin = str_from(r->origin, scheme.len);
    bool own_origin = str_starts(r->origin, scheme.at) && r->host.len && origin.len == r->host.len &&
                      strncasecmp(origin.at, r->host.at, origin.len) == 0;
    if (!any_host && !(r->host.len && is_this_host(r->host)))
        http_reply_text(x, 403, NULL,
                        "Host is not this host's: ask for http://%s, and let a proxy send this Host",
                        address->is_unix ? "localhost" : address->text);
    else if (r->has_origin && !own_origin)
        http_reply_text(x, 403, NULL, "Origin is not this endpoint: no page of another origin may ask");
    else if (!route || route->kind != ROUTE_CONTENT || (address->is_unix && !e->token.len) ||
             knows_token(e, r->authorization))
        return true;
    else if (e->token.len)
        http_reply_text(x, 401, "WWW-Authenticate: Basic realm=\"toolgate\", charset=\"UTF-8\"\r\n",
                        "the token of metrics.token_file is needed, as a bearer token or as the password");
    else
        http_reply_text(
            x, 403, NULL,
            "this has users' content: set metrics.token_file, or listen on a Unix socket (unix:PATH)");
    return false;
}

/* ---- replies ---- */

/* The metrics are the text of this turn or, once the time for writing is spent, the last one. */
static void reply(struct http_endpoint *e, struct http_exchange *x, const struct http_request *r,
                  const struct http_route *route)
{
    bool is_metrics = route->kind == ROUTE_METRICS;
    struct http_reply reply = {200, route->content_type, is_metrics ? NULL : PAGE_HEADERS, NULL};
    struct buf body = {0};
    int64_t began_us = clock_mono_us();
    e->spent_us -= (began_us - e->spent_at_us) / SHARE_OF_TIME;
    e->spent_at_us = began_us;
    if (e->spent_us < 0)
        e->spent_us = 0;
    bool current = e->metrics_turn == loop_turns(e->server->loop) || e->spent_us > BURST_US;
    if (is_metrics && e->metrics && current) {
        reply.text = http_text_ref(e->metrics);
        http_reply(x, &reply);
        return;
    }
    struct arena *arena = arena_new();
    if (route->file)
        buf_str(&body, embedded_text(route->file));
    else
        reply.status = route->write(e->server, r, arena, &body);
    arena_free(arena);
    reply.text = http_text_new(&body);
    if (reply.status != 200) {
        reply.content_type = "text/plain; charset=utf-8";
    } else {
        e->spent_at_us = clock_mono_us();
        e->spent_us += e->spent_at_us - began_us;
        if (is_metrics) {
            http_text_unref(e->metrics);
            e->metrics = http_text_ref(reply.text);
            e->metrics_turn = loop_turns(e->server->loop);
        }
    }
    http_reply(x, &reply);
}

static void serve(void *owner, struct http_exchange *x, const struct http_request *r)
{
    struct http_endpoint *e = owner;
    const struct http_route *of_path = NULL, *route = NULL;
    bool head = str_is(r->method, "HEAD");
    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes) && !route; i++) {
        if (!str_is(r->path, routes[i].path) || (routes[i].kind != ROUTE_METRICS && !e->page))
            continue;
        of_path = &routes[i];
        if (str_is(r->method, of_path->method) || (head && strcmp(of_path->method, "GET") == 0))
            route = of_path;
    }
    if (!may_ask(e, x, r, of_path, route))
        return;
    if (!of_path)
        http_reply_text(x, 404, NULL, "nothing is here; /metrics has the metrics");
    else if (!route)
        http_reply_text(x, 405,
                        strcmp(of_path->method, "GET") == 0 ? "Allow: GET, HEAD\r\n" : "Allow: POST\r\n",
                        "this path takes %s", of_path->method);
    else if (strcmp(route->method, "POST") == 0 && !str_starts_nocase(r->content_type, "application/json"))
        http_reply_text(x, 415, NULL, "the body must be JSON, with Content-Type: application/json");
    else
        reply(e, x, r, route);
}

/* ---- configuration ---- */

static enum err read_token(struct http_endpoint *e, const char *file, struct why *why)
{
    struct stat st;
    struct str text;
    e->arena = arena_new();
    e->token = STR_NONE;
    if (!file)
        return OK;
    enum err err = file_read(e->arena, file, HTTP_TOKEN_MAX_BYTES, &text, why);
    if (err) {
        err_prefix(why, "metrics.token_file");
        return err;
    }
    if (stat(file, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH))
        return err_set(why, ERR_CONFIG, "metrics.token_file: every user can read %s: chmod o= %s", file,
                       file);
    e->token = str_trim(text);
    if (e->token.len < HTTP_TOKEN_MIN_BYTES)
        return err_set(
            why, ERR_CONFIG,
            "metrics.token_file: expected a token of at least %u characters in %s, got %zu: make one with "
            "`openssl rand -hex 32`",
            HTTP_TOKEN_MIN_BYTES, file, e->token.len);
    return OK;
}

enum err http_endpoint_apply(struct server *server, const struct config *config, struct why *why)
{
    const struct http_address *address = &config->metrics.address;
    struct http_endpoint *old = server->http_endpoint, *e = NULL;
    if (address->text[0]) {
        e = alloc_zeroed(sizeof(*e));
        e->server = server;
        e->page = config->metrics.page;
        e->spent_at_us = clock_mono_us();
        enum err err = read_token(e, config->metrics.token_file, why);
        /* A listener whose address has not changed goes over to the new endpoint, with its connections. */
        bool same = old && strcmp(http_listener_address(old->listener)->text, address->text) == 0;
        if (!err && same) {
            e->listener = old->listener;
            old->listener = NULL;
            http_listener_set_handler(e->listener, serve, e);
        } else if (!err) {
            err = http_listener_new(server->loop, address, serve, e, &e->listener, why);
            if (!err)
                log_event(LOG_INFO, "metrics_listening", LOG_TEXT("address", address->text));
        }
        if (err) {
            http_endpoint_free(e);
            return err;
        }
    }
    if (old && old->listener)
        log_event(LOG_INFO, "metrics_closed",
                  LOG_TEXT("address", http_listener_address(old->listener)->text));
    http_endpoint_free(old);
    server->http_endpoint = e;
    page_apply(server, e && e->page);
    server_time_calls(server);
    return OK;
}

void http_endpoint_free(struct http_endpoint *e)
{
    if (!e)
        return;
    http_listener_free(e->listener);
    http_text_unref(e->metrics);
    arena_free(e->arena);
    free(e);
}

const struct http_listener_counts *http_endpoint_counts(const struct http_endpoint *e)
{
    return http_listener_counts(e->listener);
}

void http_endpoint_write_status(struct json_out *out, const struct http_endpoint *e)
{
    if (!e)
        return;
    const struct http_listener_counts *counts = http_endpoint_counts(e);
    json_field_object(out, "metrics", FIELD_TEXT("listen", http_listener_address(e->listener)->text),
                      FIELD_BOOL("page", e->page), FIELD_NUM("requests", counts->accepted),
                      FIELD_NUM("refused", counts->refused), FIELD_NUM("timed_out", counts->timed_out),
                      FIELD_NUM("open", counts->open), FIELD_NUM("most", HTTP_CONNECTIONS_MAX),
                      FIELD_NUM("over_share", counts->over_share));
}
