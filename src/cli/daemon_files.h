/*
 * What a running daemon has loaded, as the file options of a command that loads the same in this process:
 * `toolgate test --socket`. The daemon tells its files to root and its own user.
 */
#ifndef TOOLGATE_CLI_DAEMON_FILES_H
#define TOOLGATE_CLI_DAEMON_FILES_H

#include "cli/local_generation.h"

struct arena;

/* Completes what the user left out by what the daemon has loaded, with the definitions that its upstreams
 * have listed, in a file that ends with this process. False after an error on stderr. */
bool daemon_files_apply(const struct command *command, const char *socket, struct arena *arena,
                        struct local_options *local);

#endif
