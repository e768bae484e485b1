/* What an assistant reads on stdout after a hook; nothing at all lets it go its own way. */
#ifndef TOOLGATE_HOOK_HOOK_ANSWER_H
#define TOOLGATE_HOOK_HOOK_ANSWER_H

#include "hook/hook_event.h"

enum hook_decision { HOOK_ASK, HOOK_ALLOW, HOOK_DENY };

/* PreToolUse. `updated`: the arguments in place of the input, only with HOOK_ASK; NULL: the input stays.
 * Codex runs what it is told to ask about, so HOOK_ASK is a denial there, with the question or the corrected
 * call in words. */
void hook_answer_decision(const struct hook_event *event, enum hook_decision decision, struct str reason,
                          const struct json *updated);

/* A note for the model beside a call that goes on, or beside its result. */
void hook_answer_note(const struct hook_event *event, struct str note);

/* PostToolUse: the result is not what it seems; the model reads why. */
void hook_answer_block(struct str reason);

/* What belongs into the assistant's settings. */
void hook_answer_install(const char *program, const char *socket);

#endif
