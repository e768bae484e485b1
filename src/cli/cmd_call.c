/* toolgate call: one tools/call through the daemon; prints what the model reads. */
#include "base/arena.h"
#include "cli/rpc_call.h"
#include "cli/json_input.h"
#include "cli/options.h"
#include "cli/print.h"

#include <unistd.h>

static int print_result(void *owner, const struct json *answer)
{
    if (*(const bool *)owner)
        print_json_line(answer);
    else
        print_content(json_get_text(answer, "content"));
    return json_is_true(json_get_text(answer, "isError")) ? CLI_NO : CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    struct json_input_meta meta = {0};
    bool json = false;
    int status;
    const struct cli_option table[] = {
        SOCKET_OPTION(&socket),
        {"session", "ID", "the session of the call", 0, OPTION_STRING, &meta.session},
        {"turn", "N", "the user turn of the call", 0, OPTION_NUMBER, &meta.turn},
        {"goal", "TEXT", "the user's request, in words", 0, OPTION_STRING, &meta.goal},
        {"context", "JSON", "what the agent's program says of the call: call.context", 0, OPTION_STRING,
         &meta.context_text},
        {"json", NULL, "print the whole result as JSON", 'j', OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct arena *arena = arena_new();
    struct json arguments;
    status = CLI_ERROR;
    if (json_input_arguments(command, arena, argv[1], &arguments) &&
        json_input_context(command, arena, &meta))
        status =
            (json || !isatty(STDOUT_FILENO)
                 ? rpc_call
                 : rpc_call_text)(/* a file gets the bytes as sent */
                                  command, socket, "tools/call",
                                  json_input_call(arena, argv[0], &arguments, &meta), print_result, &json);
    arena_free(arena);
    return status;
}

const struct command command_call = {
    .name = "call",
    .operands = "TOOL [JSON]",
    .summary = "call a tool through the daemon",
    .about =
        "Sends one tools/call and prints what the model reads: the result, or the feedback of a call that\n"
        "did not pass. JSON is the object of arguments; - reads it from stdin.",
    .exits = "  0  the tool ran and its result passed\n"
             "  1  the call did not pass: the feedback is on stdout\n"
             "  2  usage, arguments that are not JSON, no daemon",
    .example = "  toolgate call search_orders '{\"customer_id\": \"cust-7\"}' --session me",
    .least = 1,
    .most = 2,
    .run = run,
};
