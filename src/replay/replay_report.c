/* Counts the figures of a replay, and writes them as one JSON document; docs/replay.md lists its names. Keys
 * and examples are copied into the report's arena. */
#include "replay/replay.h"

#include "base/arena.h"
#include "base/map.h"
#include "gate/verdict.h"
#include "json/write.h"

#include <math.h>
#include <stdlib.h>

#define SHARE_SCALE 10000.0 /* four digits after the point */

static const char *const change_names[REPLAY_CHANGES] = {
    [REPLAY_NEW_REFUSAL] = "new_refusal",
    [REPLAY_OTHER_VERDICT] = "other_verdict",
    [REPLAY_NEW_PASS] = "new_pass",
};

static const struct {
    const char *name; /* NULL: not in the list of tables */
    size_t limit;
} tables[REPLAY_TABLES] = {[REPLAY_TOOLS] = {"tools", REPLAY_TOOLS_MAX},
                           [REPLAY_CLASSES] = {"classes", CLASS_COUNT},
                           [REPLAY_CODES] = {"codes", REPLAY_ROWS_MAX},
                           [REPLAY_PROBLEMS] = {"problems", REPLAY_ROWS_MAX},
                           [REPLAY_REPAIRS] = {"repairs", REPLAY_ROWS_MAX},
                           [REPLAY_LOST] = {"lost", REPLAY_ROWS_MAX},
                           [REPLAY_UNKNOWN_TOOLS] = {"unknown_tools", REPLAY_TOOLS_MAX},
                           [REPLAY_DIFFERENCES] = {NULL, REPLAY_ROWS_MAX}};

void replay_report_init(struct replay_report *report, struct arena *arena)
{
    *report = (struct replay_report){.arena = arena,
                                     .loops = ARENA_ARRAY(arena, struct replay_loop, REPLAY_LOOPS_MAX)};
    for (size_t i = 0; i < REPLAY_TABLES; i++)
        report->tables[i] = (struct replay_table){
            .rows = ARENA_ARRAY(arena, struct replay_row *, tables[i].limit), .by_key = map_new(arena)};
}

/* ---- rows ---- */

#define KEY_MAX_BYTES 1024u

struct replay_row *replay_table_row(struct replay_report *report, enum replay_table_kind kind,
                                    const struct replay_row *key)
{
    struct replay_table *table = &report->tables[kind];
    struct arena *arena = report->arena;
    char room[KEY_MAX_BYTES];
    const char kinds[3] = {(char)('0' + key->change), (char)('0' + key->before), (char)('0' + key->after)};
    const struct str parts[7] = {
        key->tool,         key->class,      key->code, key->path, {kinds, sizeof(kinds)},
        key->before_class, key->after_class};
    struct str text = {room, 0};
    /* The parts with a byte between them that is in none; names that are longer than a key share a row. */
    for (size_t i = 0; i < (kind == REPLAY_DIFFERENCES ? 7 : 4); i++) {
        size_t n = parts[i].len < KEY_MAX_BYTES / 8 ? parts[i].len : KEY_MAX_BYTES / 8;
        if (n)
            memcpy(room + text.len, parts[i].at, n);
        text.len += n;
        room[text.len++] = '\xff';
    }
    struct replay_row *row = map_get(table->by_key, text);
    if (row)
        return row;
    if (table->count == tables[kind].limit)
        return &table->other;
    row = ARENA_NEW(arena, struct replay_row);
    *row = *key;
    row->tool = arena_dup(arena, str_cut(key->tool, KEY_MAX_BYTES / 8));
    row->class = arena_dup(arena, key->class);
    row->code = arena_dup(arena, str_cut(key->code, KEY_MAX_BYTES / 8));
    row->path = arena_dup(arena, str_cut(key->path, KEY_MAX_BYTES / 8));
    row->reason = arena_dup(arena, str_cut(key->reason, REPLAY_EXAMPLE_MAX_BYTES));
    map_add(table->by_key, arena_dup(arena, text), row);
    table->rows[table->count++] = row;
    return row;
}

/* Whether `kept`, which may have been cut, is the beginning of this one. */
static bool is_kept(struct str kept, struct str whole)
{
    const struct str ellipsis = STR_LIT("…");
    if (whole.len <= REPLAY_EXAMPLE_MAX_BYTES)
        return str_eq(kept, whole);
    return kept.len > ellipsis.len && memcmp(kept.at, whole.at, kept.len - ellipsis.len) == 0;
}

