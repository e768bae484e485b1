/* toolgate reload: makes the running daemon load everything again, and prints the result. */
#include "cli/rpc_call.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/print.h"

#include <stdio.h>

static void print_lines(FILE *out, const char *prefix, const struct json *lines)
{
    for (uint32_t i = 0; json_is(lines, JSON_ARRAY) && i < lines->len; i++)
        fprintf(out, "%s: " STR_FMT "\n", prefix, STR_ARG(json_str(&lines->items[i])));
}

static int print_result(void *owner, const struct json *answer)
{
    int status = json_is_true(json_get_text(answer, "ok")) ? CLI_OK : CLI_NO;
    const struct json *errors = json_get_text(answer, "errors");
    struct str hash = json_str(json_get_text(answer, "hash"));
    bool unchanged = json_is_true(json_get_text(answer, "unchanged"));
    if (*(const bool *)owner) {
        print_json_line(answer);
        return status;
    }
    print_lines(stderr, "error", errors);
    print_lines(stderr, "warning", json_get_text(answer, "warnings"));
    if (status != CLI_OK)
        printf("%u error%s: generation %lld (" STR_FMT ") is still served\n", errors ? errors->len : 0,
               errors && errors->len == 1 ? "" : "s", (long long)print_number(answer, "generation"),
               STR_ARG(hash));
    else if (unchanged)
        printf("unchanged: generation %lld (" STR_FMT "), tools: %lld, policies: %lld, in %lld ms\n",
               (long long)print_number(answer, "generation"), STR_ARG(hash),
               (long long)print_number(answer, "tools"), (long long)print_number(answer, "policies"),
               (long long)print_number(answer, "ms"));
    else
        printf("generation %lld (" STR_FMT
               "), tools: %lld, policies: %lld, examples passed: %lld, in %lld ms\n",
               (long long)print_number(answer, "generation"), STR_ARG(hash),
               (long long)print_number(answer, "tools"), (long long)print_number(answer, "policies"),
               (long long)print_number(answer, "examples"), (long long)print_number(answer, "ms"));
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *socket = NULL;
    bool json = false;
    int status;
    if (!options_read_request(command, &argc, &argv, &socket, &json, &status))
        return status;
    return (json ? rpc_call : rpc_call_text)(command, socket, "toolgate/reload", str_of("{}"), print_result,
                                             &json);
}

const struct command command_reload = {
    .name = "reload",
    .operands = "",
    .summary = "load configuration, tools and policies again",
    .about =
        "The running daemon builds a new generation beside the one it serves, runs every example, and swaps\n"
        "it in. If anything is wrong, it keeps the old generation, and this command prints the errors: file\n"
        "and line, the example, what was expected and what was found. Calls go on during the reload. The\n"
        "daemon also reloads by itself when files change, unless the configuration says watch = false.",
    .exits = "  0  the new generation is served, or nothing had changed\n"
             "  1  there are errors; the old generation is still served\n"
             "  2  usage, no daemon, or not allowed",
    .example = "  toolgate reload && toolgate status",
    .run = run,
};
