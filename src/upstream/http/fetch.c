/*
 * libcurl's multi interface on our loop: libcurl asks for sockets and times,
 * the loop reports events. Hooks fire after libcurl has returned, because
 * nothing may be started or cancelled inside of it.
 *
 *   socket ready ─▶ multi_socket_action ─▶ (head, bytes, end stored) ─▶ report: hooks
 */
#include "upstream/http/fetch_internal.h"

#include "base/arena.h"
#include "io/conn.h"
#include "io/descriptor.h"
#include "upstream/http/fetch_errors.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define REDIRECT_SHOWN_BYTES 200u
#define URL_LETTERS                                                                                          \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/[]@!$&()*+,;=%" /* no ? and # */

static void report_all(struct fetcher *fetcher);

/* ---- the multi handle of a loop ----------------------------------------------- */

void fetch_mark_pending(struct fetch *f)
{
    if (f->is_pending)
        return;
    f->is_pending = true;
    TAILQ_INSERT_TAIL(&f->fetcher->pending, f, pending_entry);
}

static void act(struct fetcher *fetcher, curl_socket_t socket, int what)
{
    int running = 0;
    fetcher->curl->multi_socket_action(fetcher->multi, socket, what, &running);
    report_all(fetcher);
}

static void on_socket_ready(void *owner, int fd, bool readable, bool writable)
{
    act(owner, fd, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *owner)
{
    act(owner, CURL_SOCKET_TIMEOUT, 0);
}

/* CURLMOPT_SOCKETFUNCTION */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *owner, void *watched)
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
    descriptor_watch(descriptor, what & CURL_POLL_IN, what & CURL_POLL_OUT);
    return 0;
}

/* CURLMOPT_TIMERFUNCTION; -1: no timer */
static int set_timer(CURLM *multi, long ms, void *owner)
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
    while (!LIST_EMPTY(&fetcher->all))
        fetch_cancel(LIST_FIRST(&fetcher->all));
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
    TAILQ_INIT(&fetcher->pending);
    curl->multi_setopt(fetcher->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl->multi_setopt(fetcher->multi, CURLMOPT_SOCKETDATA, fetcher);
    curl->multi_setopt(fetcher->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl->multi_setopt(fetcher->multi, CURLMOPT_TIMERDATA, fetcher);
    curl->multi_setopt(fetcher->multi, CURLMOPT_MAXCONNECTS, FETCH_IDLE_CONNECTIONS);
    return fetcher;
}

/* ---- the end of a request --------------------------------------------------------- */

static void fail(struct fetch *f, enum fetch_outcome how, const char *text, const char *more)
{
    struct str origin = fetch_origin(str_of(f->request.url));
    f->how = how;
    snprintf(f->why, sizeof(f->why), STR_FMT ": %s%s%s", STR_ARG(origin), text, *more ? ": " : "", more);
}

static void judge(struct fetch *f, CURLcode code)
{
    if (f->too_large) {
        fail(f, FETCH_TOO_LARGE,
             f->body_bytes ? "its answer is too large" : "its answer has too many headers", "");
    } else if (f->refused_repeat) {
        fail(f, FETCH_DISCONNECTED, "the connection broke off without an answer", "");
    } else if (code != CURLE_OK) {
        const char *text, *more = f->error;
        long number = 0;
        f->fetcher->curl->easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &number);
        enum fetch_outcome how =
            fetch_errors_describe(f->fetcher->curl, code, f->sent, (int)number, &text, &more);
        fail(f, how, text, more);
    } else if (!f->has_head && !f->reported_head) {
        fail(f, FETCH_NOT_HTTP, "did not answer in HTTP", "");
    }
}

static void end_transfer(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    if (f->easy) {
        curl->multi_remove_handle(f->fetcher->multi, f->easy);
        curl->easy_cleanup(f->easy);
    }
    f->easy = NULL;
    curl->slist_free_all(f->lines);
    f->lines = NULL;
}

void fetch_cancel(struct fetch *f)
{
    if (f->is_pending)
        TAILQ_REMOVE(&f->fetcher->pending, f, pending_entry);
    if (f->fetcher->reporting == f)
        f->fetcher->reporting = NULL;
    end_transfer(f);
    LIST_REMOVE(f, entry);
    buf_clear(&f->bytes);
    arena_free(f->arena);
    free(f);
}

/* ---- reporting --------------------------------------------------------------------- */

static bool may_follow(const struct fetch *f, int status, struct str to)
{
    bool reads = strcmp(f->request.method, "GET") == 0 || strcmp(f->request.method, "HEAD") == 0;
    struct str from = fetch_origin(str_of(f->request.url));
    to = fetch_origin(to);
    return (reads || status >= 307) && f->redirects < FETCH_REDIRECTS_MAX && from.len == to.len &&
           strncasecmp(from.at, to.at, from.len) == 0;
}

