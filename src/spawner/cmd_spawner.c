/* toolgate spawner: starts upstreams by name for a daemon that may not. */
#include "base/log.h"
#include "cli/options.h"
#include "cli/term.h"
#include "spawner/spawner.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_FILE   "/etc/toolgate/spawner.lua"
#define DEFAULT_SOCKET CONFIG_SYSTEM_FOLDER "/spawner.sock"

static int run(const struct command *command, int argc, char **argv)
{
    const char *file = DEFAULT_FILE, *socket = DEFAULT_SOCKET;
    bool only_check = false;
    int status;
    const struct cli_option table[] = {
        {"config", "FILE", "the upstreams it may start (default " DEFAULT_FILE ")", 'c', OPTION_STRING,
         &file},
        {"socket", "PATH", "where daemons ask (default " DEFAULT_SOCKET ")", 's', OPTION_STRING, &socket},
        {"check", NULL, "check the file, then end", 0, OPTION_FLAG, &only_check},
        {0},
    };
    struct config config;
    struct why why;
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (spawner_check_file(file, &why) != OK) {
        term_error(command->name, "%s", why.text);
        return CLI_NO;
    }
    const struct config_sources sources = {.file = file, .socket = socket};
    enum err err = config_load(&sources, &config, &why);
    if (!err)
        err = spawner_check_files(&config, &why);
    if (!err && only_check)
        printf("upstreams: %zu\n", config.upstream_count);
    else if (!err)
        err = spawner_run(&config, socket, &why);
    if (err)
        term_error(command->name, "%s", why.text);
    config_free(&config);
    return err ? CLI_NO : CLI_OK;
}

const struct command command_spawner = {
    .name = "spawner",
    .operands = "",
    .summary = "start upstreams by name for a daemon that may not",
    .about =
        "A small process with a service unit of its own. A daemon whose upstreams have spawned = true asks "
        "it\n"
        "over a Unix socket for one of the upstreams in FILE, by name, and gets the pipes of the process. "
        "FILE\n"
        "is a configuration like toolgate.lua(5), of which it uses upstreams and allow (who may ask; "
        "without\n"
        "it root and its own user); only root may write to it. When the daemon ends, so do its processes.",
    .exits = "  0  ended by SIGTERM or SIGINT; with --check: the file is good\n"
             "  1  the file has an error, or the socket cannot be opened\n"
             "  2  usage",
    .example = "  toolgate spawner -c /etc/toolgate/spawner.lua --check",
    .run = run,
};
