/*
 * libcurl's multi interface on our loop: it says which sockets and what time
 * it waits for, we tell it what happened. Its callbacks only put away what
 * came; hooks fire after it has returned, because inside of it nothing may be
 * started or cancelled.
 *
 *   socket ready ─▶ multi_socket_action ─▶ (head, bytes, end put away) ─▶ tell: hooks
 */
#include "upstream/http/fetch_internal.h"

#include "base/arena.h"
#include "io/conn.h"
#include "io/descriptor.h"
#include "upstream/http/fetch_errors.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define REDIRECT_SHOWN_BYTES 200u
#define URL_LETTERS                                                                                          \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/[]@!$&()*+,;=%" /* no ? and # */

static void tell_all(struct fetcher *fetcher);
static void abandon(struct fetch *f);

/* ---- the one multi handle of a loop ------------------------------------------ */

void fetch_mark_pending(struct fetch *f)
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
    descriptor_watch(descriptor, what & CURL_POLL_IN, what & CURL_POLL_OUT);
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
    struct fetcher *fetcher = loop_singleton(loop, &key, make_fetcher, free_fetcher);
    if (!fetcher)
        err_set(why, ERR_UNAVAILABLE, "libcurl could not be initialised");
    return fetcher;
}

/* ---- failures ------------------------------------------------------------- */

static void say(struct fetch *f, enum fetch_outcome how, const char *text, const char *more)
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
    enum fetch_outcome how =
        fetch_errors_describe(f->fetcher->curl, code, f->sent, (int)number, &text, &more);
    say(f, how, text, more);
}

static void judge(struct fetch *f, CURLcode code)
{
    if (f->too_large && f->body_bytes)
        say(f, FETCH_TOO_LARGE, "its answer is larger than may be", "");
    else if (f->too_large)
        say(f, FETCH_TOO_LARGE, "its answer has more headers than may be", "");
    else if (f->refused_repeat)
        say(f, FETCH_DISCONNECTED, "the connection broke off without an answer", "");
    else if (code != CURLE_OK)
        say_code(f, code);
    else if (!f->has_head && !f->told_head)
        say(f, FETCH_NOT_HTTP, "did not answer in HTTP", "");
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

/* The same request goes out anew, to where its answer pointed. */
static void follow(struct fetch *f)
{
    f->redirects++;
    f->request.url = f->follows;
    f->follows = NULL;
    detach(f);
    f->bytes.len = f->body_bytes = 0;
    f->over = !fetch_transfer_start(f);
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
        fetch_mark_pending(f);
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

static struct fetch_request copy_request(struct arena *arena, const struct fetch_request *from)
{
    struct fetch_request copy = *from;
    copy.method = arena_dup(arena, str_of(from->method)).at;
    copy.url = arena_dup(arena, str_of(from->url)).at;
    copy.headers = name_values_copy(arena, from->headers);
    copy.body = arena_dup(arena, from->body);
    copy.ca_file = from->ca_file ? arena_dup(arena, str_of(from->ca_file)).at : NULL;
    return copy;
}

static enum err check_request(const struct fetch_request *request, struct why *why)
{
    if (fetch_origin(str_of(request->url)).len == 0)
        return err_set(
            why, ERR_CONFIG,
            "expected an address that begins with http:// or https:// and a host, without user and password "
            "(a header takes those)");
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
    if (!fetch_transfer_start(f)) {
        abandon(f);
        err_set(why, ERR_UNAVAILABLE, "libcurl took no more requests");
        return NULL;
    }
    return f;
}
