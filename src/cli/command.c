/* Finds a subcommand by its name and runs it; handles --help and --version. */
#include "cli/command.h"

#include "base/suggest.h"
#include "base/version.h"
#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMANDS_MAX 32u

static const struct command_table *program;
static const struct command *running;

const struct command_table *command_table(void)
{
    return program;
}

const struct command *command_running(void)
{
    return running;
}

static void print_usage(FILE *out)
{
    fprintf(out, "%s\n\nusage: %s COMMAND [options]\n\n", program->summary, program->program);
    for (size_t i = 0; i < program->count; i++) {
        const struct command *command = program->commands[i];
        struct str summary = command->summary ? str_of(command->summary) : lua_command_summary(command->name);
        if (command->group)
            fprintf(out, "%s%s:\n", i ? "\n" : "", command->group);
        fprintf(out, "  %-10s " STR_FMT "\n", command->name, STR_ARG(summary));
    }
    fprintf(out, "\n`%s COMMAND --help` has the options and an example; `%s version` the version.\n",
            program->program, program->program);
}

static int run_command(const char *name, int argc, char **argv)
{
    struct str names[COMMANDS_MAX];
    size_t count = 0;
    for (; count < program->count && count < COMMANDS_MAX; count++) {
        const struct command *command = program->commands[count];
        if (strcmp(command->name, name) == 0) {
            running = command;
            int status = command->run(command, argc, argv);
            running = NULL;
            return status;
        }
        names[count] = str_of(command->name);
    }
    struct str near = suggest_closest(str_of(name), names, count);
    if (near.len)
        term_error("unknown command '%s' (did you mean '" STR_FMT "'?)", name, STR_ARG(near));
    else
        term_error("unknown command '%s'; `%s --help` lists them", name, program->program);
    return CLI_ERROR;
}

static int run_arguments(int argc, char **argv)
{
    char *help[] = {(char *)program->program, (char *)"--help", NULL};
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_usage(stderr);
        return CLI_ERROR;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 || strcmp(name, "-v") == 0 ||
        strcmp(name, "version") == 0) {
        printf("%s " TOOLGATE_VERSION "\n", program->program);
        return CLI_OK;
    }
    if (strcmp(name, "help") == 0 && argc > 2) /* `toolgate help check` is `toolgate check --help` */
        return run_command(argv[2], 2, help);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return CLI_OK;
    }
    return run_command(name, argc - 1, argv + 1);
}

int command_main(const struct command_table *table, int argc, char **argv)
{
    /* A standard descriptor that is closed would be the number of the next file or socket: the log would go
     * into the decision log, into Redis or into a signal pipe. Its place is taken by one that cannot be used
     * the way the command would, so that reading stdin and writing to stdout fail as before; only the log is
     * lost. */
    static const int modes[] = {
        [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) /* open gives the lowest free number */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
            abort();
    program = table;
    int status = run_arguments(argc, argv);
    /* A full disk behind `toolgate … > file` must not look like success. */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    term_error("the output could not be written: %s", strerror(errno));
    return CLI_ERROR;
}
