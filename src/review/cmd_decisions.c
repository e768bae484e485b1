/* toolgate decisions: reads the decision log as a person wants it, or filters it for a program. */
#include "base/arena.h"
#include "base/clock.h"
#include "review/daemon_log.h"
#include "review/decision_follow.h"
#include "review/decision_input.h"
#include "review/decision_print.h"
#include "review/decision_review.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/term.h"
#include "gate/verdict.h"
#include "replay/decision_filter.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct decisions_options {
    struct decision_filter filter;
    unsigned limit, last; /* 0: all */
    bool json, full, review, follow;
    const char *marks, *examples; /* NULL: not given */
};

/* ---- the walk ---- */

struct listing {
    const struct decisions_options *options;
    struct decision_outcomes *outcomes; /* NULL: not needed */
    uint64_t matched;                   /* in the first walk: all */
    uint64_t skip;                      /* of the matching ones, from the start */
    uint64_t shown, by_verdict[VERDICT_KINDS], by_outcome[OUTCOME_GAVE_UP + 1];
};

static bool count_match(void *owner, const struct decision *d, const struct recording_line *line)
{
    (void)line;
    struct listing *l = owner;
    if (l->outcomes)
        decision_outcomes_add(l->outcomes, d);
    l->matched += decision_filter_matches(&l->options->filter, d);
    return true;
}

static void count_shown(struct listing *l, const struct decision *d, const struct decision_outcome *outcome)
{
    for (int i = 0; i < VERDICT_KINDS; i++)
        l->by_verdict[i] += str_is(d->given.verdict, verdict_name((enum verdict_kind)i));
    if (outcome)
        l->by_outcome[outcome->kind]++;
    l->shown++;
}

static bool show_match(void *owner, const struct decision *d, const struct recording_line *line)
{
    struct listing *l = owner;
    const struct decisions_options *o = l->options;
    if (!decision_filter_matches(&o->filter, d))
        return true;
    if (l->skip) {
        l->skip--;
        return true;
    }
    const struct decision_outcome *outcome = l->outcomes ? decision_outcomes_get(l->outcomes, d) : NULL;
    count_shown(l, d, outcome);
    if (o->json) {
        print_json_text(line->text);
        putchar('\n');
    } else {
        decision_print(d, outcome, o->full);
    }
    return !ferror(stdout) && (!o->limit || l->shown < o->limit);
}

/* "24 of 1203 records: pass 3, repair 21; afterwards repaired 15, gave up 6" */
static void print_summary(const struct listing *l, uint64_t records)
{
    static const char *const outcomes[] = {"", "repaired", "passed later", "repeated", "gave up"};
    const char *before = ": ";
    printf("%s%llu of %llu records", term_colour(TERM_DIM), (unsigned long long)l->shown,
           (unsigned long long)records);
    for (int i = 0; i < VERDICT_KINDS; i++) {
        if (!l->by_verdict[i])
            continue;
        printf("%s%s %llu", before, verdict_name((enum verdict_kind)i), (unsigned long long)l->by_verdict[i]);
        before = ", ";
    }
    before = "; then ";
    for (int i = OUTCOME_REPAIRED; i <= OUTCOME_GAVE_UP; i++) {
        if (!l->by_outcome[i])
            continue;
        printf("%s%s %llu", before, outcomes[i], (unsigned long long)l->by_outcome[i]);
        before = ", ";
    }
    printf("%s\n", term_colour(TERM_PLAIN));
}

static int list(struct decision_input *input, const struct decisions_options *options)
{
    struct listing l = {.options = options};
    bool twice = !options->json || options->last, done = true;
    if (!options->json)
        l.outcomes = decision_outcomes_new();
    if (twice)
        done = decision_input_walk(input, false, count_match, &l);
    if (l.outcomes) {
        decision_outcomes_end(l.outcomes);
        decision_input_report_left_out(input, l.outcomes);
    }
    l.skip = options->last && l.matched > options->last ? l.matched - options->last : 0;
    uint64_t records = decision_input_records(input);
    done = done && decision_input_walk(input, true, show_match, &l);
    if (done && !options->json && isatty(STDOUT_FILENO))
        print_summary(&l, records);
    decision_outcomes_free(l.outcomes);
    return done && !decision_input_is_cut_short(input) ? CLI_OK : CLI_ERROR;
}

