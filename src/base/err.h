/*
 * Error codes with their wire names, and `struct why`: the message that goes
 * with a failure, for the person who has to fix it. A refused call is not an
 * error; see gate/verdict.h.
 */
#ifndef TOOLGATE_BASE_ERR_H
#define TOOLGATE_BASE_ERR_H

enum err {
    OK = 0,
    ERR_LIMIT = -1,       /* input from a peer or a file exceeds its limit */
    ERR_PARSE = -2,       /* malformed input */
    ERR_SCHEMA = -3,      /* an invalid JSON Schema */
    ERR_POLICY = -4,      /* a policy that does not load, raises an error or exceeds its budget */
    ERR_CONFIG = -5,      /* an invalid configuration */
    ERR_IO = -6,          /* a system call on a file or socket failed; the message includes errno's text */
    ERR_NOT_FOUND = -7,   /* the named thing does not exist */
    ERR_EXISTS = -8,      /* the named thing exists already */
    ERR_TIMEOUT = -9,     /* no answer within the deadline */
    ERR_CLOSED = -10,     /* the peer closed the connection */
    ERR_UNAVAILABLE = -11 /* a required service is down */
};

#define ERR_MESSAGE_MAX_BYTES 2048

/* Filled on failure only; always NUL-terminated. States file:line, what was expected and what was found. */
struct why {
    char text[ERR_MESSAGE_MAX_BYTES];
};

/* Writes the message (cut at ERR_MESSAGE_MAX_BYTES) and returns `code`, so that a caller can write
 * `return err_set(…)`. `why` may be NULL. */
enum err err_set(struct why *why, enum err code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message. */
void err_prefix(struct why *why, const char *prefix);

/* The stable name of a code on the wire and in logs, e.g. "config_error". */
const char *err_name(enum err code);

#endif
