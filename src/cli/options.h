/*
 * Options of a subcommand as a table: it is read by getopt_long, printed by
 * --help, and searched for the closest name when one is mistyped.
 */
#ifndef TOOLGATE_CLI_OPTIONS_H
#define TOOLGATE_CLI_OPTIONS_H

#include "cli/command.h"

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_MAX      24u /* of one subcommand */
#define OPTIONS_LIST_MAX 64u /* how often one option may be repeated */

enum cli_option_kind { OPTION_FLAG, OPTION_STRING, OPTION_LIST, OPTION_NUMBER };

struct cli_list {
    const char *items[OPTIONS_LIST_MAX];
    size_t count;
};

struct cli_option {
    const char *name;     /* NULL ends the table */
    const char *argument; /* "PATH"; NULL for a flag */
    const char *words;    /* NULL: not shown in --help */
    char letter;          /* 0: none */
    enum cli_option_kind kind;
    void *target; /* bool, const char *, struct cli_list, unsigned */
};

/*
 * Reads options into their targets and leaves the operands in argc and argv.
 * False: the command is over, after --help or with a complaint on stderr, and
 * `*status` is its exit code.
 */
bool options_read(const struct command *command, const struct cli_option *options, int *argc, char ***argv,
                  int *status);

#endif
