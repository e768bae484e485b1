/* One question to the running daemon, its answer handed to a function, its troubles said. */
#ifndef TOOLGATE_CLI_RPC_CALL_H
#define TOOLGATE_CLI_RPC_CALL_H

#include "base/buf.h"
#include "cli/command.h"
#include "json/value.h"

/* Prints the answer; returns the exit code. `owner` is the caller's. */
typedef int ask_answered(void *owner, const struct json *answer);

/* `socket` NULL: the default one. `params`: JSON text of an object. CLI_TROUBLE, with a complaint, where no
 * answer was had. */
int ask_daemon(const struct command *command, const char *socket, const char *method, struct str params,
               ask_answered *answered, void *owner);

/* An ask_answered for --json: the answer as it came, on one line. */
ask_answered ask_print_json;

#endif
