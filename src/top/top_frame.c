/* Lays a frame out: a summary, what needs attention, the tools, the sessions in a loop. */
#include "top/top_frame.h"

#include "cli/print.h"
#include "cli/term.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define ATTENTION_MAX_LINES 4u
#define SESSIONS_MAX_LINES  6u
#define TOOLS_MIN_LINES     3u
#define TITLE_COLUMNS       10u
#define NAME_MIN_COLUMNS    12u
#define NAME_MAX_COLUMNS    36u

struct frame {
    struct buf *out;
    unsigned columns, left; /* of the line that is written */
    unsigned lines;
};

/* ---- one line ---- */

static void put(struct frame *f, struct str text)
{
    f->left -= term_clip(f->out, text, f->left);
}

static void put_format(struct frame *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put_format(struct frame *f, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put(f, (struct str){text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1});
}

static void put_coloured(struct frame *f, enum term_colour colour, struct str text)
{
    buf_text(f->out, term_colour(colour));
    put(f, text);
    buf_text(f->out, term_colour(TERM_PLAIN));
}

static void put_padded(struct frame *f, struct str text, unsigned columns)
{
    unsigned fits = columns < f->left ? columns : f->left;
    unsigned used = term_clip(f->out, text, fits);
    for (; used < fits; used++)
        buf_byte(f->out, ' ');
    f->left -= fits;
}

static void end_line(struct frame *f)
{
    buf_byte(f->out, '\n');
    f->left = f->columns;
    f->lines++;
}

static void title(struct frame *f, const char *text)
{
    buf_text(f->out, term_colour(TERM_BOLD));
    put_padded(f, str_of(text), TITLE_COLUMNS);
    buf_text(f->out, term_colour(TERM_PLAIN));
}

static struct str text_of(const struct json *object, const char *key)
{
    return json_str(json_get_text(object, key));
}

/* "3 d 4 h", "2 h 14 min", "40 s" */
static void put_duration(struct frame *f, int64_t s)
{
    long long n = (long long)s;
    if (n >= 86400)
        put_format(f, "%lld d %lld h", n / 86400, n % 86400 / 3600);
    else if (n >= 3600)
        put_format(f, "%lld h %lld min", n / 3600, n % 3600 / 60);
    else if (n >= 60)
        put_format(f, "%lld min", n / 60);
    else
        put_format(f, "%lld s", n);
}

/* ---- the summary ---- */

static void put_header(struct frame *f, const struct top_view *view, const struct json *status)
{
    char clock[16];
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
    const struct json *generation = json_get_text(status, "generation");
    buf_text(f->out, term_colour(TERM_BOLD));
    put_format(f, "toolgate ");
    put(f, text_of(status, "version"));
    buf_text(f->out, term_colour(TERM_PLAIN));
    put_format(f, "  up ");
    put_duration(f, print_number(status, "uptime_s"));
    put_format(f, "  %s, every %u s  generation %lld, %lld tools  ", clock, view->interval_s,
               (long long)print_number(generation, "number"), (long long)print_number(generation, "tools"));
    put(f, text_of(status, "socket"));
    end_line(f);
}

static void put_calls(struct frame *f, const struct top_figures *figures)
{
    title(f, "calls");
    put_format(f, "%.1f/s", figures->calls_s);
    for (size_t i = 0; i < figures->verdict_count; i++) {
        const struct top_rate *rate = &figures->verdicts[i];
        if (!rate->total)
            continue;
        put_format(f, "  ");
        buf_text(f->out, rate->per_s > 0 ? term_verdict_colour(rate->name) : "");
        put(f, rate->name);
        put_format(f, " %.1f/s", rate->per_s);
        buf_text(f->out, rate->per_s > 0 ? term_colour(TERM_PLAIN) : "");
    }
    if (figures->seconds <= 0)
        put_format(f, "  (since the start)");
    end_line(f);
}

static void put_recovery(struct frame *f, const struct json *status, const struct top_figures *figures)
{
    const struct json *counters = json_get_text(status, "counters");
    title(f, "recovery");
    if (figures->chains)
        put_format(f, "%.0f %% of %lld repair chains ended with a call that passed",
                   100.0 * (double)figures->recovered / (double)figures->chains, (long long)figures->chains);
    else
        put_format(f, "no repair chain has ended yet");
    long long loops = (long long)print_number(counters, "loops");
    if (loops)
        put_format(f, ", %lld loop%s found, %lld calls saved", loops, loops == 1 ? "" : "s",
                   (long long)print_number(counters, "calls_saved"));
    end_line(f);
}

static void put_ledger(struct frame *f, const struct json *status)
{
    const struct json *ledger = json_get_text(status, "ledger");
    title(f, "ledger");
    if (!json_get_text(ledger, "on_outage")) {
        put_format(f, "local, sessions: %lld", (long long)print_number(ledger, "sessions"));
    } else if (json_is_true(json_get_text(ledger, "connected"))) {
        put_coloured(f, TERM_GREEN, STR_LIT("redis, connected"));
        put_format(f, ", median %lld us, slowest %lld us", (long long)print_number(ledger, "median_us"),
                   (long long)print_number(ledger, "worst_us"));
    } else {
        put_coloured(f, TERM_RED, STR_LIT("redis, down: "));
        put(f, text_of(ledger, "why_away"));
    }
    end_line(f);
}

static void put_decisions(struct frame *f, const struct json *status)
{
    const struct json *decisions = json_get_text(status, "decisions");
    const struct json *sinks = json_get_text(decisions, "sinks");
    long long dropped = (long long)print_number(decisions, "dropped"), written = 0;
    if (!decisions)
        return;
    for (uint32_t i = 0; json_is(sinks, JSON_ARRAY) && i < sinks->len; i++)
        written += (long long)print_number(&sinks->items[i], "written");
    title(f, "decisions");
    if (!json_is(sinks, JSON_ARRAY) || !sinks->len)
        put_format(f, "not written");
    else
        put_format(f, "%lld written, ", written);
    if (dropped)
        put_coloured(f, TERM_RED, STR_LIT("dropped: "));
    put_format(f, dropped ? "%lld" : "none dropped", dropped);
    end_line(f);
}

static void put_upstreams(struct frame *f, const struct json *list)
{
    unsigned up = 0, starting = 0, calls = 0;
    if (!json_is(list, JSON_ARRAY) || !list->len)
        return;
    for (uint32_t i = 0; i < list->len; i++) {
        struct str state = text_of(&list->items[i], "state");
        up += str_is(state, "up") || str_is(state, "ready");
        starting += str_is(state, "starting");
        calls += (unsigned)print_number(&list->items[i], "in_flight");
    }
    title(f, "upstreams");
    put_format(f, "%u of %u up", up, list->len);
    if (starting)
        put_format(f, ", %u starting", starting);
    put_format(f, ", %u calls in flight", calls);
    end_line(f);
}

static void put_summary(struct frame *f, const struct top_view *view, const struct json *status,
                        const struct top_figures *figures)
{
    put_header(f, view, status);
    put_calls(f, figures);
    put_recovery(f, status, figures);
    put_ledger(f, status);
    put_decisions(f, status);
    put_upstreams(f, json_get_text(status, "upstreams"));
}

/* ---- what needs attention: one line each ---- */

struct attention {
    struct frame *frame;
    unsigned shown, more;
};

static bool attend(struct attention *a, struct str what)
{
    if (a->shown == ATTENTION_MAX_LINES) {
        a->more++;
        return false;
    }
    a->shown++;
    put_coloured(a->frame, TERM_RED, STR_LIT("! "));
    put(a->frame, what);
    return true;
}

static void attend_upstreams(struct attention *a, const struct json *list)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *upstream = &list->items[i];
        struct str state = text_of(upstream, "state"), breaker = text_of(upstream, "breaker");
        bool is_down = str_is(state, "down") || str_is(state, "failed"), is_paused = str_is(breaker, "open");
        if ((!is_down && !is_paused) || !attend(a, text_of(upstream, "name")))
            continue;
        put_format(a->frame, is_down ? " is down: " : " is not called after failures: ");
        put(a->frame, text_of(upstream, "last_error"));
        end_line(a->frame);
    }
}

