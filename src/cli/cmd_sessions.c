/*
 * toolgate sessions: lists the sessions that the daemon served last, and which agents are stuck.
 * Names of sessions and tools come from clients: they are printed without control characters.
 */
#include "base/buf.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/rpc_call.h"
#include "cli/term.h"
#include "json/write.h"

#include <pwd.h>
#include <stdio.h>

#define NAME_COLUMNS 40u
#define USER_COLUMNS 16u
#define TOOL_COLUMNS 40u

struct sessions_options {
    const char *socket, *sort;
    unsigned limit;
    bool loops, json;
};

static unsigned put_clipped(struct str text, unsigned columns)
{
    struct buf clipped = {0};
    unsigned used = term_clip(&clipped, text, columns);
    fwrite(clipped.at, 1, clipped.len, stdout);
    buf_clear(&clipped);
    return used;
}

/* Whose session it is: in a shared namespace, everybody's. */
static struct str user_of(const struct json *session, char text[32])
{
    int64_t uid;
    if (!json_int(json_get_text(session, "uid"), &uid))
        return STR_LIT("-");
    const struct passwd *entry = getpwuid((uid_t)uid);
    if (entry)
        return str_of(entry->pw_name);
    snprintf(text, 32, "%lld", (long long)uid);
    return str_of(text);
}

static void put_cell(struct str text, unsigned columns)
{
    unsigned used = put_clipped(text, columns);
    printf("%*s  ", (int)(columns - used), "");
}

/* How many columns a list needs: as many as its longest text, at most `most`. */
static unsigned widest(const struct json *list, unsigned least, unsigned most,
                       struct str (*text)(const struct json *, char *))
{
    unsigned columns = least;
    for (uint32_t i = 0; i < list->len; i++) {
        char room[32];
        struct buf clipped = {0};
        unsigned used = term_clip(&clipped, text(&list->items[i], room), most);
        columns = used > columns ? used : columns;
        buf_clear(&clipped);
    }
    return columns;
}

static struct str name_of(const struct json *session, char *room)
{
    (void)room;
    return json_str(json_get_text(session, "session"));
}

static void put_loop(const struct json *loop)
{
    struct str tool = json_str(json_get_text(loop, "tool")), code = json_str(json_get_text(loop, "code"));
    if (!loop)
        return;
    printf("  ");
    put_clipped(tool.len ? tool : STR_LIT("a tool"), TOOL_COLUMNS);
    printf(", %lld times", (long long)print_number(loop, "times"));
    if (code.len)
        printf(", %srefused%s [" STR_FMT "]", term_colour(TERM_RED), term_colour(TERM_PLAIN), STR_ARG(code));
}

static void print_summary(const struct json *answer, const struct sessions_options *options, uint32_t shown)
{
    long long known = print_number(answer, "known"), most = print_number(answer, "most");
    printf("\n%lld session%s, %lld in a loop, %lld call%s refused", known, known == 1 ? "" : "s",
           (long long)print_number(answer, "in_loop"), (long long)print_number(answer, "refusals"),
           print_number(answer, "refusals") == 1 ? "" : "s");
    if (known == most)
        printf("; the daemon remembers the last %lld", most);
    if (str_is(json_str(json_get_text(answer, "engine")), "redis"))
        printf("; of this daemon alone: each of the fleet lists those that it served");
    putchar('\n');
    long long listed = options->loops ? (long long)print_number(answer, "in_loop") : known;
    if (shown < listed)
        printf("%lld more: --limit %lld\n", listed - shown, listed);
    if (shown)
        printf("one of them: %s session ID%s%s\n", term_program_name(), options->socket ? " --socket " : "",
               options->socket ? options->socket : "");
}

static int print_sessions(void *owner, const struct json *answer)
{
    const struct json *list = json_get_text(answer, "sessions");
    if (!json_is(list, JSON_ARRAY) || !list->len) {
        printf("%s\n",
               print_number(answer, "known") ? "no session is in a loop" : "no session has made a call yet");
        return CLI_OK;
    }
    unsigned names = widest(list, 7, NAME_COLUMNS, name_of), users = widest(list, 4, USER_COLUMNS, user_of);
    printf("%s%-*s  %-*s  %-12s %5s %7s %8s  %s%s\n", term_colour(TERM_BOLD), (int)names, "SESSION",
           (int)users, "USER", "LAST CALL", "TURN", "CALLS", "REFUSED", "IN A LOOP", term_colour(TERM_PLAIN));
    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *s = &list->items[i];
        char room[32], ago[TERM_AGO_BYTES];
        put_cell(name_of(s, room), names);
        put_cell(user_of(s, room), users);
        printf("%-12s %5lld %7lld %8lld", term_ago(print_number(s, "last_ms"), ago),
               (long long)print_number(s, "turn"), (long long)print_number(s, "calls"),
               (long long)print_number(s, "refusals"));
        put_loop(json_get_text(s, "loop"));
        putchar('\n');
    }
    print_summary(answer, owner, list->len);
    return CLI_OK;
}

static void put_params(struct buf *params, const struct sessions_options *options)
{
    struct json_out out = json_out(params);
    json_open(&out, '{');
    if (options->sort)
        json_field_text(&out, "sort", options->sort);
    if (options->loops)
        json_field_bool(&out, "loops", true);
    if (options->limit)
        json_field_int(&out, "limit", options->limit);
    json_close(&out, '}');
}

/* Before anything is asked: a daemon that is away must not hide it. */
static bool check_sort(const struct command *command, const char *sort)
{
    if (!sort || strcmp(sort, "recent") == 0 || strcmp(sort, "refusals") == 0 || strcmp(sort, "calls") == 0)
        return true;
    term_error(command->name, "--sort: expected recent, refusals or calls, got '%s'", sort);
    return false;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct sessions_options options = {0};
    int status;
    const struct cli_option table[] = {
        {"loops", NULL, "only sessions whose last call is in a loop", 'l', OPTION_FLAG, &options.loops},
        {"sort", "recent|refusals|calls", "which come first (default recent)", 0, OPTION_STRING,
         &options.sort},
        {"limit", "N", "how many at most (default 50, at most 1000)", 'n', OPTION_NUMBER, &options.limit},
        SOCKET_OPTION(&options.socket),
        {"json", NULL, "print JSON", 'j', OPTION_FLAG, &options.json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (!check_sort(command, options.sort))
        return CLI_ERROR;
    struct buf params = {0};
    put_params(&params, &options);
    status = rpc_call(command, options.socket, "toolgate/sessions", buf_view(&params),
                      options.json ? rpc_call_print_json : print_sessions, &options);
    buf_clear(&params);
    return status;
}

const struct command command_sessions = {
    .name = "sessions",
    .operands = "",
    .summary = "list the sessions, and which are in a loop",
    .about =
        "Lists the sessions that the daemon served last (at most 1024), for root and the daemon's user: the\n"
        "time of the last call, the turn, calls that were let run (by all daemons on one Redis), calls that\n"
        "this daemon refused, and the loop that the last call is in: made 3 times without anything new, or\n"
        "refused for it.",
    .exits = "  0  the daemon answered\n"
             "  2  usage, no daemon, another user's daemon",
    .example = "  toolgate sessions --loops\n"
               "  toolgate sessions --sort refusals --limit 10",
    .run = run,
};
