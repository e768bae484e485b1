/*
 * Stack traces in the output of programs. One rule for Python, Node, Java,
 * .NET, Rust, Ruby, PHP and Go: a frame is an indented line such as
 * "at f (x.js:1:2)" or "File "x.py", line 1", or "#0 f()"; a header announces
 * frames. A model cannot use them, and they name files of the host.
 */
#ifndef TOOLGATE_BASE_STACK_TRACE_H
#define TOOLGATE_BASE_STACK_TRACE_H

#include "base/str.h"

struct arena;

/* `line`: with its indentation, without its line break. */
bool stack_trace_is_frame(struct str line);

/* "Traceback (most recent call last):", "goroutine 1 [running]:" */
bool stack_trace_is_header(struct str line);

/* `text` without headers, frames and the source lines that follow a header; in the arena, trimmed. Returns
 * `text` itself if it has no trace, or is nothing but a trace. */
struct str stack_trace_strip(struct arena *arena, struct str text);

#endif
