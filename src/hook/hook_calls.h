/*
 * The callId of a check, kept from PreToolUse until PostToolUse, which is another process: a private file in
 * $XDG_RUNTIME_DIR/toolgate-hook, or /tmp/toolgate-hook-UID. Without it a result cannot be reported, and
 * nothing else is lost. The step of each agent of a session is kept beside it.
 */
#ifndef TOOLGATE_HOOK_HOOK_CALLS_H
#define TOOLGATE_HOOK_HOOK_CALLS_H

#include "hook/hook_event.h"

#define HOOK_CALL_ID_MAX_BYTES 512u
#define HOOK_CALLS_KEPT_S      86400 /* of a call that was never reported: its user said no */
#define HOOK_CALLS_SWEPT_MAX   4096u /* files that one sweep looks at */

/* False, with errno: it cannot be kept. */
bool hook_call_keep(const struct hook_event *event, struct str call_id);

/* The callId of the check before this event, which is forgotten; empty: none is known. */
struct str hook_call_take(const struct hook_event *event, char into[HOOK_CALL_ID_MAX_BYTES]);

/*
 * The step of this event's call, the same for all calls of one model message. Nothing in a call says which
 * message it is of, but the assistant says when all calls of one have ended. An agent that has never said so
 * (an assistant without PostToolBatch) has each call as a step: the id of the call.
 */
struct str hook_step(const struct hook_event *event, char into[HOOK_CALL_ID_MAX_BYTES]);

/* The next call of this event's agent begins a step. `first`: also if it never had one. */
void hook_step_end(const struct hook_event *event, bool first);

/* Forgets calls and steps that are too old. */
void hook_calls_sweep(void);

#endif
