/* The installed program: its subcommands, each in a file cmd_*.c, or in lua/cli. */
#include "cli/command.h"
#include "cli/lua_command.h"

extern const struct command command_serve, command_connect, command_top, command_decisions, command_shadow,
    command_spawner;

// clang-format off
#define IN_LUA(word) &(const struct command){.name = (word), .run = lua_command_run, .read_summary = lua_command_summary}
static const struct command *const commands[] = {
    &command_serve,
    &command_connect,
    IN_LUA("call"),
    IN_LUA("check"),
    IN_LUA("tools"),
    IN_LUA("test"),
    IN_LUA("new"),
    IN_LUA("words"),
    IN_LUA("lint"),
    IN_LUA("validate"),
    IN_LUA("session"),
    IN_LUA("sessions"),
    IN_LUA("status"),
    IN_LUA("reload"),
    IN_LUA("pins"),
    IN_LUA("approvals"),
    IN_LUA("approve"),
    IN_LUA("deny"),
    IN_LUA("replay"),
    &command_top,
    IN_LUA("doctor"),
    IN_LUA("completion"),
    &command_decisions,
    &command_shadow,
    &command_spawner,
    IN_LUA("hook"),
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
