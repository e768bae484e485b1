/*
 * Parts of a message that MCP 2026-07-28 repeats in HTTP headers, for proxies
 * that route without reading bodies: the tool's name (Mcp-Name), and arguments
 * that its schema annotates with x-mcp-header (Mcp-Param-…).
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_HEADER_MAPPING_H
#define TOOLGATE_UPSTREAM_MCP_MCP_HEADER_MAPPING_H

#include "base/err.h"
#include "json/value.h"
#include "upstream/upstream_spec.h"

struct arena;

#define HEADER_MAPPING_MAX        32u /* of one tool */
#define HEADER_MAPPING_NAME_BYTES 64u /* of a header's name after Mcp-Param- */

/* The Mcp-Param- headers of a call, in the arena. `schema`: of the tool's arguments; NULL: not known. None if
 * an annotation is invalid. */
struct name_values header_mapping_headers(struct arena *arena, const struct json *schema,
                                          const struct json *arguments);

/* ERR_SCHEMA: an invalid or misplaced annotation; the specification wants such a tool left out. */
enum err header_mapping_check(const struct json *schema, struct why *why);

/* As a header's value: `text` itself if it is plain ASCII, else =?base64?…?= */
struct str header_mapping_encode(struct arena *arena, struct str text);

#endif
