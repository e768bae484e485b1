/*
 * The callId of a check, kept from PreToolUse until PostToolUse, which is another process: a private file in
 * $XDG_RUNTIME_DIR/toolgate-hook, or /tmp/toolgate-hook-UID. Without it a result cannot be reported, and
 * nothing else is lost.
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

/* Forgets calls that are too old. */
void hook_calls_sweep(void);

#endif
