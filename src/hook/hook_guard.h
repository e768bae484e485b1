/*
 * However a hook ends, the assistant must not take it for "let it run": it does so with any exit code but 0
 * and 2, and with a hook that takes longer than the assistant waits. So one alarm bounds everything that this
 * process does (reading stdin, connecting, writing, waiting), and a fault of its own is exit code 2.
 */
#ifndef TOOLGATE_HOOK_HOOK_GUARD_H
#define TOOLGATE_HOOK_HOOK_GUARD_H

#include "base/str.h"

#define HOOK_DEADLINE_MS      1500u /* of one hook, from its start to its answer */
#define HOOK_ANSWER_MAX_BYTES 4096u /* of the answer at the deadline */
#define HOOK_BLOCKS           2 /* the exit code that makes an assistant stop, with stderr as the reason */

/* Starts the clock. Until hook_guard_answer the deadline means HOOK_BLOCKS. */
void hook_guard_begin(void);

/* From now on the deadline means exit code 0, with these bytes on stdout (copied, at most
 * HOOK_ANSWER_MAX_BYTES; empty: nothing). */
void hook_guard_answer(struct str answer);

/* Writes the answer of this hook to stdout. False, with errno: nobody reads it. */
bool hook_guard_say(struct str answer);

#endif
