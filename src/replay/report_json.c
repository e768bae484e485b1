/* The report as one JSON document; docs/replay.md lists its names. */
#include "gate/verdict.h"
#include "json/write.h"
#include "replay/replay_report.h"

#include <math.h>

#define SHARE_SCALE 10000.0 /* four digits after the point */

static void put_verdicts(struct json_out *out, const char *key, const uint64_t *verdicts)
{
    json_field_open(out, key, '{');
    for (int i = 0; i < VERDICT_KINDS; i++)
        if (verdicts[i])
            json_field_int(out, verdict_name((enum verdict_kind)i), (int64_t)verdicts[i]);
    json_close(out, '}');
}

static void put_examples(struct json_out *out, const struct replay_example *examples, size_t count)
{
    json_field_open(out, "examples", '[');
    for (size_t i = 0; i < count; i++) {
        const struct replay_example *e = &examples[i];
        json_open(out, '{');
        json_field_text(out, "file", e->file);
        json_field_int(out, "line", (int64_t)e->line);
        json_field_str(out, "session", e->session);
        json_field_optional_str(out, "arguments", e->arguments);
        json_field_optional_str(out, "detail", e->detail);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_share(struct json_out *out, uint64_t part, uint64_t whole)
{
    json_key(out, "share");
    json_put_double(out, whole ? round((double)part / (double)whole * SHARE_SCALE) / SHARE_SCALE : 0);
}

static void put_row(struct json_out *out, const struct replay_row *row, uint64_t whole)
{
    json_open(out, '{');
    json_field_optional_str(out, "tool", row->tool);
    json_field_optional_str(out, "class", row->class);
    json_field_optional_str(out, "code", row->code);
    json_field_optional_str(out, "path", row->path);
    json_field_int(out, "calls", (int64_t)row->calls);
    put_share(out, row->calls, whole);
    put_verdicts(out, "verdicts", row->verdicts);
    json_field_int(out, "refused", (int64_t)row->refused);
    json_field_int(out, "retried", (int64_t)row->retried);
    json_field_int(out, "recovered", (int64_t)row->recovered);
    put_examples(out, row->examples, row->example_count);
    json_close(out, '}');
}

/* `all`: also rows whose calls turned out to be others' when their results came. */
static void put_table(struct json_out *out, const char *key, const struct replay_table *table, uint64_t whole,
                      bool all)
{
    json_field_open(out, key, '{');
    json_field_open(out, "rows", '[');
    for (size_t i = 0; i < table->count; i++)
        if (all || table->rows[i]->calls)
            put_row(out, table->rows[i], whole);
    json_close(out, ']');
    if (table->other.calls) {
        json_key(out, "other");
        put_row(out, &table->other, whole);
    }
    json_close(out, '}');
}

static void put_loops(struct json_out *out, const struct replay_report *r)
{
    json_field_open(out, "loops", '{');
    json_field_int(out, "sessions", (int64_t)r->loop_sessions);
    json_field_int(out, "runaways", (int64_t)r->runaways);
    json_field_int(out, "halted", (int64_t)r->halted);
    json_field_int(out, "calls_saved", (int64_t)r->loop_calls);
    json_field_open(out, "list", '[');
    for (size_t i = 0; i < r->loop_count; i++) {
        const struct replay_loop *loop = &r->loops[i];
        json_open(out, '{');
        json_field_str(out, "session", loop->session);
        json_field_str(out, "tool", loop->tool);
        json_field_str(out, "code", loop->code);
        json_field_int(out, "calls", (int64_t)loop->calls);
        json_field_int(out, "saved", (int64_t)loop->saved);
        json_field_bool(out, "halted", loop->halted);
        json_field_text(out, "file", loop->file);
        json_field_int(out, "line", (int64_t)loop->line);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}

static void put_difference(struct json_out *out, const struct replay_difference *d)
{
    json_open(out, '{');
    json_field_text(out, "change", replay_change_names[d->change]);
    json_field_str(out, "tool", d->tool);
    json_field_str(out, "code", d->code);
    json_field_optional_str(out, "path", d->path);
    json_field_text(out, "before", verdict_name(d->before));
    json_field_str(out, "before_class", d->before_class);
    json_field_text(out, "after", verdict_name(d->after));
    json_field_str(out, "after_class", d->after_class);
    json_field_optional_str(out, "reason", d->reason);
    json_field_int(out, "calls", (int64_t)d->calls);
    json_field_open(out, "recorded", '{');
    json_field_int(out, "ran_well", (int64_t)d->ran_well);
    json_field_int(out, "ran_badly", (int64_t)d->ran_badly);
    json_field_int(out, "not_run", (int64_t)d->not_run);
    json_field_int(out, "unknown", (int64_t)d->unknown);
    json_close(out, '}');
    json_field_int(out, "retried", (int64_t)d->retried);
    json_field_int(out, "recovered", (int64_t)d->recovered);
    put_examples(out, d->examples, d->example_count);
    json_close(out, '}');
}

static void put_differences(struct json_out *out, const struct replay_report *r)
{
    json_field_open(out, "against", '{');
    json_field_text(out, "policies", r->against);
    put_verdicts(out, "verdicts", r->against_verdicts);
    json_field_int(out, "new_refusals", (int64_t)r->changed[REPLAY_NEW_REFUSAL]);
    json_field_int(out, "other_verdicts", (int64_t)r->changed[REPLAY_OTHER_VERDICT]);
    json_field_int(out, "new_passes", (int64_t)r->changed[REPLAY_NEW_PASS]);
    json_field_open(out, "differences", '[');
    for (size_t i = 0; i < r->difference_count; i++)
        put_difference(out, r->differences[i]);
    json_close(out, ']');
    if (r->other_difference.calls)
        json_field_int(out, "other_calls", (int64_t)r->other_difference.calls);
    json_close(out, '}');
}

static void put_skipped(struct json_out *out, const struct replay_report *r, bool has_texts)
{
    json_field_open(out, "skipped", '{');
    for (int fault = 0; fault < RECORDING_FAULTS; fault++) {
        const struct recording_count *count = &r->faults[fault];
        if (!count->count)
            continue;
        json_field_open(out, recording_fault_name((enum recording_fault)fault), '{');
        json_field_int(out, "count", (int64_t)count->count);
        if (has_texts)
            json_field_text(out, "text", recording_fault_text((enum recording_fault)fault));
        json_field_open(out, "places", '[');
        for (uint64_t i = 0; i < count->count && i < RECORDING_PLACES; i++) {
            json_open(out, '{');
            json_field_text(out, "file", count->places[i].file);
            json_field_int(out, "line", (int64_t)count->places[i].number);
            json_field_optional_str(out, "why", str_of(count->places[i].why));
            json_close(out, '}');
        }
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, '}');
}

static void put_totals(struct json_out *out, const struct replay_report *r)
{
    const struct {
        const char *key;
        uint64_t count;
    } totals[] = {{"lines", r->lines},
                  {"calls", r->calls},
                  {"sessions", r->sessions},
                  {"refused", r->refused},
                  {"repaired", r->rewritten},
                  {"masked", r->masked},
                  {"lost_results", r->lost},
                  {"unjudged_results", r->unjudged},
                  {"without_result", r->without_result},
                  {"without_arguments", r->without_arguments},
                  {"without_check", r->without_check},
                  {"evicted_sessions", r->evicted},
                  {"backwards", r->backwards},
                  {"first_ms", (uint64_t)r->first_ms},
                  {"last_ms", (uint64_t)r->last_ms},
                  {"us", (uint64_t)r->us}};
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
        json_field_int(out, totals[i].key, (int64_t)totals[i].count);
}

void replay_report_json(const struct replay_report *r, bool for_views, struct buf *text)
{
    struct json_out out = json_out(text);
    json_open(&out, '{');
    json_field_int(&out, "version", 1);
    put_totals(&out, r);
    json_field_optional_str(&out, "policies", str_of(r->policies));
    put_verdicts(&out, "verdicts", r->verdicts);
    if (r->against)
        put_differences(&out, r);
    put_loops(&out, r);
    put_table(&out, "tools", &r->tools, r->calls, for_views);
    put_table(&out, "classes", &r->classes, r->calls, for_views);
    put_table(&out, "codes", &r->codes, r->calls, for_views);
    put_table(&out, "problems", &r->problems, r->calls, for_views);
    put_table(&out, "repairs", &r->repairs, r->calls, for_views);
    put_table(&out, "unknown_tools", &r->unknown_tools, r->calls, for_views);
    put_skipped(&out, r, for_views);
    json_close(&out, '}');
}
