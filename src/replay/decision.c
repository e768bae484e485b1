/* Reads records of the decision log. */
#include "replay/decision.h"

#include "base/arena.h"
#include "json/canonical.h"

#include <time.h>

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

/* A number of `count` digits from `least` to `most`. */
static bool read_digits(struct str *text, size_t count, int least, int most, int *out)
{
    *out = 0;
    if (text->len < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!ascii_is_digit(text->at[i]))
            return false;
        *out = *out * 10 + (text->at[i] - '0');
    }
    *text = str_from(*text, count);
    return *out >= least && *out <= most;
}

static bool read_mark(struct str *text, const char *marks)
{
    if (!text->len || !strchr(marks, text->at[0]) || !text->at[0])
        return false;
    *text = str_from(*text, 1);
    return true;
}

/* Digits after the point, of which six count. */
static int64_t read_fraction(struct str *text)
{
    int64_t us = 0;
    int digits = 0;
    while (text->len && ascii_is_digit(text->at[0])) {
        if (digits++ < 6)
            us = us * 10 + (text->at[0] - '0');
        *text = str_from(*text, 1);
    }
    for (; digits < 6; digits++)
        us *= 10;
    return us;
}

/* "Z", "+01:00"; nothing means UTC. */
static bool read_offset(struct str *text, int *minutes)
{
    int hours = 0, rest = 0;
    bool west = text->len && text->at[0] == '-';
    *minutes = 0;
    if (!text->len || read_mark(text, "Zz"))
        return !text->len;
    if (!read_mark(text, "+-") || !read_digits(text, 2, 0, 23, &hours) || !read_mark(text, ":") ||
        !read_digits(text, 2, 0, 59, &rest))
        return false;
    *minutes = (west ? -1 : 1) * (hours * 60 + rest);
    return !text->len;
}

bool decision_time(struct str text, int64_t *us)
{
    struct tm tm = {0};
    int offset;
    if (!read_digits(&text, 4, 1, 9999, &tm.tm_year) || !read_mark(&text, "-") ||
        !read_digits(&text, 2, 1, 12, &tm.tm_mon) || !read_mark(&text, "-") ||
        !read_digits(&text, 2, 1, 31, &tm.tm_mday) || !read_mark(&text, "Tt ") ||
        !read_digits(&text, 2, 0, 23, &tm.tm_hour) || !read_mark(&text, ":") ||
        !read_digits(&text, 2, 0, 59, &tm.tm_min) || !read_mark(&text, ":") ||
        !read_digits(&text, 2, 0, 60, &tm.tm_sec))
        return false;
    int64_t fraction = read_mark(&text, ".") ? read_fraction(&text) : 0;
    if (!read_offset(&text, &offset))
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *us = ((int64_t)timegm(&tm) - offset * 60) * 1000000 + fraction;
    return true;
}
