/*
 * Parts of a message that MCP 2026-07-28 wants in headers, too, for those who
 * route without reading bodies: the tool's name (Mcp-Name), and arguments that
 * its schema marks with x-mcp-header (Mcp-Param-…).
 */
#ifndef TOOLGATE_UPSTREAM_MIRROR_H
#define TOOLGATE_UPSTREAM_MIRROR_H

#include "base/str.h"

struct arena;

/* As a header's value: itself where that is plain ASCII, else =?base64?…?= of it. */
struct str mirror_encode(struct arena *arena, struct str text);

#endif
