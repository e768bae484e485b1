/*
 * libcurl's multi interface on our loop: it says which sockets and what time
 * it waits for, we tell it what happened. Its callbacks only put away what
 * came; hooks fire after it has returned, because inside of it nothing may be
 * started or cancelled.
 *
 *   socket ready ─▶ multi_socket_action ─▶ (head, bytes, end put away) ─▶ tell: hooks
 */
#include "upstream/fetch.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/version.h"
#include "io/conn.h"
#include "io/descriptor.h"
#include "io/timer.h"
#include "upstream/curl.h"
#include "upstream/fetch_words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define REDIRECT_SHOWN_BYTES 200u
#define URL_LETTERS                                                                                          \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/[]@!$&()*+,;=%" /* no ? and # */

struct fetcher {
    struct loop *loop;
    const struct curl_library *curl;
    CURLM *multi;
    struct timer timer;
    struct fetch *all, *news; /* news: something to tell */
    struct fetch *telling;    /* NULL again where it was cancelled inside its hook */
};

struct fetch {
    struct fetcher *fetcher;
    struct fetch *next, *previous, *next_news;
    struct arena *arena;
    CURL *easy;
    struct curl_slist *lines;
    const struct fetch_hooks *hooks;
    void *owner;
    struct fetch_request request;
    char error[CURL_ERROR_SIZE];
    /* of the answer */
    struct setting_pair headers[FETCH_HEADERS_MAX];
    size_t header_count, header_bytes, body_bytes;
    struct buf bytes; /* not told yet */
    enum fetch_how how;
    char why[FETCH_WHY_MAX_BYTES];
    unsigned redirects;
    const char *follows; /* where the redirect that has come leads to; NULL: there is none */
    bool repeatable, is_news, told_head, has_head, over, sent, refused_repeat, too_large;
};

static void tell_all(struct fetcher *fetcher);
static void abandon(struct fetch *f);

/* ---- the one multi handle of a loop ------------------------------------------ */

static void mark_news(struct fetch *f)
{
    if (f->is_news)
        return;
    f->is_news = true;
    f->next_news = f->fetcher->news;
    f->fetcher->news = f;
}

static void act(struct fetcher *fetcher, curl_socket_t socket, int what)
{
    int running = 0;
    fetcher->curl->multi_socket_action(fetcher->multi, socket, what, &running);
    tell_all(fetcher);
}

