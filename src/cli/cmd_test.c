/* toolgate test: runs the examples of policies and prints one line for each. */
#include "base/arena.h"
#include "cli/local_generation.h"
#include "cli/term.h"
#include "cli/cmd_test.h"

#include <glob.h>
#include <stdio.h>

/* ---- results ---- */

static void print_details(const struct example_outcome *o)
{
    struct example_colours paint = {.expected = term_colour(TERM_RED),
                                    .got = term_colour(TERM_GREEN),
                                    .quiet = term_colour(TERM_DIM),
                                    .plain = term_colour(TERM_PLAIN)};
    struct buf text = {0};
    examples_write_text(&text, o, 6, o->passed, &paint);
    fwrite(text.at, 1, text.len, stdout);
    buf_clear(&text);
}

static void seen(void *owner, const struct example_outcome *o)
{
    const struct test_options *options = owner;
    if (options->json) {
        struct buf line = {0};
        examples_write_json(&line, o);
        printf(STR_FMT "\n", STR_ARG(buf_view(&line)));
        buf_clear(&line);
    } else if (!o->sample || !o->passed || options->all) {
        enum term_colour colour = o->passed ? TERM_GREEN : o->open ? TERM_YELLOW : TERM_RED;
        printf("%s%s%s  " STR_FMT ": %s" STR_FMT " %s(%lld µs)%s\n", term_colour(colour),
               o->passed ? "ok  "
               : o->open ? "open"
                         : "FAIL",
               term_colour(TERM_PLAIN), STR_ARG(o->policy->name), o->sample ? "sample " : "",
               STR_ARG(o->example->name), term_colour(TERM_DIM), (long long)o->us, term_colour(TERM_PLAIN));
        if (options->all || !o->passed)
            print_details(o);
    }
    fflush(stdout);
}

/* ---- running ---- */

static struct generation *build(const struct config_sources *sources, struct generation_report *report)
{
    struct config config;
    struct generation *generation = NULL;
    struct why why;
    if (config_load(sources, &config, &why) != OK) {
        generation_report_error(report, "%s", why.text);
        config_free(&config);
    } else {
        generation_build(&config, 1, &generation, report);
    }
    return generation;
}

static void add(struct test_tally *tally, const struct examples_count *count)
{
    tally->count.passed += count->passed;
    tally->count.failed += count->failed;
    tally->count.open += count->open;
    tally->count.samples += count->samples;
    tally->count.samples_failed += count->samples_failed;
    tally->count.unsampled += count->unsampled;
}

/* Sample calls come after the coverage is taken: they show that nothing breaks, not that it is right. */
static void run_examples(struct generation *generation, struct examples_options *run,
                         struct test_tally *tally)
{
    struct policy_set *policies = generation->policies;
    if (tally->coverage)
        coverage_begin(tally->coverage, policies);
    struct examples_count count = examples_run(generation, NULL, run);
    if (tally->coverage)
        coverage_end(tally->coverage, policies);
    add(tally, &count);
    run->samples = true;
    count = examples_run(generation, NULL, run);
    add(tally, &count);
}

/* `place`: a folder or a file; NULL: what the configuration names. */
static void test_place(const struct test_options *options, const char *place, struct test_tally *tally)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    struct config_sources sources = local_sources(&options->local, NULL);
    struct examples_options run = {.only = options->only, .seen = seen, .owner = (void *)options};
    if (place)
        sources.policies = place;
    generation_report_init(&report, arena);
    struct generation *generation = build(&sources, &report);
    fflush(stdout); /* so that errors on stderr stay in order */
    local_print_report(&report);
    tally->broken += report.error_count;
    if (generation)
        run_examples(generation, &run, tally);
    generation_unref(generation);
    arena_free(arena);
}

/* A pattern that matches nothing was mistyped: it must not look like success. */
static bool nothing_matches(const struct test_options *options, const struct test_tally *tally)
{
    const struct examples_count *count = &tally->count;
    bool nothing = options->only && !tally->broken && !count->passed && !count->failed && !count->open &&
                   !count->samples && !count->samples_failed;
    if (nothing)
        term_error("test", "--only: no \"tool: example\" matches '%s'; without --only all are listed",
                   options->only);
    return nothing;
}

