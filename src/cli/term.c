/* Words to a person. */
#include "cli/term.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void say_error(const char *command, const char *format, ...)
{
    va_list args;
    fprintf(stderr, command ? "toolgate %s: " : "toolgate: ", command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static bool is_coloured(void)
{
    static int known = -1;
    if (known < 0) {
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
        known = isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
    }
    return known;
}

const char *say_colour(enum say_colour colour)
{
    static const char *const codes[] = {
        [SAY_PLAIN] = "\033[0m", [SAY_BOLD] = "\033[1m",   [SAY_DIM] = "\033[2m",
        [SAY_RED] = "\033[31m",  [SAY_GREEN] = "\033[32m", [SAY_YELLOW] = "\033[33m"};
    return is_coloured() ? codes[colour] : "";
}

const char *say_verdict_colour(struct str verdict)
{
    if (str_is(verdict, "pass"))
        return say_colour(SAY_GREEN);
    bool mends = str_is(verdict, "repair") || str_is(verdict, "wait") || str_is(verdict, "ask");
    return say_colour(mends ? SAY_YELLOW : SAY_RED);
}

void say_indented(struct str text, int spaces)
{
    while (text.len) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t n = end ? (size_t)(end - text.at) : text.len;
        printf("%*s%.*s\n", spaces, "", (int)n, text.at);
        text = str_from(text, end ? n + 1 : n);
    }
}

void say_time(int64_t ms)
{
    char stamp[SAY_TIME_BYTES + 1] = "";
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    localtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
    printf("%-*s", SAY_TIME_BYTES, stamp);
}
