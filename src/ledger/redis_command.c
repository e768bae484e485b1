/* Words are written by hand rather than by printf: each commit writes a dozen. */
#include "ledger/redis.h"

#include "base/buf.h"

#include <hiredis/hiredis.h>

#define HEAD_BYTES 32u /* "*65535\r\n$7\r\nEVALSHA\r\n$40\r\n" and some */

static void put_digits(struct buf *out, uint64_t n)
{
    char digits[DIGITS_MAX_BYTES];
    buf_add(out, digits, (size_t)(digits_put(digits, n) - digits));
}

static void begin(struct redis_command *c, unsigned script, size_t words)
{
    c->bytes.len = 0;
    c->key_at = c->key_len = 0;
    c->words = (uint16_t)words;
    c->script = (uint8_t)script;
}

void redis_command_begin(struct redis_command *c, size_t words)
{
    begin(c, REDIS_PLAIN_COMMAND, words);
    buf_byte(&c->bytes, '*');
    put_digits(&c->bytes, words);
    buf_add(&c->bytes, "\r\n", 2);
}

void redis_command_begin_script(struct redis_command *c, unsigned script, size_t key_count, size_t arg_count)
{
    begin(c, script, 3 + key_count + arg_count);
    buf_reserve(&c->bytes, HEAD_BYTES + REDIS_SCRIPT_NAME_BYTES);
    c->bytes.len = HEAD_BYTES + REDIS_SCRIPT_NAME_BYTES;
    buf_add(&c->bytes, "\r\n", 2);
    redis_command_number(c, key_count);
}

void redis_command_word(struct redis_command *c, struct str word)
{
    buf_byte(&c->bytes, '$');
    put_digits(&c->bytes, word.len);
    buf_add(&c->bytes, "\r\n", 2);
    buf_str(&c->bytes, word);
    buf_add(&c->bytes, "\r\n", 2);
}

void redis_command_number(struct redis_command *c, uint64_t number)
{
    char digits[DIGITS_MAX_BYTES];
    redis_command_word(c, (struct str){digits, (size_t)(digits_put(digits, number) - digits)});
}

void redis_command_key(struct redis_command *c, struct str key)
{
    redis_command_word(c, key);
    if (c->key_len)
        return;
    c->key_at = (uint32_t)(c->bytes.len - 2 - key.len);
    c->key_len = (uint32_t)key.len;
}

/* CRC16 (XMODEM) of the hash tag, or of the whole key if it has none. */
uint16_t redis_command_slot(const struct redis_command *c)
{
    const char *key = c->bytes.at + c->key_at, *end = key + c->key_len;
    const char *open = memchr(key, '{', c->key_len);
    const char *close = open ? memchr(open + 1, '}', (size_t)(end - open - 1)) : NULL;
    bool tagged = close && close > open + 1;
    uint16_t crc = 0;
    for (const char *at = tagged ? open + 1 : key; at < (tagged ? close : end); at++) {
        crc ^= (uint16_t)((unsigned char)*at << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc % REDIS_SLOTS;
}

struct str redis_command_finish(struct redis_command *c, const struct redis_scripts *scripts,
                                bool by_function)
{
    *buf_reserve(&c->bytes, 1) = '\0'; /* hiredis looks at the byte behind the first word */
    if (c->script == REDIS_PLAIN_COMMAND)
        return buf_view(&c->bytes);
    struct str verb =
        by_function ? STR_LIT("\r\n$5\r\nFCALL\r\n$40\r\n") : STR_LIT("\r\n$7\r\nEVALSHA\r\n$40\r\n");
    char *at = c->bytes.at + HEAD_BYTES;
    memcpy(at, by_function ? scripts->functions[c->script] : scripts->shas[c->script],
           REDIS_SCRIPT_NAME_BYTES);
    at -= verb.len;
    memcpy(at, verb.at, verb.len);
    unsigned words = c->words;
    do
        *--at = (char)('0' + words % 10);
    while (words /= 10);
    *--at = '*';
    return (struct str){at, (size_t)(c->bytes.at + c->bytes.len - at)};
}

struct str redis_reply_text(const struct redisReply *reply)
{
    bool is_text = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
    return is_text ? (struct str){reply->str, (size_t)reply->len} : (struct str){NULL, 0};
}
