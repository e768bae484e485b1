/*
 * Repairs what a server sends as the result of tools/call, where it has one
 * reading: the tool ran, and its data is worth more than its form.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_RESULT_REPAIR_H
#define TOOLGATE_UPSTREAM_MCP_MCP_RESULT_REPAIR_H

#include "base/str.h"

struct arena;
struct json;

/* JSON whose strings hold bytes that are no UTF-8, or whose numbers are NaN or Infinity, as it can be read:
 * with U+FFFD, and null. `what`: what was replaced, for the log; NULL: nothing, and the text comes back as it
 * is. */
struct str mcp_result_repair_text(struct arena *arena, struct str text, const char **what);

/* A CallToolResult of what the server sent: an object, a string or a list without `content`, or `content` of
 * another form. `what`: what was done, for the log; NULL: it is a CallToolResult. */
const struct json *mcp_result_repair(struct arena *arena, const struct json *result, const char **what);

#endif