/* ---- options ---- */

static bool read_moment(const struct command *command, const char *option, const char *text, bool end,
                        int64_t *us)
{
    struct why why;
    if (!text || decision_filter_moment(str_of(text), clock_wall_ms() * 1000, end, us, &why) == OK)
        return true;
    term_error(command->name, "--%s: %s", option, why.text);
    return false;
}

static bool check_filter(const struct command *command, const struct decision_filter *filter)
{
    struct why why;
    if (decision_filter_check(filter, &why) == OK)
        return true;
    term_error(command->name, "%s", why.text);
    return false;
}

/* All refusals unless the filter says which. */
static int review(const struct command *command, struct decision_input *input,
                  struct decisions_options *options, const char *file)
{
    char marks[PATH_MAX];
    options->filter.refused = true;
    if (strcmp(file, "-") == 0) {
        term_error(command->name, "--review reads keys from standard input: name the log's file");
        return CLI_ERROR;
    }
    snprintf(marks, sizeof(marks), "%s.review", file);
    const struct review_options how = {&options->filter, options->marks ? options->marks : marks,
                                       options->examples};
    return decision_review(command, input, &how);
}

/* False after an error on stderr. */
static bool can_follow(const struct command *command, const struct decisions_options *options, int argc,
                       char **argv)
{
    struct stat st;
    if (options->review)
        term_error(command->name, "--follow and --review exclude each other: leave one of them out");
    else if (argc > 1)
        term_error(command->name,
                   "--follow reads one file: name the one that is written; its rotated files are "
                   "found by themselves");
    else if (argc && (strcmp(argv[0], "-") == 0 || (stat(argv[0], &st) == 0 && !S_ISREG(st.st_mode))))
        term_error(command->name, "--follow needs a file, not a pipe or a folder: name the decision log");
    else
        return true;
    return false;
}

