/*
 * What became of a call that others ran: an upstream's answer as a result or
 * as a verdict. One function a way of ending, as verdict_from.c has one a speaker.
 */
#ifndef TOOLGATE_GATE_UPSTREAM_RESULT_H
#define TOOLGATE_GATE_UPSTREAM_RESULT_H

#include "result/result.h"
#include "catalog/tool.h"
#include "gate/verdict.h"
#include "upstream/upstream.h"

/* Decides, or leaves the verdict alone and fills `result` in. */
void upstream_result_read(struct verdict *verdict, struct arena *arena, const struct tool *tool,
                          const struct upstream_answer *answer, struct result *result);

/* Nobody is there who could ask it: a test, a command without a daemon. */
void upstream_result_unavailable_here(struct verdict *verdict, struct arena *arena, const struct tool *tool);

#endif
