/* toolgate session: what the ledger knows of a conversation, and a person's way to end a run. */
#include "cli/rpc_call.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/session_report.h"
#include "json/write.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#define SAID_BYTES 512u

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

struct wish {
    const char *user, *reset; /* NULL: not given */
    bool forget;
};

/* What the answer's printer is given: the sentence about what was done, or the session's name. */
static void say_what_is_done(char said[SAID_BYTES], const char *id, const struct wish *wish)
{
    if (wish->reset)
        snprintf(said, SAID_BYTES, "%.200s: %.200s may be called again, its runs and budgets begin anew", id,
                 wish->reset);
    else if (wish->forget)
        snprintf(said, SAID_BYTES, "%.200s: forgotten, with its history, budgets, ids and facts", id);
    else
        snprintf(said, SAID_BYTES, "%.400s", id);
}

/* By name or number. */
static bool find_user(const char *name, int64_t *uid)
{
    const struct passwd *entry = getpwnam(name);
    char *end;
    *uid = entry ? (int64_t)entry->pw_uid : strtoll(name, &end, 10);
    return entry || (end != name && *end == '\0' && *uid >= 0);
}

static bool put_params(struct buf *params, const char *id, const struct wish *wish)
{
    struct json_out out = json_out(params);
    json_open(&out, '{');
    json_field_text(&out, "session", id);
    if (wish->user) {
        int64_t uid;
        if (!find_user(wish->user, &uid))
            return false;
        json_field_int(&out, "uid", uid);
    }
    if (wish->reset) {
        json_field_text(&out, "reset", wish->reset);
    }
    if (wish->forget) {
        json_field_bool(&out, "forget", true);
    }
    json_close(&out, '}');
    return true;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    struct wish wish = {0};
    bool json = false;
    int status;
    const struct cli_option table[] = {
        {"reset", "TOOL", "end the loop run and budgets of one tool: it may be called again", 0,
         OPTION_STRING, &wish.reset},
        {"forget", NULL, "forget the session as a whole", 0, OPTION_FLAG, &wish.forget},
        {"user", "NAME", "another user's session (for root and the daemon's user)", 'u', OPTION_STRING,
         &wish.user},
        SOCKET_OPTION(&socket),
        {"json", NULL, "as JSON", 'j', OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (wish.reset && wish.forget) {
        term_error(command->name, "--reset and --forget: choose one; --forget covers every tool");
        return CLI_ERROR;
    }
    struct buf params = {0};
    rpc_call_handler *answered = json                        ? rpc_call_print_json
                                 : wish.reset || wish.forget ? print_done
                                                             : print_session;
    char said[SAID_BYTES];
    say_what_is_done(said, argv[0], &wish);
    status = CLI_ERROR;
    if (put_params(&params, argv[0], &wish))
        status = rpc_call(command, socket, "toolgate/session", buf_view(&params), answered, said);
    else
        term_error(command->name, "--user: no such user on this host: '%s'", wish.user);
    buf_clear(&params);
    return status;
}

const struct command command_session = {
    .name = "session",
    .operands = "ID",
    .summary = "what the ledger knows of a conversation",
    .about =
        "What happened in a session of this user, as the ledger has it: its calls with time, turn, step,\n"
        "tool and class, why they were refused, and what lets them go on. A person can end a run of\n"
        "refusals with --reset, or all memory of the session with --forget. Any daemon on the same Redis\n"
        "tells the same.",
    .exits = "  0  the session is on stdout, or was reset\n"
             "  2  usage, no daemon, no such session",
    .example = "  toolgate session chat-7\n"
               "  toolgate session chat-7 --reset search_orders",
    .least = 1,
    .most = 1,
    .run = run,
};