static int follow(struct decision_input *input, const struct decisions_options *options)
{
    const struct decision_filter *filter = &options->filter;
    bool all = filter->since_us >= 0 && !options->last;
    struct follow_options how = {.filter = filter,
                                 .history = all             ? FOLLOW_HISTORY_ALL
                                            : options->last ? options->last
                                                            : FOLLOW_HISTORY_DEFAULT,
                                 .limit = options->limit,
                                 .json = options->json,
                                 .full = options->full};
    return decision_follow(input, &how) ? CLI_OK : CLI_ERROR;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct decisions_options options = {.filter = DECISION_FILTER_NONE};
    struct decision_filter *filter = &options.filter;
    const char *tool = NULL, *verdict = NULL, *code = NULL, *class = NULL, *session = NULL, *user = NULL,
               *since = NULL, *until = NULL, *socket = NULL;
    unsigned turn = 0;
    int status;
    const struct cli_option table[] = {
        {"tool", "TOOL", "only of these tools: a name or a glob, several with commas", 't', OPTION_STRING,
         &tool},
        {"verdict", "VERDICT", "pass, repair, wait, refuse, ask, halt; several with commas", 0, OPTION_STRING,
         &verdict},
        {"code", "CODE", "only with this code, such as missing", 0, OPTION_STRING, &code},
        {"class", "CLASS", "only of this class, such as invalid_arguments", 0, OPTION_STRING, &class},
        {"refused", NULL, "only calls that were kept from their tool", 'r', OPTION_FLAG, &filter->refused},
        {"would", NULL, "look at what mode shadow did not enforce instead", 0, OPTION_FLAG, &filter->would},
        {"session", "ID", "only of this session", 0, OPTION_STRING, &session},
        {"user", "NAME", "only of this user, by name or uid", 'u', OPTION_STRING, &user},
        {"turn", "N", "only of this turn", 0, OPTION_NUMBER, &turn},
        {"since", "WHEN", "from then on: 90m, 1d, 2w, 2026-11-20, \"2026-11-20 14:30\"", 0, OPTION_STRING,
         &since},
        {"until", "WHEN", "up to then; a date with its whole day", 0, OPTION_STRING, &until},
        {"limit", "N", "only the first N", 'n', OPTION_NUMBER, &options.limit},
        {"last", "N", "only the last N", 0, OPTION_NUMBER, &options.last},
        {"review", NULL, "go through the refusals one by one: right or wrong?", 0, OPTION_FLAG,
         &options.review},
        {"marks", "FILE", "with --review: where the marks are kept (default FILE.review)", 0, OPTION_STRING,
         &options.marks},
        {"examples", "FILE", "with --review: write the wrong refusals there as examples", 0, OPTION_STRING,
         &options.examples},
        {"follow", NULL, "go on with what is written, through rotations, as tail -F does", 'F', OPTION_FLAG,
         &options.follow},
        SOCKET_OPTION(&socket),
        {"full", NULL, "do not shorten arguments and messages", 'f', OPTION_FLAG, &options.full},
        {"json", NULL, "print the records as they are, one a line", 'j', OPTION_FLAG, &options.json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    filter->tool = str_of(tool);
    filter->verdict = str_of(verdict);
    filter->code = str_of(code);
    filter->class = str_of(class);
    filter->session = str_of(session);
    filter->user = str_of(user);
    filter->turn = turn ? (int64_t)turn : -1;
    if (!read_moment(command, "since", since, false, &filter->since_us) ||
        !read_moment(command, "until", until, true, &filter->until_us) || !check_filter(command, filter))
        return CLI_ERROR;
    if (options.follow && !can_follow(command, &options, argc, argv))
        return CLI_ERROR;
    enum daemon_log_part part = options.follow ? DAEMON_LOG_WRITTEN : DAEMON_LOG_ALL;
    struct arena *arena = arena_new();
    struct daemon_log log = {.files = (const char *const *)argv, .count = (size_t)argc};
    struct decision_input *input = NULL;
    if (argc || daemon_log_find(command, socket, part, arena, &log))
        input = decision_input_open(command, log.files, log.count);
    /* The marks of the daemon's log lie beside the file that is written, whose name stays. */
    if (input && options.review)
        status = review(command, input, &options, log.files[argc ? 0 : log.count - 1]);
    else if (input && options.follow)
        status = follow(input, &options);
    else
        status = input ? list(input, &options) : CLI_ERROR;
    decision_input_close(input);
    arena_free(arena);
    return status;
}

const struct command command_decisions = {
    .name = "decisions",
    .operands = "[FILE]...",
    .summary = "show what was decided, and what the model did then",
    .about =
        "Prints the records of the decision log: time, verdict, tool, reason, arguments, and for a refused\n"
        "call what the model did next. A line that cannot be read is counted on stderr; the rest is shown.\n"
        "Without FILE it reads the daemon's log, the rotated files first. With --follow it prints the last\n"
        "ten records, or --last N, or all --since, and goes on until it is stopped or --limit is reached.",
    .exits = "  0  the records are on stdout, even if none matches\n"
             "  2  usage, or a file that cannot be read",
    .example = "  toolgate decisions --refused --since 1d\n"
               "  toolgate decisions --review --since 7d --examples examples.lua\n"
               "  toolgate decisions --follow --refused\n"
               "  toolgate decisions decisions.ndjson --tool 'get_*' --code missing --last 20\n"
               "  toolgate decisions decisions.ndjson --verdict repair --json | jq .messages",
    .most = 1000,
    .run = run,
};
