/* The one binary: finds the subcommand by its name and hands over. */
#include "base/version.h"
#include "cli/command.h"
#include "cli/term.h"
#include "base/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
    &command_serve,   &command_connect, &command_call,   &command_check, &command_tools,
    &command_test,    &command_new,     &command_words,  &command_lint,  &command_validate,
    &command_session, &command_status,  &command_reload, &command_bench,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void print_usage(FILE *out)
{
    fprintf(out,
            "toolgate stands between LLM agents and their tools.\n\nusage: toolgate COMMAND [options]\n\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(
        out,
        "\n`toolgate COMMAND --help` has the options and an example; `toolgate --version` the version.\n");
}

static int unknown_command(const char *word)
{
    struct str names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = str_of(commands[i]->name);
    struct str near = suggest_closest(str_of(word), names, COMMANDS);
    if (near.len)
        term_error(NULL, "unknown command '%s' (did you mean '" STR_FMT "'?)", word, STR_ARG(near));
    else
        term_error(NULL, "unknown command '%s'; `toolgate --help` lists them", word);
    return CLI_ERROR;
}

/* `toolgate help check` is `toolgate check --help`. */
static int help(const char *name)
{
    const struct command *command = find(name);
    char *argv[] = {(char *)"toolgate", (char *)"--help", NULL};
    return command ? command->run(command, 2, argv) : unknown_command(name);
}

/* A full disk behind `toolgate … > file` must not look like success. */
static int said(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    term_error(NULL, "the output could not be written: %s", strerror(errno));
    return CLI_ERROR;
}

static int run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        print_usage(stderr);
        return CLI_ERROR;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        puts("toolgate " TOOLGATE_VERSION);
        return CLI_OK;
    }
    if (strcmp(word, "help") == 0 && argc > 2)
        return help(argv[2]);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_usage(stdout);
        return CLI_OK;
    }
    const struct command *command = find(word);
    return command ? command->run(command, argc - 1, argv + 1) : unknown_command(word);
}

int main(int argc, char **argv)
{
    return said(run(argc, argv));
}
