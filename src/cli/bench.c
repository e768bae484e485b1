/* toolgate bench: what is measured, by its name, and the options of all of it. */
#include "cli/bench.h"

#include "cli/options.h"
#include "cli/term.h"

#include <string.h>

static const struct bench_kind {
    const char *name;
    int (*run)(const struct command *command, const struct bench_options *options);
} kinds[] = {
    {"socket", bench_socket},
    {"policy", bench_policy},
    {"schema", bench_schema},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int run(const struct command *command, int argc, char **argv)
{
    struct bench_options options = {.seconds = 3, .policies = BENCH_POLICIES};
    int status;
    const struct cli_option table[] = {
        {"connections", "N", "socket: connections (default: 16)", 0, OPTION_NUMBER, &options.connections},
        {"depth", "N", "socket: requests in flight on each (default: 1, then 16)", 0, OPTION_NUMBER,
         &options.depth},
        {"policies", "N", "policy: how many are loaded for their memory (default: 10000)", 0, OPTION_NUMBER,
         &options.policies},
        {"seconds", "S", "socket: for each line of the result; policy: for all (default: 3)", 0,
         OPTION_NUMBER, &options.seconds},
        {"redis", "URL", "socket: the judging daemon keeps its ledger there", 0, OPTION_STRING,
         &options.redis},
        {"json", NULL, "one JSON object", 'j', OPTION_FLAG, &options.json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    options.workload = argc > 1 ? argv[1] : NULL;
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(argv[0], kinds[i].name) == 0)
            return kinds[i].run(command, &options);
    term_error(command->name, "expected 'socket', 'policy' or 'schema', got '%s'", argv[0]);
    return CLI_ERROR;
}

const struct command command_bench = {
    .name = "bench",
    .operands = "socket|policy|schema [FILE]",
    .summary = "measure verdicts, policies and schemas on this machine",
    .about =
        "socket: starts two daemons of its own in a temporary folder, one that judges and one that\n"
        "echoes each line, and loads them in turn: toolgate/check (schema, rules, check, local ledger)\n"
        "and tools/call (the same, run and settled). Every answer must be a pass.\n"
        "\n"
        "policy: what hooks cost in this process, beside a hook that does nothing: six arguments\n"
        "handed to Lua and read back, rules, a policy of twenty lines, a check of a call with and\n"
        "without it; and the memory of many policies.\n"
        "\n"
        "schema FILE: valid and invalid calls from their texts, parsed and judged, every problem of the\n"
        "invalid ones written out; and compiling. FILE holds {\"schemas\": {name: schema},\n"
        "\"valid\": [{\"tool\": name, \"text\": \"…\"}], \"invalid\": […]}.\n"
        "\n"
        "Rounds alternate and medians are told. Trust the ratios more than the absolute numbers.",
    .exits = "  0  measured\n"
             "  2  usage, a daemon that did not start, an answer that was not a pass",
    .example = "  toolgate bench socket\n"
               "  toolgate bench socket --connections 16 --depth 16 --seconds 6 --json\n"
               "  toolgate bench policy --policies 1000\n"
               "  toolgate bench schema workload.json",
    .least = 1,
    .most = 2,
    .run = run,
};
