/* toolgate test: the examples of policies, one line each. */
#include "base/arena.h"
#include "cli/local.h"
#include "cli/say.h"
#include "gate/examples.h"
#include "json/write.h"
#include "gate/load.h"

#include <stdio.h>

struct tally {
    size_t passed, failed;
    bool all, json; /* -v: expected and got of each; --json */
};

static void print_line(const struct example_outcome *outcome)
{
    bool passed = outcome->passed;
    printf("%s%s%s  " STR_FMT ": " STR_FMT " %s(%lld µs)%s\n", say_colour(passed ? SAY_GREEN : SAY_RED),
           passed ? "ok  " : "FAIL", say_colour(SAY_PLAIN), STR_ARG(outcome->policy->name),
           STR_ARG(outcome->example->name), say_colour(SAY_DIM), (long long)outcome->us,
           say_colour(SAY_PLAIN));
}

static void print_details(const struct example_outcome *outcome)
{
    printf("      " STR_FMT ":%d\n      expected\n", STR_ARG(outcome->policy->file), outcome->example->line);
    say_indented(outcome->expected, 8);
    printf("      got\n");
    say_indented(outcome->got, 8);
}

static void print_json(const struct example_outcome *outcome)
{
    struct buf line = {0};
    struct json_out out = json_out(&line);
    json_open(&out, '{');
    json_key(&out, "tool");
    json_put_str(&out, outcome->policy->name);
    json_key(&out, "example");
    json_put_str(&out, outcome->example->name);
    json_key(&out, "file");
    json_put_str(&out, outcome->policy->file);
    json_key(&out, "line");
    json_put_int(&out, outcome->example->line);
    json_key(&out, "passed");
    json_put_bool(&out, outcome->passed);
    json_key(&out, "expected");
    json_put_str(&out, outcome->expected);
    json_key(&out, "got");
    json_put_str(&out, outcome->got);
    json_key(&out, "us");
    json_put_int(&out, outcome->us);
    json_close(&out, '}');
    printf(STR_FMT "\n", STR_ARG(buf_view(&line)));
    buf_clear(&line);
}

static void seen(void *owner, const struct example_outcome *outcome)
{
    struct tally *tally = owner;
    *(outcome->passed ? &tally->passed : &tally->failed) += 1;
    if (tally->json) {
        print_json(outcome);
        return;
    }
    print_line(outcome);
    if (tally->all || !outcome->passed)
        print_details(outcome);
}

/* Failed examples were printed as they were seen; the report repeats them. */
static int finish(struct tally *tally, struct generation_report *report)
{
    bool failed = report->error_count > 0;
    if (tally->failed)
        report->error_count = 0;
    local_say(report);
    if (!tally->json)
        printf("%zu passed, %zu failed\n", tally->passed, tally->failed);
    return failed ? CLI_NO : CLI_YES;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct local_options options = {0};
    struct tally tally = {0};
    int status;
    const struct cli_option table[] = {
        {"verbose", NULL, "what was expected and got, also where they agree", 'v', OPTION_FLAG, &tally.all},
        {"json", NULL, "one JSON object an example", 'j', OPTION_FLAG, &tally.json},
        LOCAL_OPTIONS(&options),
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (argc)
        options.policies = argv[0];
    struct arena *arena = arena_new();
    struct generation_report report;
    struct generation *generation;
    struct config_sources sources = local_sources(&options, NULL);
    generation_report_init(&report, arena);
    report.example_seen = seen;
    report.example_owner = &tally;
    load_generation(&sources, 1, &generation, &report);
    status = finish(&tally, &report);
    generation_unref(generation);
    arena_free(arena);
    return status;
}

const struct command command_test = {
    .name = "test",
    .operands = "[DIR]",
    .summary = "run the policies' examples",
    .about = "Loads the policies in DIR (default ./policies) and plays every example through the gate, as\n"
             "the daemon does before a generation goes live.",
    .exits = "  0  every example holds\n"
             "  1  one fails, or a file does not load\n"
             "  2  usage",
    .example = "  toolgate test policies\n"
               "  toolgate test policies -v",
    .most = 1,
    .run = run,
};
