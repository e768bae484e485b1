/*
 * Parts of a message that MCP 2026-07-28 repeats in HTTP headers, for proxies
 * that route without reading bodies: the tool's name (Mcp-Name), and arguments
 * that its schema annotates with x-mcp-header (Mcp-Param-…). The annotations
 * are learned from the responses to tools/list.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_HEADER_MAPPING_H
#define TOOLGATE_UPSTREAM_MCP_MCP_HEADER_MAPPING_H

#include "base/err.h"
#include "json/value.h"
#include "upstream/upstream_spec.h"

struct arena;
struct mapped_tool;

#define HEADER_MAPPING_MAX        32u /* of one tool */
#define HEADER_MAPPING_NAME_BYTES 64u /* of a header's name after Mcp-Param- */

struct header_mapping { /* embedded; all zero at first */
    struct arena *arena;
    struct mapped_tool *tools; /* those with annotations */
};
void header_mapping_clear(struct header_mapping *mapping);

/* `message`: a response to tools/list; `first`: the first page, which replaces what was known. */
void header_mapping_learn(struct header_mapping *mapping, struct str message, bool first);

/* The Mcp-Param- headers for a tools/call message, in the arena. */
struct name_values header_mapping_headers(const struct header_mapping *mapping, struct arena *arena,
                                          struct str tool, struct str message);

/* ERR_SCHEMA: an invalid or misplaced annotation; the specification wants such a tool left out. */
enum err header_mapping_check(const struct json *schema, struct why *why);

/* As a header's value: `text` itself if it is plain ASCII, else =?base64?…?= */
struct str header_mapping_encode(struct arena *arena, struct str text);

#endif
