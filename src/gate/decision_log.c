/* The sinks of the records, and what the log says of them. */
#include "gate/decision_log.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "gate/call.h"
#include "gate/call_state.h"
#include "gate/decision_mask.h"
#include "gate/feedback.h"
#include "io/record_sink.h"
#include "json/build.h"
#include "json/write.h"
#include "ledger/ledger.h"
#include "result/redact.h"

#include <stdlib.h>

#define SINKS_MAX       2u /* a file, journald */
#define KEY_BYTES       (2 * SIPHASH_KEY_BYTES)
#define LINE_KEPT_BYTES 1048576u
#define BYTES_PER_MB    1048576u

struct decision_log {
    struct loop *loop;
    struct config_decisions config;
    struct record_sink *sinks[SINKS_MAX];
    size_t sink_count;
    struct decision_mask *mask;
    uint8_t key[KEY_BYTES]; /* of hashes */
    char head[48];          /* of records of the second `second_at`: {"v":1,"ts":"2026-11-22T09:00:00. */
    int64_t second_at;
    struct buf line; /* of the last record; its memory is used again */
    uint64_t lost;   /* by sinks that a reload has closed */
    decision_log_tap *tap;
    void *tap_owner;
};

/* ---- records: written straight into the buffer, no value of a record is built first ---- */

#define DECISION_RECORD_VERSION 1
#define DECISION_RECORD_MAX_BYTES                                                                            \
    131072u /* a longer one loses its result, then its arguments; fits a datagram to journald */
#define DECISION_NAME_MAX_BYTES 256u /* of a tool's name, a session, a label: clients choose them */

/* Longer arguments or results are not masked value by value, which takes tens of milliseconds: a record has
 * the hash of such arguments, and no text that may quote them. */
#define DECISION_MASKED_MAX_BYTES 262144u

#define STRINGIFY(number)    #number
#define VERSION_TEXT(number) STRINGIFY(number)
#define HEAD_VERSION         "{\"v\":" VERSION_TEXT(DECISION_RECORD_VERSION) ",\"ts\":\""
#define HEAD_FORMAT          HEAD_VERSION "%Y-%m-%dT%H:%M:%S."
#define HEAD_BYTES           (sizeof(HEAD_VERSION "2026-11-22T09:00:00.") - 1)
#define NS_PER_US            1000
#define TIMES_MAX_BYTES      256u /* six numbers and their keys */
#define HEAD_MAX_BYTES       128u /* with the fraction and the decision's id */

/* What a record that is too long leaves out; each level also what those before it do. */
enum cut { CUT_NOTHING, CUT_RESULT, CUT_ARGUMENTS, CUT_MESSAGES, CUT_LEVELS };

struct record {
    struct decision_log *log;
    struct call *call;
    struct json_out out;
    struct decision_masking *masking;      /* NULL: nothing is masked */
    const struct json *arguments, *result; /* as they are shown; NULL: they are not */
    enum cut cut;
};

/* The key of a further member, a literal: its length is known to the compiler. */
#define PUT_KEY(r, key) buf_add((r)->out.buf, ",\"" key "\":", sizeof(key) + 3)
#define PUT_INT(r, key, n)                                                                                   \
    do {                                                                                                     \
        PUT_KEY(r, key);                                                                                     \
        buf_int((r)->out.buf, (n));                                                                          \
    } while (0)
#define PUT_COUNT(r, key, n)                                                                                 \
    do {                                                                                                     \
        if (n)                                                                                               \
            PUT_INT(r, key, n);                                                                              \
    } while (0)
/* A string that needs no escape. */
#define PUT_PLAIN(r, key, text)                                                                              \
    do {                                                                                                     \
        PUT_KEY(r, key);                                                                                     \
        json_write_plain((r)->out.buf, (text));                                                              \
    } while (0)
/* A string that a client or an operator chose; none if it is empty. */
#define PUT_NAME(r, key, name)                                                                               \
    do {                                                                                                     \
        struct str put_name_text = (name);                                                                   \
        if (put_name_text.len) {                                                                             \
            PUT_KEY(r, key);                                                                                 \
            put_name((r), put_name_text);                                                                    \
        }                                                                                                    \
    } while (0)

static void put_name(struct record *r, struct str name)
{
    json_write_string(r->out.buf, str_cut(name, DECISION_NAME_MAX_BYTES));
}

