/* A call, from the command line to the params of a request. */
#ifndef TOOLGATE_CLI_JSON_INPUT_H
#define TOOLGATE_CLI_JSON_INPUT_H

#include "cli/command.h"
#include "json/value.h"

#include <stdbool.h>

struct arena;

#define JSON_INPUT_MAX_BYTES 67108864u

/* `text` is JSON, "-" for JSON on stdin, NULL for {}. False, with a complaint, where it is none. */
bool json_input_arguments(const struct command *command, struct arena *arena, const char *text,
                          struct json *out);

/* One JSON value from stdin; false, with a complaint, where it holds none. */
bool json_input_stdin(const struct command *command, struct arena *arena, struct json *out);

/* What every request may carry in _meta; NULL, 0, false: not given. */
struct json_input_meta {
    const char *session, *goal;
    unsigned turn;
    bool trace;
};

/* The params of tools/call and toolgate/check: {name, arguments, _meta}. */
struct str json_input_call(struct arena *arena, const char *tool, const struct json *arguments,
                           const struct json_input_meta *meta);

#endif
