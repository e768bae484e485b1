/* Pure functions over a key, and the key's file. */
#include "ledger/call_id.h"

#include "base/arena.h"
#include "base/log.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define CALL_ID_BYTES 32u
#define GROUP_BYTES   3u /* in 4 characters */
#define GROUP_CHARS   4u

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

void call_id_key_make(struct call_id_key *key)
{
    uint64_t words[] = {hash_random(), hash_random()};
    memcpy(key->bytes, words, sizeof(words));
}

/* Under another name first, so that no reader sees half a key. */
static enum err write_key(struct arena *arena, const char *file, const struct call_id_key *key,
                          struct why *why)
{
    struct str text = {(const char *)key->bytes, sizeof(key->bytes)};
    const char *draft = arena_printf(arena, "%s.%d", file, (int)getpid()).at;
    unlink(draft);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len && fsync(fd) == 0;
    if (fd >= 0 && close(fd) != 0)
        written = false;
    if (written && rename(draft, file) == 0)
        return OK;
    enum err err = err_set(why, ERR_IO, "%s: cannot write the key of call ids: %s", file, strerror(errno));
    unlink(draft);
    return err;
}

enum err call_id_key_load(const char *file, struct call_id_key *key, struct why *why)
{
    struct arena *arena = arena_new();
    struct str text = STR_NONE;
    bool exists = access(file, F_OK) == 0;
    enum err err = file_check_private(file, why);
    if (!err && exists)
        err = file_read(arena, file, 4096, &text, why);
    if (err == ERR_LIMIT)
        err = OK; /* no key is as long */
    if (err == OK && text.len == sizeof(key->bytes)) {
        memcpy(key->bytes, text.at, text.len);
    } else if (err == OK) {
        if (exists)
            log_event(LOG_WARN, "call_id_key_replaced", LOG_TEXT("file", file),
                      LOG_TEXT("why", "it holds no key; call ids given before are unknown now"));
        call_id_key_make(key);
        err = write_key(arena, file, key, why);
    }
    arena_free(arena);
    return err;
}
