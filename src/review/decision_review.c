/* The review of refusals: keys from a terminal one by one, or from the lines of standard input. */
#include "review/decision_review.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/printable.h"
#include "cli/term.h"
#include "json/parse.h"
#include "json/write.h"
#include "review/decision_print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#define LEVELS_MAX 8u /* of long brackets around arguments */

enum mark { MARK_NONE, MARK_RIGHT, MARK_WRONG, MARK_SKIP };
static const char *const mark_names[] = {"", "right", "wrong", "skip"};

struct item {
    struct json record;
    struct decision decision;
    enum mark mark; /* in this review or an earlier one */
};

struct review {
    const struct command *command;
    const struct review_options *options;
    struct arena *arena;
    struct decision_outcomes *outcomes;
    struct item **items;
    size_t count;
    bool too_many;
    FILE *marks;
};

/* ---- collecting ---- */

static bool collect(void *owner, const struct decision *d, const struct recording_line *line)
{
    struct review *r = owner;
    struct json_error error;
    decision_outcomes_add(r->outcomes, d);
    if (!decision_filter_matches(r->options->filter, d))
        return true;
    if (r->count == REVIEW_REFUSALS_MAX) {
        r->too_many = true;
        return true;
    }
    struct item *item = ARENA_NEW(r->arena, struct item);
    const char *why;
    if (json_parse(r->arena, arena_dup(r->arena, line->text), NULL, &item->record, &error) != OK &&
        !error.soft)
        return true;
    if (decision_read(&item->record, &item->decision, &why))
        r->items[r->count++] = item;
    return true;
}

/* The later mark of an id counts. */
static void read_marks(struct review *r)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    rewind(r->marks);
    while ((n = getline(&line, &size, r->marks)) > 0) {
        struct json value;
        struct json_error error;
        struct arena *scratch = arena_new();
        bool parsed = json_parse(scratch, (struct str){line, (size_t)n}, NULL, &value, &error) == OK;
        struct str id = parsed ? json_str(json_get_text(&value, "decision_id")) : STR_NONE;
        struct str mark = parsed ? json_str(json_get_text(&value, "mark")) : STR_NONE;
        for (size_t i = 0; id.len && i < r->count; i++)
            for (int m = MARK_RIGHT; m <= MARK_SKIP && str_eq(r->items[i]->decision.id, id); m++)
                if (str_is(mark, mark_names[m]))
                    r->items[i]->mark = (enum mark)m;
        arena_free(scratch);
    }
    free(line);
}

static bool set_mark(struct review *r, struct item *item, enum mark mark)
{
    struct buf line = {0};
    struct json_out out = json_out(&line);
    item->mark = mark;
    json_open(&out, '{');
    json_field_str(&out, "decision_id", item->decision.id);
    json_field_str(&out, "tool", item->decision.tool);
    json_field_text(&out, "mark", mark_names[mark]);
    json_close(&out, '}');
    buf_byte(&line, '\n');
    bool written = fwrite(line.at, 1, line.len, r->marks) == line.len && fflush(r->marks) == 0;
    buf_clear(&line);
    if (!written)
        term_error(r->command->name, "%s: %s", r->options->marks, strerror(errno));
    return written;
}

/* ---- keys ---- */

#define CTRL_C 3
#define CTRL_D 4

/* On a terminal one key without Enter; else the first letter of a line. EOF at the end. Ctrl-C is a key, too:
 * as a signal it would end the process before the terminal is as it was. */
static int read_key(void)
{
    struct termios before, raw;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0) {
        int key = getchar(), c = key;
        while (c != EOF && c != '\n')
            c = getchar();
        return key;
    }
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    unsigned char key;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    ssize_t n = read(STDIN_FILENO, &key, 1);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return n == 1 && key != CTRL_C && key != CTRL_D ? key : EOF;
}

/* False: the review ends. *at moves to the next refusal, or back. */
static bool ask(struct review *r, size_t *at)
{
    struct item *item = r->items[*at];
    printf("\n%s%zu of %zu%s\n", term_colour(TERM_BOLD), *at + 1, r->count, term_colour(TERM_PLAIN));
    decision_print(&item->decision, decision_outcomes_get(r->outcomes, &item->decision), true);
    for (;;) {
        printf("was this right?  r right  w wrong  s skip  b back  q quit: ");
        fflush(stdout);
        int key = read_key();
        enum mark mark = key == 'r'   ? MARK_RIGHT
                         : key == 'w' ? MARK_WRONG
                         : key == 's' ? MARK_SKIP
                                      : MARK_NONE;
        printf("%s\n", mark ? mark_names[mark] : key == 'b' ? "back" : key == 'q' ? "quit" : "");
        if (key == EOF || key == 'q')
            return false;
        if (key == 'b') {
            *at -= *at > 0;
            r->items[*at]->mark = MARK_NONE;
            return true;
        }
        if (mark) {
            ++*at;
            return set_mark(r, item, mark);
        }
    }
}

/* ---- examples ---- */

static void write_quoted(struct buf *out, struct str text)
{
    struct buf plain = {0};
    printable_write(&plain, text);
    buf_byte(out, '"');
    for (size_t i = 0; i < plain.len; i++) {
        if (plain.at[i] == '"' || plain.at[i] == '\\')
            buf_byte(out, '\\');
        buf_byte(out, plain.at[i]);
    }
    buf_byte(out, '"');
    buf_clear(&plain);
}

