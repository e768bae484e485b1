/* The installed program: its subcommands, each in a file cmd_*.c. */
#include "cli/command.h"

extern const struct command command_serve, command_connect, command_call, command_check, command_tools,
    command_test, command_new, command_words, command_lint, command_validate, command_session,
    command_sessions, command_status, command_reload, command_pins, command_approvals, command_approve,
    command_deny, command_replay, command_top, command_doctor, command_completion, command_decisions,
    command_shadow, command_spawner, command_hook;

// clang-format off
static const struct command *const commands[] = {
    &command_serve,
    &command_connect,
    &command_call,
    &command_check,
    &command_tools,
    &command_test,
    &command_new,
    &command_words,
    &command_lint,
    &command_validate,
    &command_session,
    &command_sessions,
    &command_status,
    &command_reload,
    &command_pins,
    &command_approvals,
    &command_approve,
    &command_deny,
    &command_replay,
    &command_top,
    &command_doctor,
    &command_completion,
    &command_decisions,
    &command_shadow,
    &command_spawner,
    &command_hook,
};
// clang-format on

const struct command_table toolgate_commands = {
    .program = "toolgate",
    .summary = "toolgate stands between LLM agents and their tools.",
    .commands = commands,
    .count = sizeof(commands) / sizeof(commands[0]),
};

int main(int argc, char **argv)
{
    return command_main(&toolgate_commands, argc, argv);
}