static void on_socket_ready(void *owner, int fd, bool readable, bool writable)
{
    act(owner, fd, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *owner)
{
    act(owner, CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl: watch this socket so, or no more. */
static int want_socket(CURL *easy, curl_socket_t fd, int what, void *owner, void *watched)
{
    struct fetcher *fetcher = owner;
    struct descriptor *descriptor = watched;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        descriptor_free(descriptor);
        fetcher->curl->multi_assign(fetcher->multi, fd, NULL);
        return 0;
    }
    if (!descriptor) {
        descriptor = descriptor_new(fetcher->loop, fd, on_socket_ready, fetcher);
        fetcher->curl->multi_assign(fetcher->multi, fd, descriptor);
    }
    descriptor_wants(descriptor, what & CURL_POLL_IN, what & CURL_POLL_OUT);
    return 0;
}

/* libcurl: come back after so long; -1: not for the time's sake. */
static int want_time(CURLM *multi, long ms, void *owner)
{
    struct fetcher *fetcher = owner;
    (void)multi;
    if (ms < 0)
        timer_clear(&fetcher->timer);
    else
        timer_set(&fetcher->timer, fetcher->loop, (uint32_t)ms, on_timer, fetcher);
    return 0;
}

static void free_fetcher(void *thing)
{
    struct fetcher *fetcher = thing;
    for (struct fetch *f = fetcher->all, *next; f; f = next) {
        next = f->next;
        abandon(f);
    }
    fetcher->curl->multi_cleanup(fetcher->multi);
    timer_clear(&fetcher->timer);
    free(fetcher);
}

static void *make_fetcher(struct loop *loop)
{
    const struct curl_library *curl = curl_load(NULL);
    struct fetcher *fetcher = curl ? calloc(1, sizeof(*fetcher)) : NULL;
    if (!fetcher || !(fetcher->multi = curl->multi_init())) {
        free(fetcher);
        return NULL;
    }
    fetcher->loop = loop;
    fetcher->curl = curl;
    curl->multi_setopt(fetcher->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl->multi_setopt(fetcher->multi, CURLMOPT_SOCKETDATA, fetcher);
    curl->multi_setopt(fetcher->multi, CURLMOPT_TIMERFUNCTION, want_time);
    curl->multi_setopt(fetcher->multi, CURLMOPT_TIMERDATA, fetcher);
    curl->multi_setopt(fetcher->multi, CURLMOPT_MAXCONNECTS, FETCH_IDLE_CONNECTIONS);
    return fetcher;
}

static struct fetcher *fetcher_of(struct loop *loop, struct why *why)
{
    static const char key;
    if (!curl_load(why))
        return NULL;
    struct fetcher *fetcher = loop_keep(loop, &key, make_fetcher, free_fetcher);
    if (!fetcher)
        why_set(why, ERR_UNAVAILABLE, "libcurl could not be initialised");
    return fetcher;
}

/* ---- what libcurl hands us, put away ------------------------------------------- */

/* A new head begins: of a redirect, after 100 Continue, or of the answer. */
static void begin_head(struct fetch *f)
{
    f->header_count = f->header_bytes = 0;
    f->has_head = false;
}

static void keep_header(struct fetch *f, struct str line)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon)
        return;
    struct str name = arena_dup(f->arena, (struct str){line.at, (size_t)(colon - line.at)});
    for (size_t i = 0; i < name.len; i++)
        ((char *)name.at)[i] = (char)tolower((unsigned char)name.at[i]);
    f->headers[f->header_count++] = (struct setting_pair){
        .name = name, .value = arena_dup(f->arena, str_trim(str_from(line, name.len + 1)))};
}

static size_t on_header(char *at, size_t size, size_t count, void *owner)
{
    struct fetch *f = owner;
    struct str line = str_trim((struct str){at, size * count});
    if (str_starts(line, "HTTP/"))
        begin_head(f);
    f->header_bytes += size * count;
    if (f->header_bytes > FETCH_HEADERS_MAX_BYTES || f->header_count == FETCH_HEADERS_MAX) {
        f->too_large = true;
        return 0;
    }
    if (line.len) {
        keep_header(f, line);
        return size * count;
    }
    long status = 0;
    f->fetcher->curl->easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    f->has_head = status >= 200; /* trailers end with an empty line, too, and change nothing */
    if (f->has_head)
        mark_news(f);
    return size * count;
}

static size_t on_body(char *at, size_t size, size_t count, void *owner)
{
    struct fetch *f = owner;
    size_t n = size * count;
    if (f->body_bytes + n > f->request.body_max) {
        f->too_large = true;
        return 0;
    }
    f->body_bytes += n;
    buf_add(&f->bytes, at, n);
    mark_news(f);
    return n;
}

/* Before each sending of the request: from here on it may have been seen. libcurl would send it once more
 * where a kept connection closes without an answer; what is no repeatable request is not. */
static int on_sending(void *owner, char *to, char *from, int to_port, int from_port)
{
    struct fetch *f = owner;
    (void)to, (void)from, (void)to_port, (void)from_port;
    f->refused_repeat = f->sent && !f->repeatable;
    f->sent = true;
    return f->refused_repeat ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- failures ------------------------------------------------------------- */

static void say(struct fetch *f, enum fetch_how how, const char *text, const char *more)
{
    struct str origin = fetch_origin(str_of(f->request.url));
    f->how = how;
    snprintf(f->why, sizeof(f->why), STR_FMT ": %s%s%s", STR_ARG(origin), text, *more ? ": " : "", more);
}

static void say_code(struct fetch *f, CURLcode code)
{
    const char *text, *more = f->error;
    long number = 0;
    f->fetcher->curl->easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &number);
    enum fetch_how how = fetch_words(f->fetcher->curl, code, f->sent, (int)number, &text, &more);
    say(f, how, text, more);
}

static void judge(struct fetch *f, CURLcode code)
{
    if (f->too_large && f->body_bytes)
        say(f, FETCH_TOO_LARGE, "its answer is larger than may be", "");
    else if (f->too_large)
        say(f, FETCH_TOO_LARGE, "its answer has more headers than may be", "");
    else if (f->refused_repeat)
        say(f, FETCH_BROKEN_OFF, "the connection broke off without an answer", "");
    else if (code != CURLE_OK)
        say_code(f, code);
    else if (!f->has_head && !f->told_head)
        say(f, FETCH_NO_HTTP, "did not answer in HTTP", "");
}

/* ---- telling -------------------------------------------------------------------------- */

static void unlink_news(struct fetch *f)
{
    struct fetch **at = &f->fetcher->news;
    while (*at && *at != f)
        at = &(*at)->next_news;
    if (*at)
        *at = f->next_news;
    f->is_news = false;
}

static void detach(struct fetch *f)
{
    if (f->easy) {
        f->fetcher->curl->multi_remove_handle(f->fetcher->multi, f->easy);
        f->fetcher->curl->easy_cleanup(f->easy);
    }
    f->easy = NULL;
    f->fetcher->curl->slist_free_all(f->lines);
    f->lines = NULL;
}

static void abandon(struct fetch *f)
{
    if (f->is_news)
        unlink_news(f);
    if (f->fetcher->telling == f)
        f->fetcher->telling = NULL;
    detach(f);
    if (f->next)
        f->next->previous = f->previous;
    if (f->previous)
        f->previous->next = f->next;
    else
        f->fetcher->all = f->next;
    buf_clear(&f->bytes);
    arena_free(f->arena);
    free(f);
}

void fetch_cancel(struct fetch *f)
{
    abandon(f);
}

static bool is_same_origin(struct str a, struct str b)
{
    a = fetch_origin(a), b = fetch_origin(b);
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

static bool may_follow(const struct fetch *f, int status, struct str to)
{
    bool reads = strcmp(f->request.method, "GET") == 0 || strcmp(f->request.method, "HEAD") == 0;
    return (reads || status >= 307) && f->redirects < FETCH_REDIRECTS_MAX &&
           is_same_origin(str_of(f->request.url), to);
}

/* The body of a redirect that is followed is nobody's business. */
static void tell_head(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    long status = 0;
    char *to = NULL;
    curl->easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    curl->easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &to);
    if (to && may_follow(f, (int)status, str_of(to))) {
        f->follows = arena_dup(f->arena, str_of(to)).at;
        return;
    }
    struct fetch_head head = {.status = (int)status, .headers = f->headers, .count = f->header_count};
    curl_off_t after = 0; /* also where it is told as a date */
    curl->easy_getinfo(f->easy, CURLINFO_RETRY_AFTER, &after);
    head.after_s = after > 0 ? (int64_t)after : fetch_header(&head, "retry-after").len ? 0 : -1;
    if (head.after_s > FETCH_AFTER_MAX_S)
        head.after_s = FETCH_AFTER_MAX_S;
    if (to)
        head.redirect = str_cut((struct str){to, strspn(to, URL_LETTERS)}, REDIRECT_SHOWN_BYTES);
    f->told_head = true;
    f->hooks->head(f->owner, &head);
}

static void tell_bytes(struct fetch *f)
{
    struct buf bytes = f->bytes; /* the hook may free the fetch */
    f->bytes = (struct buf){0};
    f->hooks->data(f->owner, buf_view(&bytes));
    buf_clear(&bytes);
}

static void tell_end(struct fetch *f)
{
    struct fetch_end end = {.how = f->how, .sent = f->sent, .why = f->why};
    struct fetcher *fetcher = f->fetcher;
    f->hooks->done(f->owner, &end);
    if (fetcher->telling == f)
        abandon(f);
}

static bool set_up(struct fetch *f);

/* The same request goes out anew, to where its answer pointed. */
static void follow(struct fetch *f)
{
    f->redirects++;
    f->request.url = f->follows;
    f->follows = NULL;
    detach(f);
    begin_head(f);
    f->bytes.len = f->body_bytes = 0;
    f->over = !set_up(f);
    if (f->over)
        say(f, FETCH_UNREACHABLE, "its redirect could not be followed", "");
}

/* Head, bytes and end in order, as far as they have come. A hook may cancel: then `telling` is NULL. */
static void tell(struct fetch *f)
{
    struct fetcher *fetcher = f->fetcher;
    fetcher->telling = f;
    if (f->has_head && !f->told_head && !f->follows)
        tell_head(f);
    if (fetcher->telling && f->over && f->follows && f->how == FETCH_DONE)
        follow(f);
    if (fetcher->telling && f->told_head && f->bytes.len)
        tell_bytes(f);
    if (fetcher->telling && f->over)
        tell_end(f);
    fetcher->telling = NULL;
}

static void note_ends(struct fetcher *fetcher)
{
    CURLMsg *message;
    int left;
    while ((message = fetcher->curl->multi_info_read(fetcher->multi, &left))) {
        char *owner = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        fetcher->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        struct fetch *f = (struct fetch *)(void *)owner;
        f->over = true;
        judge(f, code);
        mark_news(f);
    }
}

static void tell_all(struct fetcher *fetcher)
{
    note_ends(fetcher);
    for (struct fetch *f; (f = fetcher->news);) {
        fetcher->news = f->next_news;
        f->is_news = false;
        tell(f);
    }
}

/* ---- beginning -------------------------------------------------------------------------- */

static void add_line(struct fetch *f, struct str name, struct str value)
{
    struct str parts[] = {name, value.len ? STR_LIT(": ") : STR_LIT(";"), value};
    struct curl_slist *more = f->fetcher->curl->slist_append(f->lines, arena_join(f->arena, parts, 3).at);
    if (!more)
        abort();
    f->lines = more;
}

static void set_headers(struct fetch *f)
{
    const struct pairs *headers = &f->request.headers;
    for (size_t i = 0; i < headers->count; i++)
        add_line(f, headers->list[i].name, headers->list[i].value);
    /* Without this line libcurl waits a second for leave to send a large body. */
    struct curl_slist *more = f->fetcher->curl->slist_append(f->lines, "Expect:");
    f->lines = more ? more : f->lines;
    f->fetcher->curl->easy_setopt(f->easy, CURLOPT_HTTPHEADER, f->lines);
}

static void set_method(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    const struct fetch_request *r = &f->request;
    if (strcmp(r->method, "HEAD") == 0)
        curl->easy_setopt(f->easy, CURLOPT_NOBODY, 1L);
    if (r->has_body) {
        curl->easy_setopt(f->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        curl->easy_setopt(f->easy, CURLOPT_POSTFIELDS, r->body.at ? r->body.at : "");
    }
    curl->easy_setopt(f->easy, CURLOPT_CUSTOMREQUEST, r->method);
}

static void set_limits(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    const struct fetch_request *r = &f->request;
    uint32_t connect_ms = r->connect_ms ? r->connect_ms : FETCH_CONNECT_MS;
    curl->easy_setopt(f->easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(f->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    curl->easy_setopt(f->easy, CURLOPT_TIMEOUT_MS, (long)r->total_ms);
    curl->easy_setopt(f->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(f->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(f->easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl->easy_setopt(f->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    if (r->ca_file)
        curl->easy_setopt(f->easy, CURLOPT_CAINFO, r->ca_file);
}

static void set_callbacks(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    curl->easy_setopt(f->easy, CURLOPT_PRIVATE, f);
    curl->easy_setopt(f->easy, CURLOPT_ERRORBUFFER, f->error);
    curl->easy_setopt(f->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(f->easy, CURLOPT_HEADERDATA, f);
    curl->easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
    curl->easy_setopt(f->easy, CURLOPT_PREREQFUNCTION, on_sending);
    curl->easy_setopt(f->easy, CURLOPT_PREREQDATA, f);
}

/* What it is to ask goes to libcurl, which begins with the next turn. */
static bool set_up(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    if (!(f->easy = curl->easy_init()))
        return false;
    f->error[0] = '\0';
    f->sent = false;
    curl->easy_setopt(f->easy, CURLOPT_URL, f->request.url);
    curl->easy_setopt(f->easy, CURLOPT_USERAGENT, "toolgate/" TOOLGATE_VERSION);
    set_headers(f);
    set_method(f);
    set_limits(f);
    set_callbacks(f);
    return curl->multi_add_handle(f->fetcher->multi, f->easy) == CURLM_OK;
}

static struct pairs copy_pairs(struct arena *arena, struct pairs from)
{
    struct setting_pair *list = ARENA_ARRAY(arena, struct setting_pair, from.count);
    for (size_t i = 0; i < from.count; i++)
        list[i] =
            (struct setting_pair){arena_dup(arena, from.list[i].name), arena_dup(arena, from.list[i].value)};
    return (struct pairs){list, from.count};
}

static struct fetch_request copy_request(struct arena *arena, const struct fetch_request *from)
{
    struct fetch_request copy = *from;
    copy.method = arena_dup(arena, str_of(from->method)).at;
    copy.url = arena_dup(arena, str_of(from->url)).at;
    copy.headers = copy_pairs(arena, from->headers);
    copy.body = arena_dup(arena, from->body);
    copy.ca_file = from->ca_file ? arena_dup(arena, str_of(from->ca_file)).at : NULL;
    return copy;
}

static enum err check_request(const struct fetch_request *request, struct why *why)
{
    if (fetch_origin(str_of(request->url)).len == 0)
        return why_set(
            why, ERR_CONFIG,
            "expected an address that begins with http:// or https:// and a host, without user and password "
            "(a header takes those)");
    for (size_t i = 0; i < request->headers.count; i++) {
        const struct setting_pair *pair = &request->headers.list[i];
        if (!fetch_header_is_safe(pair->name, pair->value))
            return why_set(why, ERR_CONFIG,
                           "the header " STR_FMT " holds a line break or another control character",
                           STR_ARG(str_cut(pair->name, 64)));
    }
    return OK;
}

struct fetch *fetch_start(struct loop *loop, const struct fetch_request *request,
                          const struct fetch_hooks *hooks, void *owner, struct why *why)
{
    struct fetcher *fetcher = check_request(request, why) == OK ? fetcher_of(loop, why) : NULL;
    struct fetch *f = fetcher ? calloc(1, sizeof(*f)) : NULL;
    if (!f)
        return NULL;
    f->fetcher = fetcher;
    f->arena = arena_new();
    f->hooks = hooks;
    f->owner = owner;
    f->request = copy_request(f->arena, request);
    f->repeatable = request->repeatable;
    f->next = fetcher->all;
    if (f->next)
        f->next->previous = f;
    fetcher->all = f;
    if (!set_up(f)) {
        abandon(f);
        why_set(why, ERR_UNAVAILABLE, "libcurl took no more requests");
        return NULL;
    }
    return f;
}
