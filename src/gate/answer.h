/*
 * A finished check or report as toolgate's own methods tell it: the members
 * that stand beside the verdict's own in the same object.
 */
#ifndef TOOLGATE_GATE_ANSWER_H
#define TOOLGATE_GATE_ANSWER_H

#include "gate/call.h"

struct json_out;

/* callId, arguments as normalised, text, advice, and where it was asked for, the trace. */
void answer_check(struct json_out *out, const struct call *call, bool trace);

/* text, advice, content. */
void answer_report(struct json_out *out, const struct call *call);

#endif
