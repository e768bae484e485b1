/* Plays the agent in this process, with a local ledger and a clock that the caller sets: for examples,
 * samples and operators' specs. */
#ifndef TOOLGATE_GATE_SIMULATOR_H
#define TOOLGATE_GATE_SIMULATOR_H

#include "catalog/generation.h"
#include "gate/call.h"

#define SIMULATOR_TIME_MS 1780000000000 /* a day in 2026: the clock's value until it is set */

/* A local ledger whose clock only simulator_set_clock moves. The process has one clock: a
 * caller with several ledgers sets it before each call. */
struct ledger *simulator_ledger(void);
void simulator_set_clock(int64_t ms);

/* Makes a call in this mode and returns it finished; the caller calls call_free. */
struct call *simulator_make(struct gate *gate, struct arena *arena, const struct call_request *request,
                            enum call_mode mode);

/* The same in the mode that suits the tool: one that toolgate runs is called; one that the agent runs is
 * checked and, if it passed and `result` is not NULL, reported. */
struct call *simulator_call(struct gate *gate, struct arena *arena, const struct call_request *request,
                            const struct json *result);

/* Adds an array of ids to those that the request's session has seen. */
void simulator_add_seen_ids(struct gate *gate, struct arena *arena, const struct call_request *request,
                            const struct json *ids);

/* Adds earlier calls, {tool, args, result, class, turn, ago}, all optional, which the ledger counts and no
 * policy judges. ERR_NOT_FOUND: an entry has an unknown class. */
enum err simulator_add_history(struct gate *gate, struct arena *arena, const struct call_request *request,
                               const struct json *history, struct why *why);

#endif
