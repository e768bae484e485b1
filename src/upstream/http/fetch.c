/*
 * libcurl's multi interface on our loop: libcurl asks for sockets and times,
 * the loop reports events. Hooks fire after libcurl has returned, because
 * nothing may be started or cancelled inside of it.
 *
 *   socket ready ─▶ multi_socket_action ─▶ (head, bytes, end stored) ─▶ report: hooks
 */
#include "upstream/http/fetch.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/version.h"
#include "io/conn.h"
#include "io/descriptor.h"
#include "io/timer.h"

#include <ctype.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/queue.h>
#include <unistd.h>

#define REDIRECT_PAGE_BYTES 65536u /* of the page that comes with a redirect; nobody waits for the rest */
#define URL_LETTERS                                                                                          \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/[]@!$&()*+,;=%" /* no ? and # */

/* ---- libcurl, loaded at the first HTTP request: linked to the daemon, it and its 30 libraries would cost
 * every start 6 MB of memory and 3 ms ---- */

/* The functions that are used, under their own names. */
#define CURL_FUNCTIONS(each)                                                                                 \
    each(global_init) each(easy_init) each(easy_cleanup) each(easy_setopt) each(easy_getinfo)                \
        each(easy_strerror) each(slist_append) each(slist_free_all) each(multi_init) each(multi_cleanup)     \
            each(multi_setopt) each(multi_add_handle) each(multi_remove_handle) each(multi_socket_action)    \
                each(multi_assign) each(multi_info_read)

/* curl.h defines some of these names as type-checking macros, which a pointer bypasses. */
struct curl_library {
#define CURL_POINTER(name) __typeof__(&(curl_##name)) name; /* NOLINT(bugprone-macro-parentheses) */
    CURL_FUNCTIONS(CURL_POINTER)
#undef CURL_POINTER
};

/* Where distributions keep the certificates of authorities: a libcurl that came with this program was built
 * on another one, and would refuse every server. */
static const char *const authorities[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Gentoo */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
    "/etc/ssl/ca-bundle.pem",             /* openSUSE */
    "/etc/ssl/cert.pem",                  /* Alpine */
};

/* Of the libcurl that came with this program; NULL: the system's, which knows its own. */
static const char *carried_authorities;

/* The libcurl that a Python or npm package carries: lib/toolgate/libcurl.so.4 beside bin/toolgate. */
static void *open_carried(void)
{
    static const char name[] = "/lib/toolgate/libcurl.so.4";
    char path[PATH_MAX + sizeof(name)];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
    for (int level = 0; level < 2 && strrchr(path, '/'); level++)
        *strrchr(path, '/') = '\0';
    memcpy(path + strlen(path), name, sizeof(name));
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; handle && !carried_authorities && i < sizeof(authorities) / sizeof(authorities[0]);
         i++)
        if (access(authorities[i], R_OK) == 0)
            carried_authorities = authorities[i];
    return handle;
}

/* By the name that libcurl's ABI has had since 2006. Loaded once and never unloaded. NULL: it is missing, and
 * `why` names the package; that is not kept, so that installing it needs no restart. */
static const struct curl_library *curl_load(struct why *why)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define CURL_ROW(name) {"curl_" #name, offsetof(struct curl_library, name)},
        CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
    };
    static struct curl_library library;
    static bool loaded;
    if (loaded)
        return &library;
    void *handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    handle = handle ? handle : dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    handle = handle ? handle : open_carried();
    if (!handle) {
        err_set(why, ERR_UNAVAILABLE, "HTTP needs libcurl, which could not be loaded: install libcurl4 (%s)",
                dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *address = dlsym(handle, functions[i].name);
        if (!address) {
            err_set(why, ERR_UNAVAILABLE, "the installed libcurl has no %s: install libcurl4 7.80 or later",
                    functions[i].name);
            return NULL;
        }
        memcpy((char *)&library + functions[i].offset, &address, sizeof(address));
    }
    loaded = library.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (!loaded)
        err_set(why, ERR_UNAVAILABLE,
                "libcurl could not be initialised: its TLS library has a configuration that it rejects");
    return loaded ? &library : NULL;
}

/* ---- requests ---- */

/* Of one loop. */
struct fetcher {
    struct loop *loop;
    const struct curl_library *curl;
    CURLM *multi;
    struct timer timer;
    LIST_HEAD(, fetch) all;
    TAILQ_HEAD(, fetch) pending; /* with something to report */
    struct fetch *reporting;     /* NULL again if its hook has cancelled it */
};

