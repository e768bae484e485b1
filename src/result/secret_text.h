/*
 * Finds secrets in free text, such as a shell command: API keys of known form, bearer tokens, private keys,
 * `password=…`, `--token …`, `Authorization: …`, user:password@host, XML, SQL. One pass over the bytes; a
 * text without a secret costs a table look-up a byte.
 */
#ifndef TOOLGATE_RESULT_SECRET_TEXT_H
#define TOOLGATE_RESULT_SECRET_TEXT_H

#include "base/str.h"

#define SECRET_TEXT_MIN_BYTES      7u  /* "://u:p@" */
#define SECRET_TEXT_NAME_MAX_BYTES 64u /* of a name before '=' or ':' */

struct secret_names {
    bool (*is_secret)(void *owner, struct str name); /* "password", "AWS_SECRET_ACCESS_KEY", "api-key" */
    void *owner;
};

/* 2026-05-01 or 2026-05-01T00:00:00Z: no form of secret has its sign between two digits. A common argument,
 * and cheaper than the scan. */
static inline bool secret_text_is_date(struct str text)
{
    static const char form[] = "0000-00-00T00:00:00Z";
    bool is_date = text.len == 10 || text.len == 20;
    for (size_t i = 0; is_date && i < text.len; i++)
        is_date = form[i] == '0' ? ascii_is_digit(text.at[i]) : text.at[i] == form[i];
    return is_date;
}

/* The first secret at or after `from`, in text[*at], *len bytes long. False: none exists. */
bool secret_text_find(struct str text, size_t from, const struct secret_names *names, size_t *at,
                      size_t *len);

/* The same for a key of known form (also a JWT or a private key) and nothing else, where a wrong guess would
 * refuse a call: `name` says which, e.g. "github_token". */
bool secret_text_find_key(struct str text, size_t from, size_t *at, size_t *len, struct str *name);

#endif
