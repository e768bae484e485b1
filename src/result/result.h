/*
 * The result of a tool call: read from what an upstream, a command or a policy returned, and judged by
 * convention alone (empty, blank, not JSON). The output schema and the policy judge it elsewhere.
 */
#ifndef TOOLGATE_RESULT_RESULT_H
#define TOOLGATE_RESULT_RESULT_H

#include "base/hash.h"
#include "json/value.h"
#include "ledger/ledger.h"
#include "policy/policy.h"

#include <stdbool.h>

struct arena;
struct buf;

/* In both forms: as MCP sends it, and as a policy reads it. */
struct result {
    const struct json *content;    /* MCP content array; NULL: there is no result */
    const struct json *structured; /* structuredContent; NULL: none */
    const struct json *metadata;   /* `_meta`, for the agent's program */
    /* for the result hook: structured, else the JSON of a text block, else {text = …} */
    const struct json *value;
    bool as_text; /* `value` is {text = …}: no JSON in it */
    bool is_error;
    bool is_beside_content; /* `value` was returned beside `content`, which may not have it */
    bool is_call_result;    /* it came as a CallToolResult, with an isError of its own */
    struct str error_text;  /* the text blocks, joined */
};

/* A longer text is informative. */
#define RESULT_UNINFORMATIVE_MAX_BYTES 200u

/* The result of an MCP server as it sent it. A content block that clients would reject is repaired, or
 * becomes its JSON as a text block; missing content becomes the structured content as a text block. */
void result_read_mcp(struct arena *arena, const struct json *sent, struct result *out);

/* Any JSON. An object that has exactly the members of a CallToolResult ({content, structuredContent, isError,
 * _meta}) or of tool_return ({value, content, metadata}), with content blocks, is read as such; anything else
 * is a plain value, and its content is its JSON as a text block. */
void result_read(struct arena *arena, const struct json *sent, struct result *out);

/* Of a command's output, where {value, metadata} is a tool_return, too. */
void result_read_command(struct arena *arena, const struct json *sent, struct result *out);

/* From a Lua tool's value: content is its JSON as a text block (unless given), structured is the value if it
 * is an object and the tool declares an output schema. `value` or `content` may be NULL. */
void result_from_value(struct arena *arena, const struct json *value, const struct json *content,
                       const struct json *metadata, bool has_output_schema, struct result *out);

/* Clients require structured content of a tool with an output schema: fills it in from the value. Without
 * one, a value that was returned beside content becomes a text block behind it. */
void result_complete(struct arena *arena, struct result *result, bool has_output_schema);

/* Of a result that is a text, the text; else empty. */
struct str result_plain_text(const struct result *result);

/* The result as one string, to quote: its text blocks, else its value as JSON. */
struct str result_text(struct arena *arena, const struct result *result);

/* A text block of the content has the value: as its text, or as its JSON. */
bool result_content_says(struct arena *arena, const struct json *content, const struct json *value);

/* The object or array that a text holds, or NULL. */
const struct json *result_json_of_text(struct arena *arena, struct str text);

/* For a tool that should have returned JSON but returned text: "truncated_response" if the JSON breaks off
 * (asking for less may help), else "invalid_json". NULL if there is JSON, or nothing. */
const char *result_parse_error(const struct result *result);

/* Empty, "none", "No results found for x", {"results": [], "total": 0}; for a tool that reads also "ok" and
 * "done". False for a tool that changes something, which need not return more. */
bool result_is_uninformative(const struct result *result, enum policy_effects effects);

/* What the ledger compares, by json_fingerprint: the value without the fields that the policy (may be NULL)
 * calls volatile, and, for a tool that may write (`limits`), without fresh ids and times. The value itself if
 * it has none of them. */
const struct json *result_compared(struct arena *arena, const struct policy *policy,
                                   const struct ledger_limits *limits, const struct json *value);

#define UNDER_WAY_TEXT_MAX_BYTES 4096u /* of a text that are looked at: its end */
#define UNDER_WAY_MEMBERS_MAX    64u   /* of an object */
#define UNDER_WAY_DEPTH          3u    /* levels of objects */

/* It says that what was asked for is not done yet: {"status": "running"}, "still running". `watched`: of a
 * shell command that shows how far something is, "3/10", "40 %" and the states alone say so, too. */
bool result_is_under_way(const struct result *result, bool watched);

/* A model sees nothing of it. */
bool result_is_blank(const struct result *result);

/* The place in `names`, which are in lower case without separators, of a name whose case and `separators` do
 * not count; `count`: it is not one of them. */
size_t result_name_index(struct str name, const char *separators, const char *const *names, size_t count);
#define RESULT_COUNT(list) (sizeof(list) / sizeof(*(list)))
#define RESULT_NAME_IS(name, separators, names)                                                              \
    (result_name_index(name, separators, names, RESULT_COUNT(names)) < RESULT_COUNT(names))

/* The length of the beginning, given in lower case, that the text has in any case; 0: it has none. */
size_t result_beginning(struct str text, const char *const *beginnings, size_t count);
#define RESULT_BEGINNING(text, beginnings) result_beginning(text, beginnings, RESULT_COUNT(beginnings))

/* Whether one of the words occurs in the text, in any case. */
bool result_has_one_of(struct str text, const char *const *words, size_t count);
#define RESULT_HAS(text, words) result_has_one_of(text, words, RESULT_COUNT(words))

/* null, "", {}, [], or an object of such members alone; also NULL. */
bool result_is_empty(const struct json *value);

/* ---- times, dates, UUIDs, hex, and numbers that a member's name calls a time, a duration or a request: two
 * results that differ in nothing else say the same ---- */

/* Appends a text that two results share if and only if they say the same: with "#" for each of these, and if
 * `digits` for every other number, as of failures. A text that is JSON is read as JSON. `scratch` is for
 * that. */
void result_mask_write(struct buf *out, struct arena *scratch, const struct json *result, bool digits);

/* The hash that two results share if they say the same: of the value, or without one (NULL) of the text.
 * {0, 0}: there is neither. */
struct hash128 result_masked(struct arena *arena, const struct json *value, struct str text, bool digits);

#define RESULT_MASK_MAX_BYTES 65536u /* a larger result is compared as it is */

/* The value without members that hold an id or a time, and with those in texts replaced by "#"; itself if it
 * has none. Of a tool that may write: a repeated write makes the same thing again under another id. */
const struct json *fresh_ids_without(struct arena *arena, const struct json *value);

#endif