struct fetch {
    struct fetcher *fetcher;
    LIST_ENTRY(fetch) entry;
    TAILQ_ENTRY(fetch) pending_entry;
    struct arena *arena;
    CURL *easy;
    struct curl_slist *lines;
    const struct fetch_hooks *hooks;
    void *owner;
    struct fetch_request request;
    char error[CURL_ERROR_SIZE];
    /* of the answer */
    struct name_value headers[FETCH_HEADERS_MAX];
    size_t header_count, header_bytes, body_bytes;
    struct buf bytes; /* not reported yet */
    enum fetch_outcome how;
    char why[FETCH_WHY_MAX_BYTES];
    unsigned redirects;
    const char *redirect_to; /* followed at the end of this answer; NULL: none */
    bool is_pending, reported_head, has_head, may_redirect, over, sent, refused_repeat, too_large;
};

/* It has something to report, once libcurl has returned. */
static void mark_pending(struct fetch *f)
{
    if (f->is_pending)
        return;
    f->is_pending = true;
    TAILQ_INSERT_TAIL(&f->fetcher->pending, f, pending_entry);
}

/* ---- libcurl's callbacks ---------------------------------------------------------- */

static size_t on_header(char *at, size_t size, size_t count, void *owner)
{
    struct fetch *f = owner;
    struct str line = str_trim((struct str){at, size * count});
    if (str_starts(line, "HTTP/")) { /* a new head: after 100 Continue, which counts, or of the answer */
        f->header_count = 0;
        f->has_head = false;
    }
    const char *colon = line.len ? memchr(line.at, ':', line.len) : NULL;
    f->header_bytes += size * count;
    if (f->header_bytes > FETCH_HEADERS_MAX_BYTES || (colon && f->header_count == FETCH_HEADERS_MAX)) {
        f->too_large = true;
        return 0;
    }
    if (colon) {
        size_t len = (size_t)(colon - line.at);
        char *name = arena_copy(f->arena, (struct str){line.at, len});
        for (size_t i = 0; i < len; i++)
            name[i] = (char)tolower((unsigned char)name[i]);
        f->headers[f->header_count++] = (struct name_value){
            .name = {name, len}, .value = arena_dup(f->arena, str_trim(str_from(line, len + 1)))};
    }
    if (line.len)
        return size * count;
    long status = 0;
    f->fetcher->curl->easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    f->has_head = status >= 200; /* trailers end with an empty line, too, and change nothing */
    f->may_redirect = status >= 300 && status < 400;
    if (f->has_head)
        mark_pending(f);
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
    if (f->may_redirect && f->bytes.len + n > REDIRECT_PAGE_BYTES)
        return n;
    buf_add(&f->bytes, at, n);
    mark_pending(f);
    return n;
}

/* Before each sending of the request: from here on the server may have seen it. libcurl would resend it if a
 * kept connection closes without an answer, which is only right for a repeatable request. */
static int on_sending(void *owner, char *to, char *from, int to_port, int from_port)
{
    struct fetch *f = owner;
    (void)to, (void)from, (void)to_port, (void)from_port;
    f->refused_repeat = f->sent && !f->request.repeatable;
    f->sent = true;
    return f->refused_repeat ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- a request in libcurl --------------------------------------------------------------------- */

/* Gives the request to libcurl, which begins with the next turn. False: it accepts no more. */
static bool start_transfer(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    const struct fetch_request *r = &f->request;
    if (!(f->easy = curl->easy_init()))
        return false;
    f->header_count = f->header_bytes = 0;
    f->has_head = f->may_redirect = f->sent = false;
    f->error[0] = '\0';
    for (size_t i = 0; i <= r->headers.count; i++) {
        struct str line = STR_LIT("Expect:"); /* else libcurl waits a second before it sends a large body */
        if (i < r->headers.count) {
            struct str value = r->headers.list[i].value;
            line = ARENA_JOIN(f->arena, r->headers.list[i].name, value.len ? STR_LIT(": ") : STR_LIT(";"),
                              value);
        }
        struct curl_slist *lines = curl->slist_append(f->lines, line.at);
        if (!lines)
            abort();
        f->lines = lines;
    }
#define SET(option, value) curl->easy_setopt(f->easy, CURLOPT_##option, (value))
    SET(URL, r->url);
    SET(USERAGENT, "toolgate/" TOOLGATE_VERSION);
    SET(HTTPHEADER, f->lines);
    if (strcmp(r->method, "HEAD") == 0)
        SET(NOBODY, 1L);
    if (r->has_body) {
        SET(POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        SET(POSTFIELDS, r->body.at ? r->body.at : "");
    }
    SET(CUSTOMREQUEST, r->method);
    SET(NOSIGNAL, 1L);
    SET(CONNECTTIMEOUT_MS, (long)FETCH_CONNECT_MS);
    SET(TIMEOUT_MS, (long)r->total_ms);
    SET(PROTOCOLS_STR, "http,https");
    SET(FOLLOWLOCATION, 0L); /* `report` follows, to the same origin only */
    SET(HTTP09_ALLOWED, 0L);
    SET(TCP_KEEPALIVE, 1L);
    if (r->ca_file || carried_authorities)
        SET(CAINFO, r->ca_file ? r->ca_file : carried_authorities);
    SET(PRIVATE, f);
    SET(ERRORBUFFER, f->error);
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, f);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, f);
    SET(PREREQFUNCTION, on_sending);
    SET(PREREQDATA, f);
#undef SET
    return curl->multi_add_handle(f->fetcher->multi, f->easy) == CURLM_OK;
}

