/* toolgate call: one tools/call through the daemon, and what the model would read of it. */
#include "base/arena.h"
#include "cli/ask.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/show.h"

static int exit_code(const struct json *answer)
{
    return json_is_true(json_get_text(answer, "isError")) ? CLI_NO : CLI_YES;
}

static int print_text(void *owner, const struct json *answer)
{
    (void)owner;
    show_content(json_get_text(answer, "content"));
    return exit_code(answer);
}

static int print_json(void *owner, const struct json *answer)
{
    (void)owner;
    show_json(answer);
    return exit_code(answer);
}

static struct str params_of(struct arena *arena, const char *tool, const struct json *arguments,
                            const struct input_meta *meta)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_key(&out, "name");
    json_put_text(&out, tool);
    json_key(&out, "arguments");
    json_put(&out, arguments);
    input_put_meta(&out, meta);
    json_close(&out, '}');
    return buf_view(&text);
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    struct input_meta meta = {0};
    bool json = false;
    int status;
    const struct cli_option table[] = {
        {"socket", 's', "PATH", "the daemon's socket (default $XDG_RUNTIME_DIR/toolgate.sock)", OPTION_TEXT,
         &socket},
        {"session", 0, "ID", "the conversation this call belongs to", OPTION_TEXT, &meta.session},
        {"turn", 0, "N", "the user turn it belongs to", OPTION_NUMBER, &meta.turn},
        {"goal", 0, "TEXT", "what the user asked for, in words", OPTION_TEXT, &meta.goal},
        {"json", 'j', NULL, "print the whole result as JSON", OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct arena *arena = arena_new();
    struct json arguments;
    status = CLI_TROUBLE;
    if (input_arguments(command, arena, argv[1], &arguments))
        status = ask_daemon(command, socket, "tools/call", params_of(arena, argv[0], &arguments, &meta),
                            json ? print_json : print_text, NULL);
    arena_free(arena);
    return status;
}

const struct command command_call = {
    .name = "call",
    .operands = "TOOL [JSON]",
    .summary = "call a tool through the daemon",
    .about = "Sends one tools/call and prints what the model would read: the result, or the feedback of a\n"
             "call that was not passed. JSON is the arguments' object; - reads it from stdin.",
    .exits = "  0  the tool ran and its result passed\n"
             "  1  it was not passed: the feedback is on stdout\n"
             "  2  usage, arguments that are no JSON, no daemon",
    .example = "  toolgate call search_orders '{\"customer_id\": \"cust-7\"}' --session me",
    .least = 1,
    .most = 2,
    .run = run,
};
