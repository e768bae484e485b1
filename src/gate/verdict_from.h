/*
 * From what others said to a verdict: arguments, ids, the ledger, a policy's
 * hook. Each function knows one speaker; none knows the call it is about, so
 * that call.c can be read as the order of things and nothing else.
 */
#ifndef TOOLGATE_GATE_VERDICT_FROM_H
#define TOOLGATE_GATE_VERDICT_FROM_H

#include "gate/arguments.h"
#include "gate/ids.h"
#include "gate/verdict.h"

/* A hook that threw or ran out of its budget. */
void verdict_from_policy_error(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                               const char *why);

/* The same, where the call can do without that hook: a tool that declares fails_open goes on. */
void verdict_from_broken_hook(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                              const char *why);

/* After stages 2 and 3. */
void verdict_from_arguments(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                            const struct arguments *args);
void verdict_from_malformed_id(struct verdict *verdict, struct arena *arena, const struct id_fault *fault);

/* After admit. What was invalid before keeps its problems. */
void verdict_from_ledger(struct verdict *verdict, const struct ledger_answer *answer);

/* An id that nothing gave: refused where nothing can have been missed (`certain`), else to be looked up once.
 */
void verdict_from_unseen_id(struct verdict *verdict, struct arena *arena, const struct id_fault *fault,
                            const struct policy_id *from, bool certain);

/* What check and run say alike: repair, refuse, ask, retry, transient, failed; anything else decides nothing.
 */
void verdict_from_hook(struct verdict *verdict, struct arena *arena, const struct policy_outcome *said);

/* The tool asks the user something, or failed, in words of its own. */
void verdict_from_question(struct verdict *verdict, const struct policy_outcome *said);
void verdict_from_failure(struct verdict *verdict, enum error_class class, const struct policy_outcome *said);

/* After settle: what only the ledger knows of attempts and repeats. */
void verdict_from_settle(struct verdict *verdict, const struct ledger_settled *settled, bool ran);

#endif
