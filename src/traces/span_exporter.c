/*
 * One batch is filled, others wait in a queue, and the first of them is under way:
 *
 *   spans ─▶ filling ─▶ queue (bounded) ─▶ POST ─▶ accepted, or rejected and dropped
 *                                           └▶ failed: the batch stays, the next try is after a pause
 */
#include "traces/span_exporter.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/version.h"
#include "io/timer.h"
#include "json/parse.h"
#include "upstream/http/fetch.h"
#include "upstream/secrets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#define RESPONSE_MAX_BYTES 65536u
#define WHY_MAX_BYTES      256u
#define QUOTED_MAX_BYTES   160u /* of the collector's own words */
#define HOST_MAX_BYTES     256u

#define SCOPE "{\"name\":\"toolgate\",\"version\":\"" TOOLGATE_VERSION "\"}"

struct batch {
    TAILQ_ENTRY(batch) entry;
    struct buf spans; /* JSON values with commas between them */
    struct json_out out;
    size_t count;
};

struct span_exporter {
    struct loop *loop;
    struct arena *arena; /* owns `config` */
    struct span_export config;
    uint64_t random; /* state of the generator of ids */
    char instance[HOST_MAX_BYTES + 32];
    struct batch *filling; /* NULL: no span waits in it */
    TAILQ_HEAD(, batch) queue;
    size_t queued;
    struct fetch *fetch; /* of the queue's first batch */
    int status;
    struct buf response;
    int64_t after_s;
    struct timer timer, retry;
    unsigned failures; /* in a row */
    bool flushing, flush_failed;
    bool dropping; /* since the last batch that was accepted; logged once */
    bool rejecting;
    int64_t down_since_ms;
    uint64_t sent, dropped, rejected;
    char why[WHY_MAX_BYTES]; /* of the last failure; empty: none since it works */
};

/* ---- spans as OTLP's JSON: the field names of opentelemetry/proto/trace/v1/trace.proto ---- */

#define FLAGS_REMOTE_KNOWN 0x100 /* SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK */
#define FLAGS_REMOTE       0x200 /* SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK */
#define STATUS_ERROR       2

/* 64 bits are strings in protobuf's JSON. */
static void put_int64(struct json_out *out, const char *key, int64_t n)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRId64, n);
    json_field_text(out, key, digits);
}

void span_open(struct json_out *out, const struct span *span)
{
    int64_t flags = span->flags | (span->parent.len ? FLAGS_REMOTE_KNOWN : 0) |
                    (span->parent_is_remote ? FLAGS_REMOTE : 0);
    json_open(out, '{');
    json_field_str(out, "traceId", span->trace_id);
    json_field_str(out, "spanId", span_id_str(&span->id));
    json_field_optional_str(out, "traceState", span->trace_state);
    json_field_optional_str(out, "parentSpanId", span->parent);
    json_field_int(out, "flags", flags);
    json_field_str(out, "name", str_cut(span->name, SPAN_TEXT_MAX_BYTES));
    json_field_int(out, "kind", span->kind);
    put_int64(out, "startTimeUnixNano", span->start_ns);
    put_int64(out, "endTimeUnixNano", span->end_ns < span->start_ns ? span->start_ns : span->end_ns);
    json_field_open(out, "attributes", '[');
}

static void open_attribute(struct json_out *out, const char *key)
{
    json_open(out, '{');
    json_field_text(out, "key", key);
    json_field_open(out, "value", '{');
}

static void close_attribute(struct json_out *out)
{
    json_close(out, '}');
    json_close(out, '}');
}

void span_put_str(struct json_out *out, const char *key, struct str value)
{
    if (!value.len)
        return;
    open_attribute(out, key);
    json_field_str(out, "stringValue", str_cut(value, SPAN_TEXT_MAX_BYTES));
    close_attribute(out);
}

void span_put_int(struct json_out *out, const char *key, int64_t value)
{
    open_attribute(out, key);
    put_int64(out, "intValue", value);
    close_attribute(out);
}

void span_put_double(struct json_out *out, const char *key, double value)
{
    open_attribute(out, key);
    json_key(out, "doubleValue");
    json_put_double(out, value);
    close_attribute(out);
}

void span_close(struct json_out *out, const struct span *span)
{
    span_put_str(out, "error.type", span->error);
    json_close(out, ']');
    json_field_open(out, "status", '{');
    if (span->error.len)
        json_field_int(out, "code", STATUS_ERROR);
    json_close(out, '}');
    json_close(out, '}');
}

/* ---- ids ---- */

static void write_id(uint64_t *random, char digits[TRACE_SPAN_ID_DIGITS])
{
    struct buf out = {.at = digits, .cap = TRACE_SPAN_ID_DIGITS};
    uint64_t bits = hash_next(random);
    buf_hex64(&out, bits ? bits : 1); /* zeros only are no id */
}

