/*
 * Finds secrets in free text, such as a shell command: API keys of known form, bearer tokens, private keys,
 * `password=…`, `--token …`, `Authorization: …`, user:password@host. One pass over the bytes; a text without
 * a secret costs a table look-up a byte.
 */
#ifndef TOOLGATE_RESULT_SECRET_TEXT_H
#define TOOLGATE_RESULT_SECRET_TEXT_H

#include "base/str.h"

#define SECRET_TEXT_NAME_MAX_BYTES 64u /* of a name before '=' or ':' */

struct secret_names {
    bool (*is_secret)(void *owner, struct str name); /* "password", "AWS_SECRET_ACCESS_KEY", "api-key" */
    void *owner;
};

/* The first secret at or after `from`, in text[*at], *len bytes long. False: there is none. */
bool secret_text_find(struct str text, size_t from, const struct secret_names *names, size_t *at,
                      size_t *len);

/* Likewise a key of known form (also a JWT or a private key) and nothing else, where a wrong guess would
 * refuse a call: `name` says which, e.g. "github_token". */
bool secret_text_find_key(struct str text, size_t from, size_t *at, size_t *len, struct str *name);

#endif
