/*
 * Parts of a message that MCP 2026-07-28 wants in headers, too, for those who
 * route without reading bodies: the tool's name (Mcp-Name), and arguments that
 * its schema marks with x-mcp-header (Mcp-Param-…). Which they are is learnt
 * from the lists of tools that come by.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_HEADER_MAPPING_H
#define TOOLGATE_UPSTREAM_MCP_MCP_HEADER_MAPPING_H

#include "base/err.h"
#include "json/value.h"
#include "upstream/upstream_spec.h"

struct arena;
struct mapped_tool;

#define HEADER_MAPPING_MAX        32u /* of one tool */
#define HEADER_MAPPING_NAME_BYTES 64u /* of a header's name behind Mcp-Param- */

struct header_mapping { /* embedded; all zero to begin with */
    struct arena *arena;
    struct mapped_tool *tools; /* those with marks */
};
void header_mapping_clear(struct header_mapping *mirror);

/* A page of tools/list, as the whole message; `first`: what was known before is forgotten. */
void header_mapping_learn(struct header_mapping *mirror, struct str message, bool first);

/* The Mcp-Param- headers for a message that calls this tool, in the arena. */
struct name_values header_mapping_headers(const struct header_mapping *mirror, struct arena *arena,
                                          struct str tool, struct str message);

/* ERR_SCHEMA: a mark stands where none may, or is none; then the specification wants the tool left out. */
enum err header_mapping_check(const struct json *schema, struct why *why);

/* As a header's value: itself where that is plain ASCII, else =?base64?…?= of it. */
struct str header_mapping_encode(struct arena *arena, struct str text);

#endif
