/*
 * The daemon's own decision log, for a command that names no file: where the running daemon says that it is,
 * else where a daemon without a configuration writes it. The daemon tells its files to root and its own user.
 */
#ifndef TOOLGATE_REVIEW_DAEMON_LOG_H
#define TOOLGATE_REVIEW_DAEMON_LOG_H

#include "cli/command.h"
#include "json/value.h"

#include <stddef.h>

struct arena;

struct daemon_log {
    const char *const
        *files; /* rotated ones first, the oldest in front; the last is the one that is written */
    size_t count;
    const struct json *status; /* of the daemon; NULL: none answered */
};

enum daemon_log_part {
    DAEMON_LOG_ALL,
    DAEMON_LOG_WRITTEN /* only the file that is written, which need not exist yet */
};

/* `socket`: NULL: the default one. False after an error on stderr, with the fix. If stderr is a terminal, it
 * also gets the names of the files. */
bool daemon_log_find(const struct command *command, const char *socket, enum daemon_log_part part,
                     struct arena *arena, struct daemon_log *out);

/* The answer of toolgate/status of the daemon at that socket; NULL after an error on stderr. */
const struct json *daemon_log_status(const struct command *command, const char *socket, struct arena *arena);

#endif
