/* A subcommand as a row of a program's table. Those of toolgate are declared in lua/cli; their table is in
 * main.c, that of the bench program in tests/bench/toolgate-bench/main.c. */
#ifndef TOOLGATE_CLI_COMMAND_H
#define TOOLGATE_CLI_COMMAND_H

#include "base/str.h"

#include <stddef.h>

/* Exit codes, the same for every subcommand; --help says what "no" means there. */
enum cli_exit {
    CLI_OK = 0,   /* done; the call passes; all examples hold */
    CLI_NO = 1,   /* the answer is no: refused, failed */
    CLI_ERROR = 2 /* there is no answer: usage, a file that does not load, no daemon */
};

/* Runs a command that is declared in Lua, with what it was given: see command_given. Returns the exit code.
 */
typedef int command_start(char *const *given);
extern command_start serve_start, connect_start, spawner_start; /* cmd_NAME.c */

struct command {
    const char *name, *summary; /* "check"; NULL: its file in lua/cli has it */
    int (*run)(const struct command *command, int argc, char **argv);
    command_start *start; /* NULL: its file in lua/cli runs it */
};

struct command_table {
    const char *program, *summary; /* "toolgate"; a sentence for --help */
    const struct command *const *commands;
    size_t count;
};

/* That of the program that runs: see command_main. */
const struct command_table *command_table(void);

/* The whole of main(): finds the subcommand, or prints --help, --version or the closest name, and returns the
 * exit code. Output that could not be written to stdout is an error. */
int command_main(const struct command_table *table, int argc, char **argv);

/* What command_start gets: the name of an option, its value, another name, …, NULL. An operand has the name
 * "", a flag the value "true". Returns the value of the `nth` option of that name, from 0; NULL: there are no
 * more.
 */
const char *command_given(char *const *given, const char *name, size_t nth);

#endif
