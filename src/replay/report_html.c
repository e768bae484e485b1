/*
 * The report as one self-contained page: no script, no request, light and dark. Whatever a recording holds is
 * escaped, and the page's own policy forbids everything but its style.
 */
#include "gate/verdict.h"
#include "json/write.h"
#include "replay/replay_report.h"

#define ROWS_MAX 200u /* of each table; --json has all */

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>toolgate replay</title>\n<style>\n"
    ":root{color-scheme:light dark;--line:#8884;--bar:#5b8def;--bad:#d9534f;--good:#3c9d5d;--warn:#c98a1b}\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}\n"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;"
    "border-bottom:1px solid "
    "var(--line);overflow-wrap:anywhere}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-"
    "space:nowrap}\n"
    "td.bar{width:12rem;min-width:6rem}.b{height:.8rem;border-radius:.2rem;background:var(--bar);min-width:"
    "1px}\n"
    ".refuse,.halt,.new_refusal{--bar:var(--bad)}.repair,.wait,.ask,.other_verdict{--bar:var(--warn)}"
    ".pass,.new_pass{--bar:var(--good)}\n.k{color:var(--bar);font-weight:600}\n"
    "code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}details{margin:.2rem "
    "0}summary{cursor:pointer}\n"
    ".quiet{opacity:.7;font-size:.9em}\n</style></head><body>\n";

/* ---- pieces ---- */

static void put_text(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        switch (text.at[i]) {
        case '<':
            buf_text(out, "&lt;");
            break;
        case '>':
            buf_text(out, "&gt;");
            break;
        case '&':
            buf_text(out, "&amp;");
            break;
        case '"':
            buf_text(out, "&quot;");
            break;
        default:
            buf_byte(out, (unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f ? ' ' : text.at[i]);
        }
}

static void put_cell(struct buf *out, struct str text)
{
    buf_text(out, "<td>");
    put_text(out, text);
    buf_text(out, "</td>");
}

static void put_count(struct buf *out, uint64_t count)
{
    buf_printf(out, "<td class=n>%llu</td>", (unsigned long long)count);
}

/* The share of `whole`, and a bar as long as `part` is of `longest`. */
static void put_bar(struct buf *out, uint64_t part, uint64_t whole, uint64_t longest)
{
    unsigned percent = longest ? (unsigned)(part * 100 / longest) : 0;
    buf_printf(out, "<td class=n>%s</td><td class=bar><div class=b style=\"width:%u%%\"></div></td>",
               replay_share(part, whole).text, percent);
}

static void put_examples(struct buf *out, const struct replay_example *examples, size_t count)
{
    if (!count)
        return;
    buf_text(out, "<details><summary class=quiet>examples</summary>");
    for (size_t i = 0; i < count; i++) {
        const struct replay_example *e = &examples[i];
        buf_text(out, "<div><span class=quiet>");
        put_text(out, str_of(e->file));
        buf_printf(out, ":%llu ", (unsigned long long)e->line);
        put_text(out, e->session);
        buf_text(out, "</span> <code>");
        put_text(out, e->arguments);
        buf_text(out, "</code> ");
        put_text(out, e->detail);
        buf_text(out, "</div>");
    }
    buf_text(out, "</details>");
}

/* ---- sections ---- */

static void put_summary(struct buf *out, const struct replay_report *r)
{
    buf_printf(out, "<h1>%llu calls of %llu sessions</h1>\n<table>", (unsigned long long)r->calls,
               (unsigned long long)r->sessions);
    for (int kind = 0; kind < VERDICT_KINDS; kind++) {
        const char *name = verdict_name((enum verdict_kind)kind);
        if (!r->verdicts[kind])
            continue;
        buf_printf(out, "<tr class=%s><td class=k>%s</td>", name, name);
        put_count(out, r->verdicts[kind]);
        put_bar(out, r->verdicts[kind], r->calls, r->calls);
        buf_text(out, "</tr>\n");
    }
    buf_printf(
        out,
        "</table>\n<p>%llu calls would not have run: %llu saved (repetitions that brought nothing new), "
        "%llu would have lost a new result. The arguments of %llu would have been repaired.</p>\n",
        (unsigned long long)r->refused, (unsigned long long)r->loop_calls, (unsigned long long)r->lost,
        (unsigned long long)r->rewritten);
}

static void put_difference(struct buf *out, const struct replay_difference *d)
{
    buf_printf(out, "<tr class=%s>", replay_change_names[d->change]);
    put_count(out, d->calls);
    put_cell(out, d->tool);
    buf_text(out, "<td><span class=k>");
    put_text(out, d->code);
    buf_text(out, "</span> <code>");
    put_text(out, d->path);
    buf_printf(out, "</code><br>%s → %s</td><td>", verdict_name(d->before), verdict_name(d->after));
    put_text(out, d->reason);
    put_examples(out, d->examples, d->example_count);
    buf_printf(out, "</td><td>%llu well, %llu badly, %llu not, %llu unknown</td><td>%llu of %llu</td></tr>\n",
               (unsigned long long)d->ran_well, (unsigned long long)d->ran_badly,
               (unsigned long long)d->not_run, (unsigned long long)d->unknown,
               (unsigned long long)d->recovered, (unsigned long long)d->retried);
}

static void put_differences(struct buf *out, const struct replay_report *r)
{
    buf_text(out, "<h2>Differences: ");
    put_text(out, str_of(r->policies ? r->policies : "no policies"));
    buf_text(out, " → ");
    put_text(out, str_of(r->against));
    buf_printf(out,
               "</h2>\n<p>%llu new refusals, %llu calls with another verdict, %llu no longer refused.</p>\n",
               (unsigned long long)r->changed[REPLAY_NEW_REFUSAL],
               (unsigned long long)r->changed[REPLAY_OTHER_VERDICT],
               (unsigned long long)r->changed[REPLAY_NEW_PASS]);
    if (!r->difference_count)
        return;
    buf_text(out, "<table><tr><th class=n>calls<th>tool<th>code<th>reason<th>ran as recorded<th>next call "
                  "passes</tr>\n");
    for (size_t i = 0; i < r->difference_count && i < ROWS_MAX; i++)
        put_difference(out, r->differences[i]);
    buf_text(out, "</table>\n");
}

static void put_loops(struct buf *out, const struct replay_report *r)
{
    buf_printf(
        out,
        "<h2>Loops</h2>\n<p>%llu sessions repeated calls that could not help; %llu of them ran away. %llu "
        "calls "
        "would have been saved.</p>\n<table><tr><th class=n>saved<th class=n>calls<th class=n>share<th>"
        "<th>tool<th>code<th>session</tr>\n",
        (unsigned long long)r->loop_sessions, (unsigned long long)r->runaways,
        (unsigned long long)r->loop_calls);
    for (size_t i = 0; i < r->loop_count; i++) {
        const struct replay_loop *loop = &r->loops[i];
        buf_text(out, "<tr class=halt>");
        put_count(out, loop->saved);
        put_count(out, loop->calls);
        put_bar(out, loop->saved, loop->calls, loop->calls);
        put_cell(out, loop->tool);
        put_cell(out, loop->code);
        put_cell(out, loop->session);
        buf_text(out, "</tr>\n");
    }
    buf_text(out, "</table>\n");
}

static void put_table(struct buf *out, const char *title, const struct replay_table *table,
                      const struct replay_report *r)
{
    if (!table->count)
        return;
    uint64_t most = table->rows[0]->calls;
    buf_printf(out,
               "<h2>%s</h2>\n<table><tr><th><th class=n>calls<th class=n>share<th><th class=n>refused"
               "<th>next call passes</tr>\n",
               title);
    for (size_t i = 0; i < table->count && i < ROWS_MAX; i++) {
        const struct replay_row *row = table->rows[i];
        const struct str parts[] = {row->tool, row->tool.len ? STR_NONE : row->class, row->code, row->path};
        buf_printf(out, "<tr%s><td>", row->refused ? " class=refuse" : "");
        for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
            put_text(out, parts[k]);
            buf_byte(out, ' ');
        }
        put_examples(out, row->examples, row->example_count);
        buf_text(out, "</td>");
        put_count(out, row->calls);
        put_bar(out, row->calls, r->calls, most);
        put_count(out, row->refused);
        buf_text(out, "<td>");
        if (row->retried)
            buf_printf(out, "%llu of %llu", (unsigned long long)row->recovered,
                       (unsigned long long)row->retried);
        buf_text(out, "</td></tr>\n");
    }
    buf_text(out, "</table>\n");
    if (table->count > ROWS_MAX)
        buf_printf(out, "<p class=quiet>and %zu more, %llu calls in all</p>\n", table->count - ROWS_MAX,
                   (unsigned long long)r->calls);
}

