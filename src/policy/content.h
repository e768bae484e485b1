/* MCP content blocks: text, image, audio, links and embedded resources. A client drops the whole reply for
 * one wrong block, so each is checked first. */
#ifndef TOOLGATE_POLICY_CONTENT_H
#define TOOLGATE_POLICY_CONTENT_H

#include "json/value.h"

struct arena;

/* Empty if all blocks can be sent, else an error: "content[2].data: expected base64, got …". */
struct str content_error(struct arena *arena, const struct json *content);

/* Official clients accept the block. */
bool content_block_is_valid(const struct json *block);

/* A list of blocks that all have a type of MCP. */
bool content_is_block_list(const struct json *value);

#endif