static void print_sum(const struct test_options *options, const struct test_tally *tally)
{
    const struct examples_count *count = &tally->count;
    if (options->json)
        return;
    printf("%zu passed, %zu failed", count->passed, count->failed);
    if (count->open)
        printf(", %zu open", count->open);
    size_t samples = count->samples + count->samples_failed;
    if (samples)
        printf("; %zu sample call%s", samples, samples == 1 ? "" : "s");
    if (count->samples_failed)
        printf(", %zu of them failed", count->samples_failed);
    if (count->unsampled)
        printf("; no sample call could be made for %zu", count->unsampled);
    if (tally->broken)
        printf("; files that do not load were not tested: %zu error%s", tally->broken,
               tally->broken == 1 ? "" : "s");
    printf("\n");
}

/* The operator's own specs are run by busted. */
static void point_at_specs(const struct test_options *options, const char *folder)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/*_spec.lua", folder);
    if (glob(pattern, 0, NULL, &found) == 0 && !options->json)
        printf("%zu spec%s: run busted --lua=luajit %s\n", found.gl_pathc, found.gl_pathc == 1 ? "" : "s",
               folder);
    globfree(&found);
}

static int test_all(const struct test_options *options)
{
    struct test_tally tally = {.coverage = options->cover ? coverage_new() : NULL};
    if (!options->place_count)
        test_place(options, NULL, &tally);
    for (int i = 0; i < options->place_count; i++)
        test_place(options, options->places[i], &tally);
    print_sum(options, &tally);
    if (!options->place_count && !options->local.config)
        point_at_specs(options, options->local.policies ? options->local.policies : CONFIG_DEFAULT_FOLDER);
    for (int i = 0; i < options->place_count; i++)
        point_at_specs(options, options->places[i]);
    int status =
        tally.count.failed || tally.count.samples_failed || tally.broken || nothing_matches(options, &tally)
            ? CLI_NO
            : CLI_OK;
    if (tally.coverage) {
        int covered = test_print_coverage(options, tally.coverage);
        status = covered > status ? covered : status;
    }
    coverage_free(tally.coverage);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct test_options options = {0};
    int status;
    const struct cli_option table[] = {
        {"only", "PATTERN", "only examples whose \"tool: example\" matches; * and ? are wildcards", 0,
         OPTION_STRING, &options.only},
        {"verbose", NULL, "print the result of each, also of those that hold, and sample calls", 'v',
         OPTION_FLAG, &options.all},
        {"json", NULL, "print one JSON object a line", 'j', OPTION_FLAG, &options.json},
        {"coverage", NULL, "print which rules and lines no example reaches", 0, OPTION_FLAG, &options.cover},
        {"coverage-min", "PERCENT", "fail if the examples run fewer lines", 0, OPTION_NUMBER,
         &options.coverage_min},
        {"watch", NULL, "run again after every change", 'w', OPTION_FLAG, &options.watch},
        LOCAL_OPTIONS(&options.local),
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    options.places = (const char *const *)argv;
    options.place_count = argc;
    options.cover |= options.coverage_min > 0;
    return options.watch ? test_watch(&options, test_all) : test_all(&options);
}

const struct command command_test = {
    .name = "test",
    .operands = "[DIR|FILE]…",
    .summary = "run the examples of policies",
    .about =
        "Loads the policies of each DIR (default ./policies), or each FILE alone, and runs every example\n"
        "through the gate, as the daemon does before it serves a new generation.",
    .exits = "  0  every example holds\n"
             "  1  one fails, a file does not load, --only matches nothing, or coverage is too low\n"
             "  2  usage",
    .example = "  toolgate test policies\n"
               "  toolgate test policies --coverage --watch\n"
               "  toolgate test policies/get_events.lua --only limit -v",
    .most = 1000,
    .run = run,
};
