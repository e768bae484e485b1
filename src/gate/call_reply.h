/*
 * A finished check or report as toolgate's own methods tell it: the members
 * that stand beside the verdict's own in the same object.
 */
#ifndef TOOLGATE_GATE_CALL_REPLY_H
#define TOOLGATE_GATE_CALL_REPLY_H

#include "gate/call.h"

struct json_out;

/* callId, arguments as normalised, text, advice, and where it was asked for, the trace. */
void call_reply_check(struct json_out *out, const struct call *call, bool trace);

/* What the model reads, as MCP content blocks: the tool's result and the notes beside it, or the feedback. */
void call_reply_content(struct json_out *out, const struct call *call);
void call_reply_text_block(struct json_out *out, struct str text); /* nothing where it is empty */

/* text, advice, content. */
void call_reply_report(struct json_out *out, const struct call *call);

#endif
