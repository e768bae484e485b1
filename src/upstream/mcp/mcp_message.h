/*
 * A JSON-RPC message from a server, taken apart at its first level without
 * parsing any value. So a result is parsed once, from its own bytes, into the
 * memory of the call that it belongs to.
 */
#ifndef TOOLGATE_UPSTREAM_MCP_MCP_MESSAGE_H
#define TOOLGATE_UPSTREAM_MCP_MCP_MESSAGE_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum mcp_message_kind {
    MCP_MESSAGE_NOISE,     /* no JSON object: a banner, half a line, an array */
    MCP_MESSAGE_MALFORMED, /* begins as a message but is not valid; `id` is set if it could be recovered */
    MCP_MESSAGE_RESPONSE,  /* `id`, and `result` or `error`; an error may have no id */
    MCP_MESSAGE_REQUEST,
    MCP_MESSAGE_NOTIFICATION
};

/* Each str is the unparsed value; empty: the member is missing. */
struct mcp_message {
    enum mcp_message_kind kind;
    struct str id, method, params, result, error;
    const char *problem; /* MCP_MESSAGE_NOISE, MCP_MESSAGE_MALFORMED */
    bool is_response;    /* MCP_MESSAGE_MALFORMED: it can only have been a response */
    bool has_version;    /* a member `jsonrpc`: else an object may be a line of a log */
};

/* Points into the text. `id` is a string or an integer as it was sent; `method` has no quotes. */
struct mcp_message mcp_message_scan(struct str text);

/* The first message of several in one text (a batch, two in a line), or beside other text; `rest` is then
 * what follows it, empty at the end. */
struct mcp_message mcp_message_next(struct str *rest);

/* For messages over several lines. `depth`: brackets that the line leaves open, less those that it closes.
 * False: it ends within a string, which no line of JSON does. */
bool mcp_message_begins(struct str line);
bool mcp_message_depth(struct str line, int *depth);

/* Compares the method; some libraries escape its slash: "notifications\/progress". */
bool mcp_message_is(const struct mcp_message *message, const char *method);

/* An id that toolgate gave out: digits, up to 2^53, also as "7" or 7.0; 0: it is another id. */
uint64_t mcp_message_own_id(struct str id);

#endif
