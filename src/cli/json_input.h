/* JSON from stdin. */
#ifndef TOOLGATE_CLI_JSON_INPUT_H
#define TOOLGATE_CLI_JSON_INPUT_H

#include "cli/command.h"
#include "json/value.h"

#include <stdbool.h>

struct arena;

#define JSON_INPUT_MAX_BYTES 67108864u

/* One JSON value from stdin. False after an error on stderr. */
bool json_input_stdin(const struct command *command, struct arena *arena, struct json *out);

/* The whole of stdin, at most JSON_INPUT_MAX_BYTES. False after an error on stderr. */
bool json_input_text(const struct command *command, struct arena *arena, struct str *out);

#endif