void span_ids_of_call(uint64_t call, char trace_id[TRACE_ID_DIGITS], struct span_id *id)
{
    write_id(&call, trace_id);
    write_id(&call, trace_id + TRACE_SPAN_ID_DIGITS);
    write_id(&call, id->digits);
}

struct span_id span_exporter_new_id(struct span_exporter *e)
{
    struct span_id id;
    write_id(&e->random, id.digits);
    return id;
}

bool span_exporter_samples(const struct span_exporter *e, struct str traceparent, uint64_t call)
{
    if (traceparent.len)
        return trace_parent_flags(traceparent) & TRACE_FLAG_SAMPLED;
    return e->config.sample >= 1 || (double)(hash_next(&call) >> 11) < e->config.sample * 9007199254740992.0;
}

/* ---- the queue ---- */

static void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    buf_clear(&batch->spans);
    free(batch);
}

static void drop_first(struct span_exporter *e)
{
    struct batch *batch = TAILQ_FIRST(&e->queue);
    TAILQ_REMOVE(&e->queue, batch, entry);
    e->queued--;
    batch_free(batch);
}

static void send_first(struct span_exporter *e);

static void send_next(void *owner)
{
    struct span_exporter *e = owner;
    if (e->queued && !e->fetch && !timer_is_set(&e->retry))
        send_first(e);
}

/* A batch that is full or old enough; it stays where it is while the queue is full. */
static void queue_filling(void *owner)
{
    struct span_exporter *e = owner;
    if (!e->filling || e->queued == SPANS_QUEUE_BATCHES)
        return;
    TAILQ_INSERT_TAIL(&e->queue, e->filling, entry);
    e->queued++;
    e->filling = NULL;
    timer_clear(&e->timer);
    send_next(e);
}

struct json_out *span_exporter_begin(struct span_exporter *e, size_t count)
{
    if (e->filling && e->filling->spans.len >= SPANS_BATCH_BYTES)
        queue_filling(e);
    if (e->filling && e->filling->spans.len >= SPANS_BATCH_BYTES) {
        e->dropped += count;
        if (!e->dropping) {
            e->dropping = true;
            log_event(LOG_WARN, "traces_dropped",
                      LOG_TEXT("why", e->why[0] ? e->why : "spans come faster than the collector takes them"),
                      LOG_NUM("queued_batches", e->queued), LOG_NUM("dropped", e->dropped),
                      LOG_TEXT("effect", "calls go on; toolgate status counts the spans that are lost"));
        }
        return NULL;
    }
    if (!e->filling) {
        e->filling = alloc_zeroed(sizeof(*e->filling));
        e->filling->out = json_out(&e->filling->spans);
    }
    e->filling->count += count;
    return &e->filling->out;
}

void span_exporter_end(struct span_exporter *e)
{
    if (e->filling->spans.len >= SPANS_BATCH_BYTES)
        queue_filling(e);
    else if (!timer_is_set(&e->timer))
        timer_set(&e->timer, e->loop, e->config.batch_ms ? e->config.batch_ms : SPANS_BATCH_MS, queue_filling,
                  e);
}

/* ---- sending ---- */