/* Texts and messages quote arguments, so they are as secret. */
static bool shows_arguments(const struct record *r)
{
    return r->log->config.arguments >= DECISIONS_MASKED;
}

static struct str masked_text(const struct record *r, struct str text)
{
    return r->masking && text.len ? decision_masking_text(r->masking, text) : text;
}

/* A text of ours or of the tool. */
static void put_text(struct record *r, const char *key, struct str text)
{
    if (text.len && shows_arguments(r) && r->cut < CUT_MESSAGES)
        json_field_str(&r->out, key, masked_text(r, text));
}

/* Of a call that passed there is nothing to say. */
static bool is_plain_pass(const struct verdict *v)
{
    return v->class == CLASS_OK && v->kind == VERDICT_PASS && !v->code.len && !v->problems.count &&
           !(v->rewrites && v->rewrites->len) && !v->would.len && !v->has_budget && !v->repeats &&
           !v->no_progress;
}

/* ---- who, when, what ---- */

/* {"v":1,"ts":"2026-11-22T09:00:00.123456Z","decision_id":"…": what comes before the fraction of the second
 * is kept, as most records share it. */
static void put_head(struct record *r, struct str id)
{
    static const char after_time[] = "Z\",\"decision_id\":\"";
    struct decision_log *o = r->log;
    int64_t us = clock_read_ns(CLOCK_REALTIME) / 1000, second = us / 1000000;
    uint32_t micros = (uint32_t)(us % 1000000);
    if (second != o->second_at) {
        struct tm tm;
        time_t at = (time_t)second;
        gmtime_r(&at, &tm);
        strftime(o->head, sizeof(o->head), HEAD_FORMAT, &tm);
        o->second_at = second;
    }
    char *start = buf_reserve(r->out.buf, HEAD_MAX_BYTES), *at = start;
    memcpy(at, o->head, HEAD_BYTES);
    at += HEAD_BYTES;
    at = digits_put_pair(at, micros / 10000);
    at = digits_put_pair(at, micros / 100 % 100);
    at = digits_put_pair(at, micros % 100);
    memcpy(at, after_time, sizeof(after_time) - 1);
    at += sizeof(after_time) - 1;
    memcpy(at, id.at, id.len);
    at += id.len;
    *at++ = '"';
    r->out.buf->len += (size_t)(at - start);
}

static void put_identity(struct record *r)
{
    static const struct str modes[] = {
        [POLICY_ENFORCE] = STR("enforce"), [POLICY_SHADOW] = STR("shadow"), [POLICY_OFF] = STR("off")};
    struct call *c = r->call;
    const struct call_request *q = &c->request;
    put_head(r, call_id(c));
    PUT_PLAIN(r, "generation", c->generation->hash);
    if (c->tool)
        PUT_PLAIN(r, "policy_mode", modes[c->tool->mode]);
    if (q->peer) {
        PUT_NAME(r, "user", str_of(q->peer->user));
        PUT_INT(r, "uid", q->peer->uid);
    }
    PUT_KEY(r, "session");
    put_name(r, q->session.len ? q->session : q->connection);
    PUT_INT(r, "turn", q->turn ? q->turn : c->answer->turn);
    PUT_NAME(r, "step", q->step);
    PUT_NAME(r, "label", q->label);
    PUT_NAME(r, "ext", q->ext);
    PUT_NAME(r, "trace_id", q->trace_id);
    PUT_KEY(r, "tool");
    put_name(r, q->tool);
    if (c->tool && c->tool->runner == RUNNER_UPSTREAM)
        PUT_NAME(r, "upstream", c->tool->target.upstream);
    PUT_PLAIN(r, "method", call_method(q->mode));
    PUT_NAME(r, "alias", c->outcome.alias);
    r->out.comma = true;
}

/* ---- arguments ---- */

static void put_hash(struct record *r, const char *key, struct hash128 hash)
{
    struct str bytes = {(const char *)&hash, sizeof(hash)};
    json_key(&r->out, key);
    struct buf *buf = json_next_value(&r->out);
    buf_byte(buf, '"');
    buf_hex64(buf, siphash(r->log->key, bytes));
    buf_hex64(buf, siphash(r->log->key + SIPHASH_KEY_BYTES, bytes));
    buf_byte(buf, '"');
}