static struct str cut_copy(struct arena *arena, struct str text)
{
    return arena_truncate(arena, arena_dup(arena, str_cut(text, 2 * REPLAY_EXAMPLE_MAX_BYTES)),
                          REPLAY_EXAMPLE_MAX_BYTES);
}

void replay_example_add(struct replay_report *report, struct replay_row *row,
                        const struct recorded_call *call, struct str detail)
{
    struct arena *arena = report->arena;
    if (row->example_count == REPLAY_EXAMPLES)
        return;
    struct str arguments = json_is(call->arguments, JSON_STRING)
                               ? json_str(call->arguments)
                               : json_to_str(call->line->arena, call->arguments);
    for (size_t i = 0; i < row->example_count; i++) /* of a loop, one is enough */
        if (is_kept(row->examples[i].session, call->session) &&
            is_kept(row->examples[i].arguments, arguments))
            return;
    row->examples[row->example_count++] = (struct replay_example){.file = call->line->file,
                                                                  .line = call->line->number,
                                                                  .session = cut_copy(arena, call->session),
                                                                  .arguments = cut_copy(arena, arguments),
                                                                  .detail = cut_copy(arena, detail)};
}

/* ---- timelines ---- */

struct replay_timeline *replay_timeline_add(struct replay_report *report, const struct recorded_call *call)
{
    if (report->timeline_count == REPLAY_TIMELINES_MAX)
        return NULL;
    struct replay_timeline *t = ARENA_NEW(report->arena, struct replay_timeline);
    *t = (struct replay_timeline){.session = cut_copy(report->arena, call->session),
                                  .agent = cut_copy(report->arena, call->agent),
                                  .file = call->line->file,
                                  .line = call->line->number};
    return report->timelines[report->timeline_count++] = t;
}

static void put_timelines(struct json_out *out, const struct replay_report *r)
{
    json_field_open(out, "timelines", '[');
    for (size_t i = 0; i < r->timeline_count; i++) {
        const struct replay_timeline *t = r->timelines[i];
        struct str marks = {t->marks, t->calls < REPLAY_MARKS_MAX ? t->calls : REPLAY_MARKS_MAX};
        json_put_object(out, FIELD_STR("session", t->session), FIELD_STR("agent", t->agent),
                        FIELD_TEXT("file", t->file), FIELD_NUM("line", t->line), FIELD_NUM("calls", t->calls),
                        FIELD_NUM("first_ms", t->first_ms), FIELD_NUM("last_ms", t->last_ms),
                        FIELD_NUM("tokens", t->tokens), FIELD_STR("marks", marks));
    }
    json_close(out, ']');
}

/* ---- loops ---- */

static struct str put_in(char *room, struct str text)
{
    struct str cut = str_cut(text, REPLAY_EXAMPLE_MAX_BYTES);
    if (cut.len)
        memcpy(room, cut.at, cut.len);
    return (struct str){room, cut.len};
}

/* Keeps those that cost most calls; of equal ones the earlier. */
void replay_loop_add(struct replay_report *report, const struct replay_loop *loop)
{
    struct replay_loop *slot = NULL;
    report->loop_sessions++;
    report->loop_calls += loop->saved;
    report->runaways += loop->saved >= REPLAY_RUNAWAY_CALLS;
    report->halted += loop->halted;
    if (report->loop_count < REPLAY_LOOPS_MAX) {
        slot = &report->loops[report->loop_count++];
    } else {
        for (size_t i = 0; i < report->loop_count; i++)
            if (report->loops[i].saved < (slot ? slot->saved : loop->saved))
                slot = &report->loops[i];
    }
    if (!slot)
        return;
    /* The slot's bytes are used again: a recording may have any number of loops. */
    char *room = slot->session.at ? (char *)slot->session.at
                                  : arena_alloc(report->arena, (size_t)2 * REPLAY_EXAMPLE_MAX_BYTES);
    *slot = *loop;
    slot->session = put_in(room, loop->session);
    slot->worst.arguments = put_in(room + REPLAY_EXAMPLE_MAX_BYTES, loop->worst.arguments);
}

/* ---- the end ---- */

