/*
 * What came back, judged: by its output schema, by the conventions of the
 * field (explicit failure envelopes, empty results), then by the policy.
 */
#ifndef TOOLGATE_RESULT_RESULT_H
#define TOOLGATE_RESULT_RESULT_H

#include "json/value.h"
#include "policy/policy.h"

struct arena;

/* A tool's result in both forms: as MCP sends it, and as a policy reads it. */
struct result {
    const struct json *content;    /* MCP content array; NULL: there is no result */
    const struct json *structured; /* structuredContent; NULL: none */
    const struct json *metadata;   /* for the agent's program, `_meta` */
    const struct json *value; /* what the result hook sees: structured, else the one text block where it is
                                 JSON, else {text = …} */
    bool as_text;             /* `value` is {text = …}: there was no JSON in it */
    bool is_error;
    struct str error_text; /* is_error: the text blocks, joined */
};

#define RESULT_UNINFORMATIVE_MAX_BYTES                                                                       \
    200u /* "No results found for '…'": a text that is longer says something */

/* What a server of MCP answered, to the letter, but for a block that no client would take, which is mended,
 * or becomes its JSON as a text; where it left `content` out, its structured content as a text. */
void result_read_mcp(struct arena *arena, const struct json *sent, struct result *out);

/* Any JSON. What has exactly the form of a CallToolResult ({content, structuredContent, isError, _meta}) or
 * of tool_return ({value, content, metadata}), with content blocks, is one; all else is a plain value, whose
 * content is its text. */
void result_read(struct arena *arena, const struct json *sent, struct result *out);

/* The same of what a command prints: {value, metadata} is a tool_return, too. */
void result_read_command(struct arena *arena, const struct json *sent, struct result *out);

/* Makes one from a Lua tool's value: content is its JSON as a text block, structured where it is an object
 * and the tool declares an output schema. */
void result_from_value(struct arena *arena, const struct json *value, const struct json *content,
                       const struct json *metadata, bool has_output_schema, struct result *out);

/* Clients want structured content wherever a tool declares an output schema: puts it in where it is left out,
 * and there is some. */
void result_fill_structured(struct result *result, bool has_output_schema);

/* The result as one text, to be quoted: its text blocks, else its value as JSON. */
struct str result_text(struct arena *arena, const struct result *result);

/* "truncated_response" or "invalid_json" where the tool answered in text that should have been JSON; NULL
 * otherwise. A text that breaks off is told apart, since asking for less may help there. */
const char *result_parse_error(const struct result *result);

/* It brings an agent no further: empty, "none", "No results found for x", {"results": [], "total": 0}; for a
 * tool that reads also "ok" and "done". Of one that changes something nothing else is expected. */
bool result_is_uninformative(const struct result *result, enum policy_effects effects);

/* A model sees nothing at all of it. */
bool result_is_blank(const struct result *result);

/* Nothing in it: null, "", {}, [], or an object with only such members. */
bool result_is_empty(const struct json *value);

#endif
