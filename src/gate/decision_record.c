/* Written straight into the buffer: no value of the record is built first. */
#include "gate/decision_record.h"

#include "base/arena.h"
#include "base/clock.h"
#include "gate/call_state.h"
#include "gate/decision_mask.h"
#include "json/canonical.h"
#include "json/write.h"

struct record {
    struct decision_record_options *options;
    struct call *call;
    struct json_out out;
    struct decision_masking *masking; /* NULL: nothing is masked */
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

static void put_name(struct record *r, const char *key, struct str name)
{
    if (name.len)
        json_field_str(&r->out, key, str_cut(name, DECISION_NAME_MAX_BYTES));
}

static void put_count(struct record *r, const char *key, int64_t count)
{
    if (count)
        json_field_int(&r->out, key, count);
}

/* A text of ours or of the tool, which may quote arguments. */
static void put_text(struct record *r, const char *key, struct str text)
{
    if (text.len)
        json_field_str(&r->out, key, r->masking ? decision_masking_text(r->masking, text) : text);
}

/* ---- who, when, what ---- */

static void put_time(struct record *r)
{
    struct decision_record_options *o = r->options;
    int64_t us = clock_read_ns(CLOCK_REALTIME) / 1000, second = us / 1000000;
    char micros[8];
    if (second != o->second_at) {
        struct tm tm;
        time_t at = (time_t)second;
        gmtime_r(&at, &tm);
        strftime(o->second, sizeof(o->second), "%Y-%m-%dT%H:%M:%S.", &tm);
        o->second_at = second;
    }
    us %= 1000000;
    for (int i = 5; i >= 0; i--, us /= 10)
        micros[i] = (char)('0' + us % 10);
    json_key(&r->out, "ts");
    struct buf *buf = json_next_value(&r->out);
    buf_byte(buf, '"');
    buf_text(buf, o->second);
    buf_add(buf, micros, 6);
    buf_text(buf, "Z\"");
}

static void put_identity(struct record *r)
{
    const struct call *c = r->call;
    const struct call_request *q = &c->request;
    json_field_int(&r->out, "v", DECISION_RECORD_VERSION);
    put_time(r);
    json_field_str(&r->out, "decision_id", call_id(c));
    json_field_str(&r->out, "generation", c->generation->hash);
    if (c->tool)
        json_field_text(&r->out, "policy_mode", mode_name(c->tool->mode));
    if (q->peer) {
        put_name(r, "user", str_of(q->peer->user));
        json_field_int(&r->out, "uid", q->peer->uid);
    }
    json_field_str(&r->out, "session",
                   str_cut(q->session.len ? q->session : q->connection, DECISION_NAME_MAX_BYTES));
    json_field_int(&r->out, "turn", q->turn ? q->turn : c->answer->turn);
    put_name(r, "step", q->step);
    put_name(r, "label", q->label);
    put_name(r, "ext", q->ext);
    put_name(r, "trace_id", q->trace_id);
    json_field_str(&r->out, "tool", str_cut(q->tool, DECISION_NAME_MAX_BYTES));
    if (c->tool && c->tool->runner == RUNNER_UPSTREAM)
        put_name(r, "upstream", c->tool->target.upstream);
    json_field_text(&r->out, "method", method_name(q->mode));
    put_name(r, "alias", c->outcome.alias);
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
    const struct json *arguments = r->call->request.arguments;
    const struct str *paths;
    if (r->options->arguments == DECISIONS_NONE)
        return;
    if (r->options->arguments == DECISIONS_HASH) {
        put_arguments_hash(r);
        return;
    }
    if (!arguments) /* of a report: not known; else the client sent none */
        json_field_raw(&r->out, "arguments",
                       r->call->request.mode == CALL_REPORT ? STR_LIT("null") : STR_LIT("{}"));
    else
        json_field(&r->out, "arguments",
                   r->masking ? decision_masking_value(r->masking, arguments, true) : arguments);
    size_t count = r->masking ? decision_masking_paths(r->masking, &paths) : 0;
    if (count)
        json_field_strs(&r->out, "masked", paths, count);
}

/* ---- the verdict ---- */

static void put_problems(struct record *r, const struct problems *problems)
{
    if (!problems->count)
        return;
    json_field_open(&r->out, "messages", '[');
    for (size_t i = 0; i < problems->count; i++)
        problem_json(&r->out, &problems->list[i]);
    json_close(&r->out, ']');
}

static void put_verdict(struct record *r)
{
    const struct call *c = r->call;
    const struct verdict *v = &c->verdict;
    json_field_text(&r->out, "verdict", verdict_name(v->kind));
    json_field_text(&r->out, "error_class", error_class_info(v->class)->name);
    put_name(r, "code", v->code);
    if (verdict_is_decided(v)) {
        put_text(r, "detail", v->detail);
        put_text(r, "hint", v->hint);
        json_field_text(&r->out, "stage", v->stage ? v->stage : "settle");
        put_name(r, "by", v->by);
    }
    put_problems(r, &v->problems);
    if (v->rewrites && v->rewrites->len)
        json_field(&r->out, "rewrites",
                   r->masking ? decision_masking_patch(r->masking, v->rewrites) : v->rewrites);
    if (v->would.len) {
        json_field_open(&r->out, "would", '{');
        put_name(r, "code", v->would);
        json_close(&r->out, '}');
    }
    put_count(r, "attempt", v->attempt);
    if (v->has_budget)
        json_field_int(&r->out, "attempts_left", v->attempts_left);
    put_count(r, "repeats", v->repeats);
    put_count(r, "no_progress", v->no_progress);
    put_name(r, "chain", c->settled && c->settled->chain.len ? c->settled->chain : c->answer->chain);
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
    put_name(r, "code", v->code);
    if (value && r->options->results != DECISIONS_NONE) {
        put_hash(r, "hash", json_fingerprint(c->arena, value, NULL, 0));
        put_count(r, "bytes", v->bytes_from ? (int64_t)v->bytes_from : (int64_t)value->raw_len);
    }
    put_name(r, "coverage", v->coverage);
    if (value && r->options->results >= DECISIONS_MASKED)
        json_field(&r->out, "value", r->masking ? decision_masking_value(r->masking, value, false) : value);
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
    json_field_open(&r->out, "us", '{');
    if (timing) {
        json_field_int(&r->out, "total", timing->total_ns / 1000);
        for (int i = 0; i < CALL_PARTS; i++)
            put_count(r, call_part_name((enum call_part)i), timing->part_ns[i] / 1000);
    }
    json_close(&r->out, '}');
    put_name(r, "ledger", str_of(r->call->verdict.engine));
}

void decision_record_write(struct buf *buf, struct decision_record_options *options, struct call *call)
{
    struct record r = {.options = options, .call = call, .out = json_out(buf)};
    if (options->arguments == DECISIONS_MASKED || options->results == DECISIONS_MASKED)
        r.masking = decision_masking_new(options->mask, call->arena, call->tool);
    json_open(&r.out, '{');
    put_identity(&r);
    put_arguments(&r);
    put_verdict(&r);
    put_result(&r);
    put_times(&r);
    json_close(&r.out, '}');
    buf_byte(buf, '\n');
}