static void put_arguments(struct record *r)
{
    const struct str *paths;
    if (r->log->config.arguments == DECISIONS_HASH || (r->arguments && r->cut >= CUT_ARGUMENTS))
        put_hash(r, "arguments_hash", call_arguments_hash(r->call));
    else if (r->arguments)
        json_field(&r->out, "arguments", r->arguments);
    else if (shows_arguments(r)) /* of a report: not known; else the client sent none */
        json_field_raw(&r->out, "arguments",
                       r->call->request.mode == CALL_REPORT ? STR_LIT("null") : STR_LIT("{}"));
    size_t count = r->masking ? decision_masking_paths(r->masking, &paths) : 0;
    if (!count)
        return;
    json_field_open(&r->out, "masked", '[');
    for (size_t i = 0; i < count; i++) /* a name on the way may quote a secret */
        json_put_str(&r->out, decision_masking_text(r->masking, paths[i]));
    json_close(&r->out, ']');
}

/* ---- the verdict ---- */

/* JSON of a problem; what is no longer JSON after masking becomes a string. */
static struct str masked_json(const struct record *r, struct str json)
{
    struct str now = masked_text(r, json);
    return now.at == json.at ? json : STR_LIT("\"" REDACTED "\"");
}

static void put_problems(struct record *r, const struct problems *problems)
{
    if (!problems->count || r->cut >= CUT_MESSAGES)
        return;
    json_field_open(&r->out, "messages", '[');
    for (size_t i = 0; i < problems->count; i++) {
        struct problem p = problems->list[i];
        if (r->masking ||
            !shows_arguments(r)) { /* of a value that is not shown only the place and the code */
            bool hidden = !shows_arguments(r) || decision_masking_hides(r->masking, p.path);
            p.message = hidden ? STR_LIT(REDACTED) : masked_text(r, p.message);
            p.expected =
                hidden ? STR_NONE : masked_json(r, problem_expected(r->call->arena, &problems->list[i]));
            p.shape = NULL;
            p.got = hidden ? STR_NONE : masked_json(r, p.got);
            p.path = masked_text(r, p.path);
            p.last_path = masked_text(r, p.last_path);
        }
        problem_json(&r->out, &p);
    }
    json_close(&r->out, ']');
}

/* {"op":…,"path":…,"value":…}; without the values where arguments are not shown. */
static void put_rewrites(struct record *r, const struct json *patch)
{
    if (!patch || !patch->len || r->cut >= CUT_ARGUMENTS)
        return;
    if (r->masking)
        patch = decision_masking_patch(r->masking, patch);
    json_field_open(&r->out, "rewrites", '[');
    for (uint32_t i = 0; i < patch->len; i++) {
        const struct json *op = &patch->items[i];
        if (shows_arguments(r)) {
            json_put(&r->out, op);
            continue;
        }
        json_open(&r->out, '{');
        json_field(&r->out, "op", json_get_text(op, "op"));
        json_field(&r->out, "path", json_get_text(op, "path"));
        json_close(&r->out, '}');
    }
    json_close(&r->out, ']');
}

/* It may be a sentence of the tool. */
static void put_code(struct record *r, struct str code)
{
    json_field_optional_str(&r->out, "code", masked_text(r, str_cut(code, DECISION_NAME_MAX_BYTES)));
}

static void put_decision(struct record *r, const struct verdict *v)
{
    json_field_text(&r->out, "verdict", verdict_name(v->kind));
    PUT_PLAIN(r, "error_class", str_of(error_class_info(v->class)->name));
    put_code(r, v->code);
}

/* Of a shadow the whole decision; of a budget that an anonymous session is let over, its code. */
static void put_would(struct record *r)
{
    struct call *c = r->call;
    if (!c->verdict.would.len)
        return;
    json_field_open(&r->out, "would", '{');
    if (c->verdict.shadowed) {
        struct verdict would = *c->verdict.shadowed;
        struct feedback feedback = {.verdict = &would, .tool = c->tool, .name = c->request.tool};
        if (error_class_info(would.class)->is_error)
            feedback_text(c->arena, &feedback); /* for the detail and the hint that it would have had */
        verdict_describe(&would, feedback.detail, feedback.hint);
        put_decision(r, &would);
        put_text(r, "detail", would.detail);
        put_text(r, "hint", would.hint);
        PUT_NAME(r, "stage", str_of(would.stage));
        PUT_NAME(r, "by", would.by);
        put_problems(r, &would.problems);
        put_rewrites(r, would.rewrites);
    } else {
        json_field_str(&r->out, "code", str_cut(c->verdict.would, DECISION_NAME_MAX_BYTES));
    }
    json_close(&r->out, '}');
}

