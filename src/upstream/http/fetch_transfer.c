/*
 * One request as libcurl is asked for it, and what it hands back: headers and
 * bytes are put away here, and told later (http_client.c).
 */
#include "upstream/http/fetch_internal.h"

#include "base/arena.h"
#include "base/version.h"

#include <ctype.h>
#include <stdlib.h>

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
    f->headers[f->header_count++] = (struct name_value){
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
        fetch_mark_pending(f);
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
    fetch_mark_pending(f);
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

/* ---- what is asked ---------------------------------------------------------------------- */

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
    const struct name_values *headers = &f->request.headers;
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

bool fetch_transfer_start(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    if (!(f->easy = curl->easy_init()))
        return false;
    begin_head(f);
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
