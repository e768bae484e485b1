/* Connects, sends one request, reads its reply. */
#include "cli/rpc_call.h"

#include "base/arena.h"
#include "cli/daemon_client.h"
#include "cli/term.h"
#include "cli/print.h"

int rpc_call(const struct command *command, const char *socket, const char *method, struct str params,
             rpc_call_handler *handle, void *owner)
{
    struct arena *arena = arena_new();
    struct daemon_client *client = NULL;
    struct json answer;
    struct why why;
    int status = CLI_ERROR;
    enum err err = daemon_client_connect(socket, &client, &why);
    if (err == OK)
        err = daemon_client_call(client, arena, method, params, &answer, &why);
    if (err == OK)
        status = handle(owner, &answer);
    else
        term_error(command->name, "%s", why.text);
    daemon_client_close(client);
    arena_free(arena);
    return status;
}

int rpc_call_print_json(void *owner, const struct json *answer)
{
    (void)owner;
    print_json_line(answer);
    return CLI_OK;
}
