/* Reads records of the decision log. */
#include "replay/decision.h"

#include "base/arena.h"
#include "json/canonical.h"
#include "replay/timestamp.h"

/* Classes whose verdict is none of the gate about a call: it ran, or what runs it was not there. */
static const char *const not_refusals[] = {"ok",        "partial_data", "semantic_garbage", "schema_mismatch",
                                           "transient", "tool_error",   "unavailable",      "cancelled"};

static struct str member(const struct json *object, const char *key)
{
    return json_str(json_get_text(object, key));
}

static int64_t whole_number(const struct json *object, const char *key)
{
    int64_t n;
    return json_int(json_get_text(object, key), &n) ? n : -1;
}

static const struct json *typed(const struct json *object, const char *key, enum json_type type)
{
    const struct json *value = json_get_text(object, key);
    return json_is(value, type) ? value : NULL;
}

static void read_verdict(const struct json *object, struct decision_verdict *out)
{
    out->verdict = member(object, "verdict");
    out->class = member(object, "error_class");
    out->code = member(object, "code");
    out->detail = member(object, "detail");
    out->hint = member(object, "hint");
    out->messages = typed(object, "messages", JSON_ARRAY);
}

bool decision_read(const struct json *record, struct decision *d, const char **why)
{
    *d = (struct decision){.record = record, .ts_us = -1};
    d->tool = member(record, "tool");
    read_verdict(record, &d->given);
    *why = !d->tool.len ? "it names no tool" : !d->given.verdict.len ? "it has no verdict" : NULL;
    if (*why)
        return false;
    read_verdict(json_get_text(record, "would"), &d->would);
    d->ts = member(record, "ts");
    if (!decision_time(d->ts, &d->ts_us))
        d->ts_us = -1;
    d->id = member(record, "decision_id");
    d->generation = member(record, "generation");
    d->mode = member(record, "policy_mode");
    d->user = member(record, "user");
    d->session = member(record, "session");
    d->step = member(record, "step");
    d->method = member(record, "method");
    d->stage = member(record, "stage");
    d->uid = whole_number(record, "uid");
    d->turn = whole_number(record, "turn");
    d->arguments = json_get_text(record, "arguments");
    d->arguments_hash = member(record, "arguments_hash");
    d->masked = typed(record, "masked", JSON_ARRAY);
    d->result_class = member(json_get_text(record, "result"), "class");
    return true;
}

static bool is_refusal(const struct decision_verdict *v)
{
    return v->verdict.len && !str_is(v->verdict, "pass") && !STR_IS_ONE_OF(v->class, not_refusals);
}

bool decision_is_refused(const struct decision *d)
{
    return is_refusal(&d->given);
}

bool decision_would_be_refused(const struct decision *d)
{
    return is_refusal(&d->would);
}

const struct decision_verdict *decision_problem(const struct decision *d)
{
    return d->would.verdict.len ? &d->would : &d->given;
}

bool decision_is_report(const struct decision *d)
{
    return str_is(d->method, "toolgate/report");
}

uint64_t decision_arguments_hash(const struct decision *d)
{
    if (d->arguments_hash.len)
        return hash_stable(d->arguments_hash).low | 1;
    if (!d->arguments)
        return 0;
    struct arena *scratch = arena_new();
    uint64_t hash = json_fingerprint(scratch, d->arguments, NULL, 0).low | 1;
    arena_free(scratch);
    return hash;
}

/* ---- times ---- */

bool decision_time(struct str text, int64_t *us)
{
    return timestamp_read(&text, us) && !text.len;
}
