/* toolgate session: prints a session of the ledger, and resets or deletes it. */
#include "cli/rpc_call.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/session_report.h"
#include "json/write.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES 512u

static int print_session(void *owner, const struct json *answer)
{
    session_report_print(answer, owner);
    return CLI_OK;
}

static int print_done(void *owner, const struct json *answer)
{
    (void)answer;
    printf("%s\n", (const char *)owner);
    return CLI_OK;
}

struct session_options {
    const char *user, *reset; /* NULL: not given */
    bool forget;
};

/* For the printer of the answer: what was done, or the session's name. */
static void describe(char text[TEXT_BYTES], const char *id, const struct session_options *options)
{
    if (options->reset)
        snprintf(text, TEXT_BYTES, "%.200s: %.200s may be called again; its loops and budgets are reset", id,
                 options->reset);
    else if (options->forget)
        snprintf(text, TEXT_BYTES, "%.200s: deleted, with its history, budgets, ids and facts", id);
    else
        snprintf(text, TEXT_BYTES, "%.400s", id);
}

/* False: there is no such user. */
static bool put_params(struct buf *params, const char *id, const struct session_options *options)
{
    struct json_out out = json_out(params);
    json_open(&out, '{');
    json_field_text(&out, "session", id);
    if (options->user) {
        const struct passwd *entry = getpwnam(options->user);
        char *end;
        int64_t uid = entry ? (int64_t)entry->pw_uid : strtoll(options->user, &end, 10);
        if (!entry && (end == options->user || *end || uid < 0))
            return false;
        json_field_int(&out, "uid", uid);
    }
    if (options->reset)
        json_field_text(&out, "reset", options->reset);
    if (options->forget)
        json_field_bool(&out, "forget", true);
    json_close(&out, '}');
    return true;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    struct session_options options = {0};
    bool json = false;
    int status;
    const struct cli_option table[] = {
        {"reset", "TOOL", "reset the loops and budgets of one tool, so that it may be called again", 0,
         OPTION_STRING, &options.reset},
        {"forget", NULL, "delete the whole session", 0, OPTION_FLAG, &options.forget},
        {"user", "NAME", "another user's session (only for root and the daemon's user)", 'u', OPTION_STRING,
         &options.user},
        SOCKET_OPTION(&socket),
        {"json", NULL, "print JSON", 'j', OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (options.reset && options.forget) {
        term_error(command->name, "--reset and --forget: choose one; --forget covers every tool");
        return CLI_ERROR;
    }
    struct buf params = {0};
    rpc_call_handler *print = json                              ? rpc_call_print_json
                              : options.reset || options.forget ? print_done
                                                                : print_session;
    char text[TEXT_BYTES];
    describe(text, argv[0], &options);
    status = CLI_ERROR;
    if (put_params(&params, argv[0], &options))
        status = rpc_call(command, socket, "toolgate/session", buf_view(&params), print, text);
    else
        term_error(command->name, "--user: no such user on this host: '%s'", options.user);
    buf_clear(&params);
    return status;
}

const struct command command_session = {
    .name = "session",
    .operands = "ID",
    .summary = "show a session as the ledger has it",
    .about =
        "Prints the calls of a session of this user with time, turn, step, tool and class, why they were\n"
        "refused, and how to let them go on. --reset ends the refusals of one tool, --forget deletes the\n"
        "session. All daemons on one Redis give the same answer.",
    .exits = "  0  the session is on stdout, or was reset\n"
             "  2  usage, no daemon, no such session",
    .example = "  toolgate session chat-7\n"
               "  toolgate session chat-7 --reset search_orders",
    .least = 1,
    .most = 1,
    .run = run,
};
