/* What is said of a budget or limit that speaks against a call: which, how much of it is used up, what to do.
 */
#ifndef TOOLGATE_GATE_FEEDBACK_BUDGET_H
#define TOOLGATE_GATE_FEEDBACK_BUDGET_H

#include "catalog/tool.h"
#include "gate/verdict.h"

struct budget {
    const char *what; /* "it may be called 10 times this turn, and was called 10" */
    const char *next; /* a sentence: what to do instead */
};

/* `code` is the ledger's; `verdict` has what is used up, `tool` the limits. */
struct budget feedback_budget_of(struct arena *arena, struct str code, const struct verdict *verdict,
                                 const struct tool *tool);

#endif
