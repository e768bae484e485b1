/*
 * The options of a subcommand as a table: getopt_long reads them, --help
 * prints them, and errors name the closest one.
 */
#ifndef TOOLGATE_BENCH_OPTIONS_H
#define TOOLGATE_BENCH_OPTIONS_H

#include "cli/command.h"

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_MAX 24u /* of one subcommand */

enum cli_option_kind { OPTION_FLAG, OPTION_STRING, OPTION_NUMBER };

struct cli_option {
    const char *name;     /* NULL ends the table */
    const char *argument; /* "PATH", or all its values: "text|json"; NULL for a flag */
    const char *words;    /* NULL: not in --help */
    char letter;          /* 0: none */
    enum cli_option_kind kind;
    void *target; /* bool, const char *, unsigned */
};

/* What --help prints beside the name and the options. */
struct cli_help {
    const char *about, *exits, *example; /* a paragraph; a line a code; lines that can be typed */
};

/* Reads options into their targets. False: the command ends with the exit code `*status`, after --help or an
 * error on stderr. */
bool options_read(const struct command *command, const struct cli_help *help,
                  const struct cli_option *options, int argc, char **argv, int *status);

#endif