static int by_calls(const void *a, const void *b)
{
    const struct replay_row *x = *(struct replay_row *const *)a, *y = *(struct replay_row *const *)b;
    if (x->change != y->change)
        return x->change < y->change ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    int order = str_cmp(x->tool, y->tool);
    order = order ? order : str_cmp(x->code, y->code);
    return order ? order : str_cmp(x->path, y->path);
}

static int by_saved(const void *a, const void *b)
{
    const struct replay_loop *x = a, *y = b;
    if (x->saved != y->saved)
        return x->saved > y->saved ? -1 : 1;
    return str_cmp(x->session, y->session);
}

void replay_report_finish(struct replay_report *report)
{
    for (size_t i = 0; i < REPLAY_TABLES; i++)
        if (report->tables[i].count)
            qsort(report->tables[i].rows, report->tables[i].count, sizeof(*report->tables[i].rows), by_calls);
    if (report->loop_count)
        qsort(report->loops, report->loop_count, sizeof(*report->loops), by_saved);
}

/* ---- as JSON ---- */

static void put_verdicts(struct json_out *out, const char *key, const uint64_t *verdicts)
{
    json_field_open(out, key, '{');
    for (int i = 0; i < VERDICT_KINDS; i++)
        if (verdicts[i])
            json_field_int(out, verdict_name((enum verdict_kind)i), (int64_t)verdicts[i]);
    json_close(out, '}');
}

static void put_examples(struct json_out *out, const struct replay_row *row)
{
    json_field_open(out, "examples", '[');
    for (size_t i = 0; i < row->example_count; i++) {
        const struct replay_example *e = &row->examples[i];
        json_put_object(out, FIELD_TEXT("file", e->file), FIELD_NUM("line", e->line),
                        FIELD_STR("session", e->session), FIELD_OPTIONAL("arguments", e->arguments),
                        FIELD_OPTIONAL("detail", e->detail));
    }
    json_close(out, ']');
}

static void put_row(struct json_out *out, const struct replay_row *row, uint64_t whole)
{
    json_open(out, '{');
    json_fields(out, FIELD_OPTIONAL("tool", row->tool), FIELD_OPTIONAL("class", row->class),
                FIELD_OPTIONAL("code", row->code), FIELD_OPTIONAL("path", row->path),
                FIELD_NUM("calls", row->calls));
    json_key(out, "share");
    json_put_double(out, whole ? round((double)row->calls / (double)whole * SHARE_SCALE) / SHARE_SCALE : 0);
    put_verdicts(out, "verdicts", row->verdicts);
    json_fields(out, FIELD_NUM("refused", row->refused), FIELD_NUM("retried", row->retried),
                FIELD_NUM("recovered", row->recovered));
    put_examples(out, row);
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
    json_fields(out, FIELD_NUM("sessions", r->loop_sessions), FIELD_NUM("runaways", r->runaways),
                FIELD_NUM("halted", r->halted), FIELD_NUM("calls_saved", r->loop_calls));
    json_field_open(out, "list", '[');
    for (size_t i = 0; i < r->loop_count; i++) {
        const struct replay_loop *loop = &r->loops[i];
        const struct replay_stopped *s = &loop->worst;
        json_put_object(
            out, FIELD_STR("session", loop->session), FIELD_STR("tool", s->tool), FIELD_STR("code", s->code),
            FIELD_STR("arguments", s->arguments), FIELD_NUM("first_ms", loop->first_ms),
            FIELD_NUM("last_ms", loop->last_ms), FIELD_NUM("calls", loop->calls),
            FIELD_NUM("saved", loop->saved), FIELD_NUM("times", s->times), FIELD_NUM("tokens", loop->tokens),
            FIELD_BOOL("halted", loop->halted), FIELD_TEXT("file", s->file), FIELD_NUM("line", s->line));
    }
    json_close(out, ']');
    json_close(out, '}');
}

static void put_difference(struct json_out *out, const struct replay_row *d)
{
    json_open(out, '{');
    json_fields(out, FIELD_TEXT("change", change_names[d->change]), FIELD_STR("tool", d->tool),
                FIELD_STR("code", d->code), FIELD_OPTIONAL("path", d->path),
                FIELD_TEXT("before", verdict_name(d->before)), FIELD_STR("before_class", d->before_class),
                FIELD_TEXT("after", verdict_name(d->after)), FIELD_STR("after_class", d->after_class),
                FIELD_OPTIONAL("reason", d->reason), FIELD_NUM("calls", d->calls));
    json_field_object(out, "recorded", FIELD_NUM("ran_well", d->ran_well),
                      FIELD_NUM("ran_badly", d->ran_badly), FIELD_NUM("not_run", d->not_run),
                      FIELD_NUM("unknown", d->unknown));
    json_fields(out, FIELD_NUM("retried", d->retried), FIELD_NUM("recovered", d->recovered));
    put_examples(out, d);
    json_close(out, '}');
}

