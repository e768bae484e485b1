/*
 * What a running daemon has loaded, as the file options of a command that loads the same in this process:
 * `toolgate test --socket` and `toolgate new --socket`. The daemon tells its files to root and its own user.
 */
#ifndef TOOLGATE_CLI_DAEMON_FILES_H
#define TOOLGATE_CLI_DAEMON_FILES_H

#include "cli/local_generation.h"

struct arena;

struct daemon_files {
    const char *config, *policies; /* absolute; NULL: it has none */
    struct cli_list tools;         /* absolute, those of the configuration among them */
    bool told;                     /* false: only root and the daemon's user learn them */
};

/* False after an error on stderr: no daemon. */
bool daemon_files_ask(const struct command *command, const char *socket, struct arena *arena,
                      struct daemon_files *files);

/* Completes what the user left out by what the daemon has loaded, with the definitions that its upstreams
 * have listed, in a file that ends with this process. False after an error on stderr. */
bool daemon_files_apply(const struct command *command, const char *socket, struct arena *arena,
                        struct local_options *local);

#endif
