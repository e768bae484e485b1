/*
 * From what others said to a verdict: arguments, ids, the ledger, a policy's
 * hook. Each function knows one speaker; none knows the call it is about, so
 * that call.c can be read as the order of things and nothing else.
 */
#ifndef TOOLGATE_GATE_VERDICT_FROM_H
#define TOOLGATE_GATE_VERDICT_FROM_H

#include "gate/arguments.h"
#include "result/failure_envelope.h"
#include "gate/ids.h"
#include "result/result.h"
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

/* ---- results; verdict_from_result.c ---- */

/* Whether what results say of themselves is looked at. */
bool judge_reads_envelopes(const struct tool *tool);
/* What was recognised, and the tool's own words. */
void verdict_from_envelope(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                           const struct envelope *envelope, struct str said);

/* A result that is told to be an error, the message of one: which kind, by its words. */
void verdict_from_error_result(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                               const struct result *result);
void verdict_from_error_message(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                                struct str message);

/* The result hook, with coverage, facts, follow-ups and cost. A hook that broke only leaves a warning: the
 * tool has run. */
void verdict_from_result_hook(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                              const struct json *args, const struct result *result,
                              const struct policy_outcome *said);

/* The output schema of a tool, where its result breaks it. */
void verdict_from_output_schema(struct verdict *verdict, const struct tool *tool, struct arena *arena,
                                const struct result *result);

/* Of a call that has run: how far it got towards what the user asked for, where nobody has said. */
void verdict_set_coverage(struct verdict *verdict);

/* After settle: what only the ledger knows of attempts and repeats. */
void verdict_from_settle(struct verdict *verdict, const struct ledger_settled *settled, bool ran);

#endif
