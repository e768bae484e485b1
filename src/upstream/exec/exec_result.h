/* What a command's end means for the call: its output as a value, or what went wrong in words. */
#ifndef TOOLGATE_UPSTREAM_EXEC_EXEC_RESULT_H
#define TOOLGATE_UPSTREAM_EXEC_EXEC_RESULT_H

#include "upstream/upstream_call.h"
#include "upstream/secrets.h"

struct exec_outcome {
    const struct exec_spec *spec;
    const char *command;    /* as messages call it */
    int status;             /* waitpid's */
    struct str out, errors; /* what it wrote; in the run's arena */
    const struct secrets *used;
};

#define EXEC_JSON_NODES  1000000u /* of a result */
#define EXEC_TRACE_LINES 60u      /* of a stack trace that go to the log */

/* Fills the run's answer in. `log_trace`: a stack trace may be logged now. */
void exec_result_answer(struct upstream_call *run, const struct exec_outcome *end, bool log_trace);

#endif
