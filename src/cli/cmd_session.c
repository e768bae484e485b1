/*
 * toolgate session: prints a session of the ledger, and resets or deletes it.
 * Strings of models and upstreams are printed without control characters,
 * which could control the terminal.
 */
#include "base/printable.h"
#include "cli/rpc_call.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/term.h"
#include "json/write.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES     512u
#define TOOL_WIDTH_MAX 40u
#define CLASS_WIDTH    17u /* of the longest */

/* ---- reasons ---- */

struct reason {
    const char *word, *why;
    bool resets; /* --reset ends this refusal */
};

/* By the code of a refusal, else by the class. */
static const struct reason reasons[] = {
    {"retry_budget_exceeded", "invalid too often", true},
    {"same_call", "this call was made as often as its budget allows", true},
    {"loop", "the same call keeps giving the same result", true},
    {"cycle", "the same few calls repeat, with the same results", true},
    {"transient_budget", "transient failures, as often as they are retried", true},
    {"duplicate_in_step", "a duplicate of another call in the same message", true},
    {"writes_per_turn", "more different writes in the turn than are remembered", false},
    {"same_failure", "it kept failing with the same error", true},
    {"already_broken", "its last result did not match its schema", true},
    {"poll_budget", "polled more often than loop.poll.max allows", true},
    {"too_soon", "polled sooner than loop.poll.every allows", true},
    {"calls_per_turn", "limits.calls_per_turn is used up", false},
    {"calls_per_session", "limits.calls_per_session is used up", false},
    {"cost_per_turn", "limits.cost_per_turn is used up", false},
    {"cost_per_session", "limits.cost_per_session is used up", false},
    {"seconds_per_turn", "limits.seconds_per_turn is used up", false},
    {"llm_gave_up", "the model did not repair it in its turn", false},
    {"unknown_tool", "there is no such tool", false},
    {"forbidden", "this user may not call it", false},
    {"fabricated_id", "an id that was not seen", false},
    {"policy_error", "its policy failed", false},
    {"unavailable", "what runs it was not available", false},
    {"schema_mismatch", "its result does not match its output schema", false},
    {"semantic_garbage", "its result is useless", false},
    {"transient", "transient failure", false},
    {"tool_error", "it ran and returned an error", false},
    {"refused", "its policy refused it", false},
    {"unknown", "no result was reported", false},
};

static const struct reason *reason_of(const struct json *entry)
{
    static const struct reason none = {"", "", false};
    struct str code = json_str(json_get_text(entry, "code"));
    struct str word = code.len ? code : json_str(json_get_text(entry, "class"));
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (str_is(word, reasons[i].word))
            return &reasons[i];
    return &none;
}

/* ---- pieces ---- */

/* On one line; rpc_call_text has made the rest of it fit for a terminal. */
static void put_text(struct str text)
{
    struct buf line = {0};
    printable_write(&line, text);
    printf(STR_FMT, STR_ARG(buf_view(&line)));
    buf_clear(&line);
}

static double amount(const struct json *object, const char *key)
{
    double n = 0;
    json_double(json_get_text(object, key), &n);
    return n;
}

