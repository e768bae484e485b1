/*
 * The members that the reply of a finished check, report or call has beside its verdict's. Each function
 * writes into an object that the caller has opened.
 */
#ifndef TOOLGATE_GATE_CALL_REPLY_H
#define TOOLGATE_GATE_CALL_REPLY_H

#include "gate/call.h"

struct json_out;

/* callId, arguments, text, advice, and the stages if the request wanted a trace. */
void call_reply_check(struct json_out *out, struct call *call);

/* text, advice, content. */
void call_reply_report(struct json_out *out, const struct call *call);

/* content: the tool's result and the advice, or the feedback, as MCP content blocks of a version
 * (mcp_version.h; with STR_NONE `arena` may be NULL). `unsent`: the structured result that the client does
 * not get otherwise, as text if there is no content; NULL: none. */
void call_reply_content(struct arena *arena, struct json_out *out, const struct call *call,
                        struct str protocol, const struct json *unsent);
void call_reply_text_block(struct json_out *out, struct str text); /* nothing if `text` is empty */

#endif