static void put_differences(struct json_out *out, const struct replay_report *r)
{
    const struct replay_table *differences = &r->tables[REPLAY_DIFFERENCES];
    json_field_open(out, "against", '{');
    json_field_text(out, "policies", r->against);
    put_verdicts(out, "verdicts", r->against_verdicts);
    json_fields(out, FIELD_NUM("new_refusals", r->changed[REPLAY_NEW_REFUSAL]),
                FIELD_NUM("other_verdicts", r->changed[REPLAY_OTHER_VERDICT]),
                FIELD_NUM("new_passes", r->changed[REPLAY_NEW_PASS]));
    json_field_open(out, "differences", '[');
    for (size_t i = 0; i < differences->count; i++)
        put_difference(out, differences->rows[i]);
    json_close(out, ']');
    if (differences->other.calls)
        json_field_int(out, "other_calls", (int64_t)differences->other.calls);
    json_close(out, '}');
}

static void put_skipped(struct json_out *out, const struct replay_report *r, bool has_texts)
{
    json_field_open(out, "skipped", '{');
    for (int fault = 0; fault < RECORDING_FAULTS; fault++) {
        const struct recording_count *count = &r->faults[fault];
        if (!count->count)
            continue;
        json_field_open(out, recording_fault_words[fault].name, '{');
        json_field_int(out, "count", (int64_t)count->count);
        if (has_texts)
            json_field_text(out, "text", recording_fault_words[fault].text);
        json_field_open(out, "places", '[');
        for (uint64_t i = 0; i < count->count && i < RECORDING_PLACES; i++) {
            json_put_object(out, FIELD_TEXT("file", count->places[i].file),
                            FIELD_NUM("line", count->places[i].number),
                            FIELD_OPTIONAL("why", str_of(count->places[i].why)));
        }
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, '}');
}

static void put_totals(struct json_out *out, const struct replay_report *r)
{
    json_fields(
        out, FIELD_NUM("lines", r->lines), FIELD_NUM("calls", r->calls), FIELD_NUM("sessions", r->sessions),
        FIELD_NUM("refused", r->refused), FIELD_NUM("asked", r->asked), FIELD_NUM("repaired", r->rewritten),
        FIELD_NUM("masked", r->masked), FIELD_NUM("lost_results", r->lost),
        FIELD_NUM("unjudged_results", r->unjudged), FIELD_NUM("failures", r->failures),
        FIELD_NUM("failures_shown", r->failures_shown), FIELD_NUM("failures_unmarked", r->failures_unmarked),
        FIELD_NUM("without_result", r->without_result), FIELD_NUM("without_arguments", r->without_arguments),
        FIELD_NUM("without_check", r->without_check), FIELD_NUM("evicted_sessions", r->evicted),
        FIELD_NUM("backwards", r->backwards), FIELD_NUM("first_ms", r->first_ms),
        FIELD_NUM("last_ms", r->last_ms), FIELD_NUM("us", r->us));
}

void replay_report_json(const struct replay_report *r, bool for_views, struct buf *text)
{
    struct json_out out = json_out(text);
    json_open(&out, '{');
    json_field_int(&out, "version", 1);
    put_totals(&out, r);
    json_field_optional_str(&out, "policies", str_of(r->policies));
    json_field_object(&out, "tokens", FIELD_NUM("input", r->usage.input),
                      FIELD_NUM("cached", r->usage.cached), FIELD_NUM("output", r->usage.output));
    put_verdicts(&out, "verdicts", r->verdicts);
    if (r->against)
        put_differences(&out, r);
    put_loops(&out, r);
    if (for_views)
        put_timelines(&out, r);
    for (size_t i = 0; i < REPLAY_TABLES; i++)
        if (tables[i].name)
            put_table(&out, tables[i].name, &r->tables[i], r->calls, for_views);
    put_skipped(&out, r, for_views);
    json_close(&out, '}');
}
