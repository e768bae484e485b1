/*
 * What the feedback of refusals (feedback.c), notes (feedback_advice.c) and the class table (error_class.c)
 * write with. A tool's own words are data: quoted as JSON and cut, so that they cannot pass for the
 * gateway's.
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

void feedback_put(const struct feedback_writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* If the model used an alias: the tool's present name. */
void feedback_put_new_name(const struct feedback_writer *w);

/* What a loop is: "you are repeating …", by the code "loop" or "cycle". */
const char *feedback_loop_text(struct str code);

/* Everything written, without the last newline. */
struct str feedback_end(const struct feedback_writer *w);

/* ---- for the class table: the classes whose feedback is more than a headline and a next step ---- */

void feedback_invalid_arguments(const struct feedback_writer *w);
void feedback_unknown_tool(const struct feedback_writer *w);
void feedback_transient(const struct feedback_writer *w);
void feedback_retry_budget(const struct feedback_writer *w);
void feedback_loop(const struct feedback_writer *w);
void feedback_unavailable(const struct feedback_writer *w);
void feedback_need_user_input(const struct feedback_writer *w);

#endif
