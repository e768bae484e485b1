/* Written straight into the buffer: no value of the record is built first. */
#include "gate/decision_record.h"

#include "base/arena.h"
#include "base/clock.h"
#include "gate/call_state.h"
#include "gate/decision_mask.h"
#include "gate/feedback.h"
#include "json/build.h"
#include "json/canonical.h"
#include "json/write.h"
#include "result/redact.h"

#define SECOND_BYTES 20 /* "2026-11-22T09:00:00." */
#define MICROS_BYTES 6

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

static const char *method_name(enum call_mode mode)
{
    static const char *const names[] = {
        [CALL_RUN] = "tools/call", [CALL_CHECK] = "toolgate/check", [CALL_REPORT] = "toolgate/report"};
    return names[mode];
}

static const char *mode_name(enum policy_mode mode)
{
    static const char *const names[] = {
        [POLICY_ENFORCE] = "enforce", [POLICY_SHADOW] = "shadow", [POLICY_OFF] = "off"};
    return names[mode];
}

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
            put_name(r, put_name_text);                                                                      \
        }                                                                                                    \
    } while (0)

static void put_name(struct record *r, struct str name)
{
    if (name.len > DECISION_NAME_MAX_BYTES)
        name = str_cut(name, DECISION_NAME_MAX_BYTES);
    json_write_string(r->out.buf, name);
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

/* ---- who, when, what ---- */

static void put_time(struct record *r)
{
    struct decision_record_options *o = r->options;
    int64_t us = clock_read_ns(CLOCK_REALTIME) / 1000, second = us / 1000000;
    char micros[MICROS_BYTES];
    if (second != o->second_at) {
        struct tm tm;
        time_t at = (time_t)second;
        gmtime_r(&at, &tm);
        strftime(o->second, sizeof(o->second), "%Y-%m-%dT%H:%M:%S.", &tm);
        o->second_at = second;
    }
    us %= 1000000;
    for (int i = MICROS_BYTES - 1; i >= 0; i--, us /= 10)
        micros[i] = (char)('0' + us % 10);
    struct buf *buf = r->out.buf;
    PUT_KEY(r, "ts");
    buf_byte(buf, '"');
    buf_add(buf, o->second, SECOND_BYTES);
    buf_add(buf, micros, MICROS_BYTES);
    buf_text(buf, "Z\"");
}

static void put_identity(struct record *r)
{
    struct call *c = r->call;
    const struct call_request *q = &c->request;
    json_field_int(&r->out, "v", DECISION_RECORD_VERSION);
    put_time(r);
    PUT_PLAIN(r, "decision_id", call_id(c));
    PUT_PLAIN(r, "generation", c->generation->hash);
    if (c->tool)
        PUT_PLAIN(r, "policy_mode", str_of(mode_name(c->tool->mode)));
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
    PUT_PLAIN(r, "method", str_of(method_name(q->mode)));
    PUT_NAME(r, "alias", c->outcome.alias);
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

static void put_arguments_hash(struct record *r)
{
    struct call *c = r->call;
    put_hash(r, "arguments_hash", json_fingerprint(c->arena, c->request.arguments, NULL, 0));
}

static void put_arguments(struct record *r)
{
    const struct str *paths;
    if (r->options->arguments == DECISIONS_HASH || (r->arguments && r->cut >= CUT_ARGUMENTS))
        put_arguments_hash(r);
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

/* Of a value that is masked, or where values are not shown, only the place and the code. */
static void put_problem(struct record *r, const struct problem *given)
{
    struct problem p = *given;
    if (r->masking || !shows_arguments(r)) {
        bool hidden = !shows_arguments(r) || decision_masking_hides(r->masking, p.path);
        p.message = hidden ? STR_LIT(REDACTED) : masked_text(r, p.message);
        p.expected = hidden ? STR_NONE : masked_json(r, p.expected);
        p.got = hidden ? STR_NONE : masked_json(r, p.got);
        p.path = masked_text(r, p.path);
        p.last_path = masked_text(r, p.last_path);
    }
    problem_json(&r->out, &p);
}

static void put_problems(struct record *r, const struct problems *problems)
{
    if (!problems->count || r->cut >= CUT_MESSAGES)
        return;
    json_field_open(&r->out, "messages", '[');
    for (size_t i = 0; i < problems->count; i++)
        put_problem(r, &problems->list[i]);
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

/* What the feedback would have said of a decision that is not enforced. */
static void describe(struct call *c, struct verdict *would)
{
    struct feedback_said said = {STR_NONE, STR_NONE};
    struct feedback feedback = {.verdict = would, .tool = c->tool, .name = c->request.tool, .said = &said};
    if (error_class_info(would->class)->is_error)
        feedback_text(c->arena, &feedback);
    verdict_describe(would, said.detail, said.hint);
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
        describe(c, &would);
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
    const struct call *c = r->call;
    const struct verdict *v = &c->verdict;
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
        put_hash(r, "hash", json_fingerprint(c->arena, value, NULL, 0));
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

static void put_times(struct record *r)
{
    const struct call_timing *timing = r->call->outcome.timing;
    struct buf *buf = r->out.buf;
    buf_text(buf, ",\"us\":{\"total\":");
    buf_int(buf, timing ? timing->total_ns / 1000 : 0);
    for (int i = 0; timing && i < CALL_PARTS; i++) {
        int64_t us = timing->part_ns[i] / 1000;
        if (!us)
            continue;
        buf_text(buf, ",\"");
        buf_text(buf, call_part_name((enum call_part)i));
        buf_text(buf, "\":");
        buf_int(buf, us);
    }
    buf_byte(buf, '}');
    PUT_NAME(r, "ledger", str_of(r->call->verdict.engine));
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

static const struct json *masked_arguments(const struct record *r)
{
    const struct call *c = r->call;
    const struct json *arguments = c->request.arguments;
    if (c->request.arguments_fault.len)
        arguments = json_keep(c->arena, rebuilt(c->arena, arguments));
    return decision_masking_value(r->masking, arguments, true);
}

/* What is secret in the values has to be known before a text is written that may quote it. */
static void mask_values(struct record *r)
{
    const struct decision_record_options *o = r->options;
    struct call *c = r->call;
    if (o->arguments == DECISIONS_MASKED || o->results == DECISIONS_MASKED)
        r->masking = decision_masking_new(o->mask, c->arena, c->tool);
    if (c->request.arguments && o->arguments == DECISIONS_MASKED)
        r->arguments = masked_arguments(r);
    else if (o->arguments == DECISIONS_FULL)
        r->arguments = c->request.arguments;
    if (c->result.value && o->results == DECISIONS_MASKED)
        r->result = decision_masking_value(r->masking, c->result.value, false);
    else if (o->results == DECISIONS_FULL)
        r->result = c->result.value;
    if (o->arguments == DECISIONS_FULL)
        r->masking = NULL; /* texts may quote what the record shows anyway */
}

static void write(struct record *r)
{
    json_open(&r->out, '{');
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
