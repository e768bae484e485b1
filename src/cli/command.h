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

struct command {
    const char *name, *summary; /* "check"; NULL: its file in lua/cli has it */
    int (*run)(const struct command *command, int argc, char **argv);
    const char *group; /* a heading of --help that begins here; NULL: none */
};

struct command_table {
    const char *program, *summary; /* "toolgate"; a sentence for --help */
    const struct command *const *commands;
    size_t count;
};

/* That of the program that runs: see command_main. */
const struct command_table *command_table(void);
const struct command *command_running(void); /* NULL: none */

/* The whole of main(): finds the subcommand, or prints --help, --version or the closest name, and returns the
 * exit code. Output that could not be written to stdout is an error. */
int command_main(const struct command_table *table, int argc, char **argv);

/* ---- commands that are declared in lua/cli: a file each, which declares name, options and text once, and
 * runs them. Their state is an operator's, with Lua's own libraries; policies run in sandbox/. ---- */

/* The `run` of such a row. */
int lua_command_run(const struct command *command, int argc, char **argv);

/* The line for --help, out of the command's file. */
struct str lua_command_summary(const char *name);

#endif
