/*
 * A subcommand as the table in main.c knows it: what --help prints, how many
 * operands it takes, and the function that is it.
 */
#ifndef TOOLGATE_CLI_COMMAND_H
#define TOOLGATE_CLI_COMMAND_H

/* Exit codes, the same for every subcommand; --help says what "no" means there. */
enum cli_exit {
    CLI_OK = 0,   /* done; the call passes; all examples hold */
    CLI_NO = 1,   /* the answer is no: refused, failed */
    CLI_ERROR = 2 /* there is no answer: usage, a file that does not load, no daemon */
};

struct command {
    const char *name, *operands, *summary; /* "check", "TOOL JSON", one line */
    const char *about;                     /* a paragraph */
    const char *exits;                     /* one line a code */
    const char *example;                   /* lines that can be typed */
    int least, most;                       /* operands */
    int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command command_serve, command_connect, command_call, command_check, command_tools,
    command_test, command_new, command_words, command_lint, command_validate, command_session, command_status,
    command_reload, command_bench;

#endif
