/*
 * A command to Redis and its reply, free of hiredis' types: RESP words in a buffer, a hook for its end, and
 * what the reply holds. A command is a plain one, or a call of one of the connection's scripts
 * (redis.h): whether that is FCALL or EVALSHA is known only when it is sent, so its head is left
 * open.
 */
#ifndef TOOLGATE_LEDGER_REDIS_COMMAND_H
#define TOOLGATE_LEDGER_REDIS_COMMAND_H

#include "base/buf.h"

#include <sys/queue.h>

enum redis_value_kind { REDIS_VALUE_NIL, REDIS_VALUE_INTEGER, REDIS_VALUE_STRING, REDIS_VALUE_ARRAY };

/* Valid while the hook runs that it was given to. */
struct redis_value {
    enum redis_value_kind kind;
    int64_t integer;
    struct str string;
    size_t count; /* items of an array */
    const void *items;
};
struct redisReply;
struct redis_value redis_value_of(const struct redisReply *reply); /* for the files that know hiredis */
/* `i` < array->count. */
struct redis_value redis_value_at(const struct redis_value *array, size_t i);

enum redis_ended {
    REDIS_ANSWERED, /* `value` is the reply */
    REDIS_REFUSED,  /* an error that will not pass: `why` has the server's words */
    REDIS_UNDONE,   /* nothing happened: not sent, or turned down by a server that can't serve now */
    REDIS_LOST      /* it may have been executed, or not */
};

#define REDIS_PLAIN_COMMAND     255u /* as `script` */
#define REDIS_SCRIPT_NAME_BYTES 40u  /* of a function; a SHA1 has as many */

/* Embedded in its sender's own struct. `value` is NULL unless REDIS_ANSWERED. */
struct redis_command {
    void (*ended)(struct redis_command *command, enum redis_ended how, const struct redis_value *value,
                  const char *why);
    struct buf bytes; /* must live until `ended` */
    STAILQ_ENTRY(redis_command) next;
    int64_t began_us;
    uint32_t key_at, key_len; /* of the key that decides about the slot; len 0: any node will do */
    uint16_t words;
    uint8_t script, hops;
    bool asking;
};

/* A plain command of `words` words; all of them have to follow. */
void redis_command_begin(struct redis_command *command, size_t words);
/* A call of a script: `key_count` keys and `arg_count` arguments have to follow. */
void redis_command_begin_script(struct redis_command *command, unsigned script, size_t key_count,
                                size_t arg_count);
void redis_command_word(struct redis_command *command, struct str word);
void redis_command_number(struct redis_command *command, uint64_t number);
/* As redis_command_word; the first one decides about the slot. */
void redis_command_key(struct redis_command *command, struct str key);

/* The hash slot of a cluster that the command belongs to. */
#define REDIS_SLOTS 16384u
uint16_t redis_command_slot(const struct redis_command *command);

/* The bytes to send to a server that calls scripts by function or by SHA1; `name` is the script's there. */
struct str redis_command_finish(struct redis_command *command, bool by_function, const char *name);

#endif
