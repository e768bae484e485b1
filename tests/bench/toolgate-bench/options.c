/* Tables of options: read by getopt_long, printed by --help. */
#include "options.h"

#include "cli/term.h"
#include "base/suggest.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_LONG 256 /* getopt's value of the first option: beyond any letter */

static const struct cli_option help_option = {
    "help", NULL, "print this help", 'h', OPTION_FLAG, NULL,
};

static void print_option(const struct cli_option *option)
{
    char left[64];
    int n = option->letter ? snprintf(left, sizeof(left), "  -%c, --%s", option->letter, option->name)
                           : snprintf(left, sizeof(left), "      --%s", option->name);
    if (option->argument)
        snprintf(left + n, sizeof(left) - (size_t)n, " %s", option->argument);
    printf("%-26s %s\n", left, option->words);
}

static void print_help(const struct command *command, const struct cli_help *help,
                       const struct cli_option *options)
{
    printf("usage: %s %s [options]\n\n%s\n\noptions:\n", command_table()->program, command->name,
           help->about);
    for (; options->name; options++)
        if (options->words)
            print_option(options);
    print_option(&help_option);
    printf("\nexit code:\n%s\n\nexample:\n%s\n", help->exits, help->example);
}

struct getopt_form {
    struct option longs[OPTIONS_MAX + 2];
    char letters[2 * OPTIONS_MAX + 8];
};

static void to_getopt(const struct cli_option *options, struct getopt_form *form)
{
    char *letter = form->letters;
    size_t i;
    *letter++ = ':'; /* distinguishes a missing argument from an unknown option */
    *letter++ = 'h';
    for (i = 0; i < OPTIONS_MAX && options[i].name; i++) {
        bool takes = options[i].kind != OPTION_FLAG;
        form->longs[i] = (struct option){options[i].name, takes, NULL, FIRST_LONG + (int)i};
        if (options[i].letter) {
            *letter++ = options[i].letter;
            if (takes)
                *letter++ = ':';
        }
    }
    form->longs[i] = (struct option){"help", no_argument, NULL, 'h'};
    form->longs[i + 1] = (struct option){0};
    *letter = '\0';
}

static const struct cli_option *find_option(const struct cli_option *options, int c)
{
    if (c >= FIRST_LONG)
        return &options[c - FIRST_LONG];
    for (; options->name; options++)
        if (options->letter && options->letter == c)
            return options;
    return NULL;
}

static bool set_number(const struct command *command, const struct cli_option *option, const char *text)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (!errno && end != text && *end == '\0' && text[0] != '-' && n >= 1 && n <= 1000000) {
        *(unsigned *)option->target = (unsigned)n;
        return true;
    }
    term_error(command->name, "--%s: expected a whole number from 1 to 1000000, got '%s'", option->name,
               text);
    return false;
}

static bool set_option(const struct command *command, const struct cli_option *option, const char *text)
{
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)option->target = true;
        return true;
    case OPTION_STRING:
        *(const char **)option->target = text;
        return true;
    case OPTION_NUMBER:
        return set_number(command, option, text);
    }
    return false;
}

static void unknown_option(const struct command *command, const struct cli_option *options, const char *word)
{
    struct str names[OPTIONS_MAX + 1];
    size_t count = 0;
    for (; count < OPTIONS_MAX && options->name; options++)
        if (options->words)
            names[count++] = str_of(options->name);
    names[count++] = str_of("help");
    struct str given = str_of(word + strspn(word, "-"));
    const char *equals = memchr(given.at, '=', given.len);
    if (equals)
        given.len = (size_t)(equals - given.at);
    struct str near = suggest_closest(given, names, count);
    if (near.len)
        term_error(command->name, "unknown option '%s' (did you mean '--" STR_FMT "'?)", word, STR_ARG(near));
    else
        term_error(command->name, "unknown option '%s'; `%s %s --help` lists them", word,
                   command_table()->program, command->name);
}

static void report_bad_option(const struct command *command, const struct cli_option *options, int c,
                              char **argv)
{
    char letter[] = {'-', (char)optopt, '\0'};
    const struct cli_option *option = optopt ? find_option(options, optopt) : NULL;
    if (c == ':')
        term_error(command->name, "--%s needs a %s", option ? option->name : "?",
                   option ? option->argument : "value");
    else if (option)
        term_error(command->name, "--%s takes no value", option->name);
    else
        unknown_option(command, options, optopt && optopt < FIRST_LONG ? letter : argv[optind - 1]);
}

bool options_read(const struct command *command, const struct cli_help *help,
                  const struct cli_option *options, int argc, char **argv, int *status)
{
    struct getopt_form form;
    int c;
    to_getopt(options, &form);
    opterr = 0;
    *status = CLI_ERROR;
    while ((c = getopt_long(argc, argv, form.letters, form.longs, NULL)) != -1) {
        if (c == 'h') {
            print_help(command, help, options);
            *status = CLI_OK;
            return false;
        }
        if (c == '?' || c == ':') {
            report_bad_option(command, options, c, argv);
            return false;
        }
        if (!set_option(command, find_option(options, c), optarg))
            return false;
    }
    if (argc > optind)
        term_error(command->name, "expected no operands, got %d operands", argc - optind);
    return argc == optind;
}
