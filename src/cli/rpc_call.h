/* One request to the running daemon. */
#ifndef TOOLGATE_CLI_RPC_CALL_H
#define TOOLGATE_CLI_RPC_CALL_H

#include "base/buf.h"
#include "cli/command.h"
#include "json/value.h"

/* Prints the result; returns the exit code. */
typedef int rpc_call_handler(void *owner, const struct json *answer);

/* `socket` NULL: the default one. `params`: an object as JSON. `handle` fires at most once, inside the call.
 * Without a result: CLI_ERROR after an error on stderr. */
int rpc_call(const struct command *command, const char *socket, const char *method, struct str params,
             rpc_call_handler *handle, void *owner);

/* The same for a handler that prints for people: strings of servers, models and other users have no character
 * in them that a terminal would obey or hide; their lines stay lines. */
int rpc_call_text(const struct command *command, const char *socket, const char *method, struct str params,
                  rpc_call_handler *handle, void *owner);

#endif
