/* The callId of a check (ledger.h), with its marks under the MAC: a report needs nothing else, on any daemon
 * that has the key, and no client can make one or use another user's. Also base64url, and keys that files
 * keep. */
#ifndef TOOLGATE_LEDGER_CALL_ID_H
#define TOOLGATE_LEDGER_CALL_ID_H

#include "base/hash.h"
#include "ledger/ledger.h"

struct call_id_key {
    uint8_t bytes[SIPHASH_KEY_BYTES];
};

/* Without a NUL, and without '=' at the end. */
void base64url_write(const void *bytes, size_t len, char *out);

/* With a NUL behind it. */
void call_id_write(const struct call_id_key *key, const struct ledger_call_id *id,
                   char out[LEDGER_CALL_ID_CHARS + 1]);

/* Fills in all of `id` but the uid, which is given. False: malformed, of another key, or of another
 * user. */
bool call_id_read(const struct call_id_key *key, struct str text, struct ledger_call_id *id);

/* Reads the key of `len` bytes that `file` keeps and only its owner may read. If the file is missing, or
 * holds none (`replaced`), a random one is kept there. Unless OK, `key` is as it was, or random. */
enum err key_file_load(const char *file, uint8_t *key, size_t len, bool *replaced, struct why *why);

#endif