static void attend_files(struct attention *a, const struct json *list, const char *name, const char *says)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        if (!attend(a, text_of(&list->items[i], name)))
            continue;
        put_format(a->frame, "%s", says);
        put(a->frame, text_of(&list->items[i], "last"));
        end_line(a->frame);
    }
}

static void put_attention(struct frame *f, const struct json *status)
{
    struct attention a = {.frame = f};
    const struct json *reload = json_get_text(status, "reload");
    if (reload && !json_is_true(json_get_text(reload, "ok")) &&
        attend(&a, STR_LIT("the last reload failed; the generation before it serves: "))) {
        put(f, text_of(reload, "errors"));
        end_line(f);
    }
    attend_upstreams(&a, json_get_text(status, "upstreams"));
    attend_files(&a, json_get_text(status, "quarantined"), "file", " is quarantined: ");
    attend_files(&a, json_get_text(status, "policy_faults"), "tool", ": the policy failed: ");
    attend_files(&a, json_get_text(status, "problems"), "code", ": ");
    if (a.more) {
        put_format(f, "  and %u more: toolgate status", a.more);
        end_line(f);
    }
}

/* ---- the tools ---- */

/* A narrow terminal leaves out whole columns: "CALLS/S" that is cut is another title, and 0.4 another number.
 */