/* json [==[…]==] of a level that the text does not close; a ']' at its end would close level 0 early. */
static void write_arguments(struct buf *out, const struct json *arguments)
{
    struct buf text = {0};
    char close[LEVELS_MAX + 3] = "]]";
    unsigned level = 0;
    json_write(&text, arguments);
    while (level < LEVELS_MAX && text.len &&
           (memmem(text.at, text.len, close, level + 2) || text.at[text.len - 1] == ']')) {
        if (level && !memmem(text.at, text.len, close, level + 2))
            break;
        level++;
        snprintf(close, sizeof(close), "]%.*s]", (int)level, "========");
    }
    buf_printf(out, "json [%.*s[" STR_FMT "%s", (int)level, "========", STR_ARG(buf_view(&text)), close);
    buf_clear(&text);
}

static void write_example(struct buf *out, const struct decision *d)
{
    const struct decision_verdict *problem = decision_problem(d);
    struct buf name = {0};
    buf_printf(&name, "is not refused (" STR_FMT ", " STR_FMT ")",
               STR_ARG(problem->code.len ? problem->code : problem->class), STR_ARG(str_cut(d->ts, 19)));
    if (d->masked && d->masked->len)
        buf_text(out, "    -- Values of these arguments were masked in the log; write ones that fit.\n");
    if (str_is(problem->class, "loop") || str_is(problem->class, "retry_budget"))
        buf_text(out,
                 "    -- Refused because of earlier calls: add them as `history = { { args = … }, … }`.\n");
    if (str_is(problem->class, "fabricated_id"))
        buf_text(out, "    -- Add the ids that were known as `seen = { \"…\" }`.\n");
    buf_text(out, "    { ");
    write_quoted(out, buf_view(&name));
    buf_text(out, ",\n      args = ");
    write_arguments(out, d->arguments);
    buf_text(out, ", gives = \"pass\" },\n");
    buf_clear(&name);
}

static bool is_example(const struct item *item)
{
    return item->mark == MARK_WRONG && item->decision.arguments;
}

/* One table for each tool, in the order of their first wrong refusal. */
static void write_examples(const struct review *r, struct buf *out)
{
    for (size_t i = 0; i < r->count; i++) {
        struct str tool = r->items[i]->decision.tool;
        bool first = is_example(r->items[i]);
        for (size_t k = 0; first && k < i; k++)
            first = !(is_example(r->items[k]) && str_eq(r->items[k]->decision.tool, tool));
        if (!first)
            continue;
        buf_text(out, "  -- ");
        printable_write(out, tool);
        buf_text(out, ": calls that were refused and should pass; add them to its policy.\n  examples = {\n");
        for (size_t k = i; k < r->count; k++)
            if (is_example(r->items[k]) && str_eq(r->items[k]->decision.tool, tool))
                write_example(out, &r->items[k]->decision);
        buf_text(out, "  },\n");
    }
}

static bool save_examples(const struct review *r)
{
    struct buf text = {0};
    write_examples(r, &text);
    FILE *file = r->options->examples ? fopen(r->options->examples, "we") : stdout;
    bool saved = file && (!text.len || fwrite(text.at, 1, text.len, file) == text.len);
    if (file && file != stdout)
        saved = fclose(file) == 0 && saved;
    if (!saved)
        term_error(r->command->name, "%s: %s", r->options->examples ? r->options->examples : "stdout",
                   strerror(errno));
    buf_clear(&text);
    return saved;
}

/* ---- the review ---- */

static void print_counts(const struct review *r)
{
    size_t counts[MARK_SKIP + 1] = {0};
    for (size_t i = 0; i < r->count; i++)
        counts[r->items[i]->mark]++;
    printf("\n%zu refusals: right %zu, wrong %zu, skipped %zu, not yet reviewed %zu\n", r->count,
           counts[MARK_RIGHT], counts[MARK_WRONG], counts[MARK_SKIP], counts[MARK_NONE]);
}

static void walk(struct review *r)
{
    for (size_t at = 0; at < r->count;) {
        if (r->items[at]->mark)
            at++;
        else if (!ask(r, &at))
            return;
    }
}

int decision_review(const struct command *command, struct decision_input *input,
                    const struct review_options *options)
{
    struct review r = {.command = command, .options = options, .arena = arena_new()};
    int status = CLI_ERROR;
    r.outcomes = decision_outcomes_new();
    r.items = ARENA_ARRAY(r.arena, struct item *, REVIEW_REFUSALS_MAX);
    if (decision_input_walk(input, true, collect, &r)) {
        decision_outcomes_end(r.outcomes);
        r.marks = fopen(options->marks, "a+e");
        if (!r.marks)
            term_error(command->name, "%s: %s; choose another file with --marks", options->marks,
                       strerror(errno));
    }
    if (r.too_many)
        term_error(
            command->name,
            "more than %u refusals: the first %u are reviewed; filter the others with --since or --tool",
            REVIEW_REFUSALS_MAX, REVIEW_REFUSALS_MAX);
    if (r.marks) {
        read_marks(&r);
        walk(&r);
        print_counts(&r);
        status = save_examples(&r) ? CLI_OK : CLI_ERROR;
        fclose(r.marks);
    }
    decision_outcomes_free(r.outcomes);
    arena_free(r.arena);
    return status;
}
