/* toolgate lint: prints the findings of src/lint, one a line. */
#include "lint/lint.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/local_generation.h"
#include "cli/print.h"
#include "cli/term.h"
#include "json/write.h"

#include <stdio.h>

struct lint_options {
    struct local_options local;
    bool strict, json, list, theirs;
};

static void print_line(const struct lint_finding *f)
{
    static const enum term_colour colours[] = {
        [LINT_ERROR] = TERM_RED, [LINT_WARNING] = TERM_YELLOW, [LINT_NOTE] = TERM_DIM};
    printf(STR_FMT "%s", STR_ARG(f->file), f->file.len ? ":" : "");
    if (f->line)
        printf("%d:", f->line);
    printf("%s%s%s:%s ", f->file.len ? " " : "", term_colour(colours[f->level]), lint_level_name(f->level),
           term_colour(TERM_PLAIN));
    term_print_lines(stdout, f->sentence);
    printf(" %s[%s]%s\n", term_colour(TERM_DIM), f->code, term_colour(TERM_PLAIN));
}

static void print_json(const struct lint_finding *f)
{
    struct buf line = {0};
    struct json_out out = json_out(&line);
    json_open(&out, '{');
    json_field_str(&out, "file", f->file);
    json_field_int(&out, "line", f->line);
    json_field_text(&out, "level", lint_level_name(f->level));
    json_field_text(&out, "code", f->code);
    json_field_str(&out, "sentence", f->sentence);
    if (f->theirs)
        json_field_bool(&out, "theirs", true);
    json_close(&out, '}');
    print_json_text(buf_view(&line));
    putchar('\n');
    buf_clear(&line);
}

static bool look(struct lint *lint, const struct lint_options *options, const char *place)
{
    struct config_sources sources = local_sources(&options->local, NULL);
    if (place)
        sources.policies = place;
    return lint_run(lint, &sources);
}

/* Mine decide about the exit code; theirs are somebody else's to fix. */
struct lint_tally {
    size_t mine, theirs;
};

static void print_finding(const struct lint_options *options, const struct lint_finding *f)
{
    if (options->json)
        print_json(f);
    else
        print_line(f);
}

/* Notes are printed and counted only with --strict. */
static struct lint_tally print_findings(const struct lint_options *options, struct lint *lint)
{
    struct lint_tally tally = {0};
    size_t count;
    const struct lint_finding *list = lint_findings(lint, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].level == LINT_NOTE && !options->strict)
            continue;
        tally.mine += !list[i].theirs;
        tally.theirs += list[i].theirs;
        if (!list[i].theirs || options->theirs)
            print_finding(options, &list[i]);
    }
    return tally;
}

static void print_sum(const struct lint_options *options, struct lint_tally tally)
{
    if (options->json)
        return;
    if (!tally.mine)
        printf("%sok%s: nothing to fix in your policies\n", term_colour(TERM_GREEN), term_colour(TERM_PLAIN));
    if (tally.theirs && !options->theirs)
        printf("%zu finding%s about the schemas and descriptions of servers: --theirs shows %s\n",
               tally.theirs, tally.theirs == 1 ? "" : "s", tally.theirs == 1 ? "it" : "them");
}

static int lint_all(const struct lint_options *options, int argc, char **argv)
{
    struct lint *lint = lint_new();
    bool looked = argc > 0 || look(lint, options, NULL);
    for (int i = 0; i < argc; i++)
        looked = look(lint, options, argv[i]) && looked;
    struct lint_tally tally = print_findings(options, lint);
    if (looked)
        print_sum(options, tally);
    lint_free(lint);
    return !looked ? CLI_ERROR : tally.mine ? CLI_NO : CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct lint_options options = {0};
    int status;
    const struct cli_option table[] = {
        {"strict", NULL, "also notes: what only some providers' modes refuse", 0, OPTION_FLAG,
         &options.strict},
        {"theirs", NULL, "also findings about the schemas and descriptions of servers", 0, OPTION_FLAG,
         &options.theirs},
        {"json", NULL, "print one JSON object for each finding", 'j', OPTION_FLAG, &options.json},
        {"list", NULL, "list all checks with their codes and levels", 'l', OPTION_FLAG, &options.list},
        LOCAL_OPTIONS(&options.local),
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    log_open(LOG_WARN, LOG_FORMAT_TEXT, NULL, NULL);
    if (options.list) {
        size_t count;
        const struct lint_code *codes = lint_codes(&count);
        for (size_t i = 0; i < count; i++)
            printf("%s%-17s%s %-8s %s\n", term_colour(TERM_BOLD), codes[i].code, term_colour(TERM_PLAIN),
                   lint_level_name(codes[i].level), codes[i].finds);
        return CLI_OK;
    }
    return lint_all(&options, argc, argv);
}

const struct command command_lint = {
    .name = "lint",
    .operands = "[DIR|FILE]...",
    .summary = "report what looks wrong in policies and tools",
    .about =
        "Loads the policies (default ./policies) and the tools of --tools, runs the examples, and prints "
        "one\n"
        "line for each finding: `file:line: level: sentence [code]`, each with its fix. A file that does "
        "not\n"
        "load is a finding too. Errors and warnings affect the exit code; notes only with --strict. "
        "Findings\n"
        "about what servers publish (definitions that no policy replaces) are counted; --theirs prints them.",
    .exits = "  0  nothing to fix in the policies\n"
             "  1  at least one finding in them\n"
             "  2  usage, or there is nothing to check",
    .example = "  toolgate lint policies\n"
               "  toolgate lint policies --tools tools.json --strict --json",
    .most = 1000,
    .run = run,
};
