/*
 * What refusals (feedback.c) and notes (feedback_advice.c) write with. Only
 * they include this header.
 */
#ifndef TOOLGATE_GATE_FEEDBACK_INTERNAL_H
#define TOOLGATE_GATE_FEEDBACK_INTERNAL_H

#include "base/buf.h"
#include "gate/feedback.h"

struct words {
    struct buf *out;
    struct arena *arena;
    const struct feedback *f;
    const struct verdict *v;
};

void feedback_put(const struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void feedback_put_json(const struct words *w, const struct json *value);

/* The model used an alias: what it is called now. */
void feedback_put_new_name(const struct words *w);

/* What a loop of this code is, in words. */
const char *feedback_loop_text(struct str code);

/* All that was said, without its last line break. */
struct str feedback_end(const struct buf *out);

#endif
