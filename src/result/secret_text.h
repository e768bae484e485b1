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

/* Whether the eight bytes are as in `shape`, but for any digits where `digits` is 255. */
static inline bool secret_text_has_shape(const char *at, const char *shape, uint64_t digits)
{
    uint64_t bytes, wanted;
    memcpy(&bytes, at, 8);
    memcpy(&wanted, shape, 8);
    bytes ^= wanted; /* '0' becomes 0, a digit its value, what is right 0 */
    return !((bytes | (bytes + (digits & 0x0606060606060606u))) & (~digits | 0xf0f0f0f0f0f0f0f0u));
}

/* 2026-05-01 or 2026-05-01T00:00:00Z: no form of secret has its sign between two digits. A common argument,
 * and much cheaper than the scan. */
static inline bool secret_text_is_date(struct str text)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t yyyy_mm = 0x00ffff00ffffffffu, six_of_eight = 0xffff00ffff00ffffu,
                   mm_ss = 0x00ffff00ffff00ffu;
    if ((text.len != 10 && text.len != 20) || !secret_text_has_shape(text.at, "0000-00-", yyyy_mm))
        return false;
    if (text.len == 10)
        return secret_text_has_shape(text.at + 2, "00-00-00", six_of_eight);
    return secret_text_has_shape(text.at + 8, "00T00:00", six_of_eight) &&
           secret_text_has_shape(text.at + 12, "0:00:00Z", mm_ss);
#else
    (void)text;
    return false;
#endif
}

/* The first secret at or after `from`, in text[*at], *len bytes long. False: none exists. */
bool secret_text_find(struct str text, size_t from, const struct secret_names *names, size_t *at,
                      size_t *len);

/* The same for a key of known form (also a JWT or a private key) and nothing else, where a wrong guess would
 * refuse a call: `name` says which, e.g. "github_token". */
bool secret_text_find_key(struct str text, size_t from, size_t *at, size_t *len, struct str *name);

#endif
