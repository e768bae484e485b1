/*
 * The terminal while a full-screen command has it: single keys, the second
 * screen, no cursor. It is given back when the command ends, is suspended
 * (SIGTSTP) or is killed by a signal that can be caught.
 */
#ifndef TOOLGATE_CLI_RAW_TERMINAL_H
#define TOOLGATE_CLI_RAW_TERMINAL_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct raw_terminal_event {
    bool resized;  /* or continued after a suspension: draw everything again */
    bool ended;    /* SIGINT, SIGTERM, SIGHUP, or the terminal is gone */
    bool readable; /* the descriptor that was waited for */
    char key;      /* 0: none */
};

/* ERR_IO if stdin or stdout is no terminal. Once a process. */
enum err raw_terminal_open(struct why *why);

/* Gives the terminal back. After a signal that ends a process it raises that signal, so that the exit status
 * names it; SIGINT is the usual way out and ends with status 0. */
void raw_terminal_close(void);

/* Columns and rows; 80 and 24 if the terminal does not know. */
void raw_terminal_size(unsigned *columns, unsigned *rows);

/* Replaces the screen's lines; each line fits. Nothing is written for lines that stay as they were. */
void raw_terminal_draw(struct str frame);

/* Waits for a key, a signal, or input from `fd` (-1: none), at most until this time of the monotonic clock.
 */
struct raw_terminal_event raw_terminal_wait(int fd, int64_t until_us);

#endif
