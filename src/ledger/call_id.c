/* Pure functions over a key, and the key's file. */
#include "ledger/call_id.h"

#include "base/arena.h"
#include "io/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CALL_ID_BYTES      32u
#define GROUP_BYTES        3u /* in four characters */
#define BASE64_BITS        6u /* of base64 */
#define KEY_FILE_MAX_BYTES 4096u
#define KEY_LOCK_TRIES     50u /* of 1 ms, while another daemon makes the key */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_write(const void *bytes, size_t len, char *out)
{
    const uint8_t *from = bytes;
    for (; len >= GROUP_BYTES; len -= GROUP_BYTES, from += GROUP_BYTES) {
        uint32_t group = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        *out++ = alphabet[group >> 6 & 63];
        *out++ = alphabet[group & 63];
    }
    uint32_t rest = len ? (uint32_t)from[0] << 16 | (len > 1 ? (uint32_t)from[1] << 8 : 0) : 0;
    for (size_t i = 0; len && i <= len; i++)
        *out++ = alphabet[rest >> (18 - BASE64_BITS * i) & 63];
}

#define MARKS_SHIFT 6u

/* What is written: session (high, low), admission and MAC, little-endian as in memory; the last word has the
 * byte behind them, whose upper two bits are the marks. */
#define CALL_ID_WORDS (CALL_ID_BYTES / sizeof(uint64_t) + 1)

static uint64_t mac(const struct call_id_key *key, const uint64_t words[CALL_ID_WORDS], uint32_t uid)
{
    uint64_t message[] = {words[0], words[1], words[2], words[4] >> MARKS_SHIFT << 32 | uid};
    return siphash(key->bytes, (struct str){(const char *)message, sizeof(message)});
}

void call_id_write(const struct call_id_key *key, const struct ledger_call_id *id,
                   char out[LEDGER_CALL_ID_CHARS + 1])
{
    uint64_t words[CALL_ID_WORDS] = {id->session.high, id->session.low, id->admission, 0,
                                     (uint64_t)id->marks << MARKS_SHIFT};
    words[3] = mac(key, words, id->uid);
    uint8_t bytes[sizeof(words)];
    memcpy(bytes, words, sizeof(words));
    base64url_write(bytes, CALL_ID_BYTES + 1, out);
    out[LEDGER_CALL_ID_CHARS] = '\0'; /* over what is left of the last byte: zeros */
}

/* 256 bits in 43 characters of 6: the last one ends in the two bits of the marks. */
bool call_id_read(const struct call_id_key *key, struct str text, struct ledger_call_id *id)
{
    uint64_t words[CALL_ID_WORDS] = {0};
    uint8_t *to = (uint8_t *)words;
    if (text.len != LEDGER_CALL_ID_CHARS)
        return false;
    for (size_t i = 0, bit = 0; i < text.len; i++, bit += BASE64_BITS) {
        const char *digit = memchr(alphabet, text.at[i], sizeof(alphabet) - 1);
        if (!digit)
            return false;
        unsigned two = (unsigned)(digit - alphabet) << (16 - BASE64_BITS - bit % 8);
        to[bit / 8] |= (uint8_t)(two >> 8);
        to[bit / 8 + 1] |= (uint8_t)two;
    }
    id->session = (struct hash128){words[0], words[1]};
    id->admission = words[2];
    id->marks = (uint8_t)(words[4] >> MARKS_SHIFT);
    return words[4] >> MARKS_SHIFT << MARKS_SHIFT == words[4] && id->marks <= 3 && id->admission &&
           words[3] == mac(key, words, id->uid);
}

/* Daemons on one folder that start together must find one key. Returns the folder, which is to be closed; -1:
 * the file is not locked. */
static int lock_folder_of(const char *file)
{
    char folder[PATH_MAX];
    const struct timespec pause = {.tv_nsec = 1000000};
    snprintf(folder, sizeof(folder), "%s", file);
    char *slash = strrchr(folder, '/');
    slash[slash == folder] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && i < KEY_LOCK_TRIES; i++)
        nanosleep(&pause, NULL);
    return fd;
}

enum err key_file_load(const char *file, uint8_t *key, size_t len, bool *replaced, struct why *why)
{
    struct arena *arena = arena_new();
    struct str kept = STR_NONE;
    struct stat st;
    int folder = lock_folder_of(file);
    bool exists = stat(file, &st) == 0;
    enum err err = file_check_private(file, why);
    if (!err && exists)
        err = file_read(arena, file, KEY_FILE_MAX_BYTES, &kept, why);
    if (err == ERR_LIMIT)
        err = OK; /* no key is as long */
    bool is_good = kept.at && kept.len == len && !(st.st_mode & (S_IRWXG | S_IRWXO));
    *replaced = !err && exists && !is_good;
    if (!err && is_good)
        memcpy(key, kept.at, len);
    for (size_t i = 0; !err && !is_good && i < len; i++)
        key[i] = (uint8_t)hash_random();
    if (!err && !is_good)
        err = file_replace(file, (struct str){(const char *)key, len}, true, why);
    if (folder >= 0)
        close(folder);
    arena_free(arena);
    return err;
}
