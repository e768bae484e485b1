/* Pure functions over a key, and the key's file. */
#include "ledger/call_id.h"

#include "base/arena.h"
#include "base/buf.h"
#include "io/file.h"

#include <sys/stat.h>

#define CALL_ID_BYTES      32u
#define GROUP_BYTES        3u /* in 4 characters */
#define GROUP_CHARS        4u
#define KEY_FILE_MAX_BYTES 4096u

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* What is written: session (high, low), admission and MAC, little-endian as in memory; the last word has the
 * zero byte that completes the last group. */
#define CALL_ID_WORDS (CALL_ID_BYTES / sizeof(uint64_t) + 1)

static uint64_t mac(const struct call_id_key *key, const uint64_t words[CALL_ID_WORDS], uint32_t uid)
{
    uint64_t message[] = {words[0], words[1], words[2], uid};
    return siphash(key->bytes, (struct str){(const char *)message, sizeof(message)});
}

/* 256 bits in 43 characters of 6: the last one holds 4, and ends in two zeros. */
void call_id_write(const struct call_id_key *key, const struct call_id *id,
                   char out[LEDGER_CALL_ID_CHARS + 1])
{
    uint64_t words[CALL_ID_WORDS] = {id->session.high, id->session.low, id->admission};
    words[3] = mac(key, words, id->uid);
    for (size_t i = 0; i * GROUP_BYTES < CALL_ID_BYTES; i++) {
        const uint8_t *from = (const uint8_t *)words + i * GROUP_BYTES;
        uint32_t group = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        char *to = out + i * GROUP_CHARS;
        to[0] = alphabet[group >> 18];
        to[1] = alphabet[group >> 12 & 63];
        to[2] = alphabet[group >> 6 & 63];
        to[3] = alphabet[group & 63];
    }
    out[LEDGER_CALL_ID_CHARS] = '\0'; /* over the character of the zero byte */
}

bool call_id_read(const struct call_id_key *key, struct str text, struct call_id *id)
{
    uint64_t words[CALL_ID_WORDS] = {0};
    char padded[LEDGER_CALL_ID_CHARS + 1];
    if (text.len != LEDGER_CALL_ID_CHARS)
        return false;
    memcpy(padded, text.at, LEDGER_CALL_ID_CHARS);
    padded[LEDGER_CALL_ID_CHARS] = 'A';
    for (size_t i = 0; i * GROUP_BYTES < CALL_ID_BYTES; i++) {
        uint8_t *to = (uint8_t *)words + i * GROUP_BYTES;
        uint32_t group = 0;
        for (unsigned k = 0; k < GROUP_CHARS; k++) {
            const char *digit = memchr(alphabet, padded[i * GROUP_CHARS + k], sizeof(alphabet) - 1);
            if (!digit)
                return false;
            group = group << 6 | (uint32_t)(digit - alphabet);
        }
        to[0] = (uint8_t)(group >> 16);
        to[1] = (uint8_t)(group >> 8);
        to[2] = (uint8_t)group;
    }
    id->session = (struct hash128){words[0], words[1]};
    id->admission = words[2];
    return !words[4] && id->admission && words[3] == mac(key, words, id->uid);
}

enum err key_file_load(const char *file, uint8_t *key, size_t len, bool *replaced, struct why *why)
{
    struct arena *arena = arena_new();
    struct str kept = STR_NONE;
    struct stat st;
    bool exists = stat(file, &st) == 0;
    enum err err = file_check_private(file, why);
    if (!err && exists)
        err = file_read(arena, file, KEY_FILE_MAX_BYTES, &kept, why);
    if (err == ERR_LIMIT)
        err = OK; /* no key is as long */
    bool is_good = kept.len == len && !(st.st_mode & (S_IRWXG | S_IRWXO));
    *replaced = !err && exists && !is_good;
    if (!err && !is_good) {
        struct buf made = buf_in(arena);
        while (made.len < len) {
            uint64_t random = hash_random();
            buf_add(&made, &random, sizeof(random));
        }
        kept = (struct str){made.at, len};
        err = file_replace(file, kept, true, why);
    }
    if (!err)
        memcpy(key, kept.at, len);
    arena_free(arena);
    return err;
}
