/* Repairs arguments as a whole, step by step. Part of gate/arguments.h, for its files only. */
#ifndef TOOLGATE_GATE_ARGUMENTS_REPAIR_H
#define TOOLGATE_GATE_ARGUMENTS_REPAIR_H

#include "gate/arguments.h"

/* Finds the one reading of args->now that the schema accepts and makes it args->now, or proposes it. False:
 * it is not applied, and unless problems were added the schema says what is wrong with args->now. Call it for
 * arguments that the schema rejects, or that have members which it does not declare. */
bool arguments_repair(struct arguments *args, struct arena *arena, const struct tool *tool);

#endif