/* The question of a policy: its id while it waits, else what came of it. A no stands for those before it. */
static void put_answer(struct record *r)
{
    const struct call_request *q = &r->call->request;
    const struct verdict *v = &r->call->verdict;
    const struct consent *answer = NULL;
    PUT_NAME(r, "approval", v->approval);
    if (v->class == CLASS_NEED_USER_INPUT)
        return;
    for (size_t i = 0; i < q->consent_count && (!answer || answer->given); i++)
        answer = &q->consents[i];
    if (!answer)
        return;
    PUT_NAME(r, "approval", answer->id);
    PUT_PLAIN(r, "answer", answer->given ? STR_LIT("approved") : STR_LIT("denied"));
    PUT_NAME(r, "answered_by", answer->by);
}

static void put_verdict(struct record *r)
{
    static const char pass[] = ",\"verdict\":\"pass\",\"error_class\":\"ok\"";
    const struct call *c = r->call;
    const struct verdict *v = &c->verdict;
    if (is_plain_pass(v)) {
        buf_add(r->out.buf, pass, sizeof(pass) - 1);
    } else {
        put_decision(r, v);
        if (verdict_is_decided(v)) {
            put_text(r, "detail", v->detail);
            put_text(r, "hint", v->hint);
            json_field_text(&r->out, "stage", v->stage ? v->stage : "settle");
            PUT_NAME(r, "by", v->by);
        }
        put_problems(r, &v->problems);
        put_rewrites(r, v->rewrites);
        put_would(r);
    }
    put_answer(r);
    PUT_COUNT(r, "attempt", v->attempt);
    if (v->has_budget)
        json_field_int(&r->out, "attempts_left", v->attempts_left);
    PUT_COUNT(r, "repeats", v->repeats);
    PUT_COUNT(r, "no_progress", v->no_progress);
    PUT_NAME(r, "chain", c->settled && c->settled->chain.len ? c->settled->chain : c->answer->chain);
}

/* ---- the result ---- */

static void put_result(struct record *r)
{
    struct call *c = r->call;
    const struct verdict *v = &c->verdict;
    const struct json *value = c->result.value;
    if (!c->ran && c->request.mode != CALL_REPORT)
        return;
    json_field_open(&r->out, "result", '{');
    json_field_text(&r->out, "class", error_class_info(v->class)->name);
    put_code(r, v->code);
    if (value && r->log->config.results != DECISIONS_NONE) {
        put_hash(r, "hash", call_result_hash(c, value));
        PUT_COUNT(r, "bytes", v->bytes_from ? (int64_t)v->bytes_from : (int64_t)value->raw_len);
    }
    PUT_NAME(r, "coverage", v->coverage);
    if (r->result && r->cut < CUT_RESULT)
        json_field(&r->out, "value", r->result);
    json_close(&r->out, '}');
    if (v->cost >= 0) {
        json_key(&r->out, "cost");
        json_put_double(&r->out, v->cost);
    }
}

/* ---- times ---- */

/* "us":{"total":27,"queue":1,"schema":12} */
static void put_times(struct record *r)
{
    static const char total[] = ",\"us\":{\"total\":";
    static const struct {
        char text[16]; /* copied whole, as that is one instruction */
        size_t len;
    } keys[CALL_PARTS] = {[CALL_PART_QUEUE] = {",\"queue\":", 9},
                          [CALL_PART_SCHEMA] = {",\"schema\":", 10},
                          [CALL_PART_POLICY] = {",\"policy\":", 10},
                          [CALL_PART_LEDGER] = {",\"ledger\":", 10},
                          [CALL_PART_UPSTREAM] = {",\"upstream\":", 12}};
    const struct call_timing *timing = r->call->outcome.timing;
    char *start = buf_reserve(r->out.buf, TIMES_MAX_BYTES), *at = start;
    memcpy(at, total, sizeof(total) - 1);
    at = digits_put(at + sizeof(total) - 1, timing ? (uint64_t)timing->total_ns / NS_PER_US : 0);
    for (int i = 0; timing && i < CALL_PARTS; i++) {
        if (timing->part_ns[i] < NS_PER_US)
            continue;
        memcpy(at, keys[i].text, sizeof(keys[i].text));
        at = digits_put(at + keys[i].len, (uint64_t)timing->part_ns[i] / NS_PER_US);
    }
    *at++ = '}';
    r->out.buf->len += (size_t)(at - start);
    if (r->call->verdict.engine)
        PUT_PLAIN(r, "ledger", str_of(r->call->verdict.engine));
}

