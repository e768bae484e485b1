/* The options of a subcommand as a table. */
#ifndef TOOLGATE_BENCH_OPTIONS_H
#define TOOLGATE_BENCH_OPTIONS_H

#include "cli/command.h"

#include <stdbool.h>

#define OPTIONS_MAX 8u /* of one subcommand */
#define SECONDS_MAX 100000u

struct cli_option {
    const char *name;     /* NULL ends the table */
    const char *argument; /* "PATH"; NULL for a flag */
    const char *words;    /* for --help */
    void *target;         /* bool, const char *, unsigned */
    unsigned most;        /* of a number, from 1; 0: it is no number */
};

/* Reads options into their targets; `about` is printed by --help. Ends the program after --help or an error.
 */
void options_read(const struct command *command, const char *about, const struct cli_option *options,
                  int argc, char **argv);

#endif
