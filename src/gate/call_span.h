/*
 * The spans of one call: one of kind SERVER for the call, one for each stage, and one of kind CLIENT for each
 * run in an upstream, which gets it as its parent. They hold names, classes and codes, never arguments,
 * results or sentences.
 */
#ifndef TOOLGATE_GATE_CALL_SPAN_H
#define TOOLGATE_GATE_CALL_SPAN_H

#include <stdint.h>

struct call;
struct call_span;
struct trace_context;

#define CALL_SPAN_STAGES_MAX 32u /* a retry passes some stages more than once; further ones are left out */

/* NULL: the call is not sampled. */
struct call_span *call_span_begin(struct call *call);

/* A stage has ended, or the retry's pause; `call->stage_began_ns` is its beginning. */
void call_span_stage(struct call *call, const char *name);

/* What the upstream gets instead of the client's trace context. */
const struct trace_context *call_span_for_upstream(struct call *call);

/* Writes them; `stage`: the one that a cancellation has interrupted, or NULL. */
void call_span_end(struct call *call, const char *stage);

#endif