static void put_title(const char *title)
{
    printf("%s%-9s%s", term_colour(TERM_BOLD), title, term_colour(TERM_PLAIN));
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- the summary ---- */

static void print_calls(const struct json *budgets)
{
    int64_t waiting = print_number(budgets, "waiting"), idle = print_number(budgets, "no_progress");
    double cost = amount(budgets, "cost");
    put_title("calls");
    printf("%lld, %lld in this turn, which began ", (long long)print_number(budgets, "calls"),
           (long long)print_number(budgets, "calls_in_turn"));
    term_print_time(print_number(budgets, "turn_began_ms"));
    if (waiting)
        printf("; %lld without a result yet", (long long)waiting);
    putchar('\n');
    if (cost > 0) {
        put_title("cost");
        printf("%.6g, %.6g in this turn\n", cost, amount(budgets, "cost_in_turn"));
    }
    if (idle > 1) {
        put_title("stuck");
        printf("the last %lld calls gave no new result\n", (long long)idle);
    }
}

static void print_repairs(const struct json *chains)
{
    for (uint32_t i = 0; json_is(chains, JSON_ARRAY) && i < chains->len; i++) {
        const struct json *chain = &chains->items[i];
        const struct json *ended = json_get_text(chain, "ended");
        struct str ext = json_str(json_get_text(chain, "ext"));
        int64_t invalid = print_number(chain, "invalid");
        put_title(i ? "" : "repairs");
        put_text(json_str(json_get_text(chain, "tool")));
        printf(": %lld invalid call%s, %s", (long long)invalid, plural(invalid),
               json_is_true(ended) ? "no more in this turn" : "the model may try again");
        if (ext.len) {
            printf(" (");
            put_text(ext);
            putchar(')');
        }
        putchar('\n');
    }
}

static void print_known(const struct json *answer)
{
    const struct json *ids = json_get_text(answer, "ids"), *facts = json_get_text(answer, "facts");
    if (print_number(ids, "seen")) {
        put_title("ids");
        printf("%lld seen%s\n", (long long)print_number(ids, "seen"),
               json_is_true(json_get_text(ids, "complete")) ? "" : ", older ones are not kept");
    }
    for (uint32_t i = 0; json_is(facts, JSON_OBJECT) && i < facts->len; i++) {
        put_title(i ? "" : "facts");
        put_text(facts->members[i].key);
        printf(" = ");
        const struct json *value = &facts->members[i].value;
        struct buf text = {0};
        if (json_is(value, JSON_STRING))
            buf_str(&text, json_str(value));
        else
            json_write(&text, value);
        put_text(buf_view(&text));
        buf_clear(&text);
        putchar('\n');
    }
}

/* ---- the calls ---- */

/* After the class, if known: the reason, the number of repairs, the code. */
static void put_why(const struct json *entry, bool open)
{
    int64_t retries = print_number(entry, "retries");
    const char *why = open ? "the model may repair it" : reason_of(entry)->why;
    struct str code = json_str(json_get_text(entry, "code"));
    struct str class = json_str(json_get_text(entry, "class"));
    if (!*why && !retries)
        return;
    printf("%*s%s", (int)(class.len < CLASS_WIDTH ? CLASS_WIDTH + 2 - class.len : 2), "", why);
    if (retries)
        printf("%s%lld repair%s tried", *why ? "; " : "", (long long)retries, plural(retries));
    if (code.len && !str_eq(code, class))
        printf(" [" STR_FMT "]", STR_ARG(code));
}

static void print_call(const struct json *entry, size_t width, int64_t turn_now)
{
    bool open = json_get_text(entry, "open") != NULL;
    struct str class = json_str(json_get_text(entry, "class")), code = json_str(json_get_text(entry, "code"));
    enum term_colour colour = str_is(class, "ok") || str_is(class, "partial_data") ? TERM_GREEN
                              : code.len && !str_is(code, "llm_gave_up")           ? TERM_RED
                                                                                   : TERM_YELLOW;
    printf("  ");
    if (open)
        printf("%-19s", "now");
    else
        term_print_time(print_number(entry, "at_ms"));
    printf(" %4lld %4lld  ", (long long)(open ? turn_now : print_number(entry, "turn")),
           (long long)print_number(entry, "step"));
    struct str tool = str_cut(json_str(json_get_text(entry, "tool")), width);
    put_text(tool);
    printf("%*s", (int)(width - tool.len), "");
    printf("  %s" STR_FMT "%s", term_colour(colour), STR_ARG(class), term_colour(TERM_PLAIN));
    put_why(entry, open);
    putchar('\n');
}

static void print_history(const struct json *history, int64_t turn_now)
{
    if (!json_is(history, JSON_ARRAY) || !history->len) {
        printf("\nno calls are kept\n");
        return;
    }
    size_t width = 4;
    for (uint32_t i = 0; i < history->len; i++) {
        size_t len = json_str(json_get_text(&history->items[i], "tool")).len;
        if (len > width)
            width = len < TOOL_WIDTH_MAX ? len : TOOL_WIDTH_MAX;
    }
    printf("\n%s  %-19s %4s %4s  %-*s  %-*s  %s%s\n", term_colour(TERM_BOLD), "WHEN", "TURN", "STEP",
           (int)width, "TOOL", (int)CLASS_WIDTH, "CLASS", "WHY", term_colour(TERM_PLAIN));
    for (uint32_t i = 0; i < history->len; i++)
        print_call(&history->items[i], width, turn_now);
}

/* ---- the way out ---- */

static bool is_shell_word(struct str word)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@";
    for (size_t i = 0; i < word.len; i++)
        if (!strchr(fine, word.at[i]) || !word.at[i])
            return false;
    return word.len && word.at[0] != '-';
}

/* For the last refusal of this turn that --reset ends. */
static void print_way_out(const struct json *answer, struct str id)
{
    const struct json *history = json_get_text(answer, "history");
    for (uint32_t i = json_is(history, JSON_ARRAY) ? history->len : 0; i-- > 0;) {
        const struct json *entry = &history->items[i];
        struct str tool = json_str(json_get_text(entry, "tool"));
        if (!reason_of(entry)->resets || print_number(entry, "turn") != print_number(answer, "turn"))
            continue;
        if (is_shell_word(id) && is_shell_word(tool))
            printf("\nto allow it again: toolgate session " STR_FMT " --reset " STR_FMT "\n", STR_ARG(id),
                   STR_ARG(tool));
        return;
    }
}

static int print_session(void *owner, const struct json *answer)
{
    const struct json *budgets = json_get_text(answer, "budgets");
    put_title("session");
    put_text(json_str(json_get_text(answer, "session")));
    printf(", turn %lld, step %lld\n", (long long)print_number(answer, "turn"),
           (long long)print_number(answer, "step"));
    if (json_get_text(answer, "stand_in"))
        printf("%s         Redis is down: this is what this daemon knows%s\n", term_colour(TERM_YELLOW),
               term_colour(TERM_PLAIN));
    struct str goal = json_str(json_get_text(answer, "goal"));
    if (goal.len) {
        put_title("goal");
        put_text(goal);
        putchar('\n');
    }
    print_calls(budgets);
    const struct json *tools = json_get_text(budgets, "tools");
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++) {
        const struct json *tool = &tools->items[i];
        double cost = amount(tool, "cost");
        put_title(i ? "" : "limited");
        put_text(json_str(json_get_text(tool, "tool")));
        printf(": %lld call%s, %lld in this turn", (long long)print_number(tool, "calls"),
               plural(print_number(tool, "calls")), (long long)print_number(tool, "calls_in_turn"));
        if (cost > 0)
            printf("; cost %.6g, %.6g in this turn", cost, amount(tool, "cost_in_turn"));
        putchar('\n');
    }
    print_repairs(json_get_text(budgets, "chains"));
    print_known(answer);
    print_history(json_get_text(answer, "history"), print_number(answer, "turn"));
    print_way_out(answer, str_of(owner));
    return CLI_OK;
}

/* ---- reset, forget ---- */

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

/* ---- the command ---- */

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
        status = (json ? rpc_call : rpc_call_text)(command, socket, "toolgate/session", buf_view(&params),
                                                   print, text);
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
