/*
 * Builds verdicts from what arguments, ids, the ledger and policy hooks report. Each function reads one
 * source and knows nothing of the call; the stages in call*.c decide when to use it. Strings are borrowed.
 */
#ifndef TOOLGATE_GATE_VERDICT_FROM_H
#define TOOLGATE_GATE_VERDICT_FROM_H

#include "gate/arguments.h"
#include "gate/ids.h"
#include "gate/verdict.h"
#include "policy/policy_hooks.h"

void verdict_log_policy_error(struct str tool, const char *why); /* `policy_error tool=… why=…` */

/* A hook that raised an error or exceeded its limits; logs it. */
void verdict_from_policy_error(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                               const char *why);

/* The code of a policy_error where the tool has run and its result hook failed: the result is withheld. */
#define VERDICT_RESULT_UNCHECKED "result_unchecked"

/* The same for a hook that the call can do without: with on_policy_error = "open" it only logs. */
void verdict_from_broken_hook(struct verdict *verdict, const struct tool *tool, const struct policy *policy,
                              struct arena *arena, const char *why);

/* `policy`: the one that checked them; NULL: none. */
void verdict_from_arguments(struct verdict *verdict, const struct tool *tool, const struct policy *policy,
                            struct arena *arena, const struct arguments *args);

/* An id of impossible format. */
void verdict_from_malformed_id(struct verdict *verdict, struct arena *arena, const struct id_fault *fault);

/* An id that no result and no goal contains: fabricated if `certain`, else to be looked up. */
void verdict_from_unseen_id(struct verdict *verdict, struct arena *arena, const struct id_fault *fault,
                            const struct policy_id *id, bool certain);

/* The ledger's answer to admit; invalid arguments keep their problems. */
void verdict_from_ledger(struct verdict *verdict, const struct ledger_answer *answer);

/* The ledger's answer to settle: attempts, repeats and the time to wait. */
void verdict_from_settle(struct verdict *verdict, const struct ledger_settled *settled, bool ran);

/* An outcome of check or run: repair, refuse, ask, retry, transient or failed; others leave the verdict as it
 * is. */
void verdict_from_hook(struct verdict *verdict, struct arena *arena, const struct policy_outcome *outcome);

/* A hook's question for the user, and a failure in the tool's own words. */
void verdict_from_question(struct verdict *verdict, const struct policy_outcome *outcome);
void verdict_from_failure(struct verdict *verdict, enum error_class class,
                          const struct policy_outcome *outcome);

#endif
