/*
 * A tool's definition as tools/list shows it. Schemas are copied unchanged, except for what makes an official
 * SDK reject the whole list because of one tool.
 */
#ifndef TOOLGATE_CATALOG_DEFINITION_H
#define TOOLGATE_CATALOG_DEFINITION_H

#include "catalog/tool.h"

/* Adds use_when, avoid_when and the rules to the description. ERR_SCHEMA: the tool cannot be listed. */
enum err definition_from_tool(struct arena *arena, const struct tool *tool, struct json *out,
                              struct why *why);

/* Repairs a definition that a prepare hook returned; its name becomes `name`. */
enum err definition_repair(struct arena *arena, struct str name, const struct json *definition,
                           struct json *out, struct why *why);

#endif
