/*
 * Bufferevents in libevent_core. A connection is closed only after the peer's end of file or HTTP_LINGER_MS:
 * a close with unread input would reset it, and the peer would lose the end of the reply.
 */
#include "io/http_listener.h"

#include "base/alloc.h"
#include "base/share.h"
#include "io/conn.h"
#include "io/descriptor.h"
#include "io/timer.h"
#include "io/turn.h"
#include "io/unix_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- addresses: only this host can be listened on, as the metrics endpoint has no TLS ---- */

#define EXPECTED "expected \"unix:PATH\" or a loopback address and port, e.g. \"127.0.0.1:9464\""

bool http_read_number(struct str text, size_t digits, size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_digit(text.at[i]) || i == digits)
            return false;
        *out = *out * 10 + (size_t)(text.at[i] - '0');
    }
    return text.len > 0;
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
    size_t port;
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
    if (out->is_unix || !colon || !http_read_number(str_from(text, host_len + 1), 5, &port) || !port ||
        port > UINT16_MAX)
        return err_set(why, ERR_CONFIG, EXPECTED ", got \"%s\"", out->text);
    if (read_host((struct str){text.at, host_len}, (uint16_t)port, out, &foreign))
        return OK;
    if (foreign)
        return err_set(
            why, ERR_CONFIG,
            "\"%s\" is no loopback address, and everyone who reaches it could read the metrics: listen on "
            "127.0.0.1:%zu or unix:PATH, with a proxy for other hosts in front",
            out->text, port);
    return err_set(why, ERR_CONFIG, EXPECTED ", got \"%s\"", out->text);
}

/* ---- requests: RFC 9112, strictly: one reading of each message, or a refusal. A line may end in LF alone,
 * as people type it into a socket; folded headers, repeated Host or Content-Length, and transfer codings are
 * refused. ---- */

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
    struct str line = str_split(rest, '\n');
    if (line.len && line.at[line.len - 1] == '\r')
        line.len--;
    return line;
}

static bool is_token(struct str s)
{
    bool good = s.len > 0;
    for (size_t i = 0; good && i < s.len; i++)
        good = ascii_is_letter(s.at[i]) || ascii_is_digit(s.at[i]) || strchr("!#$%&'*+-.^_`|~", s.at[i]);
    return good && !str_has(s, '\0');
}

static unsigned read_request_line(struct str line, struct http_request *out, const char **why)
{
    out->method = str_split(&line, ' ');
    struct str target = str_split(&line, ' ');
    *why = "the request line is not METHOD /path HTTP/1.1";
    for (size_t i = 0; i < target.len; i++)
        if (target.at[i] <= ' ' || target.at[i] > '~') /* visible ASCII */
            return 400;
    if (!is_token(out->method) || !str_starts(target, "/") || line.len != 8 || !str_starts(line, "HTTP/") ||
        !ascii_is_digit(line.at[5]) || line.at[6] != '.' || !ascii_is_digit(line.at[7]))
        return 400;
    *why = "only HTTP/1.0 and HTTP/1.1 are spoken here";
    if (line.at[5] != '1')
        return 505;
    out->minor = (unsigned)(line.at[7] - '0');
    out->path = str_split(&target, '?');
    out->query = target;
    return 0;
}

static bool name_is(struct str name, const char *lower)
{
    return name.len == strlen(lower) && strncasecmp(name.at, lower, name.len) == 0;
}