/* ---- the record ---- */

/* A child of a value that is built of what was read: bytes as sent also have the values of keys that come
 * twice. */
static const struct json *rebuilt(void *arena, const struct json *parent, uint32_t i, struct str *key)
{
    struct json now = *json_child(parent, i);
    (void)key;
    now.raw_len = 0;
    return json_map(arena, json_keep(arena, now), rebuilt, arena);
}

/* The record has no room for such a value, so it need not be masked. */
static bool is_too_long_to_mask(const struct json *value, unsigned content)
{
    return value && content == DECISIONS_MASKED && json_is_longer(value, DECISION_MASKED_MAX_BYTES);
}

/* What is secret in the values has to be known before a text is written that may quote it: if it is not, the
 * record has no such text. */
static void mask_values(struct record *r)
{
    const struct config_decisions *o = &r->log->config;
    struct call *c = r->call;
    const struct json *arguments = c->request.arguments;
    bool is_faulty = c->request.arguments_fault.len;
    if (is_too_long_to_mask(arguments, o->arguments) || is_too_long_to_mask(c->result.value, o->results)) {
        r->cut = CUT_MESSAGES;
        r->arguments = arguments;
        return;
    }
    /* Most records: their arguments are written as they were sent, and no text could quote them. */
    if (o->arguments == DECISIONS_MASKED && is_plain_pass(&c->verdict) && arguments && !is_faulty &&
        !c->result.value && decision_mask_is_clean(r->log->mask, c->tool, arguments)) {
        r->arguments = arguments;
        return;
    }
    if (o->arguments == DECISIONS_MASKED || o->results == DECISIONS_MASKED)
        r->masking = decision_masking_new(r->log->mask, c->arena, c->tool);
    if (arguments && is_faulty && o->arguments == DECISIONS_MASKED)
        arguments = json_map(c->arena, arguments, rebuilt, c->arena);
    if (arguments && o->arguments == DECISIONS_MASKED)
        r->arguments = decision_masking_value(r->masking, arguments, true);
    else if (o->arguments == DECISIONS_FULL)
        r->arguments = arguments;
    if (c->result.value && o->results == DECISIONS_MASKED)
        r->result = decision_masking_value(r->masking, c->result.value, false);
    else if (o->results == DECISIONS_FULL)
        r->result = c->result.value;
    if (o->arguments == DECISIONS_FULL)
        r->masking = NULL; /* texts may quote what the record shows anyway */
}

/* Writes the record and its newline. */
static void write_record(struct decision_log *log, struct call *call)
{
    struct record r = {.log = log, .call = call};
    mask_values(&r);
    do {
        log->line.len = 0;
        r.out = json_out(&log->line);
        put_identity(&r);
        put_arguments(&r);
        put_verdict(&r);
        put_result(&r);
        put_times(&r);
        if (r.cut)
            json_field_bool(&r.out, "cut", true);
        json_close(&r.out, '}');
        buf_byte(&log->line, '\n');
    } while (log->line.len > DECISION_RECORD_MAX_BYTES && ++r.cut < CUT_LEVELS);
}

static void send_line(struct decision_log *log)
{
    for (size_t i = 0; i < log->sink_count; i++)
        record_sink_add(log->sinks[i], buf_view(&log->line));
    if (log->tap)
        log->tap(log->tap_owner, buf_view(&log->line));
    if (log->line.cap > LINE_KEPT_BYTES)
        buf_clear(&log->line);
}

