/*
 * What a command that failed wrote, as a model may read it: its last lines, or
 * where they are a stack trace (Python, Node, Java, Go, Rust, Ruby, PHP, .NET)
 * the error's own message alone. The trace is for the log.
 */
#ifndef TOOLGATE_UPSTREAM_EXEC_EXEC_STDERR_H
#define TOOLGATE_UPSTREAM_EXEC_EXEC_STDERR_H

#include "base/str.h"

#include <stdbool.h>

struct arena;

#define EXEC_STDERR_BYTES 16384u /* the end of it that is kept */
#define EXEC_QUOTE_LINES  5u
#define EXEC_QUOTE_BYTES  1000u

/* In the arena: no control characters but newlines, no bytes that are no UTF-8, no empty lines. *traced:
 * there was a stack trace in it. */
struct str exec_stderr_message(struct arena *arena, struct str text, bool *traced);

#endif
