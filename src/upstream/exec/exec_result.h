/*
 * What the exit of a command means for the call: its output as a value, or a
 * failure with the end of its stderr, in which a stack trace is reduced to its
 * message.
 */
#ifndef TOOLGATE_UPSTREAM_EXEC_EXEC_RESULT_H
#define TOOLGATE_UPSTREAM_EXEC_EXEC_RESULT_H

#include "upstream/secrets.h"
#include "upstream/upstream_call.h"

#define EXEC_JSON_NODES   1000000u /* of a result */
#define EXEC_TRACE_LINES  60u      /* of a stack trace in the log */
#define EXEC_STDERR_BYTES 16384u   /* the end of stderr that is kept */
#define EXEC_QUOTE_LINES  5u
#define EXEC_QUOTE_BYTES  1000u

struct exec_outcome {
    const struct exec_spec *spec;
    const char *command;    /* its name in messages */
    int status;             /* waitpid's */
    struct str out, errors; /* in the call's arena */
    const struct secrets *used;
};

/* Fills in the call's answer. `log_trace`: a stack trace may be logged. */
void exec_result_answer(struct upstream_call *call, const struct exec_outcome *outcome, bool log_trace);

/* The last lines, or the message of the last stack trace (*traced). In the arena: valid UTF-8, no empty
 * lines, no control characters but newlines. */
struct str exec_result_message(struct arena *arena, struct str errors, bool *traced);

#endif