/* A URI says what an argument would say. */
void decision_log_read(struct decision_log *log, struct arena *arena, const struct decision_read *read)
{
    struct record r = {.log = log, .out = json_out(&log->line)};
    struct buf id = buf_in(arena);
    const struct json *arguments = read->arguments;
    const struct error_class_info *class = error_class_info(read->class);
    if (!decision_log_is_on(log))
        return;
    if (log->config.arguments == DECISIONS_MASKED)
        r.masking = decision_masking_new(log->mask, arena, NULL);
    bool shows = shows_arguments(&r) && !is_too_long_to_mask(arguments, DECISIONS_MASKED);
    if (arguments && shows && r.masking)
        arguments = decision_masking_value(r.masking, arguments, false);
    buf_hex64(&id, hash_random());
    buf_hex64(&id, hash_random());
    log->line.len = 0;
    put_head(&r, buf_view(&id));
    PUT_PLAIN(&r, "generation", read->generation);
    PUT_NAME(&r, "user", str_of(read->peer->user));
    PUT_INT(&r, "uid", read->peer->uid);
    PUT_NAME(&r, "session", read->session);
    PUT_NAME(&r, "tool",
             !read->is_uri ? read->name
             : shows       ? masked_text(&r, read->name)
                           : STR_LIT("resource"));
    PUT_NAME(&r, "upstream", read->upstream);
    PUT_NAME(&r, "method", read->method);
    r.out.comma = true;
    if (arguments && shows)
        json_field(&r.out, "arguments", arguments);
    json_fields(&r.out, FIELD_TEXT("verdict", verdict_name(class->verdict)),
                FIELD_TEXT("error_class", class->name), FIELD_OPTIONAL("code", read->code),
                FIELD_OPTIONAL("approval", read->approval));
    if (read->bytes)
        json_field_object(&r.out, "result", FIELD_TEXT("class", class->name),
                          FIELD_NUM("bytes", read->bytes));
    json_close(&r.out, '}');
    buf_byte(&log->line, '\n');
    if (log->line.len <= DECISION_RECORD_MAX_BYTES)
        send_line(log);
    else
        log->lost++;
}

/* ---- the key of the hashes ---- */

/* Without the kept key, hashes of this daemon's life still match each other. */
static void open_key(struct decision_log *log, const char *file)
{
    struct why why;
    bool replaced, hashes = log->config.arguments != DECISIONS_FULL || log->config.results != DECISIONS_NONE;
    if (log->config.on && hashes && key_file_load(file, log->key, KEY_BYTES, &replaced, &why) != OK)
        log_event(
            LOG_WARN, "decision_key_not_kept", LOG_TEXT("why", why.text),
            LOG_TEXT("effect",
                     "arguments_hash, result.hash and the tags of masked values differ after a restart"));
}

/* ---- sinks ---- */

static const char *kind_name(enum record_sink_kind kind)
{
    return kind == RECORD_SINK_FILE ? "file" : "journald";
}

static void on_sink_changed(void *owner, const struct record_sink_status *s)
{
    (void)owner;
    if (s->down)
        log_event(LOG_ERROR, "decision_log_down", LOG_TEXT("sink", kind_name(s->kind)),
                  LOG_TEXT("why", s->why.text), LOG_NUM("dropped", s->dropped),
                  LOG_TEXT("effect", "calls go on; records are kept for a while, then dropped and counted"));
    else
        log_event(LOG_WARN, "decision_log_up", LOG_TEXT("sink", kind_name(s->kind)),
                  LOG_TEXT("path", s->path), LOG_NUM("dropped", s->dropped));
}

/* Those of the configuration. A default file that cannot be written is no reason not to start. */
static size_t list_sinks(const struct config_decisions *c, const struct decision_log_files *files,
                         struct record_sink_options list[SINKS_MAX])
{
    size_t count = 0;
    uint32_t mb = c->max_mb                          ? c->max_mb
                  : !c->file && files->beside_socket ? DECISIONS_SOCKET_MB
                                                     : DECISIONS_FILE_MB;
    if (c->on && c->to_file)
        list[count++] = (struct record_sink_options){.kind = RECORD_SINK_FILE,
                                                     .path = c->file ? c->file : files->records,
                                                     .max_bytes = (uint64_t)mb * BYTES_PER_MB,
                                                     .keep = c->keep};
    if (c->on && c->journald)
        list[count++] = (struct record_sink_options){
            .kind = RECORD_SINK_JOURNAL, .path = c->journald, .identifier = "toolgate-decisions"};
    return count;
}

static void open_sinks(struct decision_log *log, const struct decision_log_files *files)
{
    struct record_sink_options list[SINKS_MAX];
    size_t count = list_sinks(&log->config, files, list);
    for (size_t i = 0; i < count; i++) {
        struct record_sink *sink = record_sink_new(log->loop, &list[i], on_sink_changed, log);
        log->sinks[log->sink_count++] = sink;
        record_sink_reopen(sink); /* now, so that it is known whether it can be written to */
    }
}

