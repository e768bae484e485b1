/*
 * What can fail, as codes with a wire name and a text, and `struct why`: the
 * sentence that goes with a failure to the person who has to mend it.
 * A refused call is not an error; see gate/verdict.h.
 */
#ifndef TOOLGATE_BASE_ERR_H
#define TOOLGATE_BASE_ERR_H

enum err {
    OK = 0,
    ERR_LIMIT = -1,       /* something a peer or a file sizes is over its limit */
    ERR_PARSE = -2,       /* text that is not what it should be */
    ERR_SCHEMA = -3,      /* a JSON Schema that cannot be understood */
    ERR_POLICY = -4,      /* a policy that does not load, throws or runs out of its budget */
    ERR_CONFIG = -5,      /* a configuration that is not one */
    ERR_IO = -6,          /* a file or socket the system refused; the text holds errno's words */
    ERR_NOT_FOUND = -7,   /* what was named does not exist */
    ERR_EXISTS = -8,      /* what was named exists already */
    ERR_TIMEOUT = -9,     /* no answer within the deadline */
    ERR_CLOSED = -10,     /* the other side went away */
    ERR_UNAVAILABLE = -11 /* a service this one needs is down */
};

#define ERR_MESSAGE_MAX_BYTES 2048

/* Filled on failure only; always NUL-terminated. Says file:line, what was expected and what was found. */
struct why {
    char text[ERR_MESSAGE_MAX_BYTES];
};

/* Writes the sentence (cut at ERR_MESSAGE_MAX_BYTES) and returns `code`, so that `return err_set(…)` reads
 * well. `why` may be NULL. */
enum err err_set(struct why *why, enum err code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before what is there already. */
void err_prefix(struct why *why, const char *prefix);

/* The stable name of a code on the wire and in logs, e.g. "config_error". */
const char *err_name(enum err code);

#endif
