/*
 * Which tools exist for one request. A tool that the peer may not call, or that a policy hides, does not
 * exist: not in lists, not in suggestions, not in errors.
 */
#ifndef TOOLGATE_GATE_TOOL_LOOKUP_H
#define TOOLGATE_GATE_TOOL_LOOKUP_H

#include "base/suggest.h"
#include "gate/call.h"

/* NULL: no such tool. Client tools come first; stage 1 refuses to run them (agent_runs_this). */
const struct tool *tool_lookup_find(struct arena *arena, struct generation *generation,
                                    const struct call_request *request);

#define TOOL_LOOKUP_CLOSE_MAX 3u  /* names that an unknown one may have been meant for */
#define TOOL_LOOKUP_ALL_MAX   12u /* names that are listed if there are no more */

/* Existing names close to request->tool, best first (*close of them), and if there are at most
 * TOOL_LOOKUP_ALL_MAX in all, the others, too. Returns how many. */
size_t tool_lookup_suggest(struct arena *arena, struct generation *generation,
                           const struct call_request *request, struct str out[TOOL_LOOKUP_ALL_MAX],
                           size_t *close);

#endif
