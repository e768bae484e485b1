/* toolgate status: the running daemon about itself. */
#include "cli/ask.h"
#include "cli/options.h"
#include "cli/show.h"

static int print_tree(void *owner, const struct json *answer)
{
    (void)owner;
    show_tree(answer, 0);
    return CLI_YES;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    bool json = false;
    int status;
    const struct cli_option table[] = {
        {"socket", "PATH", "the daemon's socket (default $XDG_RUNTIME_DIR/toolgate.sock)", 's', OPTION_TEXT,
         &socket},
        {"json", NULL, "as JSON", 'j', OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    return ask_daemon(command, socket, "toolgate/status", str_of("{}"), json ? ask_print_json : print_tree,
                      NULL);
}

const struct command command_status = {
    .name = "status",
    .operands = "",
    .summary = "generation, ledger and counters of the daemon",
    .about = "What the running daemon serves, since when, its ledger, its counters, and what was odd about\n"
             "the tools it loaded.",
    .exits = "  0  the daemon answered\n"
             "  2  usage, no daemon",
    .example = "  toolgate status --json | python3 -m json.tool",
    .run = run,
};
