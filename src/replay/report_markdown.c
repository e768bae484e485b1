/* The report as Markdown, for a merge request or a ticket: the differences first, then what the figures are.
 */
#include "base/printable.h"
#include "gate/verdict.h"
#include "json/write.h"
#include "replay/replay_report.h"

#define ROWS_MAX 50u /* of each table; --json has all */

/* ---- text of a recording, which may be anything ---- */

/* In a cell: no line breaks, and nothing that Markdown or HTML reads as its own. */
static void put_text(struct buf *out, struct str text)
{
    struct buf shown = {0};
    printable_write(&shown, text);
    for (size_t i = 0; i < shown.len; i++) {
        char c = shown.at[i];
        if (c == '<')
            buf_text(out, "&lt;");
        else if (c == '&')
            buf_text(out, "&amp;");
        else {
            if (strchr("\\|`*_[]~#!", c))
                buf_byte(out, '\\');
            buf_byte(out, c);
        }
    }
    buf_clear(&shown);
}

static void put_cell(struct buf *out, struct str text)
{
    buf_text(out, " ");
    put_text(out, text);
    buf_text(out, " |");
}

static void put_count(struct buf *out, uint64_t count)
{
    buf_printf(out, " %llu |", (unsigned long long)count);
}

/* Line 0: the file as a whole. */
static void put_place(struct buf *out, const char *file, uint64_t line)
{
    const char *slash = strrchr(file, '/');
    buf_byte(out, ' ');
    put_text(out, str_of(slash ? slash + 1 : file));
    if (line)
        buf_printf(out, ":%llu", (unsigned long long)line);
    buf_text(out, " |");
}

/* ---- sections ---- */

static void put_summary(struct buf *out, const struct replay_report *r)
{
    buf_printf(out,
               "# Replay\n\n%llu calls of %llu sessions.\n\n| verdict | calls | share |\n|---|---:|---:|\n",
               (unsigned long long)r->calls, (unsigned long long)r->sessions);
    for (int kind = 0; kind < VERDICT_KINDS; kind++)
        if (r->verdicts[kind])
            buf_printf(out, "| %s | %llu | %s |\n", verdict_name((enum verdict_kind)kind),
                       (unsigned long long)r->verdicts[kind], replay_share(r->verdicts[kind], r->calls).text);
    buf_printf(out,
               "\n%llu calls would not have run: **%llu saved** (repetitions that brought nothing new), "
               "**%llu would "
               "have lost a new result**. The arguments of %llu would have been repaired.\n",
               (unsigned long long)r->refused, (unsigned long long)r->loop_calls, (unsigned long long)r->lost,
               (unsigned long long)r->rewritten);
}

static void put_difference(struct buf *out, const struct replay_difference *d)
{
    buf_printf(out, "| %s |", replay_change_names[d->change]);
    put_count(out, d->calls);
    put_cell(out, d->tool);
    put_cell(out, d->code);
    put_cell(out, d->path);
    buf_printf(out, " %s → %s |", verdict_name(d->before), verdict_name(d->after));
    put_cell(out, d->reason);
    buf_printf(out, " %llu well, %llu badly, %llu not, %llu unknown |", (unsigned long long)d->ran_well,
               (unsigned long long)d->ran_badly, (unsigned long long)d->not_run,
               (unsigned long long)d->unknown);
    buf_printf(out, " %llu of %llu |", (unsigned long long)d->recovered, (unsigned long long)d->retried);
    if (d->example_count)
        put_cell(out, d->examples[0].arguments);
    else
        buf_text(out, " |");
    buf_byte(out, '\n');
}

