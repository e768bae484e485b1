/* Words to a person: complaints on stderr, colour on stdout only where a terminal shows it. */
#ifndef TOOLGATE_CLI_TERM_H
#define TOOLGATE_CLI_TERM_H

#include "base/str.h"

#include <stdint.h>

/* "toolgate check: …\n" on stderr. */
void say_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum say_colour { SAY_PLAIN, SAY_BOLD, SAY_DIM, SAY_RED, SAY_GREEN, SAY_YELLOW };

/* The escape sequence, or "" where stdout is no terminal, NO_COLOR is set or TERM is dumb. */
const char *say_colour(enum say_colour colour);

/* Green for pass, yellow for what can be mended, red for the rest. */
const char *say_verdict_colour(struct str verdict);

/* Each line of `text` on stdout, behind so many spaces. */
void say_indented(struct str text, int spaces);

/* A moment on stdout, by the clock on the wall here: "2026-05-03 22:14:07". */
#define SAY_TIME_BYTES 19
void say_time(int64_t ms);

#endif