enum { COLUMN_CALLS, COLUMN_RATE, COLUMN_REFUSED_RATE, COLUMN_REFUSED, COLUMN_RECOVERED, COLUMN_CODES };
static const struct {
    const char *title;
    unsigned columns, least; /* width of the column; width of the terminal that shows it */
} table[] = {
    [COLUMN_CALLS] = {"CALLS", 9, 40},          [COLUMN_RATE] = {"CALLS/S", 9, 21},
    [COLUMN_REFUSED_RATE] = {"REF/S", 8, 29},   [COLUMN_REFUSED] = {"REFUSED", 9, 54},
    [COLUMN_RECOVERED] = {"RECOVERED", 11, 66}, [COLUMN_CODES] = {"  MOST FREQUENT", 15, 90},
};
#define TABLE_COLUMNS (sizeof(table) / sizeof(table[0]))

static unsigned name_columns(const struct frame *f)
{
    unsigned taken = 0;
    for (size_t i = 0; i < TABLE_COLUMNS; i++)
        taken += f->columns >= table[i].least ? table[i].columns : 0;
    unsigned most = f->columns >= table[COLUMN_CODES].least ? NAME_MAX_COLUMNS : f->columns;
    unsigned left = f->columns > taken ? f->columns - taken : 0;
    left = left > most ? most : left;
    return left < NAME_MIN_COLUMNS ? NAME_MIN_COLUMNS : left;
}

