/*
 * What a line from a server is, before any of it is parsed: its members of the
 * first level are found and nothing is looked at inside them. So a result is
 * parsed once, from its own bytes, into the memory of the one it is for.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_MESSAGE_H
#define TOOLGATE_UPSTREAM_MCP_MCP_MESSAGE_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum mcp_message_kind {
    MCP_MESSAGE_NOISE,     /* no JSON object: a banner, half a line, an array */
    MCP_MESSAGE_MALFORMED, /* begins as a message and is none; `id` is an answer's where it could be saved */
    MCP_MESSAGE_RESPONSE,  /* `id`, and `result` or `error` */
    MCP_MESSAGE_REQUEST,
    MCP_MESSAGE_NOTIFICATION
};

/* Each the text of its value as it stands there, unparsed; empty: there is none. */
struct mcp_message {
    enum mcp_message_kind kind;
    struct str id, method, params, result, error;
    const char *trouble; /* MCP_MESSAGE_NOISE, MCP_MESSAGE_MALFORMED: what is wrong, in words */
};

/* Points into the text. `id` is a string or an integer as it was sent; `method` comes without its quotes. */
struct mcp_message mcp_message_scan(struct str text);

/* Its method, however the slash in it is written: some libraries send "notifications\/progress". */
bool mcp_message_is(const struct mcp_message *line, const char *method);

/* An id of ours: digits, up to 2^53; 0: it is none. */
uint64_t mcp_message_own_id(struct str id);

#endif