static void report_all(struct fetcher *fetcher);

/* ---- the multi handle of a loop ----------------------------------------------- */

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
    struct fetch *next;
    for (struct fetch *f = LIST_FIRST(&fetcher->all); f; f = next) {
        next = LIST_NEXT(f, entry);
        fetch_cancel(f);
    }
    fetcher->curl->multi_cleanup(fetcher->multi);
    timer_clear(&fetcher->timer);
    free(fetcher);
}

static void *make_fetcher(struct loop *loop)
{
    const struct curl_library *curl = curl_load(NULL);
    CURLM *multi = curl ? curl->multi_init() : NULL;
    if (!multi)
        return NULL;
    struct fetcher *fetcher = alloc_zeroed(sizeof(*fetcher));
    *fetcher = (struct fetcher){.loop = loop, .curl = curl, .multi = multi};
    TAILQ_INIT(&fetcher->pending);
    curl->multi_setopt(fetcher->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl->multi_setopt(fetcher->multi, CURLMOPT_SOCKETDATA, fetcher);
    curl->multi_setopt(fetcher->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl->multi_setopt(fetcher->multi, CURLMOPT_TIMERDATA, fetcher);
    curl->multi_setopt(fetcher->multi, CURLMOPT_MAXCONNECTS, FETCH_IDLE_CONNECTIONS);
    return fetcher;
}

/* ---- libcurl's errors as sentences for operators ---------------------------------- */

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
    {CURLE_PEER_FAILED_VERIFICATION, FETCH_MISCONFIGURED,
     "its certificate is not trusted (ca_file names the authorities that are)", true},
    {CURLE_SSL_CACERT_BADFILE, FETCH_MISCONFIGURED, "ca_file could not be read", false},
    {CURLE_UNSUPPORTED_PROTOCOL, FETCH_MISCONFIGURED, "is not an http or https address", false},
    {CURLE_URL_MALFORMAT, FETCH_MISCONFIGURED, "is not an address", false},
    {CURLE_PARTIAL_FILE, FETCH_DISCONNECTED, "the connection broke off before the answer was whole", false},
    {CURLE_GOT_NOTHING, FETCH_DISCONNECTED, "the connection broke off without an answer", false},
    {CURLE_RECV_ERROR, FETCH_DISCONNECTED, "the connection broke off", true},
    {CURLE_SEND_ERROR, FETCH_DISCONNECTED, "the connection broke off", true},
    {CURLE_WEIRD_SERVER_REPLY, FETCH_NOT_HTTP, "did not answer in HTTP", false},
    {CURLE_HTTP2, FETCH_DISCONNECTED, "broke HTTP/2 off", false},
    {CURLE_HTTP2_STREAM, FETCH_DISCONNECTED, "broke HTTP/2 off", false},
};

/* ---- the end of a request --------------------------------------------------------- */

static void fail(struct fetch *f, enum fetch_outcome how, const char *text, const char *more)
{
    struct str origin = fetch_origin(str_of(f->request.url));
    f->how = how;
    snprintf(f->why, sizeof(f->why), STR_FMT ": %s%s%s", STR_ARG(origin), text, *more ? ": " : "", more);
}

/* By libcurl's code. */
static void fail_transfer(struct fetch *f, CURLcode code)
{
    const struct curl_library *curl = f->fetcher->curl;
    size_t row = 0, count = sizeof(errors) / sizeof(errors[0]);
    long number = 0;
    curl->easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &number);
    while (row < count && errors[row].code != code)
        row++;
    bool known = row < count;
    enum fetch_outcome how = known ? errors[row].how : f->sent ? FETCH_DISCONNECTED : FETCH_UNREACHABLE;
    const char *text = known ? errors[row].text : curl->easy_strerror(code);
    const char *more = known && errors[row].keeps_more ? f->error : "";
    if (code == CURLE_COULDNT_CONNECT && number)
        more = strerror((int)number);
    if (code == CURLE_OPERATION_TIMEDOUT && !f->sent)
        text = "could not connect in time";
    if (f->sent && code == CURLE_UNSUPPORTED_PROTOCOL) {
        text = "did not answer in HTTP";
        how = FETCH_NOT_HTTP;
    } else if (f->sent &&
               (how == FETCH_UNREACHABLE ||
                how == FETCH_MISCONFIGURED)) { /* a kept connection broke, and no other could be made */
        text = "the connection broke off without an answer";
        more = "";
        how = FETCH_DISCONNECTED;
    }
    fail(f, how, text, more);
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

static void report_head(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    long status = 0;
    char *to = NULL;
    curl_off_t after = 0; /* libcurl also reads it as a date */
    curl->easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    curl->easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &to);
    bool reads = strcmp(f->request.method, "GET") == 0 || strcmp(f->request.method, "HEAD") == 0;
    struct str from = fetch_origin(str_of(f->request.url)), origin = fetch_origin(str_of(to));
    if (to && (reads || status >= 307) && f->redirects < FETCH_REDIRECTS_MAX && from.len == origin.len &&
        strncasecmp(from.at, origin.at, from.len) == 0) {
        f->redirect_to = arena_dup(f->arena, str_of(to)).at;
        return;
    }
    struct fetch_head head = {.status = (int)status, .headers = f->headers, .count = f->header_count};
    curl->easy_getinfo(f->easy, CURLINFO_RETRY_AFTER, &after);
    head.after_s = after > 0 ? (int64_t)after : fetch_header(&head, "retry-after").len ? 0 : -1;
    if (head.after_s > FETCH_AFTER_MAX_S)
        head.after_s = FETCH_AFTER_MAX_S;
    if (to)
        head.redirect = (struct str){to, strspn(to, URL_LETTERS)};
    f->reported_head = true;
    if (f->hooks->head)
        f->hooks->head(f->owner, &head);
}

