/*
 * Which tools exist, for this peer, in this kind of request. What a peer may
 * not call, or a policy hides, does not exist: not in lists, not in
 * suggestions, not in errors.
 */
#ifndef TOOLGATE_GATE_TOOL_LOOKUP_H
#define TOOLGATE_GATE_TOOL_LOOKUP_H

#include "gate/call.h"
#include "base/suggest.h"

/* NULL: there is no such tool for this request. */
const struct tool *tool_lookup_find(struct arena *arena, struct generation *generation,
                                    const struct call_request *request);

/* Names that may have been meant, best first; returns how many. */
size_t tool_lookup_suggest(struct arena *arena, struct generation *generation,
                           const struct call_request *request, struct str out[SUGGEST_MAX]);

#endif