static void close_sinks(struct decision_log *log)
{
    for (size_t i = 0; i < log->sink_count; i++) {
        struct record_sink_status status;
        record_sink_status(log->sinks[i], &status);
        uint64_t lost = record_sink_free(log->sinks[i]);
        log->lost += status.dropped + lost;
        if (lost)
            log_event(LOG_ERROR, "decision_log_lost", LOG_NUM("records", lost));
    }
    log->sink_count = 0;
}

/* ---- the log ---- */

enum err decision_log_new(struct loop *loop, const struct config_decisions *config,
                          const struct decision_log_files *files, struct decision_log **out, struct why *why)
{
    *out = NULL;
    struct record_sink_options list[SINKS_MAX];
    list_sinks(config, files, list);
    if (config->on && config->to_file && config->file && record_sink_check(&list[0], why) != OK) {
        err_prefix(why, "decisions.file");
        return ERR_IO;
    }
    struct decision_log *log = alloc_zeroed(sizeof(*log));
    log->loop = loop;
    for (size_t i = 0; i < KEY_BYTES; i += sizeof(uint64_t)) /* if none is kept */
        memcpy(log->key + i, &(uint64_t){hash_random()}, sizeof(uint64_t));
    decision_log_configure(log, config, files);
    *out = log;
    return OK;
}

void decision_log_configure(struct decision_log *log, const struct config_decisions *config,
                            const struct decision_log_files *files)
{
    bool same = config_decisions_same_sinks(&log->config, config);
    if (!same)
        close_sinks(log);
    log->config = *config;
    decision_mask_free(log->mask);
    log->mask = decision_mask_new(config->mask, config->mask_count, log->key);
    open_key(log, files->key);
    if (!same)
        open_sinks(log, files);
}

bool decision_log_is_on(const struct decision_log *log)
{
    return log && (log->sink_count || log->tap);
}

void decision_log_reopen(struct decision_log *log)
{
    for (size_t i = 0; i < log->sink_count; i++)
        record_sink_reopen(log->sinks[i]);
}

void decision_log_leave_loop(struct decision_log *log)
{
    for (size_t i = 0; i < log->sink_count; i++)
        record_sink_leave_loop(log->sinks[i]);
}

void decision_log_free(struct decision_log *log)
{
    if (!log)
        return;
    close_sinks(log);
    decision_mask_free(log->mask);
    buf_clear(&log->line);
    free(log);
}

void decision_log_call(struct decision_log *log, struct call *call)
{
    if (!log->sink_count && !log->tap)
        return;
    write_record(log, call);
    send_line(log);
}

void decision_log_set_tap(struct decision_log *log, decision_log_tap *tap, void *owner)
{
    log->tap = tap;
    log->tap_owner = owner;
}

uint64_t decision_log_dropped(const struct decision_log *log, uint32_t *sinks_down)
{
    uint64_t dropped = log ? log->lost : 0;
    *sinks_down = 0;
    for (size_t i = 0; log && i < log->sink_count; i++) {
        struct record_sink_status status;
        record_sink_status(log->sinks[i], &status);
        dropped += status.dropped;
        *sinks_down += status.down;
    }
    return dropped;
}

void decision_log_write_status(struct json_out *out, const struct decision_log *log)
{
    uint32_t down;
    json_field_open(out, "decisions", '{');
    json_field_bool(out, "on", decision_log_is_on(log));
    json_field_int(out, "dropped", (int64_t)decision_log_dropped(log, &down));
    json_field_open(out, "sinks", '[');
    for (size_t i = 0; log && i < log->sink_count; i++) {
        struct record_sink_status s;
        record_sink_status(log->sinks[i], &s);
        json_put_object(out, FIELD_TEXT("kind", kind_name(s.kind)), FIELD_TEXT("path", s.path),
                        FIELD_TEXT("state", s.down ? "down" : "up"),
                        FIELD_IF(s.down, FIELD_TEXT("why", s.why.text)), FIELD_NUM("written", s.written),
                        FIELD_NUM("dropped", s.dropped), FIELD_NUM("waiting_bytes", s.waiting_bytes));
    }
    json_close(out, ']');
    json_close(out, '}');
}
