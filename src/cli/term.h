/* Words to a person: complaints on stderr, colour on stdout only where a terminal shows it. */
#ifndef TOOLGATE_CLI_TERM_H
#define TOOLGATE_CLI_TERM_H

#include "base/str.h"

#include <stdint.h>

/* The name in front of errors; "toolgate" unless set. */
void term_program(const char *name);
const char *term_program_name(void);

/* "toolgate check: …\n" on stderr. */
void term_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum term_colour { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_GREEN, TERM_YELLOW };

/* The escape sequence, or "" where stdout is no terminal, NO_COLOR is set or TERM is dumb. */
const char *term_colour(enum term_colour colour);

/* Green for pass, yellow for what can be mended, red for the rest. */
const char *term_verdict_colour(struct str verdict);

/* Each line of `text` on stdout, behind so many spaces. */
void term_print_indented(struct str text, int spaces);

/* A moment on stdout, by the clock on the wall here: "2026-05-03 22:14:07". */
#define TERM_TIME_BYTES 19
void term_print_time(int64_t ms);

#endif