static void put_differences(struct buf *out, const struct replay_report *r)
{
    buf_text(out, "\n## Differences\n\n");
    put_text(out, str_of(r->policies ? r->policies : "no policies"));
    buf_text(out, " → ");
    put_text(out, str_of(r->against));
    buf_printf(out, ": **%llu new refusals**, %llu calls with another verdict, %llu no longer refused.\n",
               (unsigned long long)r->changed[REPLAY_NEW_REFUSAL],
               (unsigned long long)r->changed[REPLAY_OTHER_VERDICT],
               (unsigned long long)r->changed[REPLAY_NEW_PASS]);
    if (!r->difference_count)
        return;
    buf_text(
        out,
        "\n| change | calls | tool | code | path | verdict | reason | ran as recorded | next call passes | "
        "example |\n|---|---:|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < r->difference_count && i < ROWS_MAX; i++)
        put_difference(out, r->differences[i]);
    if (r->difference_count > ROWS_MAX)
        buf_printf(out, "\nAnd %zu more.\n", r->difference_count - ROWS_MAX);
}

static void put_loops(struct buf *out, const struct replay_report *r)
{
    buf_printf(
        out,
        "\n## Loops\n\n%llu sessions repeated calls that could not help; %llu of them ran away. %llu calls "
        "would "
        "have been saved.\n\n| saved | calls | tool | code | session | from |\n|---:|---:|---|---|---|---|\n",
        (unsigned long long)r->loop_sessions, (unsigned long long)r->runaways,
        (unsigned long long)r->loop_calls);
    for (size_t i = 0; i < r->loop_count && i < ROWS_MAX; i++) {
        const struct replay_loop *loop = &r->loops[i];
        buf_byte(out, '|');
        put_count(out, loop->saved);
        put_count(out, loop->calls);
        put_cell(out, loop->tool);
        put_cell(out, loop->code);
        put_cell(out, loop->session);
        put_place(out, loop->file, loop->line);
        buf_byte(out, '\n');
    }
}

/* Columns that a table does not have are left out. */
static void put_table(struct buf *out, const char *title, const struct replay_table *table,
                      const struct replay_report *r, bool refused)
{
    if (!table->count)
        return;
    const struct replay_row *first = table->rows[0];
    bool tool = first->tool.len, class = first->class.len && !tool, code = first->code.len,
         path = tool && code;
    buf_printf(out, "\n## %s\n\n|%s%s%s%s calls | share |%s\n|%s%s%s%s---:|---:|%s\n", title,
               tool ? " tool |" : "", class ? " class |" : "", code ? " code |" : "", path ? " path |" : "",
               refused ? " refused | next call passes |" : "", tool ? "---|" : "", class ? "---|" : "",
               code ? "---|" : "", path ? "---|" : "", refused ? "---:|---:|" : "");
    for (size_t i = 0; i < table->count && i < ROWS_MAX; i++) {
        const struct replay_row *row = table->rows[i];
        const struct {
            bool shown;
            struct str text;
        } cells[] = {{tool, row->tool}, {class, row->class}, {code, row->code}, {path, row->path}};
        buf_byte(out, '|');
        for (size_t k = 0; k < sizeof(cells) / sizeof(cells[0]); k++)
            if (cells[k].shown)
                put_cell(out, cells[k].text);
        put_count(out, row->calls);
        buf_printf(out, " %s |", replay_share(row->calls, r->calls).text);
        if (refused)
            buf_printf(out, " %llu | %llu of %llu |", (unsigned long long)row->refused,
                       (unsigned long long)row->recovered, (unsigned long long)row->retried);
        buf_byte(out, '\n');
    }
    if (table->count > ROWS_MAX)
        buf_printf(out, "\nAnd %zu more.\n", table->count - ROWS_MAX);
}

static void put_skipped(struct buf *out, const struct replay_report *r)
{
    for (int fault = 0; fault < RECORDING_FAULTS; fault++) {
        const struct recording_count *count = &r->faults[fault];
        if (!count->count)
            continue;
        buf_printf(out, "\n- %llu %s:", (unsigned long long)count->count,
                   recording_fault_text((enum recording_fault)fault));
        for (uint64_t i = 0; i < count->count && i < RECORDING_PLACES; i++) {
            put_place(out, count->places[i].file, count->places[i].number);
            out->len -= 2; /* " |" */
        }
    }
    buf_byte(out, '\n');
}

void replay_report_markdown(const struct replay_report *r, struct buf *out)
{
    put_summary(out, r);
    if (r->against)
        put_differences(out, r);
    if (r->loop_sessions)
        put_loops(out, r);
    put_table(out, "Why calls were refused or failed", &r->problems, r, true);
    put_table(out, "Repairs", &r->repairs, r, false);
    put_table(out, "Tools", &r->tools, r, true);
    put_table(out, "Classes", &r->classes, r, true);
    put_table(out, "Codes", &r->codes, r, true);
    put_table(out, "Tools that nothing describes", &r->unknown_tools, r, false);
    put_skipped(out, r);
}
