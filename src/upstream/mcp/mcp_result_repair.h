/*
 * Repairs the form of a result, where it has one reading. A tool ran, and its
 * data is worth more than its form.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_RESULT_REPAIR_H
#define TOOLGATE_UPSTREAM_MCP_MCP_RESULT_REPAIR_H

struct arena;
struct json;

/* A CallToolResult of what the server sent: an object, a string or a list without `content`, or `content` of
 * another form. `what`: what was done, for the log; NULL: it is a CallToolResult. */
const struct json *mcp_result_repair(struct arena *arena, const struct json *result, const char **what);

/* What a prompt, a resource or a completion is answered with: without members that are null, which SDKs do
 * not take for absent ones. What is under `_meta` stays as it is. */
const struct json *mcp_result_without_nulls(struct arena *arena, const struct json *result,
                                            const char **what);

#endif
