/* The report for a person at a terminal: what was found first, then the tables, then what could not be read.
 */
#include "replay/report_text.h"

#include "base/printable.h"
#include "gate/verdict.h"

#define NAME_WIDTH               40
#define REPORT_TEXT_DETAIL_BYTES 160

/* ---- pieces ---- */

static void heading(struct buf *out, const struct report_colours *paint, const char *text)
{
    buf_printf(out, "\n%s%s%s\n", paint->bold, text, paint->plain);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "…/trajectories-tau2.ndjson:17", without the folder. */
/* Line 0: the file as a whole. */
static void put_place(struct buf *out, const char *file, uint64_t line)
{
    const char *slash = strrchr(file, '/');
    printable_write(out, str_of(slash ? slash + 1 : file));
    if (line)
        buf_printf(out, ":%llu", (unsigned long long)line);
}

static void put_padded(struct buf *out, struct str text, size_t width)
{
    size_t before = out->len, shown = 0;
    printable_write_cut(out, text, width);
    for (size_t i = before; i < out->len; i++)
        shown += (out->at[i] & 0xC0) != 0x80;
    for (; shown < width; shown++)
        buf_byte(out, ' ');
}

/* The place, and the session: one without a name is called by its place. */
static void put_where(struct buf *out, const char *file, uint64_t line, struct str session, size_t max)
{
    size_t before = out->len;
    put_place(out, file, line);
    if (str_eq(session, (struct str){out->at + before, out->len - before}))
        return;
    buf_text(out, "  ");
    printable_write_cut(out, session, max);
}

static void put_example(struct buf *out, const struct report_colours *paint, const struct replay_example *e,
                        const char *indent)
{
    buf_printf(out, "%s%s", indent, paint->dim);
    put_where(out, e->file, e->line, e->session, 40);
    buf_text(out, "  ");
    printable_write_cut(out, e->arguments, 100);
    buf_printf(out, "%s\n", paint->plain);
}

static void put_recovery(struct buf *out, const struct replay_row *row)
{
    if (row->retried)
        buf_printf(out, "%llu of %llu retries pass", (unsigned long long)row->recovered,
                   (unsigned long long)row->retried);
    else if (row->refused)
        buf_text(out, "never retried");
}

/* ---- sections ---- */

static void put_summary(struct buf *out, const struct report_colours *paint, const struct replay_report *r)
{
    double seconds = (double)r->us / 1000000;
    buf_printf(out, "%s%llu call%s%s of %llu session%s", paint->bold, (unsigned long long)r->calls,
               plural(r->calls), paint->plain, (unsigned long long)r->sessions, plural(r->sessions));
    if (seconds > 0)
        buf_printf(out, "  %s(%.1f s, %.0f calls/s)%s", paint->dim, seconds, (double)r->calls / seconds,
                   paint->plain);
    buf_text(out, "\n");
    for (int kind = 0; kind < VERDICT_KINDS; kind++)
        if (r->verdicts[kind])
            buf_printf(out, "  %-8s %8llu  %s\n", verdict_name((enum verdict_kind)kind),
                       (unsigned long long)r->verdicts[kind], replay_share(r->verdicts[kind], r->calls).text);
    if (r->refused)
        buf_printf(out, "%llu would not have run (%s)\n", (unsigned long long)r->refused,
                   replay_share(r->refused, r->calls).text);
    if (r->refused)
        buf_printf(out,
                   "  %llu saved: repetitions that brought nothing new\n"
                   "  %llu would have lost a new result\n",
                   (unsigned long long)r->loop_calls, (unsigned long long)r->lost);
    if (r->rewritten)
        buf_printf(out, "the arguments of %llu call%s would have been repaired\n",
                   (unsigned long long)r->rewritten, plural(r->rewritten));
}

/* Rows of calls that did not run, or of those that did. */
enum shown_rows { SHOW_ALL, SHOW_REFUSED, SHOW_FAILED };

static bool is_shown(const struct replay_row *row, enum shown_rows which)
{
    return row->calls && (which == SHOW_ALL || (row->refused > 0) == (which == SHOW_REFUSED));
}

static void put_table(struct buf *out, const struct report_colours *paint, const char *title,
                      const struct replay_table *table, const struct replay_report *r, enum shown_rows which)
{
    size_t shown = 0, all = 0;
    for (size_t i = 0; i < table->count; i++)
        all += is_shown(table->rows[i], which);
    if (!all)
        return;
    heading(out, paint, title);
    for (size_t i = 0; i < table->count && shown < REPORT_TEXT_ROWS; i++) {
        const struct replay_row *row = table->rows[i];
        if (!is_shown(row, which))
            continue;
        shown++;
        struct str name = row->tool.len ? row->tool : row->class.len ? row->class : row->code;
        buf_text(out, "  ");
        put_padded(out, name, NAME_WIDTH);
        buf_printf(out, " %8llu %8s", (unsigned long long)row->calls,
                   replay_share(row->calls, r->calls).text);
        if (row->tool.len && row->code.len) {
            buf_printf(out, "  %s", paint->yellow);
            printable_write_cut(out, row->code, 40);
            buf_text(out, paint->plain);
            buf_text(out, row->path.len ? "  " : "");
            printable_write_cut(out, row->path, 60);
        }
        if (row->refused)
            buf_printf(out, "  %llu refused", (unsigned long long)row->refused);
        buf_text(out, row->retried || row->refused ? ", " : "");
        put_recovery(out, row);
        buf_text(out, "\n");
        if (which != SHOW_ALL && row->example_count && row->examples[0].detail.len) {
            buf_text(out, "      ");
            printable_write_cut(out, row->examples[0].detail, REPORT_TEXT_DETAIL_BYTES);
            buf_text(out, "\n");
        }
        for (size_t e = 0; which != SHOW_ALL && e < row->example_count; e++)
            put_example(out, paint, &row->examples[e], "      ");
    }
    if (table->count > shown && shown == REPORT_TEXT_ROWS)
        buf_printf(out, "  %sand %zu more; --json has them%s\n", paint->dim, table->count - shown,
                   paint->plain);
    if (table->other.calls)
        buf_printf(out, "  %sand %llu calls that share no row of their own%s\n", paint->dim,
                   (unsigned long long)table->other.calls, paint->plain);
}

static void put_loops(struct buf *out, const struct report_colours *paint, const struct replay_report *r)
{
    heading(out, paint, "Loops");
    buf_printf(out, "  %llu session%s repeated calls that could not help: %llu call%s saved\n",
               (unsigned long long)r->loop_sessions, plural(r->loop_sessions),
               (unsigned long long)r->loop_calls, plural(r->loop_calls));
    if (r->runaways)
        buf_printf(out, "  %llu ran away: %u calls or more\n", (unsigned long long)r->runaways,
                   REPLAY_RUNAWAY_CALLS);
    for (size_t i = 0; i < r->loop_count && i < REPORT_TEXT_ROWS; i++) {
        const struct replay_loop *loop = &r->loops[i];
        buf_printf(out, "  %6llu of %llu calls  ", (unsigned long long)loop->saved,
                   (unsigned long long)loop->calls);
        printable_write_cut(out, loop->tool, NAME_WIDTH);
        buf_printf(out, " %s", paint->yellow);
        printable_write_cut(out, loop->code, 40);
        buf_printf(out, "%s  %s", paint->plain, paint->dim);
        put_where(out, loop->file, loop->line, loop->session, 80);
        buf_printf(out, "%s\n", paint->plain);
    }
    if (r->loop_sessions > r->loop_count || r->loop_count > REPORT_TEXT_ROWS)
        buf_printf(out, "  %sand others; --json has up to %u%s\n", paint->dim, REPLAY_LOOPS_MAX,
                   paint->plain);
}

static void put_difference(struct buf *out, const struct report_colours *paint,
                           const struct replay_difference *d)
{
    const char *colour = d->change == REPLAY_NEW_REFUSAL ? paint->red
                         : d->change == REPLAY_NEW_PASS  ? paint->green
                                                         : paint->yellow;
    buf_printf(out, "  %s%6llu%s  ", colour, (unsigned long long)d->calls, paint->plain);
    printable_write_cut(out, d->tool, NAME_WIDTH);
    buf_printf(out, "  %s", colour);
    printable_write_cut(out, d->code, 40);
    buf_printf(out, "%s  ", paint->plain);
    printable_write_cut(out, d->path, 60);
    buf_printf(out, "  %s → %s\n          ", verdict_name(d->before), verdict_name(d->after));
    printable_write_cut(out, d->reason, 200);
    buf_printf(out, "\n          recorded: %llu ran well, %llu failed, %llu did not run, %llu unknown",
               (unsigned long long)d->ran_well, (unsigned long long)d->ran_badly,
               (unsigned long long)d->not_run, (unsigned long long)d->unknown);
    if (d->change != REPLAY_NEW_PASS)
        buf_printf(out, "; called again %llu times, of which %llu pass", (unsigned long long)d->retried,
                   (unsigned long long)d->recovered);
    buf_text(out, "\n");
    for (size_t i = 0; i < d->example_count; i++)
        put_example(out, paint, &d->examples[i], "          ");
}

static void put_differences(struct buf *out, const struct report_colours *paint,
                            const struct replay_report *r)
{
    static const char *const titles[] = {[REPLAY_NEW_REFUSAL] = "New refusals",
                                         [REPLAY_OTHER_VERDICT] = "Another verdict",
                                         [REPLAY_NEW_PASS] = "No longer refused"};
    size_t i = 0;
    heading(out, paint, "Differences");
    buf_printf(out, "  %s → %s: %llu new refusal%s, %llu with another verdict, %llu no longer refused\n",
               r->policies ? r->policies : "no policies", r->against,
               (unsigned long long)r->changed[REPLAY_NEW_REFUSAL], plural(r->changed[REPLAY_NEW_REFUSAL]),
               (unsigned long long)r->changed[REPLAY_OTHER_VERDICT],
               (unsigned long long)r->changed[REPLAY_NEW_PASS]);
    for (int change = 0; change < REPLAY_CHANGES; change++) {
        size_t shown = 0;
        if (r->changed[change])
            heading(out, paint, titles[change]);
        for (; i < r->difference_count && (int)r->differences[i]->change == change; i++)
            if (shown++ < REPORT_TEXT_ROWS)
                put_difference(out, paint, r->differences[i]);
        if (shown > REPORT_TEXT_ROWS)
            buf_printf(out, "  %sand %zu more; --json has them%s\n", paint->dim, shown - REPORT_TEXT_ROWS,
                       paint->plain);
    }
}

static void put_note(struct buf *out, uint64_t count, const char *text)
{
    if (count)
        buf_printf(out, "  %8llu %s\n", (unsigned long long)count, text);
}

static void put_notes(struct buf *out, const struct report_colours *paint, const struct replay_report *r)
{
    uint64_t faults = 0;
    for (int i = 0; i < RECORDING_FAULTS; i++)
        faults += r->faults[i].count;
    if (!faults && !r->without_result && !r->unjudged && !r->without_arguments && !r->without_check &&
        !r->masked && !r->evicted && !r->backwards)
        return;
    heading(out, paint, "Notes");
    put_note(out, r->without_result,
             "calls have no recorded result: for repetitions of them nobody can tell whether it changed");
    put_note(out, r->unjudged,
             "results were not recorded: output schemas and result hooks were not judged for them");
    put_note(out, r->without_arguments,
             "calls were recorded without their arguments and not judged; record them with "
             "decisions = { arguments = \"masked\" }");
    put_note(out, r->without_check, "results belong to calls that the recording does not have");
    put_note(out, r->masked, "calls have a problem at a masked value, which does not count");
    put_note(out, r->evicted,
             "sessions were forgotten for want of memory: their budgets and loops began anew");
    put_note(out, r->backwards,
             "calls are older than the one before them in their session: name the files in the order of "
             "their times, "
             "the oldest first");
    for (int i = 0; i < RECORDING_FAULTS; i++) {
        const struct recording_count *count = &r->faults[i];
        put_note(out, count->count, recording_fault_text((enum recording_fault)i));
        for (uint64_t k = 0; k < count->count && k < RECORDING_PLACES; k++) {
            buf_text(out, "           ");
            put_place(out, count->places[k].file, count->places[k].number);
            buf_text(out, *count->places[k].why ? ": " : "");
            printable_write_cut(out, str_of(count->places[k].why), 120);
            buf_text(out, "\n");
        }
    }
}

void report_text(const struct replay_report *r, const struct report_colours *paint, struct buf *out)
{
    if (r->calls)
        put_summary(out, paint, r);
    if (r->against)
        put_differences(out, paint, r);
    if (r->loop_sessions)
        put_loops(out, paint, r);
    put_table(out, paint, "Refused before they ran", &r->problems, r, SHOW_REFUSED);
    put_table(out, paint, "Ran and failed", &r->problems, r, SHOW_FAILED);
    put_table(out, paint, "Repairs", &r->repairs, r, SHOW_ALL);
    put_table(out, paint, "Tools", &r->tools, r, SHOW_ALL);
    put_table(out, paint, "Classes", &r->classes, r, SHOW_ALL);
    put_table(out, paint, "Codes", &r->codes, r, SHOW_ALL);
    put_table(out, paint,
              "Tools that nothing describes: only the rules against loops judge them (--tools FILE)",
              &r->unknown_tools, r, SHOW_ALL);
    put_notes(out, paint, r);
}
