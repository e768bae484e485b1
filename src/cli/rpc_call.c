/* One question, one answer. */
#include "cli/rpc_call.h"

#include "base/arena.h"
#include "cli/daemon_client.h"
#include "cli/term.h"
#include "cli/verdict_print.h"

int ask_daemon(const struct command *command, const char *socket, const char *method, struct str params,
               ask_answered *answered, void *owner)
{
    struct arena *arena = arena_new();
    struct client *client = NULL;
    struct json answer;
    struct why why;
    int status = CLI_TROUBLE;
    enum err err = client_connect(socket, &client, &why);
    if (err == OK)
        err = client_ask(client, arena, method, params, &answer, &why);
    if (err == OK)
        status = answered(owner, &answer);
    else
        say_error(command->name, "%s", why.text);
    client_close(client);
    arena_free(arena);
    return status;
}

int ask_print_json(void *owner, const struct json *answer)
{
    (void)owner;
    show_json(answer);
    return CLI_YES;
}
