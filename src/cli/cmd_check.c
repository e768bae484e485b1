/*
 * toolgate check: the verdict of a call. In this process, with the files that
 * a daemon would load; or, with --session or --socket, from the running daemon.
 * Only a session's call is counted.
 */
#include "base/arena.h"
#include "cli/rpc_call.h"
#include "cli/json_input.h"
#include "cli/local_generation.h"
#include "cli/term.h"
#include "cli/print.h"
#include "gate/call_reply.h"
#include "gate/verdict.h"
#include "json/parse.h"
#include "json/write.h"

#define ANSWER_MAX_NODES                                                                                     \
    (16u * JSON_MAX_NODES) /* the arguments, and several values for each that was repaired */

struct check_options {
    const char *tool, *socket;
    struct json arguments;
    struct json_input_meta meta;
    bool trace, json;
};

static int print_answer(void *owner, const struct json *answer)
{
    const struct check_options *check = owner;
    if (check->json)
        print_json_line(answer);
    else
        print_check(str_of(check->tool), answer, check->trace);
    return print_exit_code(answer);
}

/* The same object as the result of toolgate/check. */
static struct str answer_json(struct arena *arena, struct call *call)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    verdict_write(&out, call_outcome(call)->verdict);
    call_reply_check(&out, call);
    json_close(&out, '}');
    return buf_view(&text);
}

static int decide(struct arena *arena, const struct check_options *check, struct gate *gate)
{
    struct peer peer;
    local_peer(&peer);
    struct call_request request = {
        .mode = CALL_CHECK,
        .tool = str_of(check->tool),
        .arguments = &check->arguments,
        .session = STR_LIT("check"),
        .connection = STR_LIT("check"),
        .turn = check->meta.turn,
        .goal = str_of(check->meta.goal),
        .context = check->meta.context,
        .peer = &peer,
        .dry_run = true,
        .trace = check->trace,
    };
    static const struct json_limits limits = {.nodes = ANSWER_MAX_NODES};
    struct call *call = call_new(gate, arena, &request);
    struct json answer;
    struct json_error fault;
    int status = CLI_ERROR;
    if (!call_start(call, NULL, NULL)) /* the local ledger answers at once */
        term_error("check", "the ledger did not answer");
    else if (json_parse(arena, answer_json(arena, call), &limits, &answer, &fault) == OK)
        status = print_answer((void *)check, &answer);
    else
        term_error("check", "the answer is too large to print: %s", fault.text);
    call_free(call);
    return status;
}

static int dry_run(const struct command *command, struct arena *arena, const struct check_options *check,
                   const struct local_options *options)
{
    struct gate gate = {.generation = local_generation_load(command, options)};
    struct why why;
    int status = CLI_ERROR;
    if (!gate.generation)
        return status;
    if (ledger_new_local(&(struct ledger_options){0}, &gate.ledger, &why) == OK)
        status = decide(arena, check, &gate);
    else
        term_error(command->name, "%s", why.text);
    ledger_free(gate.ledger);
    generation_unref(gate.generation);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct local_options options = {0};
    struct check_options check = {0};
    int status;
    const struct cli_option table[] = {
        {"trace", NULL, "print each stage: its decision and its time", 0, OPTION_FLAG, &check.trace},
        {"goal", "TEXT", "the user's request, in words", 0, OPTION_STRING, &check.meta.goal},
        {"context", "JSON", "what the agent's program says of the call: call.context", 0, OPTION_STRING,
         &check.meta.context_text},
        {"turn", "N", "the user turn of the call", 0, OPTION_NUMBER, &check.meta.turn},
        {"session", "ID", "ask the running daemon; the call counts in this session", 0, OPTION_STRING,
         &check.meta.session},
        {"socket", "PATH", "the daemon's socket; calls count only with --session", 's', OPTION_STRING,
         &check.socket},
        LOCAL_OPTIONS(&options),
        {"json", NULL, "print the verdict as JSON", 'j', OPTION_FLAG, &check.json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct arena *arena = arena_new();
    check.tool = argv[0];
    if (!json_input_arguments(command, arena, argv[1], &check.arguments) ||
        !json_input_context(command, arena, &check.meta)) {
        status = CLI_ERROR;
    } else if (check.meta.session || check.socket) {
        check.meta.trace = check.trace || !check.meta.session; /* a trace without a session is not counted */
        struct str params = json_input_call(arena, check.tool, &check.arguments, &check.meta);
        status = (check.json ? rpc_call : rpc_call_text)(command, check.socket, "toolgate/check", params,
                                                         print_answer, &check);
    } else {
        status = dry_run(command, arena, &check, &options);
    }
    arena_free(arena);
    return status;
}

const struct command command_check = {
    .name = "check",
    .operands = "TOOL [JSON]",
    .summary = "show the verdict of a call, run nothing",
    .about =
        "Prints the verdict of a call. Without --session it loads the files that serve would load and\n"
        "decides in this process; nothing is counted. With --session ID it asks the running daemon, which\n"
        "uses that session's budgets, loops and facts, and counts the call.",
    .exits = "  0  pass\n"
             "  1  any other verdict\n"
             "  2  usage, arguments that are not JSON, files that do not load, no daemon",
    .example = "  toolgate check get_events '{\"action\": \"by_ids\"}' --trace --policies policies",
    .least = 1,
    .most = 2,
    .run = run,
};
