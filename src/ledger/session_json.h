/*
 * What a session remembers, as JSON for people and policies. Pure functions: the values live in the arena and
 * borrow nothing.
 */
#ifndef TOOLGATE_LEDGER_SESSION_JSON_H
#define TOOLGATE_LEDGER_SESSION_JSON_H

#include "json/value.h"
#include "ledger/codec.h"

/* Array, oldest first, one entry per logical call: {tool, class, code, turn, step, at_ms, retries}. Open
 * repair chains come last; they have "open": true instead of a time and a turn. */
struct json session_json_history(struct arena *arena, const struct session *session,
                                 const struct session_parts *parts);

/* Object, sorted by name. */
struct json session_json_facts(struct arena *arena, const struct session_parts *parts);

/* Everything: {session, turn, step, goal, budgets, ids, facts, history}. `name` is the session's. */
struct json session_json(struct arena *arena, struct str name, const struct session *session,
                         const struct session_parts *parts);

/* How many of its calls have no result yet. */
unsigned session_waiting(const struct session *session);

#endif
