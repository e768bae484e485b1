/*
 * toolgate approvals, approve, deny: what policies have asked of users whom nobody could ask, and the answer.
 * Tool, arguments, session and question come from agents and policies: rpc_call_text escapes them.
 */
#include "base/buf.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/rpc_call.h"
#include "cli/term.h"
#include "json/write.h"

#include <stdio.h>

struct approvals_options {
    const char *socket;
    bool json;
};

static struct str member(const struct json *object, const char *key)
{
    return json_str(json_get_text(object, key));
}

static void print_approval(const struct approvals_options *options, const struct json *a)
{
    bool pending = str_is(member(a, "state"), "pending");
    printf("%s" STR_FMT "%s  " STR_FMT ", of " STR_FMT " (uid %lld, pid %lld) in session " STR_FMT "\n",
           term_colour(TERM_BOLD), STR_ARG(member(a, "id")), term_colour(TERM_PLAIN),
           STR_ARG(member(a, "tool")), STR_ARG(member(a, "user")), (long long)print_number(a, "uid"),
           (long long)print_number(a, "pid"), STR_ARG(member(a, "session")));
    printf("  question:  " STR_FMT "\n", STR_ARG(member(a, "question")));
    printf("  arguments: " STR_FMT "%s\n", STR_ARG(member(a, "arguments")),
           json_is_true(json_get_text(a, "arguments_cut")) ? "… (cut: deny it unless you know the rest)"
                                                           : "");
    if (!pending) {
        printf("  " STR_FMT " by " STR_FMT "\n", STR_ARG(member(a, "state")),
               STR_ARG(member(a, "answered_by")));
        return;
    }
    printf("  asked %lld s ago; answer within %lld s: %s approve " STR_FMT "%s%s\n",
           (long long)print_number(a, "asked_s"), (long long)print_number(a, "expires_s"),
           term_program_name(), STR_ARG(member(a, "id")), options->socket ? " --socket " : "",
           options->socket ? options->socket : "");
}

static uint32_t count_pending(const struct json *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++)
        count += str_is(member(&list->items[i], "state"), "pending");
    return count;
}

static int print_list(void *owner, const struct json *answer)
{
    const struct json *list = json_get_text(answer, "approvals");
    uint32_t pending = count_pending(list);
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++)
        print_approval(owner, &list->items[i]);
    if (!pending)
        printf("nothing waits for an approval\n");
    return pending ? CLI_NO : CLI_OK;
}

static int print_list_json(void *owner, const struct json *answer)
{
    (void)owner;
    print_json_line(answer);
    return count_pending(json_get_text(answer, "approvals")) ? CLI_NO : CLI_OK;
}

static int run_list(const struct command *command, int argc, char **argv)
{
    struct approvals_options options = {0};
    int status;
    if (!options_read_request(command, &argc, &argv, &options.socket, &options.json, &status))
        return status;
    if (options.json)
        return rpc_call(command, options.socket, "toolgate/approvals", STR_LIT("{}"), print_list_json,
                        &options);
    return rpc_call_text(command, options.socket, "toolgate/approvals", STR_LIT("{}"), print_list, &options);
}

/* ---- the answer ---- */

static int print_decided(void *owner, const struct json *answer)
{
    const struct command *command = owner;
    const struct json *errors = json_get_text(answer, "errors");
    bool ok = json_is_true(json_get_text(answer, "ok"));
    for (uint32_t i = 0; json_is(errors, JSON_ARRAY) && i < errors->len; i++)
        term_error(command->name, STR_FMT, STR_ARG(json_str(&errors->items[i])));
    if (ok)
        printf(STR_FMT ": " STR_FMT " " STR_FMT "\n", STR_ARG(member(answer, "state")),
               STR_ARG(member(answer, "tool")), STR_ARG(member(answer, "arguments")));
    if (ok && str_is(member(answer, "state"), "approved"))
        printf("It runs once, when the agent makes this call again within %lld s.\n",
               (long long)print_number(answer, "expires_s"));
    return ok ? CLI_OK : CLI_NO;
}

static int print_decided_json(void *owner, const struct json *answer)
{
    (void)owner;
    print_json_line(answer);
    return json_is_true(json_get_text(answer, "ok")) ? CLI_OK : CLI_NO;
}

static int decide(const struct command *command, int argc, char **argv, const char *method)
{
    struct approvals_options options = {0};
    struct buf params = {0};
    int status;
    if (!options_read_request(command, &argc, &argv, &options.socket, &options.json, &status))
        return status;
    struct json_out out = json_out(&params);
    json_open(&out, '{');
    json_field_text(&out, "id", argv[0]);
    json_close(&out, '}');
    status = options.json ? rpc_call(command, options.socket, method, buf_view(&params), print_decided_json,
                                     (void *)command)
                          : rpc_call_text(command, options.socket, method, buf_view(&params), print_decided,
                                          (void *)command);
    buf_clear(&params);
    return status;
}

static int run_approve(const struct command *command, int argc, char **argv)
{
    return decide(command, argc, argv, "toolgate/approve");
}

static int run_deny(const struct command *command, int argc, char **argv)
{
    return decide(command, argc, argv, "toolgate/deny");
}

const struct command command_approvals = {
    .name = "approvals",
    .operands = "",
    .summary = "list the calls that wait for a person's yes",
    .about = "Lists the calls that a policy has asked about, and whose client has no user to ask: tool, "
             "arguments,\n"
             "question and id, with those answered in the last minutes. For operators: those that the\n"
             "configuration names, else the daemon's user; and root.",
    .exits = "  0  nothing waits\n"
             "  1  calls wait\n"
             "  2  usage, no daemon, no operator",
    .example = "  toolgate approvals\n"
               "  toolgate approvals --json",
    .run = run_list,
};

#define DECIDE_EXITS                                                                                         \
    "  0  it is answered\n"                                                                                  \
    "  1  no such question, its time is over, or it has an answer already\n"                                 \
    "  2  usage, no daemon, no operator"

const struct command command_approve = {
    .name = "approve",
    .operands = "ID",
    .summary = "let a call run once that a policy has asked about",
    .about = "Approves a call that waits (toolgate approvals): when the agent makes it again within 5 "
             "minutes, in the\n"
             "same session with the same arguments, it runs, once. For operators, and never for the process "
             "that\n"
             "made the call.",
    .exits = DECIDE_EXITS,
    .example = "  toolgate approve 5891b5b522d5df08",
    .least = 1,
    .most = 1,
    .run = run_approve,
};

const struct command command_deny = {
    .name = "deny",
    .operands = "ID",
    .summary = "decline a call that a policy has asked about",
    .about = "Denies a call that waits (toolgate approvals): made again within 5 minutes, it is refused as\n"
             "`declined`. For operators, and never for the process that made the call.",
    .exits = DECIDE_EXITS,
    .example = "  toolgate deny 5891b5b522d5df08",
    .least = 1,
    .most = 1,
    .run = run_deny,
};
