/* The repeated arguments go as a whole, since half a password is not known for one; elsewhere it is masked.
 */
#include "ledger/redis_redact.h"

#include <string.h>

static const char repeats[] = ", with args beginning with";
static const char mask[] = "***";

static bool stands_at(const char *at, const char *end, struct str word)
{
    return word.len && (size_t)(end - at) >= word.len && memcmp(at, word.at, word.len) == 0;
}

void redis_redact(const char *said, struct str password, char *out, size_t size)
{
    const char *cut = strstr(said, repeats), *end = cut ? cut : said + strlen(said);
    size_t len = 0;
    for (const char *at = said; at < end && len + sizeof(mask) < size;) {
        if (stands_at(at, end, password)) {
            memcpy(out + len, mask, sizeof(mask) - 1);
            len += sizeof(mask) - 1;
            at += password.len;
        } else {
            out[len++] = *at++;
        }
    }
    out[len] = '\0';
}
