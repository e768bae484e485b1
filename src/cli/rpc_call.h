/* One question to the running daemon, its answer handed to a function, its troubles said. */
#ifndef TOOLGATE_CLI_RPC_CALL_H
#define TOOLGATE_CLI_RPC_CALL_H

#include "base/buf.h"
#include "cli/command.h"
#include "json/value.h"

/* Prints the answer; returns the exit code. `owner` is the caller's. */
typedef int rpc_call_handler(void *owner, const struct json *answer);

/* `socket` NULL: the default one. `params`: JSON text of an object. CLI_ERROR, with a complaint, where no
 * answer was had. */
int rpc_call(const struct command *command, const char *socket, const char *method, struct str params,
             rpc_call_handler *answered, void *owner);

/* An rpc_call_handler for --json: the answer as it came, on one line. */
rpc_call_handler rpc_call_print_json;

#endif
