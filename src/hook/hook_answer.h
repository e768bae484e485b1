/* What an assistant reads on stdout after a hook; nothing at all lets it go its own way. */
#ifndef TOOLGATE_HOOK_HOOK_ANSWER_H
#define TOOLGATE_HOOK_HOOK_ANSWER_H

#include "hook/hook_event.h"

struct buf;

enum hook_decision { HOOK_ASK, HOOK_ALLOW, HOOK_DENY };

/* Codex takes an answer with a key or a decision that it does not know as none, and runs the call. An event
 * that may be Codex' therefore gets what both understand. */

/* PreToolUse, a line. `updated`: the arguments in place of the input, only with HOOK_ASK; NULL: the input
 * stays. Only Claude Code can ask: for others HOOK_ASK is a denial, with the question or the corrected call
 * in words. HOOK_ALLOW writes nothing: the assistant's own prompt stays. */
void hook_answer_decision(struct buf *out, const struct hook_event *event, enum hook_decision decision,
                          struct str reason, const struct json *updated);

/* A note for the model beside a call that goes on, or beside its result. Codex lets a call pass only where
 * nothing is written. */
void hook_answer_note(struct buf *out, const struct hook_event *event, struct str note);

/* The call is denied; or its result is not what it seems. The model reads why. */
void hook_answer_block(struct buf *out, const struct hook_event *event, struct str reason);

/* The same where no further call would help: Claude Code ends the agent's run. */
void hook_answer_halt(struct buf *out, const struct hook_event *event, struct str reason);

/* What belongs into the assistant's settings. `command`: for sh. */
void hook_answer_install(struct buf *out, enum hook_client client, struct str command);

#endif
