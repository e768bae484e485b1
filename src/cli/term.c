/* Output for people. */
#include "cli/term.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *program = "toolgate";

void term_program(const char *name)
{
    program = name;
}

const char *term_program_name(void)
{
    return program;
}

void term_error(const char *command, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s%s%s: ", program, command ? " " : "", command ? command : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

const char *term_colour(enum term_colour colour)
{
    static const char *const codes[] = {
        [TERM_PLAIN] = "\033[0m", [TERM_BOLD] = "\033[1m",   [TERM_DIM] = "\033[2m",
        [TERM_RED] = "\033[31m",  [TERM_GREEN] = "\033[32m", [TERM_YELLOW] = "\033[33m"};
    static int coloured = -1;
    if (coloured < 0) {
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
        coloured = isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
    }
    return coloured ? codes[colour] : "";
}

const char *term_verdict_colour(struct str verdict)
{
    if (str_is(verdict, "pass"))
        return term_colour(TERM_GREEN);
    bool repairable = str_is(verdict, "repair") || str_is(verdict, "wait") || str_is(verdict, "ask");
    return term_colour(repairable ? TERM_YELLOW : TERM_RED);
}

void term_print_indented(struct str text, int spaces)
{
    while (text.len) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t n = end ? (size_t)(end - text.at) : text.len;
        printf("%*s%.*s\n", spaces, "", (int)n, text.at);
        text = str_from(text, end ? n + 1 : n);
    }
}

void term_print_time(int64_t ms)
{
    char stamp[TERM_TIME_BYTES + 1] = "";
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    localtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
    printf("%-*s", TERM_TIME_BYTES, stamp);
}
