/* Output for people: errors on stderr, colour on stdout only if it is a terminal. */
#ifndef TOOLGATE_CLI_TERM_H
#define TOOLGATE_CLI_TERM_H

#include "base/str.h"

/* Prints "toolgate COMMAND: …\n" to stderr, or "toolgate: …\n" if no command runs. */
void term_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes to stdout at once, also where another process made it non-blocking. False: it is closed. */
bool term_write_all(struct str text);

/* Prints a text to stderr: its lines stay lines, and printable_write shows the rest of it. */
void term_print_error(struct str text);

enum term_colour { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_GREEN, TERM_YELLOW };

/* The escape sequence, or "" if stdout is no terminal, NO_COLOR is set or TERM is dumb. */
const char *term_colour(enum term_colour colour);

/* Appends a string that a client, a model or an upstream has sent, on one line of at most `columns` columns.
 * Control characters, invalid UTF-8 and characters that move or hide others become '?', so that no name can
 * command the terminal. A string that is cut ends in '~'. Returns the columns used. */
struct buf;
unsigned term_clip(struct buf *out, struct str text, unsigned columns);

#endif
