/* toolgate session: what the ledger knows of a conversation, and a person's way to end a run. */
#include "cli/ask.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/show.h"
#include "json/write.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void print_time(const struct json *at_ms)
{
    int64_t ms = 0;
    char stamp[32] = "";
    if (!json_int(at_ms, &ms))
        return;
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    localtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
    printf("  %s", stamp);
}

/* "  2026-11-21 10:00:00  turn 2  get_events  ok  {"action":"by_ids"}" */
static void print_entry(const struct json *entry)
{
    int64_t turn = 0;
    struct str tool = json_str(json_get_text(entry, "tool")), class = json_str(json_get_text(entry, "class"));
    struct str code = json_str(json_get_text(entry, "code"));
    const struct json *args = json_get_text(entry, "args");
    json_int(json_get_text(entry, "turn"), &turn);
    print_time(json_get_text(entry, "at_ms"));
    printf("  turn %lld  %s" STR_FMT "%s  " STR_FMT, (long long)turn, say_colour(SAY_BOLD), STR_ARG(tool),
           say_colour(SAY_PLAIN), STR_ARG(class));
    if (code.len && !str_eq(code, class))
        printf(" " STR_FMT, STR_ARG(code));
    printf(args ? "  " : "\n");
    if (args)
        show_json(args);
}

static void print_history(const struct json *history)
{
    if (!json_is(history, JSON_ARRAY) || !history->len) {
        printf("no calls\n");
        return;
    }
    printf("%scalls, oldest first%s\n", say_colour(SAY_BOLD), say_colour(SAY_PLAIN));
    for (size_t i = 0; i < history->len; i++)
        print_entry(&history->items[i]);
}

static int print_session(void *owner, const struct json *answer)
{
    (void)owner;
    for (size_t i = 0; answer->type == JSON_OBJECT && i < answer->len; i++)
        if (!str_is(answer->members[i].key, "history"))
            show_member(&answer->members[i], 0);
    print_history(json_get_text(answer, "history"));
    return CLI_YES;
}

static int print_done(void *owner, const struct json *answer)
{
    (void)answer;
    printf("%s\n", (const char *)owner);
    return CLI_YES;
}

struct wish {
    const char *user, *reset; /* NULL: not given */
    bool forget;
};

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
    json_key(&out, "session");
    json_put_text(&out, id);
    if (wish->user) {
        int64_t uid;
        if (!find_user(wish->user, &uid))
            return false;
        json_key(&out, "uid");
        json_put_int(&out, uid);
    }
    if (wish->reset) {
        json_key(&out, "reset");
        json_put_text(&out, wish->reset);
    }
    if (wish->forget) {
        json_key(&out, "forget");
        json_put_bool(&out, true);
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
        {"reset", "TOOL", "end the loop run and budgets of one tool: it may be called again", 0, OPTION_TEXT,
         &wish.reset},
        {"forget", NULL, "forget the session as a whole", 0, OPTION_FLAG, &wish.forget},
        {"user", "NAME", "another user's session (for root and the daemon's user)", 'u', OPTION_TEXT,
         &wish.user},
        {"socket", "PATH", "the daemon's socket (default $XDG_RUNTIME_DIR/toolgate.sock)", 's', OPTION_TEXT,
         &socket},
        {"json", NULL, "as JSON", 'j', OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (wish.reset && wish.forget) {
        say_error(command->name, "--reset and --forget: choose one; --forget covers every tool");
        return CLI_TROUBLE;
    }
    struct buf params = {0};
    ask_answered *answered = json ? ask_print_json : wish.reset || wish.forget ? print_done : print_session;
    const char *done = wish.reset ? "reset" : "forgotten";
    status = CLI_TROUBLE;
    if (put_params(&params, argv[0], &wish))
        status = ask_daemon(command, socket, "toolgate/session", buf_view(&params), answered, (void *)done);
    else
        say_error(command->name, "--user: no such user on this host: '%s'", wish.user);
    buf_clear(&params);
    return status;
}

const struct command command_session = {
    .name = "session",
    .operands = "ID",
    .summary = "what the ledger knows of a conversation",
    .about = "History, budgets and facts of a session of this user, as the daemon's ledger has them. A\n"
             "person can end a run of refusals with --reset, or all memory of the session with --forget.",
    .exits = "  0  the session is on stdout, or was reset\n"
             "  2  usage, no daemon, no such session",
    .example = "  toolgate session chat-7\n"
               "  toolgate session chat-7 --reset search_orders",
    .least = 1,
    .most = 1,
    .run = run,
};