static void report_head(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    long status = 0;
    char *to = NULL;
    curl_off_t after = 0; /* libcurl also reads it as a date */
    curl->easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    curl->easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &to);
    if (to && may_follow(f, (int)status, str_of(to))) {
        f->redirect_to = arena_dup(f->arena, str_of(to)).at;
        return;
    }
    struct fetch_head head = {.status = (int)status, .headers = f->headers, .count = f->header_count};
    curl->easy_getinfo(f->easy, CURLINFO_RETRY_AFTER, &after);
    head.after_s = after > 0 ? (int64_t)after : fetch_header(&head, "retry-after").len ? 0 : -1;
    if (head.after_s > FETCH_AFTER_MAX_S)
        head.after_s = FETCH_AFTER_MAX_S;
    if (to)
        head.redirect = str_cut((struct str){to, strspn(to, URL_LETTERS)}, REDIRECT_SHOWN_BYTES);
    f->reported_head = true;
    if (f->hooks->head)
        f->hooks->head(f->owner, &head);
}

static void follow_redirect(struct fetch *f)
{
    f->redirects++;
    f->request.url = f->redirect_to;
    f->redirect_to = NULL;
    end_transfer(f);
    f->bytes.len = f->body_bytes = 0;
    f->over = !fetch_transfer_start(f);
    if (f->over)
        fail(f, FETCH_UNREACHABLE, "its redirect could not be followed", "");
}

/* Head, bytes and end, as far as they have come. A hook may cancel, which sets `reporting` to NULL. */
static void report(struct fetch *f)
{
    struct fetcher *fetcher = f->fetcher;
    fetcher->reporting = f;
    if (f->has_head && !f->reported_head && !f->redirect_to)
        report_head(f);
    if (fetcher->reporting && f->over && f->redirect_to && f->how == FETCH_DONE)
        follow_redirect(f);
    if (fetcher->reporting && f->reported_head && f->bytes.len) {
        struct buf bytes = f->bytes; /* the hook may free the fetch */
        f->bytes = (struct buf){0};
        if (f->hooks->data)
            f->hooks->data(f->owner, buf_view(&bytes));
        buf_clear(&bytes);
    }
    if (fetcher->reporting && f->over) {
        const struct fetch_end end = {.how = f->how, .sent = f->sent, .why = f->why};
        f->hooks->done(f->owner, &end);
        if (fetcher->reporting == f)
            fetch_cancel(f);
    }
    fetcher->reporting = NULL;
}

static void report_all(struct fetcher *fetcher)
{
    CURLMsg *message;
    struct fetch *f;
    int left;
    while ((message = fetcher->curl->multi_info_read(fetcher->multi, &left))) {
        char *owner = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        fetcher->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        f = (struct fetch *)(void *)owner;
        f->over = true;
        judge(f, code);
        fetch_mark_pending(f);
    }
    while ((f = TAILQ_FIRST(&fetcher->pending))) {
        TAILQ_REMOVE(&fetcher->pending, f, pending_entry);
        f->is_pending = false;
        report(f);
    }
}

/* ---- the start ---------------------------------------------------------------------- */

static enum err check_request(const struct fetch_request *request, struct why *why)
{
    if (fetch_origin(str_of(request->url)).len == 0)
        return err_set(why, ERR_CONFIG,
                       "expected an address that begins with http:// or https:// and a host, without user "
                       "and password (use a header for those)");
    for (size_t i = 0; i < request->headers.count; i++) {
        const struct name_value *pair = &request->headers.list[i];
        if (!fetch_header_is_safe(pair->name, pair->value))
            return err_set(why, ERR_CONFIG,
                           "the header " STR_FMT " holds a line break or another control character",
                           STR_ARG(str_cut(pair->name, 64)));
    }
    return OK;
}

struct fetch *fetch_start(struct loop *loop, const struct fetch_request *request,
                          const struct fetch_hooks *hooks, void *owner, struct why *why)
{
    static const char singleton_key;
    if (check_request(request, why) != OK || !curl_load(why))
        return NULL;
    struct fetcher *fetcher = loop_singleton(loop, &singleton_key, make_fetcher, free_fetcher);
    if (!fetcher) {
        err_set(why, ERR_UNAVAILABLE, "libcurl could not be initialised");
        return NULL;
    }
    struct fetch *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    struct arena *arena = f->arena = arena_new();
    f->fetcher = fetcher;
    f->hooks = hooks;
    f->owner = owner;
    f->request = *request;
    f->request.method = arena_dup(arena, str_of(request->method)).at;
    f->request.url = arena_dup(arena, str_of(request->url)).at;
    f->request.headers = name_values_copy(arena, request->headers);
    f->request.body = arena_dup(arena, request->body);
    f->request.ca_file = request->ca_file ? arena_dup(arena, str_of(request->ca_file)).at : NULL;
    LIST_INSERT_HEAD(&fetcher->all, f, entry);
    if (!fetch_transfer_start(f)) {
        fetch_cancel(f);
        err_set(why, ERR_UNAVAILABLE, "libcurl accepts no more requests");
        return NULL;
    }
    return f;
}

/* ---- headers and addresses ----------------------------------------------------------- */

struct str fetch_header(const struct fetch_head *head, const char *name)
{
    for (size_t i = 0; i < head->count; i++)
        if (str_is(head->headers[i].name, name))
            return head->headers[i].value;
    return STR_NONE;
}

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

bool fetch_header_is_safe(struct str name, struct str value)
{
    bool safe = name.len > 0;
    for (size_t i = 0; safe && i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i];
        safe = isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
    }
    for (size_t i = 0; safe && i < value.len; i++)
        safe = ((unsigned char)value.at[i] >= ' ' || value.at[i] == '\t') && value.at[i] != 0x7F;
    return safe;
}
