/* The installed program: its subcommands, each declared in a file of lua/cli. */
#include "cli/command.h"

// clang-format off
#define IN_LUA(word) &(const struct command){.name = (word), .run = lua_command_run}
#define GROUP(heading, word) &(const struct command){.name = (word), .run = lua_command_run, .group = (heading)}
static const struct command *const commands[] = {
    GROUP("Start", "attach"),
    IN_LUA("connect"),
    IN_LUA("hook"),
    IN_LUA("serve"),
    IN_LUA("stop"),
    GROUP("Watch", "status"),
    IN_LUA("top"),
    IN_LUA("tools"),
    IN_LUA("call"),
    IN_LUA("session"),
    IN_LUA("sessions"),
    IN_LUA("doctor"),
    GROUP("Policies", "new"),
    IN_LUA("check"),
    IN_LUA("test"),
    IN_LUA("lint"),
    IN_LUA("words"),
    IN_LUA("validate"),
    GROUP("Logs", "decisions"),
    IN_LUA("shadow"),
    IN_LUA("replay"),
    GROUP("Administration", "reload"),
    IN_LUA("pins"),
    IN_LUA("approvals"),
    IN_LUA("approve"),
    IN_LUA("deny"),
    IN_LUA("spawner"),
    IN_LUA("completion"),
};
// clang-format on

int main(int argc, char **argv)
{
    const struct command_table table = {
        .program = "toolgate",
        .summary = "toolgate stands between LLM agents and their tools.",
        .commands = commands,
        .count = sizeof(commands) / sizeof(commands[0]),
    };
    return command_main(&table, argc, argv);
}
