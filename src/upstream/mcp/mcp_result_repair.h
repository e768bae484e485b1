/*
 * Repairs what a server sends, where it has one reading: its text, and the
 * form of a result of tools/call. The tool ran, and its data is worth more
 * than its form.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_RESULT_REPAIR_H
#define TOOLGATE_UPSTREAM_MCP_MCP_RESULT_REPAIR_H

#include "base/err.h"
#include "base/str.h"

struct arena;
struct json;
struct json_error;
struct json_limits;

/* Parses, if need be with bytes that are no UTF-8, raw control characters, NaN and Infinity replaced. `text`
 * must live as long as the value. `what`: what was replaced, for the log; NULL: nothing. ERR_PARSE,
 * ERR_LIMIT: `error` says why it is not read. */
enum err mcp_json_read(struct arena *arena, struct str text, const struct json_limits *limits,
                       struct json *value, struct json_error *error, const char **what);

/* A CallToolResult of what the server sent: an object, a string or a list without `content`, or `content` of
 * another form. `what`: what was done, for the log; NULL: it is a CallToolResult. */
const struct json *mcp_result_repair(struct arena *arena, const struct json *result, const char **what);

#endif
