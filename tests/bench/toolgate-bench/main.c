/*
 * toolgate-bench: what verdicts and policies cost on this machine, and the Bowtie
 * project's harness. For developers; `make bench` builds and runs it.
 */
#include "cli/command.h"

extern const struct command bench_socket, bench_policy, bench_bowtie;

static const struct command *const commands[] = {&bench_socket, &bench_policy, &bench_bowtie};

int main(int argc, char **argv)
{
    const struct command_table table = {
        .program = "toolgate-bench",
        .summary = "toolgate-bench measures what toolgate's verdicts and policies cost.",
        .commands = commands,
        .count = sizeof(commands) / sizeof(commands[0]),
    };
    return command_main(&table, argc, argv);
}