static unsigned read_header(struct str line, struct http_request *out, const char **why)
{
    bool has_colon = str_has(line, ':');
    struct str name = str_split(&line, ':'), value = str_trim(line);
    *why = "a header is not \"Name: value\" on one line";
    for (size_t i = 0; i < value.len; i++)
        if (((unsigned char)value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] == 0x7f)
            return 400;
    if (!has_colon || !is_token(name))
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
        return http_read_number(value, 15, &out->length) ? 0 : 400;
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

/* ---- the listener ---- */

#define ACCEPTS_PER_TURN 64
#define PAUSE_MS         100     /* without accepting, if no file descriptor is left */
#define WRITE_BYTES      1048576 /* of one connection before the others have their turn */
#define LINE_MAX_BYTES   512u    /* of http_reply_text */

enum state { READS, REPLIES, LINGERS };

struct http_exchange {
    LIST_ENTRY(http_exchange) link;
    struct http_listener *listener;
    struct bufferevent *bev;
    struct timer deadline;
    struct turn turn; /* waits: bytes of a request have come */
    uid_t uid;
    enum state state;
    struct http_request request;
    bool at_eof; /* the peer sends no more */
};

struct http_listener {
    struct loop *loop;
    struct http_address address;
    struct unix_socket socket; /* of TCP, only the descriptor */
    struct descriptor *acceptable;
    struct timer resume; /* set: it does not accept */
    http_handler *handler;
    void *owner;
    LIST_HEAD(, http_exchange) exchanges;
    struct http_listener_counts counts;
};

/* ---- texts ---- */

struct http_text {
    size_t refs;
    struct buf bytes;
};

struct http_text *http_text_new(struct buf *take)
{
    struct http_text *text = alloc_zeroed(sizeof(*text));
    text->refs = 1;
    text->bytes = *take;
    *take = (struct buf){0};
    return text;
}

struct http_text *http_text_ref(struct http_text *text)
{
    text->refs++;
    return text;
}

void http_text_unref(struct http_text *text)
{
    if (!text || --text->refs)
        return;
    buf_clear(&text->bytes);
    free(text);
}

static void on_text_sent(const void *bytes, size_t len, void *text)
{
    (void)bytes, (void)len;
    http_text_unref(text);
}

/* ---- connections ---- */

static void on_deadline(void *owner);

static void set_deadline(struct http_exchange *x, uint32_t ms)
{
    timer_set(&x->deadline, x->listener->loop, ms, on_deadline, x);
}

static void close_exchange(struct http_exchange *x)
{
    struct http_listener *l = x->listener;
    LIST_REMOVE(x, link);
    turn_leave(&x->turn);
    timer_clear(&x->deadline);
    bufferevent_free(x->bev);
    free(x);
    l->counts.open--;
    if (!timer_is_set(&l->resume))
        descriptor_watch(l->acceptable, true, false);
}

/* ---- replies ---- */

static const char *reason(unsigned status)
{
    static const struct {
        unsigned status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Status";
}

void http_reply(struct http_exchange *x, const struct http_reply *reply)
{
    struct evbuffer *out = bufferevent_get_output(x->bev);
    struct str body = buf_view(&reply->text->bytes);
    x->listener->counts.refused += reply->status >= 400;
    evbuffer_add_printf(out,
                        "HTTP/1.%u %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
                        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s\r\n",
                        x->request.minor ? 1u : 0u, reply->status, reason(reply->status), reply->content_type,
                        body.len, reply->headers ? reply->headers : "");
    if (!body.len || str_is(x->request.method, "HEAD") ||
        evbuffer_add_reference(out, body.at, body.len, on_text_sent, reply->text) != 0)
        http_text_unref(reply->text);
    x->state = REPLIES;
    set_deadline(x, HTTP_DEADLINE_MS);
}

void http_reply_text(struct http_exchange *x, unsigned status, const char *headers, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    struct buf body = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    buf_printf(&body, "%s\n", line);
    struct http_reply reply = {status, "text/plain; charset=utf-8", headers, http_text_new(&body)};
    http_reply(x, &reply);
}

/* ---- requests ---- */

/* The request line may not have been read: the refusal is in the form that every client reads. */
static void refuse(struct http_exchange *x, unsigned status, const char *why)
{
    x->request = (struct http_request){.minor = 1};
    http_reply_text(x, status, NULL, "%s", why);
}

static void serve(struct http_exchange *x)
{
    struct evbuffer *in = bufferevent_get_input(x->bev);
    size_t len = evbuffer_get_length(in);
    const char *why, *at = (const char *)evbuffer_pullup(in, -1);
    size_t head =
        at ? http_head_length((struct str){at, len < HTTP_HEAD_MAX_BYTES ? len : HTTP_HEAD_MAX_BYTES}) : 0;
    struct http_request *request = &x->request;
    if (!head) {
        if (len >= HTTP_HEAD_MAX_BYTES)
            refuse(x, 431, "the request line and headers are longer than 8192 bytes");
        return;
    }
    unsigned status = http_request_parse((struct str){at, head}, request, &why);
    if (status) {
        refuse(x, status, why);
    } else if (request->length > HTTP_BODY_MAX_BYTES) {
        refuse(x, 413, "the body is longer than 65536 bytes");
    } else if (len >= head + request->length) {
        request->body = (struct str){at + head, request->length};
        x->listener->handler(x->listener->owner, x, request);
    }
}

/* Further requests are not answered; the strings of this one were in here. */
static void drop_input(struct http_exchange *x)
{
    struct evbuffer *in = bufferevent_get_input(x->bev);
    x->request = (struct http_request){.minor = 0};
    evbuffer_drain(in, evbuffer_get_length(in));
}

static void take_turn(void *owner)
{
    struct http_exchange *x = owner;
    if (x->state == READS)
        serve(x);
    if (x->state != READS)
        drop_input(x);
    else if (x->at_eof)
        close_exchange(x);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct http_exchange *x = arg;
    (void)bev;
    if (x->state == READS)
        turn_ask(&x->turn);
    else
        drop_input(x);
}

static void on_written(struct bufferevent *bev, void *arg)
{
    struct http_exchange *x = arg;
    if (x->state != REPLIES)
        return;
    if (x->at_eof) {
        close_exchange(x);
        return;
    }
    shutdown(bufferevent_getfd(bev), SHUT_WR);
    x->state = LINGERS;
    set_deadline(x, HTTP_LINGER_MS);
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
    struct http_exchange *x = arg;
    (void)bev;
    x->at_eof = true;
    /* A peer at its end of file may still read the reply, or wait for its turn. */
    if (!(what & BEV_EVENT_EOF) || (x->state != REPLIES && !x->turn.waits))
        close_exchange(x);
}

static void on_deadline(void *owner)
{
    struct http_exchange *x = owner;
    if (x->turn.waits) { /* not the peer's fault */
        set_deadline(x, HTTP_DEADLINE_MS);
        return;
    }
    x->listener->counts.timed_out += x->state != LINGERS;
    if (x->state == READS)
        refuse(x, 408, "the request did not arrive within 5 s");
    else
        close_exchange(x);
}

static void begin(struct http_listener *l, int fd, uid_t uid)
{
    struct http_exchange *x = alloc_zeroed(sizeof(*x));
    x->listener = l;
    x->uid = uid;
    x->bev = bufferevent_socket_new(loop_base(l->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    if (!x->bev)
        abort();
    turn_join(&x->turn, loop_queue(l->loop), uid, TURN_LONG, take_turn, x);
    LIST_INSERT_HEAD(&l->exchanges, x, link);
    l->counts.open++;
    l->counts.accepted++;
    bufferevent_setcb(x->bev, on_read, on_written, on_end, x);
    bufferevent_setwatermark(x->bev, EV_READ, 0, HTTP_HEAD_MAX_BYTES + HTTP_BODY_MAX_BYTES);
    bufferevent_set_max_single_write(x->bev, WRITE_BYTES);
    bufferevent_enable(x->bev, EV_READ | EV_WRITE);
    set_deadline(x, HTTP_DEADLINE_MS);
}

/* ---- listening ---- */

static void on_resume(void *owner)
{
    struct http_listener *l = owner;
    if (l->counts.open < HTTP_CONNECTIONS_MAX)
        descriptor_watch(l->acceptable, true, false);
}

/* Each user of a Unix socket has a share; the peers of TCP are nobody's. */
static bool leaves_room(const struct http_listener *l, uid_t uid)
{
    const struct http_exchange *x;
    size_t held = 0;
    LIST_FOREACH (x, &l->exchanges, link)
        held += x->uid == uid;
    return uid == TURN_NOBODY || share_leaves_room(l->counts.open, held, 1, HTTP_CONNECTIONS_MAX);
}

static void on_acceptable(void *owner, int listening, bool readable, bool writable)
{
    struct http_listener *l = owner;
    int fd = 0;
    (void)readable, (void)writable;
    for (int i = 0; i < ACCEPTS_PER_TURN && l->counts.open < HTTP_CONNECTIONS_MAX; i++) {
        fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            break;
        uid_t uid = turn_peer(fd);
        if (leaves_room(l, uid)) {
            begin(l, fd, uid);
        } else {
            close(fd);
            l->counts.over_share++;
        }
    }
    bool failed = fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
    if (failed || l->counts.open == HTTP_CONNECTIONS_MAX)
        descriptor_watch(l->acceptable, false, false);
    if (failed)
        timer_set(&l->resume, l->loop, PAUSE_MS, on_resume, l);
}

static enum err listen_tcp(struct http_listener *l, struct why *why)
{
    const struct sockaddr *at = &l->address.at.any;
    const char *text = l->address.text;
    int on = 1;
    l->socket.fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->socket.fd < 0)
        return err_set(why, ERR_IO,
                       "metrics.listen %s: no such socket can be made (%s): a systemd unit allows it with "
                       "RestrictAddressFamilies= and without PrivateNetwork=; or listen on unix:PATH",
                       text, strerror(errno));
    setsockopt(l->socket.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(l->socket.fd, at, l->address.len) == 0 && listen(l->socket.fd, HTTP_BACKLOG) == 0)
        return OK;
    if (errno == EADDRINUSE)
        return err_set(
            why, ERR_EXISTS,
            "metrics.listen %s: another process listens on this port (`ss -ltnp` names it): stop it, or "
            "choose another port",
            text);
    return err_set(why, ERR_IO, "metrics.listen %s: cannot listen there: %s", text, strerror(errno));
}

enum err http_listener_new(struct loop *loop, const struct http_address *address, http_handler *handler,
                           void *owner, struct http_listener **out, struct why *why)
{
    static const struct unix_socket_names names = {"metrics.listen", "metrics.listen in the configuration"};
    struct http_listener *l = alloc_zeroed(sizeof(*l));
    l->loop = loop;
    l->address = *address;
    l->handler = handler;
    l->owner = owner;
    l->socket.fd = -1;
    enum err err = address->is_unix ? unix_socket_listen(address->text + strlen("unix:"), HTTP_SOCKET_MODE,
                                                         HTTP_BACKLOG, &names, &l->socket, why)
                                    : listen_tcp(l, why);
    if (!err) {
        l->acceptable = descriptor_new(loop, l->socket.fd, on_acceptable, l);
        descriptor_watch(l->acceptable, true, false);
    } else {
        http_listener_free(l);
        l = NULL;
    }
    *out = l;
    return err;
}

void http_listener_set_handler(struct http_listener *l, http_handler *handler, void *owner)
{
    l->handler = handler;
    l->owner = owner;
}

void http_listener_free(struct http_listener *l)
{
    if (!l)
        return;
    while (!LIST_EMPTY(&l->exchanges))
        close_exchange(LIST_FIRST(&l->exchanges)); // NOLINT(clang-analyzer-unix.Malloc): it moves the head
    descriptor_free(l->acceptable);
    timer_clear(&l->resume);
    unix_socket_close(&l->socket);
    free(l);
}

const struct http_address *http_listener_address(const struct http_listener *listener)
{
    return &listener->address;
}

const struct http_listener_counts *http_listener_counts(const struct http_listener *listener)
{
    return &listener->counts;
}
