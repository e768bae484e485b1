/*
 * Files of tool definitions in any form that is around: MCP's tools/list, the `tools` array of OpenAI's or
 * Anthropic's API. All become {name, description, inputSchema}.
 */
#ifndef TOOLGATE_REPLAY_TOOL_FILES_H
#define TOOLGATE_REPLAY_TOOL_FILES_H

#include "base/err.h"
#include "json/value.h"

struct arena;

#define TOOL_FILE_MAX_BYTES 67108864u

struct tool_file {
    struct str toolset; /* of NAME=FILE: for records with this `toolset`; empty: for all */
    struct str file;
    const struct json *list;
};

/* `word` is FILE or NAME=FILE. */
enum err tool_file_read(struct arena *arena, const char *word, struct tool_file *out, struct why *why);

/* The definition in MCP's form; false: it has no name. */
bool tool_definition_read(struct arena *arena, const struct json *definition, struct json *out);

#endif