static void put_cell(struct frame *f, size_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_cell(struct frame *f, size_t column, const char *format, ...)
{
    char text[64];
    va_list args;
    if (f->columns < table[column].least)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put_format(f, "%*s", (int)table[column].columns, text);
}

static void put_share(struct frame *f, size_t column, double share)
{
    if (share < 0)
        put_cell(f, column, "-");
    else
        put_cell(f, column, "%.0f %%", 100 * share);
}

static void put_codes(struct frame *f, const struct top_tool *tool)
{
    if (f->columns < table[COLUMN_CODES].least)
        return;
    put_format(f, "  ");
    for (size_t i = 0; i < TOP_CODES_OF_TOOL && tool->codes[i].count; i++) {
        put_format(f, "%s", i ? ", " : "");
        put(f, tool->codes[i].code);
        put_format(f, " %lld", (long long)tool->codes[i].count);
    }
}

static void put_tool(struct frame *f, const struct top_tool *tool)
{
    put_padded(f, tool->name, name_columns(f));
    put_cell(f, COLUMN_CALLS, "%lld", (long long)tool->calls);
    put_cell(f, COLUMN_RATE, "%.1f", tool->calls_s);
    buf_text(f->out, tool->refused_s > 0 ? term_colour(TERM_YELLOW) : "");
    put_cell(f, COLUMN_REFUSED_RATE, "%.1f", tool->refused_s);
    buf_text(f->out, tool->refused_s > 0 ? term_colour(TERM_PLAIN) : "");
    put_share(f, COLUMN_REFUSED, tool->refused_share);
    put_share(f, COLUMN_RECOVERED, tool->recovered_share);
    put_codes(f, tool);
    end_line(f);
}

static void put_tool_titles(struct frame *f, enum top_order order)
{
    static const char *const orders[] = {[TOP_BY_RATE] = "TOOL, by rate",
                                         [TOP_BY_REFUSALS] = "TOOL, by refusals",
                                         [TOP_BY_NAME] = "TOOL, by name"};
    buf_text(f->out, term_colour(TERM_BOLD));
    put_padded(f, str_of(orders[order]), name_columns(f));
    for (size_t i = 0; i < TABLE_COLUMNS; i++)
        put_cell(f, i, "%s", table[i].title);
    buf_text(f->out, term_colour(TERM_PLAIN));
    end_line(f);
}

static void put_tools(struct frame *f, const struct top_view *view, const struct json *status,
                      const struct top_figures *figures, unsigned lines)
{
    put_tool_titles(f, view->order);
    if (!figures->tool_count) {
        put_format(f, json_get_text(status, "tools") ? "no tool has been called yet"
                                                     : "this daemon does not count by tool");
        end_line(f);
        return;
    }
    size_t fit = lines && figures->tool_count > lines ? lines - 1 : figures->tool_count;
    for (size_t i = 0; i < fit; i++)
        put_tool(f, &figures->tools[i]);
    if (fit < figures->tool_count) {
        put_coloured(f, TERM_DIM, STR_LIT("and "));
        put_format(f, "%zu more tools", figures->tool_count - fit);
        end_line(f);
    }
}

/* ---- sessions in a loop ---- */

static const struct json *looping(const struct json *sessions)
{
    const struct json *list = json_get_text(sessions, "sessions");
    return json_is(list, JSON_ARRAY) && list->len ? list : NULL;
}

static void put_session(struct frame *f, const struct json *session)
{
    const struct json *loop = json_get_text(session, "loop");
    struct str code = text_of(loop, "code");
    long long times = (long long)print_number(loop, "times");
    put_format(f, "  ");
    put_padded(f, text_of(session, "session"), f->columns / 3);
    put_format(f, " ");
    put_padded(f, text_of(loop, "tool"), f->columns / 4);
    put_format(f, " %lld times in a row, ", times);
    put(f, code.len ? code : STR_LIT("let run so far"));
    end_line(f);
}

static void put_sessions(struct frame *f, const struct json *list, long long count)
{
    buf_text(f->out, term_colour(TERM_BOLD));
    put_format(f, "SESSIONS IN A LOOP");
    buf_text(f->out, term_colour(TERM_PLAIN));
    end_line(f);
    uint32_t fit = count > SESSIONS_MAX_LINES ? SESSIONS_MAX_LINES - 1 : list->len;
    for (uint32_t i = 0; i < fit && i < list->len; i++)
        put_session(f, &list->items[i]);
    if (fit < count) {
        put_format(f, "  and %lld more: toolgate sessions --loops", count - fit);
        end_line(f);
    }
}

/* ---- the whole ---- */

static unsigned session_lines(const struct json *list)
{
    if (!list)
        return 0;
    return 2 + (list->len > SESSIONS_MAX_LINES ? SESSIONS_MAX_LINES : list->len);
}

/* Lines for tools: what the rest leaves of the terminal; 0: all. */
static unsigned tool_lines(const struct frame *f, const struct top_view *view, const struct json *list)
{
    unsigned others = f->lines + 1 + session_lines(list) + (view->keys ? 2 : 0);
    if (!view->rows)
        return 0;
    return view->rows > others + TOOLS_MIN_LINES ? view->rows - others : TOOLS_MIN_LINES;
}

static void put_keys(struct frame *f)
{
    put_coloured(f, TERM_DIM, STR_LIT("r rate  f refusals  n name  q quit"));
    end_line(f);
}

static void cut_lines(struct buf *out, unsigned lines)
{
    for (size_t i = 0; lines && i < out->len; i++)
        if (out->at[i] == '\n' && --lines == 0)
            out->len = i + 1;
}

void top_frame(struct buf *out, const struct top_view *view, const struct top_snapshot *now,
               const struct top_figures *figures)
{
    struct frame f = {.out = out, .columns = view->columns, .left = view->columns};
    const struct json *list = looping(now->sessions);
    if (view->notice.len) {
        put_coloured(&f, TERM_YELLOW, view->notice);
        end_line(&f);
    }
    if (now->status) {
        put_summary(&f, view, now->status, figures);
        put_attention(&f, now->status);
        end_line(&f);
        put_tools(&f, view, now->status, figures, tool_lines(&f, view, list));
        if (list) {
            end_line(&f);
            put_sessions(&f, list, (long long)print_number(now->sessions, "in_loop"));
        }
    }
    if (view->keys)
        put_keys(&f);
    cut_lines(out, view->rows);
}
