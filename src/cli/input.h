/* A call's arguments from the command line. */
#ifndef TOOLGATE_CLI_INPUT_H
#define TOOLGATE_CLI_INPUT_H

#include "cli/command.h"
#include "json/write.h"

#include <stdbool.h>

struct arena;

#define INPUT_MAX_BYTES 67108864u

/* `text` is JSON, "-" for JSON on stdin, NULL for {}. False, with a complaint, where it is none. */
bool input_arguments(const struct command *command, struct arena *arena, const char *text, struct json *out);

/* What every request may carry in _meta; NULL, 0, false: not given. */
struct input_meta {
    const char *session, *goal;
    unsigned turn;
    bool trace;
};

/* Writes the member _meta of params where anything was given. */
void input_put_meta(struct json_out *out, const struct input_meta *meta);

#endif
