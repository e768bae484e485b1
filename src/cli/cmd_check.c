/*
 * toolgate check: what the gate says of a call. In this process, over the files
 * a daemon would load; or, with --session or --socket, by the running daemon.
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

struct asked {
    const char *tool, *socket;
    struct json arguments;
    struct json_input_meta meta;
    bool trace, json;
};

static int show(const struct asked *asked, const struct json *answer)
{
    if (asked->json)
        print_json_line(answer);
    else
        print_check(str_of(asked->tool), answer, asked->trace);
    return print_exit_code(answer);
}

/* ---- the daemon ---- */

static int print_answer(void *owner, const struct json *answer)
{
    return show(owner, answer);
}

static int ask(const struct command *command, struct arena *arena, struct asked *asked)
{
    asked->meta.trace =
        asked->trace || !asked->meta.session; /* without a session, a trace is what makes it dry */
    struct str params = json_input_call(arena, asked->tool, &asked->arguments, &asked->meta);
    return rpc_call(command, asked->socket, "toolgate/check", params, print_answer, asked);
}

/* ---- the dry run ---- */

/* The same object that toolgate/check answers with: the verdict's members, then these. */
static struct str answer_of(struct arena *arena, const struct call *call, bool trace)
{
    struct buf text = buf_in(arena);
    verdict_write(&text, call_verdict(call));
    text.len--; /* its closing brace */
    struct json_out out = {.buf = &text, .comma = true};
    call_reply_check(&out, call, trace);
    json_close(&out, '}');
    return buf_view(&text);
}

static int try(struct arena *arena, const struct asked *asked, struct gate *gate)
{
    struct peer peer;
    local_peer(&peer);
    struct call_request request = {
        .mode = CALL_CHECK,
        .tool = str_of(asked->tool),
        .arguments = &asked->arguments,
        .session = STR_LIT("check"),
        .connection = STR_LIT("check"),
        .turn = asked->meta.turn,
        .goal = str_of(asked->meta.goal),
        .peer = &peer,
        .dry_run = true,
        .trace = asked->trace,
    };
    struct call *call = call_new(gate, arena, &request);
    struct json answer;
    struct json_error fault;
    int status = CLI_ERROR;
    if (!call_start(call, NULL, NULL)) /* the local ledger answers at once */
        term_error("check", "the ledger did not answer");
    else if (json_parse(arena, answer_of(arena, call, asked->trace), NULL, &answer, &fault) == OK)
        status = show(asked, &answer);
    call_free(call);
    return status;
}

static int dry_run(const struct command *command, struct arena *arena, const struct asked *asked,
                   const struct local_options *options)
{
    struct gate gate = {.generation = local_generation_load(command, options)};
    struct why why;
    int status = CLI_ERROR;
    if (!gate.generation)
        return status;
    if (ledger_new_local(&(struct ledger_options){0}, &gate.ledger, &why) == OK)
        status = try(arena, asked, &gate);
    else
        term_error(command->name, "%s", why.text);
    ledger_free(gate.ledger);
    generation_unref(gate.generation);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct local_options options = {0};
    struct asked asked = {0};
    int status;
    const struct cli_option table[] = {
        {"trace", NULL, "each stage, what it decided, in how many µs", 0, OPTION_FLAG, &asked.trace},
        {"goal", "TEXT", "what the user asked for, in words", 0, OPTION_STRING, &asked.meta.goal},
        {"turn", "N", "the user turn the call belongs to", 0, OPTION_NUMBER, &asked.meta.turn},
        {"session", "ID", "ask the daemon, as a call of this session, and count it", 0, OPTION_STRING,
         &asked.meta.session},
        {"socket", "PATH", "ask the daemon there; counted only with --session", 's', OPTION_STRING,
         &asked.socket},
        LOCAL_OPTIONS(&options),
        {"json", NULL, "print the verdict as JSON", 'j', OPTION_FLAG, &asked.json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct arena *arena = arena_new();
    asked.tool = argv[0];
    status = CLI_ERROR;
    if (json_input_arguments(command, arena, argv[1], &asked.arguments))
        status = asked.meta.session || asked.socket ? ask(command, arena, &asked)
                                                    : dry_run(command, arena, &asked, &options);
    arena_free(arena);
    return status;
}

const struct command command_check = {
    .name = "check",
    .operands = "TOOL [JSON]",
    .summary = "what the gate says of a call, nothing run",
    .about =
        "Without --session: loads what serve would load and judges the call in this process; nothing\n"
        "is counted. With --session ID: asks the running daemon, with that session's budgets, loops and\n"
        "facts, and the call counts there.",
    .exits = "  0  pass\n"
             "  1  any other verdict\n"
             "  2  usage, arguments that are no JSON, files that do not load, no daemon",
    .example = "  toolgate check get_events '{\"action\": \"by_ids\"}' --trace --policies policies",
    .least = 1,
    .most = 2,
    .run = run,
};
