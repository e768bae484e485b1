/* A call from the command line, as the params of a request. */
#ifndef TOOLGATE_CLI_JSON_INPUT_H
#define TOOLGATE_CLI_JSON_INPUT_H

#include "cli/command.h"
#include "json/value.h"

#include <stdbool.h>

struct arena;

#define JSON_INPUT_MAX_BYTES 67108864u

/* `text`: JSON; "-": JSON on stdin; NULL: {}. False after an error on stderr. */
bool json_input_arguments(const struct command *command, struct arena *arena, const char *text,
                          struct json *out);

/* One JSON value from stdin. False after an error on stderr. */
bool json_input_stdin(const struct command *command, struct arena *arena, struct json *out);

/* The whole of stdin, at most JSON_INPUT_MAX_BYTES. False after an error on stderr. */
bool json_input_text(const struct command *command, struct arena *arena, struct str *out);

/* Members of _meta. NULL, 0, false: not given. `context_text` is what json_input_context reads. */
struct json_input_meta {
    const char *session, *goal, *context_text;
    const struct json *context;
    unsigned turn;
    bool trace;
};

/* Sets meta->context from --context. False after an error on stderr. */
bool json_input_context(const struct command *command, struct arena *arena, struct json_input_meta *meta);

/* The params of tools/call and toolgate/check: {name, arguments, _meta}. */
struct str json_input_call(struct arena *arena, const char *tool, const struct json *arguments,
                           const struct json_input_meta *meta);

#endif
