/*
 * The options of a subcommand as a table: getopt_long reads them, --help
 * prints them, and errors name the closest one.
 */
#ifndef TOOLGATE_CLI_OPTIONS_H
#define TOOLGATE_CLI_OPTIONS_H

#include "cli/command.h"

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_MAX      24u /* of one subcommand */
#define OPTIONS_LIST_MAX 64u /* of one repeated option */

enum cli_option_kind { OPTION_FLAG, OPTION_STRING, OPTION_LIST, OPTION_NUMBER };

struct cli_list {
    const char *items[OPTIONS_LIST_MAX];
    size_t count;
};

struct cli_option {
    const char *name;     /* NULL ends the table */
    const char *argument; /* "PATH", or all its values: "text|json"; NULL for a flag */
    const char *words;    /* NULL: not in --help */
    char letter;          /* 0: none */
    enum cli_option_kind kind;
    void *target; /* bool, const char *, struct cli_list, unsigned */
};

/* A row for commands that talk to a daemon. */
// clang-format off
#define SOCKET_OPTION(target) \
    {"socket", "PATH", "the daemon's socket (default $XDG_RUNTIME_DIR/toolgate.sock)", 's', OPTION_STRING, target}
// clang-format on

/*
 * Reads options into their targets and leaves the operands in argc and argv.
 * False: the command ends with the exit code `*status`, after --help or an
 * error on stderr.
 */
bool options_read(const struct command *command, const struct cli_option *options, int *argc, char ***argv,
                  int *status);

#endif
