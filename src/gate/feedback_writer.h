/*
 * What the class table (error_class.c) takes from feedback.c. A tool's own words are data: quoted as JSON and
 * cut, so that they cannot pass for the gateway's.
 */
#ifndef TOOLGATE_GATE_FEEDBACK_WRITER_H
#define TOOLGATE_GATE_FEEDBACK_WRITER_H

#include "base/buf.h"
#include "gate/feedback.h"

struct feedback_writer {
    struct buf *out;
    struct arena *arena;
    const struct feedback *f;
    const struct verdict *v;
};

/* The classes whose feedback is more than a headline and a next step. */
void feedback_invalid_arguments(const struct feedback_writer *w);
void feedback_unknown_tool(const struct feedback_writer *w);
void feedback_transient(const struct feedback_writer *w);
void feedback_retry_budget(const struct feedback_writer *w);
void feedback_loop(const struct feedback_writer *w);
void feedback_policy_error(const struct feedback_writer *w);
void feedback_unavailable(const struct feedback_writer *w);
void feedback_need_user_input(const struct feedback_writer *w);

#endif
