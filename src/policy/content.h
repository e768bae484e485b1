/*
 * What a tool shows a model beside or instead of a value: blocks of text,
 * image, audio, links and embedded resources, as MCP has them. A client drops
 * the whole answer for one block that is wrong, so each is looked at first.
 */
#ifndef TOOLGATE_POLICY_CONTENT_H
#define TOOLGATE_POLICY_CONTENT_H

#include "json/value.h"

struct arena;

/* Empty where all blocks can be sent, else a sentence: "content[2].data: expected base64, got …". */
struct str content_error(struct arena *arena, const struct json *content);

/* Official clients take a block like this; what they do not check, this does not either. */
bool content_block_is_valid(const struct json *block);

/* A list of blocks, each of a type that MCP knows: not any list of objects. */
bool content_is_block_list(const struct json *value);

#endif