/* Head, bytes and end, as far as they have come. A hook may cancel, which sets `reporting` to NULL. libcurl
 * says where a redirect leads only at the end of its answer. */
static void report(struct fetch *f)
{
    struct fetcher *fetcher = f->fetcher;
    fetcher->reporting = f;
    if (f->has_head && !f->reported_head && !f->redirect_to && (f->over || !f->may_redirect))
        report_head(f);
    if (fetcher->reporting && f->over && f->redirect_to && f->how == FETCH_DONE) {
        f->redirects++;
        f->request.url = f->redirect_to;
        f->redirect_to = NULL;
        end_transfer(f);
        f->bytes.len = f->body_bytes = 0;
        f->over = !start_transfer(f);
        if (f->over)
            fail(f, FETCH_UNREACHABLE, "its redirect could not be followed", "");
    }
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
        if (f->too_large)
            fail(f, FETCH_TOO_LARGE,
                 f->body_bytes ? "its answer is too large" : "its answer has too many headers", "");
        else if (f->refused_repeat)
            fail(f, FETCH_DISCONNECTED, "the connection broke off without an answer", "");
        else if (code != CURLE_OK)
            fail_transfer(f, code);
        else if (!f->has_head && !f->reported_head)
            fail(f, FETCH_NOT_HTTP, "did not answer in HTTP", "");
        mark_pending(f);
    }
    while ((f = TAILQ_FIRST(&fetcher->pending))) {
        TAILQ_REMOVE(&fetcher->pending, f, pending_entry);
        f->is_pending = false;
        report(f);
    }
}

/* ---- the start ---------------------------------------------------------------------- */

struct fetch *fetch_start(struct loop *loop, const struct fetch_request *request,
                          const struct fetch_hooks *hooks, void *owner, struct why *why)
{
    static const char singleton_key;
    if (fetch_origin(str_of(request->url)).len == 0) {
        err_set(why, ERR_CONFIG,
                "expected an address that begins with http:// or https:// and a host, without user "
                "and password (use a header for those)");
        return NULL;
    }
    for (size_t i = 0; i < request->headers.count; i++) {
        const struct name_value *pair = &request->headers.list[i];
        if (fetch_header_is_safe(pair->name, pair->value))
            continue;
        err_set(why, ERR_CONFIG, "the header " STR_FMT " holds a line break or another control character",
                STR_ARG(str_cut(pair->name, 64)));
        return NULL;
    }
    if (!curl_load(why))
        return NULL;
    struct fetcher *fetcher = loop_singleton(loop, &singleton_key, make_fetcher, free_fetcher);
    if (!fetcher) {
        err_set(why, ERR_UNAVAILABLE, "libcurl could not be initialised");
        return NULL;
    }
    struct fetch *f = alloc_zeroed(sizeof(*f));
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
    if (!start_transfer(f)) {
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
    if (!scheme)
        return STR_NONE;
    size_t end = scheme;
    while (end < url.len && !strchr("/?#", url.at[end]))
        end++;
    bool has_user = memchr(url.at + scheme, '@', end - scheme) != NULL;
    return end > scheme && !has_user ? (struct str){url.at, end} : STR_NONE;
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

enum err fetch_check_library(struct why *why)
{
    return curl_load(why) ? OK : ERR_UNAVAILABLE;
}
