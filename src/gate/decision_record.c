/* Written straight into the buffer: no value of the record is built first. */
#include "gate/decision_record.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/buf.h"
#include "gate/call_state.h"
#include "gate/decision_mask.h"
#include "gate/feedback.h"
#include "json/build.h"
#include "json/write.h"
#include "result/redact.h"

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
    struct decision_record_options *options;
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
    return r->options->arguments >= DECISIONS_MASKED;
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
static void put_head(struct record *r)
{
    static const char after_time[] = "Z\",\"decision_id\":\"";
    struct decision_record_options *o = r->options;
    int64_t us = clock_read_ns(CLOCK_REALTIME) / 1000, second = us / 1000000;
    uint32_t micros = (uint32_t)(us % 1000000);
    if (second != o->second_at) {
        struct tm tm;
        time_t at = (time_t)second;
        gmtime_r(&at, &tm);
        strftime(o->head, sizeof(o->head), HEAD_FORMAT, &tm);
        o->second_at = second;
    }
    struct str id = call_id(r->call);
    char *start = buf_reserve(r->out.buf, HEAD_MAX_BYTES), *at = start;
    memcpy(at, o->head, HEAD_BYTES);
    at += HEAD_BYTES;
    at = digits_put_pair(at, micros / 10000);
    at = digits_put_pair(at, micros / 100 % 100);
    at = digits_put_pair(at, micros % 100);
    memcpy(at, after_time, sizeof(after_time) - 1);
    at += sizeof(after_time) - 1;
    memcpy(at, id.at, LEDGER_CALL_ID_CHARS);
    at += LEDGER_CALL_ID_CHARS;
    *at++ = '"';
    r->out.buf->len += (size_t)(at - start);
}

static void put_identity(struct record *r)
{
    static const struct str modes[] = {
        [POLICY_ENFORCE] = STR("enforce"), [POLICY_SHADOW] = STR("shadow"), [POLICY_OFF] = STR("off")};
    struct call *c = r->call;
    const struct call_request *q = &c->request;
    put_head(r);
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
    buf_hex64(buf, siphash(r->options->key, bytes));
    buf_hex64(buf, siphash(r->options->key + SIPHASH_KEY_BYTES, bytes));
    buf_byte(buf, '"');
}

static void put_arguments(struct record *r)
{
    const struct str *paths;
    if (r->options->arguments == DECISIONS_HASH || (r->arguments && r->cut >= CUT_ARGUMENTS))
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

static void put_decision(struct record *r, const struct verdict *v)
{
    json_field_text(&r->out, "verdict", verdict_name(v->kind));
    PUT_PLAIN(r, "error_class", str_of(error_class_info(v->class)->name));
    if (v->code.len) /* may be a sentence of the tool */
        json_field_str(&r->out, "code", masked_text(r, str_cut(v->code, DECISION_NAME_MAX_BYTES)));
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
        struct feedback_said said = {STR_NONE, STR_NONE}; /* what the feedback would have said */
        struct feedback feedback = {
            .verdict = &would, .tool = c->tool, .name = c->request.tool, .said = &said};
        if (error_class_info(would.class)->is_error)
            feedback_text(c->arena, &feedback);
        verdict_describe(&would, said.detail, said.hint);
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

static void put_verdict(struct record *r)
{
    static const char pass[] = ",\"verdict\":\"pass\",\"error_class\":\"ok\"";
    const struct call *c = r->call;
    const struct verdict *v = &c->verdict;
    if (is_plain_pass(v)) {
        buf_add(r->out.buf, pass, sizeof(pass) - 1);
        PUT_COUNT(r, "attempt", v->attempt);
        PUT_NAME(r, "chain", c->settled && c->settled->chain.len ? c->settled->chain : c->answer->chain);
        return;
    }
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
    if (v->code.len)
        json_field_str(&r->out, "code", masked_text(r, str_cut(v->code, DECISION_NAME_MAX_BYTES)));
    if (value && r->options->results != DECISIONS_NONE) {
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

/* Built of what was read: the bytes as sent also have the values of keys that come twice. */
static struct json rebuilt(struct arena *arena, const struct json *value)
{
    struct json now = *value;
    now.raw_len = 0;
    if (value->type == JSON_ARRAY) {
        struct json *items = ARENA_ARRAY(arena, struct json, value->len);
        for (uint32_t i = 0; i < value->len; i++)
            items[i] = rebuilt(arena, &value->items[i]);
        now.items = items;
    } else if (value->type == JSON_OBJECT) {
        struct json_member *members = ARENA_ARRAY(arena, struct json_member, value->len);
        for (uint32_t i = 0; i < value->len; i++)
            members[i] = json_member(value->members[i].key, rebuilt(arena, &value->members[i].value));
        now = json_object(arena, members, value->len);
    }
    return now;
}

/* Nobody would see their masks: the record has no room for them. */
static bool is_too_long_to_mask(const struct json *value, enum decisions_detail content)
{
    return value && content == DECISIONS_MASKED && value->raw_len > DECISION_MASKED_MAX_BYTES;
}

/* What is secret in the values has to be known before a text is written that may quote it: if it is not, the
 * record has no such text. */
static void mask_values(struct record *r)
{
    const struct decision_record_options *o = r->options;
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
        !c->result.value && decision_mask_is_clean(o->mask, c->tool, arguments)) {
        r->arguments = arguments;
        return;
    }
    if (o->arguments == DECISIONS_MASKED || o->results == DECISIONS_MASKED)
        r->masking = decision_masking_new(o->mask, c->arena, c->tool);
    if (arguments && is_faulty && o->arguments == DECISIONS_MASKED)
        arguments = json_keep(c->arena, rebuilt(c->arena, arguments));
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

static void write(struct record *r)
{
    put_identity(r);
    put_arguments(r);
    put_verdict(r);
    put_result(r);
    put_times(r);
    if (r->cut)
        json_field_bool(&r->out, "cut", true);
    json_close(&r->out, '}');
    buf_byte(r->out.buf, '\n');
}

void decision_record_write(struct buf *buf, struct decision_record_options *options, struct call *call)
{
    struct record r = {.options = options, .call = call};
    size_t start = buf->len;
    mask_values(&r);
    do {
        buf->len = start;
        r.out = json_out(buf);
        write(&r);
    } while (buf->len - start > DECISION_RECORD_MAX_BYTES && ++r.cut < CUT_LEVELS);
}
