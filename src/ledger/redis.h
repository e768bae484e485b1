/*
 * One Redis (or Valkey): a single server, a master behind sentinels, or a cluster. Sends commands to the node
 * that has their slot, follows redirections, loads scripts again that a server has lost, and reports the end
 * of each command, in time. What happens during an outage is decided elsewhere.
 */
#ifndef TOOLGATE_LEDGER_REDIS_H
#define TOOLGATE_LEDGER_REDIS_H

#include "base/buf.h"
#include "base/clock.h"
#include "ledger/redis_address.h"

#include <sys/queue.h>

struct ledger_status;
struct loop;
struct redisReply;

/* ---- redis_command.c: a plain command, or a call of one of the scripts below. Whether that is FCALL or
 * EVALSHA is known only when it is sent, so its head is left open. ---- */

enum redis_ended {
    REDIS_ANSWERED, /* `reply` is the reply */
    REDIS_REFUSED,  /* a permanent error: `why` has the server's words */
    REDIS_UNDONE,   /* nothing happened: not sent, or rejected by a server that can't serve now */
    REDIS_LOST      /* it may have been executed, or not */
};

#define REDIS_PLAIN_COMMAND     255u /* as `script` */
#define REDIS_SCRIPT_NAME_BYTES 40u  /* of a function; a SHA1 has as many */

/* Embedded in its sender's own struct. `reply` is NULL unless REDIS_ANSWERED, and valid during the call. */
struct redis_command {
    void (*ended)(struct redis_command *command, enum redis_ended how, const struct redisReply *reply,
                  const char *why);
    struct buf bytes; /* must live until `ended` */
    STAILQ_ENTRY(redis_command) next;
    int64_t began_us;
    uint32_t key_at, key_len; /* of the key that decides about the slot; len 0: any node will do */
    uint16_t words;
    uint8_t script, hops;
    uint8_t skips;        /* replies that come before its own */
    bool asking, reloads; /* it is sent behind ASKING, or behind the scripts */
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

/* The bytes to send to a server that calls scripts by function or by SHA1; `name` is the script's there. The
 * command may be sent again, elsewhere. */
struct str redis_command_finish(struct redis_command *command, bool by_function, const char *name);

/* `at` NULL: the reply is no string. */
struct str redis_reply_text(const struct redisReply *reply);

/* ---- the server's clock as seen from here: its distance from CLOCK_BOOTTIME, which nobody sets and which
 * goes on while the machine is suspended, read by TIME ---- */

struct redis_clock {
    int64_t ahead_us; /* the server's time minus the local clock */
    int64_t error_us; /* at most: half the round trip */
    int64_t read_us;  /* by the local clock; 0: never */
};

static inline int64_t redis_clock_local_us(void)
{
    return clock_read_ns(CLOCK_BOOTTIME) / 1000;
}

/* `time` is the reply to a TIME that was sent at `asked_us` by the local clock. False: it is malformed. */
bool redis_clock_read(struct redis_clock *clock, const struct redisReply *time, int64_t asked_us);
/* Replaces `clock` by `newer` unless that is much less exact than `clock` is by now. */
void redis_clock_update(struct redis_clock *clock, const struct redis_clock *newer);
/* Since 1970; by the wall clock of this machine until a server's was read. */
int64_t redis_clock_now_ms(const struct redis_clock *clock);

/* ---- the Lua scripts that each connection must be able to call: from Redis 7 on the functions of one
 * library, before that scripts by SHA1. The handshake loads them and runs the trials, so that a missing right
 * is found at connect. Names contain a hash of the text: builds of different versions load theirs side by
 * side. ---- */

#define REDIS_SCRIPTS_MAX 2u
#define REDIS_TRIALS_MAX  10u

struct redis_trial {
    struct redis_command command; /* on keys of its own, which expire */
    const char *doing;            /* for a message */
    bool is_any;                  /* any reply but an error will do */
    struct str core;              /* the first item of the reply; `at` NULL: the reply is an integer */
};

struct redis_scripts {
    size_t count, trial_count;
    struct str library;                          /* the text for FUNCTION LOAD */
    struct str texts[REDIS_SCRIPTS_MAX];         /* for SCRIPT LOAD */
    struct redis_trial trials[REDIS_TRIALS_MAX]; /* the first is a plain write */
    char functions[REDIS_SCRIPTS_MAX][REDIS_SCRIPT_NAME_BYTES];
    char shas[REDIS_SCRIPTS_MAX][REDIS_SCRIPT_NAME_BYTES]; /* from the first handshake; same everywhere */
};

/* ---- redis_cluster.c ---- */

struct redis_cluster;

struct redis_options {
    struct loop *loop;
    const struct redis_address *address; /* borrowed until the end */
    const char *password_file;           /* read at every connect; NULL: the address's */
    const char *name;                    /* CLIENT SETNAME: letters, digits, dashes */
    uint32_t timeout_ms;                 /* until an answer */
    struct redis_scripts *scripts;       /* borrowed until the end */
};

/* From the loop's turn, never inside a redis_cluster_ function. */
struct redis_hooks {
    void (*up)(void *owner);
    void (*away)(void *owner, const char *why); /* also if it was never up */
};

struct redis_cluster *redis_cluster_new(const struct redis_options *options, const struct redis_hooks *hooks,
                                        void *owner);
/* No hook and no command's `ended` fires any more. */
void redis_cluster_free(struct redis_cluster *cluster);

/* The first attempt to connect has ended, one way or the other. */
bool redis_cluster_is_settled(const struct redis_cluster *cluster);
bool redis_cluster_is_up(const struct redis_cluster *cluster);

/* `ended` fires once, never inside this call. False: not sent, and `ended` does not fire. */
bool redis_cluster_send(struct redis_cluster *cluster, struct redis_command *command);
/* The same for a command that belongs to no slot. */
bool redis_cluster_send_first(struct redis_cluster *cluster, struct redis_command *command);

/* As read by the last handshake. */
const struct redis_clock *redis_cluster_clock(const struct redis_cluster *cluster);
/* Why it is away; "" while it is up. */
const char *redis_cluster_why_away(const struct redis_cluster *cluster);

/* Fills in what it knows of Redis and of the connection. Borrowed until the next call of any function here.
 */
void redis_cluster_status(const struct redis_cluster *cluster, struct ledger_status *out);

#endif
