/*
 * What a client of an older protocol version does not know: members of
 * definitions are left out, blocks of content become text. An unknown block
 * makes such clients drop the whole result.
 */
#ifndef TOOLGATE_CATALOG_MCP_VERSION_H
#define TOOLGATE_CATALOG_MCP_VERSION_H

#include "json/value.h"

struct arena;

#define MCP_2024_11_05 "2024-11-05"
#define MCP_2025_03_26 "2025-03-26" /* batches, audio, annotations of tools, a text with progress */
#define MCP_2025_06_18 "2025-06-18" /* titles, structured results, links to resources */
#define MCP_2025_11_25 "2025-11-25" /* icons */

/* `protocol`: what the client speaks; empty: unknown, and then it gets everything. */
bool mcp_version_before(struct str protocol, const char *version);

/* Of a tool, a prompt, a resource or a template. Itself if nothing is left out. */
const struct json *mcp_version_definition(struct arena *arena, struct str protocol,
                                          const struct json *definition);

/* One block of a result's content, or a prompt's. Itself if it need not change. */
const struct json *mcp_version_content(struct arena *arena, struct str protocol, const struct json *block);

#endif
