/*
 * References to secrets in strings of a configuration or a policy, expanded
 * on use, and the redaction of the secrets in what comes back:
 *
 *   ${NAME}  ${env:NAME}     an environment variable of the daemon; unset or empty is an error
 *   ${NAME:-default}         the same, with a default if it is unset or empty
 *   ${file:/path}            the content of a file, read on each use, without trailing newlines
 *   ${user-file:UID:/path}   the file of one user (per_user): no link leads there, no other user may have
 *                            written it, and it is not empty
 *   $${                      a literal ${
 *
 * Expanded values are not expanded again.
 */
#ifndef TOOLGATE_UPSTREAM_SECRETS_H
#define TOOLGATE_UPSTREAM_SECRETS_H

#include "base/err.h"
#include "base/str.h"

struct arena;

#define SECRET_FILE_MAX_BYTES   65536u
#define SECRET_REDACT_MIN_BYTES 6u /* shorter values are too common in other text, and are not redacted */

/* The values that were expanded; zeroed at first. */
struct secret_value;
struct secrets {
    struct secret_value *first;
};

/* `out` is `text` itself if it holds no reference, else in the arena and NUL-terminated, as are the values
 * added to `used` (may be NULL). ERR_NOT_FOUND, ERR_IO, ERR_LIMIT, ERR_PARSE: `why` names what is missing,
 * never a value. */
enum err secrets_expand(struct arena *arena, struct str text, struct secrets *used, struct str *out,
                        struct why *why);

/* Values that are written out, in files of other clients as a rule: adds those of a variable, header or
 * option whose name says that it is one (API_KEY, Authorization, --token), and the password of an address. */
void secrets_add_named(struct arena *arena, struct secrets *used, struct str name, struct str value);

/* `text` itself, or a copy with "***" for each value, also for single lines of it and for its JSON escapes.
 * Call it before text is cut: half a secret is not recognised. */
struct str secrets_redact(struct arena *arena, const struct secrets *used, struct str text);

#endif
