/*
 * Calls made in this process, without a daemon, over a ledger and a clock of
 * their own: what examples, samples and operators' own specs share. They go
 * through the one pipeline; this only plays the agent.
 */
#ifndef TOOLGATE_GATE_SIMULATOR_H
#define TOOLGATE_GATE_SIMULATOR_H

#include "gate/call.h"
#include "catalog/generation.h"

#define SIMULATOR_TIME_MS                                                                                    \
    1780000000000 /* an ordinary day in 2026: where the clock stands until it is set                         \
                   */

/* A ledger whose clock stands still unless simulator_set_clock moves it. One clock a process: whoever plays
 * several ledgers sets it before each call. */
enum err simulator_ledger(struct ledger **out, struct why *why);
void simulator_set_clock(int64_t ms);

/*
 * Makes the call (its mode is set here) and returns it finished; call_free is
 * the caller's. A tool that toolgate runs is called; one that the agent runs
 * is checked and, where it passed and `result` is not NULL, reported with it.
 */
struct call *play(struct gate *gate, struct arena *arena, const struct call_request *request,
                  const struct json *result);

/* A check alone, or the report of what became of it. */
struct call *simulator_check(struct gate *gate, struct arena *arena, const struct call_request *request);
struct call *simulator_report(struct gate *gate, struct arena *arena, const struct call_request *request);

/* Ids that are known already. */
void simulator_add_seen_ids(struct gate *gate, struct arena *arena, const struct call_request *request,
                            const struct json *ids);

/*
 * Calls that came before: an array of {tool, args, result, class, turn, ago},
 * all optional. They are counted by the ledger as if they had been made; no
 * policy judges them. ERR_NOT_FOUND with a sentence where a class is unknown.
 */
enum err simulator_add_history(struct gate *gate, struct arena *arena, const struct call_request *request,
                               const struct json *history, struct why *why);

#endif
