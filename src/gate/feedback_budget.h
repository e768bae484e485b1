/* The budget or limit that refuses a call, in words: which one, how much of it is used, what to do instead.
 */
#ifndef TOOLGATE_GATE_FEEDBACK_BUDGET_H
#define TOOLGATE_GATE_FEEDBACK_BUDGET_H

#include "catalog/tool.h"
#include "gate/verdict.h"

struct feedback_budget {
    const char *what; /* "it may be called 10 times this turn, and 10 were made" */
    const char *next; /* a sentence */
};

/* `code` is the ledger's. `tool` has the limits; NULL: unknown. Strings live in the arena. */
struct feedback_budget feedback_budget_of(struct arena *arena, struct str code, const struct verdict *verdict,
                                          const struct tool *tool);

#endif
