/* What a session remembers, as JSON for people and policies. */
#ifndef TOOLGATE_LEDGER_VIEW_H
#define TOOLGATE_LEDGER_VIEW_H

#include "base/err.h"
#include "json/value.h"
#include "ledger/pack.h"

/* Array, oldest first, one entry a logical call: {tool, class, code, turn, step, at_ms, retries}. A repair
 * chain that is still open is the last entry of its tool and has "open": true instead of a time. */
struct json view_history(struct arena *arena, const struct reply_parts *parts);

/* Object, names sorted. */
struct json view_facts(struct arena *arena, const struct reply_parts *parts);

/* The answer of ledger_view, from view.lua's reply; ERR_PARSE for a reply that is none. */
enum err view_session(struct arena *arena, struct str session, struct str text, struct json *out,
                      struct why *why);

#endif
