/*
 * Texts of a configuration or a policy that name what must not stand in them,
 * filled in when they are used:
 *
 *   ${NAME}  ${env:NAME}     an environment variable of the daemon; not set or empty is an error
 *   ${NAME:-otherwise}       … or this text, where it is not set or empty
 *   ${file:/path}            a file's text, read anew each time, without the newlines at its end
 *   $${                      the two signs ${ themselves
 *
 * Nothing else has a meaning, and what was filled in is not looked at again.
 */
#ifndef TOOLGATE_UPSTREAM_SECRETS_H
#define TOOLGATE_UPSTREAM_SECRETS_H

#include "base/err.h"
#include "base/str.h"

struct arena;

#define SECRET_FILE_MAX_BYTES 65536u /* of a file */
#define SECRET_REDACT_MIN_BYTES                                                                              \
    6u /* shorter ones are too common to be told from other text, and not masked */

/* What was filled in, so that it can be masked in what comes back; zeroed at first. */
struct secret_value;
struct secrets {
    struct secret_value *first;
};

/* `out` is `text` itself where it names nothing, else in the arena and NUL-terminated; so is what goes into
 * `used` (may be NULL). ERR_NOT_FOUND, ERR_IO, ERR_LIMIT, ERR_PARSE: `why` names what is missing, never a
 * value. */
enum err secrets_expand(struct arena *arena, struct str text, struct secrets *used, struct str *out,
                        struct why *why);

/* `text` itself, or a copy in which each of them is "***", line by line, also as JSON writes it: for error
 * texts that an upstream wrote. Before it is cut: half a secret is not known for one. */
struct str secrets_redact(struct arena *arena, const struct secrets *used, struct str text);

#endif
