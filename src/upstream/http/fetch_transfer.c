/*
 * One request as libcurl runs it. Its callbacks only store headers and bytes;
 * fetch.c reports them after libcurl has returned.
 */
#include "upstream/http/fetch_internal.h"

#include "base/arena.h"
#include "base/version.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- libcurl's callbacks ---------------------------------------------------------- */

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
    if (str_starts(line, "HTTP/")) { /* a new head: of a redirect, after 100 Continue, or of the answer */
        f->header_count = f->header_bytes = 0;
        f->has_head = false;
    }
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

/* ---- the start --------------------------------------------------------------------- */

static void add_line(struct fetch *f, struct str line)
{
    struct curl_slist *lines = f->fetcher->curl->slist_append(f->lines, line.at);
    if (!lines)
        abort();
    f->lines = lines;
}

static void set_headers(struct fetch *f)
{
    const struct name_values *headers = &f->request.headers;
    for (size_t i = 0; i < headers->count; i++) {
        struct str value = headers->list[i].value;
        add_line(
            f, ARENA_JOIN(f->arena, headers->list[i].name, value.len ? STR_LIT(": ") : STR_LIT(";"), value));
    }
    add_line(f, STR_LIT("Expect:")); /* else libcurl waits a second before it sends a large body */
}

bool fetch_transfer_start(struct fetch *f)
{
    const struct curl_library *curl = f->fetcher->curl;
    const struct fetch_request *r = &f->request;
    if (!(f->easy = curl->easy_init()))
        return false;
    f->header_count = f->header_bytes = 0;
    f->has_head = f->sent = false;
    f->error[0] = '\0';
    set_headers(f);
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
    SET(FOLLOWLOCATION, 0L); /* fetch.c follows, to the same origin only */
    SET(HTTP09_ALLOWED, 0L);
    SET(TCP_KEEPALIVE, 1L);
    if (r->ca_file)
        SET(CAINFO, r->ca_file);
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
