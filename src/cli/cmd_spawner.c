/* toolgate spawner (lua/cli/spawner.lua): starts upstreams by name for a daemon that may not. */
#include "base/log.h"
#include "cli/command.h"
#include "cli/term.h"
#include "cli/spawner.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_FILE   "/etc/toolgate/spawner.lua"
#define DEFAULT_SOCKET CONFIG_SYSTEM_FOLDER "/spawner.sock"

int spawner_start(char *const *given)
{
    const char *file = command_given(given, "config", 0), *socket = command_given(given, "socket", 0);
    struct config_sources sources = {.file = file ? file : DEFAULT_FILE,
                                     .socket = socket ? socket : DEFAULT_SOCKET};
    struct config config;
    struct why why;
    if (spawner_check_file(sources.file, &why) != OK) {
        term_error("spawner", "%s", why.text);
        return CLI_NO;
    }
    enum err err = config_load(&sources, &config, &why);
    if (!err)
        err = spawner_check_files(&config, &why);
    if (!err && command_given(given, "check", 0))
        printf("upstreams: %zu\n", config.upstream_count);
    else if (!err)
        err = spawner_run(&config, sources.socket, &why);
    if (err)
        term_error("spawner", "%s", why.text);
    config_free(&config);
    return err ? CLI_NO : CLI_OK;
}