static void put_skipped(struct buf *out, const struct replay_report *r)
{
    for (int fault = 0; fault < RECORDING_FAULTS; fault++) {
        const struct recording_count *count = &r->faults[fault];
        if (!count->count)
            continue;
        buf_printf(out, "<p class=quiet>%llu %s:", (unsigned long long)count->count,
                   recording_fault_text((enum recording_fault)fault));
        for (uint64_t i = 0; i < count->count && i < RECORDING_PLACES; i++) {
            buf_byte(out, ' ');
            put_text(out, str_of(count->places[i].file));
            if (count->places[i].number)
                buf_printf(out, ":%llu", (unsigned long long)count->places[i].number);
        }
        buf_text(out, "</p>\n");
    }
}

void replay_report_html(const struct replay_report *r, struct buf *out)
{
    buf_text(out, head);
    put_summary(out, r);
    if (r->against)
        put_differences(out, r);
    if (r->loop_sessions)
        put_loops(out, r);
    put_table(out, "Why calls were refused or failed", &r->problems, r);
    put_table(out, "Repairs", &r->repairs, r);
    put_table(out, "Tools", &r->tools, r);
    put_table(out, "Classes", &r->classes, r);
    put_table(out, "Codes", &r->codes, r);
    put_table(out, "Tools that nothing describes", &r->unknown_tools, r);
    put_skipped(out, r);
    buf_text(out, "</body></html>\n");
}
