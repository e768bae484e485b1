/* Tables of options: argp of libc reads them, prints --help and says what is wrong. */
#include "options.h"

#include "base/str.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_KEY 256 /* argp's key of the first option: beyond any letter */

static void set_number(const struct cli_option *option, const char *text, struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || n < 1 || n > option->most)
        argp_error(state, "--%s: expected a whole number from 1 to %u, got '%s'", option->name, option->most,
                   text);
    *(unsigned *)option->target = (unsigned)n;
}

static error_t set_option(int key, char *text, struct argp_state *state)
{
    const struct cli_option *options = state->input;
    if (key < FIRST_KEY || key >= FIRST_KEY + (int)OPTIONS_MAX)
        return ARGP_ERR_UNKNOWN;
    const struct cli_option *option = &options[key - FIRST_KEY];
    if (!option->argument)
        *(bool *)option->target = true;
    else if (option->most)
        set_number(option, text, state);
    else
        *(const char **)option->target = text;
    return 0;
}

void options_read(const struct command *command, const char *about, const struct cli_option *options,
                  int argc, char **argv)
{
    struct argp_option list[OPTIONS_MAX + 1] = {0};
    char name[64];
    for (int i = 0; options[i].name; i++)
        list[i] = (struct argp_option){.name = options[i].name,
                                       .key = FIRST_KEY + i,
                                       .arg = options[i].argument,
                                       .doc = options[i].words};
    struct argp argp = {.options = list, .parser = set_option, .doc = about};
    snprintf(name, sizeof(name), "%s %s", command_table()->program, command->name);
    argv[0] = name;
    argp_err_exit_status = CLI_ERROR;
    argp_parse(&argp, argc, argv, 0, NULL, (void *)(uintptr_t)options);
}