static enum err build_request(const struct span_exporter *e, struct arena *arena,
                              struct fetch_request *request, struct why *why)
{
    const struct name_values *given = &e->config.headers;
    struct name_value *list = ARENA_ARRAY(arena, struct name_value, given->count + 1);
    struct str url, ca_file;
    enum err err = secrets_expand(arena, e->config.endpoint, NULL, &url, why);
    if (!err)
        err = secrets_expand(arena, e->config.ca_file, NULL, &ca_file, why);
    for (size_t i = 0; !err && i < given->count; i++) {
        list[i].name = given->list[i].name;
        err = secrets_expand(arena, given->list[i].value, NULL, &list[i].value, why);
    }
    if (err)
        return err;
    list[given->count] = (struct name_value){STR_LIT("Content-Type"), STR_LIT("application/json")};
    /* The body is put together when it is sent: the resource may have changed by a reload. */
    struct buf body = buf_in(arena);
    buf_text(&body, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    struct json_out attributes = json_out(&body);
    span_put_str(&attributes, "service.name", e->config.service_name);
    span_put_str(&attributes, "service.version", STR_LIT(TOOLGATE_VERSION));
    span_put_str(&attributes, "service.instance.id", str_of(e->instance));
    buf_text(&body, "]},\"scopeSpans\":[{\"scope\":" SCOPE ",\"spans\":[");
    buf_str(&body, buf_view(&TAILQ_FIRST(&e->queue)->spans));
    buf_text(&body, "]}]}]}");
    *request = (struct fetch_request){.method = "POST",
                                      .url = arena_dup(arena, url).at,
                                      .headers = {list, given->count + 1},
                                      .body = buf_view(&body),
                                      .has_body = true,
                                      .total_ms = SPANS_TIMEOUT_MS,
                                      .ca_file = ca_file.len ? arena_dup(arena, ca_file).at : NULL,
                                      .body_max = RESPONSE_MAX_BYTES};
    return OK;
}

/* The batch stays for the next try. At the end of the daemon there is no next try. */
static void failed(struct span_exporter *e, const char *why)
{
    e->flush_failed = e->flushing;
    snprintf(e->why, sizeof(e->why), "%s", why);
    if (!e->failures++) {
        e->down_since_ms = clock_wall_ms();
        struct str origin = fetch_origin(e->config.endpoint);
        log_event(LOG_WARN, "traces_down", LOG_STR("endpoint", origin), LOG_TEXT("why", e->why),
                  LOG_TEXT("effect", "calls go on; spans are kept for a while, then dropped"));
    }
    unsigned doublings = e->failures < 8 ? e->failures - 1 : 7;
    uint64_t ms = (uint64_t)SPANS_RETRY_MS << doublings;
    if (e->after_s > 0 && (uint64_t)e->after_s * 1000 > ms)
        ms = (uint64_t)e->after_s * 1000;
    timer_set(&e->retry, e->loop, ms < SPANS_RETRY_MAX_MS ? (uint32_t)ms : SPANS_RETRY_MAX_MS, send_next, e);
}

/* The collector is there and has taken the batch, if not all of its spans. */
static void accepted(struct span_exporter *e)
{
    if (e->failures)
        log_event(LOG_INFO, "traces_up", LOG_STR("endpoint", fetch_origin(e->config.endpoint)),
                  LOG_NUM("away_s", (clock_wall_ms() - e->down_since_ms) / 1000),
                  LOG_NUM("dropped", e->dropped));
    e->failures = 0;
    e->dropping = false;
    e->why[0] = '\0';
}

static void note_rejected(struct span_exporter *e, size_t count, const char *why)
{
    e->rejected += count;
    snprintf(e->why, sizeof(e->why), "%s", why);
    if (e->rejecting)
        return;
    e->rejecting = true;
    log_event(LOG_WARN, "traces_rejected", LOG_STR("endpoint", fetch_origin(e->config.endpoint)),
              LOG_NUM("spans", count), LOG_TEXT("why", why),
              LOG_TEXT("effect", "these spans are lost; further rejections are only counted"));
}

static void take_response(struct span_exporter *e)
{
    struct batch *batch = TAILQ_FIRST(&e->queue);
    struct arena *arena = arena_new();
    struct json response = {0};
    char why[WHY_MAX_BYTES];
    bool read = e->response.len &&
                json_parse(arena, arena_dup(arena, buf_view(&e->response)), NULL, &response, NULL) == OK;
    /* {"partialSuccess":{"rejectedSpans":"2","errorMessage":"…"}}, or of an error {"message":"…"} */
    const struct json *partial = read ? json_get_text(&response, "partialSuccess") : NULL;
    struct str message = json_str(json_get_text(partial, "errorMessage"));
    if (read && !message.len)
        message = json_str(json_get_text(&response, "message"));
    message = str_cut(message, QUOTED_MAX_BYTES);
    size_t rejected = batch->count;
    if (e->status >= 200 && e->status < 300) {
        const struct json *count = json_get_text(partial, "rejectedSpans"); /* a number, or a string of one */
        int64_t n = 0;
        if (json_is(count, JSON_STRING) && count->len < 19)
            for (uint32_t i = 0; i < count->len && ascii_is_digit(count->text[i]); i++)
                n = n * 10 + (count->text[i] - '0');
        else if (!json_int(count, &n) || n < 0)
            n = 0;
        rejected = (size_t)n < rejected ? (size_t)n : rejected;
        snprintf(why, sizeof(why), "the collector rejects spans: " STR_FMT, STR_ARG(message));
    } else {
        snprintf(why, sizeof(why), "status %d%s" STR_FMT, e->status, message.len ? ": " : "",
                 STR_ARG(message));
    }
    /* OTLP: only these may be sent again. */
    if (e->status == 408 || e->status == 429 || e->status == 502 || e->status == 503 || e->status == 504) {
        failed(e, why);
    } else {
        accepted(e);
        e->sent += batch->count - rejected;
        if (rejected)
            note_rejected(e, rejected, why);
        drop_first(e);
    }
    arena_free(arena);
}

static void on_head(void *owner, const struct fetch_head *head)
{
    struct span_exporter *e = owner;
    e->status = head->status;
    e->after_s = head->after_s;
}

static void on_data(void *owner, struct str bytes)
{
    buf_str(&((struct span_exporter *)owner)->response, bytes);
}

static void on_done(void *owner, const struct fetch_end *end)
{
    struct span_exporter *e = owner;
    e->fetch = NULL;
    if (end->how == FETCH_DONE || (end->how == FETCH_TOO_LARGE && e->status))
        take_response(e);
    else
        failed(e, end->why);
    buf_clear(&e->response);
    if (e->filling && (e->flushing || e->filling->spans.len >= SPANS_BATCH_BYTES || !timer_is_set(&e->timer)))
        queue_filling(e); /* there may be room for it now */
    send_next(e);
}

static void send_first(struct span_exporter *e)
{
    static const struct fetch_hooks hooks = {.head = on_head, .data = on_data, .done = on_done};
    struct arena *arena = arena_new();
    struct fetch_request request;
    struct why why = {0};
    e->status = 0;
    e->after_s = -1;
    if (build_request(e, arena, &request, &why) == OK)
        e->fetch = fetch_start(e->loop, &request, &hooks, e, &why);
    arena_free(arena);
    if (!e->fetch)
        failed(e, why.text);
}

bool span_exporter_flush(struct span_exporter *e)
{
    if (!e->flushing) { /* one more try, even if the last one failed */
        e->flushing = true;
        timer_clear(&e->retry);
    }
    queue_filling(e);
    send_next(e);
    return e->flush_failed || (!e->queued && !e->filling);
}

/* ---- life ---- */

struct span_exporter *span_exporter_new(struct loop *loop)
{
    struct span_exporter *e = alloc_zeroed(sizeof(*e));
    char host[HOST_MAX_BYTES] = "";
    e->loop = loop;
    e->random = hash_random();
    TAILQ_INIT(&e->queue);
    gethostname(host, sizeof(host) - 1);
    snprintf(e->instance, sizeof(e->instance), "%s:%d:%" PRIx64, host, (int)getpid(),
             hash_random() & 0xffffff);
    return e;
}

static size_t count_waiting(const struct span_exporter *e)
{
    size_t count = e->filling ? e->filling->count : 0;
    const struct batch *batch;
    TAILQ_FOREACH (batch, &e->queue, entry)
        count += batch->count;
    return count;
}

/* Where the spans would go is no longer configured. */
static void drop_all(struct span_exporter *e)
{
    if (e->fetch)
        fetch_cancel(e->fetch);
    e->fetch = NULL;
    timer_clear(&e->timer);
    timer_clear(&e->retry);
    while (e->queued)
        drop_first(e);
    batch_free(e->filling);
    e->filling = NULL;
    buf_clear(&e->response);
}

void span_exporter_configure(struct span_exporter *e, const struct span_export *config)
{
    struct arena *before = e->arena;
    e->arena = arena_new();
    e->config = (struct span_export){.endpoint = arena_dup(e->arena, config->endpoint),
                                     .headers = name_values_copy(e->arena, config->headers),
                                     .ca_file = arena_dup(e->arena, config->ca_file),
                                     .service_name = arena_dup(e->arena, config->service_name),
                                     .batch_ms = config->batch_ms,
                                     .sample = config->sample};
    arena_free(before);
    e->rejecting = false;
    if (!span_exporter_is_on(e)) {
        drop_all(e);
        e->failures = 0;
        e->why[0] = '\0';
    } else if (timer_is_set(&e->retry)) { /* the configuration may have been the reason */
        timer_clear(&e->retry);
        send_next(e);
    }
}

void span_exporter_free(struct span_exporter *e)
{
    if (!e)
        return;
    size_t lost = count_waiting(e);
    if (lost)
        log_event(
            LOG_WARN, "traces_lost", LOG_NUM("spans", lost),
            LOG_TEXT("why", e->why[0] ? e->why : "the collector was too slow at the end of the daemon"));
    drop_all(e);
    arena_free(e->arena);
    free(e);
}

bool span_exporter_is_on(const struct span_exporter *e)
{
    return e->config.endpoint.len;
}

void span_exporter_write_status(struct json_out *out, const struct span_exporter *e)
{
    if (!span_exporter_is_on(e))
        return;
    json_field_object(out, "traces", FIELD_STR("endpoint", fetch_origin(e->config.endpoint)),
                      FIELD_TEXT("state", e->failures ? "down" : "up"), FIELD_NUM("sent", e->sent),
                      FIELD_NUM("waiting", count_waiting(e)), FIELD_NUM("dropped", e->dropped),
                      FIELD_NUM("rejected", e->rejected), FIELD_OPTIONAL("last_error", str_of(e->why)));
}
