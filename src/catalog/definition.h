/*
 * A tool as tools/list shows it. Schemas are copied verbatim; mended is only
 * what makes an official SDK reject the whole list for one bad tool.
 */
#ifndef TOOLGATE_CATALOG_DEFINITION_H
#define TOOLGATE_CATALOG_DEFINITION_H

#include "catalog/tool.h"

/* From the tool itself; use_when, avoid_when and the rules' own words join the description. ERR_SCHEMA: it
 * cannot be shown, and `why` says what is wrong with it. */
enum err definition_from_tool(struct arena *arena, const struct tool *tool, struct json *out,
                              struct why *why);

/* The same mending for a definition that a policy has rewritten; the name stays `name`. */
enum err definition_repair(struct arena *arena, struct str name, const struct json *definition,
                           struct json *out, struct why *why);

#endif
