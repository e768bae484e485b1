/* Options from a table: values, mistakes with the closest name, help. */
#include "cli/options.h"
#include "golden.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct command command = {
    .name = "try",
    .operands = "TOOL [JSON]",
    .about = "About it.",
    .exits = "  0  yes",
    .example = "  toolgate try x",
    .least = 1,
    .most = 2,
};

static struct {
    const char *socket;
    struct cli_list tools;
    unsigned turn;
    bool json, hidden;
} got;

static const struct cli_option options[] = {
    {"socket", "PATH", "the socket", 's', OPTION_STRING, &got.socket},
    {"tools", "FILE", "tools", 't', OPTION_LIST, &got.tools},
    {"turn", "N", "turn", 0, OPTION_NUMBER, &got.turn},
    {"json", NULL, "as JSON", 'j', OPTION_FLAG, &got.json},
    {"echo", NULL, NULL, 0, OPTION_FLAG, &got.hidden},
    {0},
};

static int argc, status;
static char **argv;
static char printed[4096];

/* Parses these arguments, which end with NULL; returns the output on `fd`. */
static bool reads(int fd, ...)
{
    static char *words[16];
    va_list args;
    va_start(args, fd);
    words[0] = (char *)"try";
    for (argc = 1; (words[argc] = va_arg(args, char *)); argc++)
        ;
    va_end(args);
    memset(&got, 0, sizeof(got));
    argv = words;
    optind = 0; /* resets getopt */
    int pipes[2], saved = dup(fd);
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    dup2(pipes[1], fd);
    close(pipes[1]);
    bool goes_on = options_read(&command, options, &argc, &argv, &status);
    fflush(NULL);
    dup2(saved, fd);
    close(saved);
    ssize_t n = read(pipes[0], printed, sizeof(printed) - 1);
    printed[n > 0 ? n : 0] = '\0';
    close(pipes[0]);
    return goes_on;
}

#define READS(...)  reads(STDERR_FILENO, __VA_ARGS__, (char *)NULL)
#define PRINTS(...) reads(STDOUT_FILENO, __VA_ARGS__, (char *)NULL)

static void complains(const char *arguments)
{
    assert_int_equal(status, CLI_ERROR);
    golden_row(arguments, printed);
}

static void values_reach_their_targets(void **state)
{
    (void)state;
    assert_true(READS("--socket", "/s", "a", "-t", "x", "--tools=y", "--turn", "7", "-j", "b"));
    assert_string_equal(got.socket, "/s");
    assert_int_equal(got.tools.count, 2);
    assert_string_equal(got.tools.items[1], "y");
    assert_int_equal(got.turn, 7);
    assert_true(got.json);
    assert_int_equal(argc, 2);
    assert_string_equal(argv[0], "a");
    assert_string_equal(argv[1], "b");
}

static void hidden_options_are_accepted(void **state)
{
    (void)state;
    assert_true(READS("--echo", "a"));
    assert_true(got.hidden);
}

static void errors_name_the_fix(void **state)
{
    (void)state;
    assert_false(READS("--scoket", "/s", "a"));
    complains("--scoket /s a");
    assert_false(READS("--zzzzzz", "a"));
    complains("--zzzzzz a");
    assert_false(READS("-x", "a"));
    complains("-x a");
    assert_false(READS("a", "--socket"));
    complains("a --socket");
    assert_false(READS("--json=1", "a"));
    complains("--json=1 a");
    assert_false(READS("--turn", "soon", "a"));
    complains("--turn soon a");
    assert_false(READS("--turn", "-1", "a"));
    complains("--turn -1 a");
    golden_check_rows("cli", "options: mistakes");
}

static void operands_are_counted(void **state)
{
    (void)state;
    assert_false(READS("--json"));
    complains("--json");
    assert_false(READS("a", "b", "c"));
    complains("a b c");
    golden_check_rows("cli", "options: operands");
}

static void help_lists_everything(void **state)
{
    (void)state;
    assert_false(PRINTS("--help"));
    assert_int_equal(status, CLI_OK);
    golden_check("cli", "options: help", printed);
    assert_null(strstr(printed, "--echo"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_reach_their_targets), cmocka_unit_test(hidden_options_are_accepted),
        cmocka_unit_test(errors_name_the_fix),        cmocka_unit_test(operands_are_counted),
        cmocka_unit_test(help_lists_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
