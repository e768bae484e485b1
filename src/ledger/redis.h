/*
 * The other engine: the ledger's scripts in a Redis (or Valkey) that many
 * daemons share; alone, watched by sentinels, or a cluster. Sends what it is
 * given and says what came of it, in time; what to do while it is away is for
 * away.c to decide.
 */
#ifndef TOOLGATE_LEDGER_REDIS_H
#define TOOLGATE_LEDGER_REDIS_H

#include "base/buf.h"
#include "base/err.h"
#include "ledger/redis_address.h"
#include "ledger/script.h"

#include <stdint.h>

struct redis_diagnostics;
struct loop;
struct redis;

#define REDIS_TIMEOUT_MS       50u
#define REDIS_UNSENT_MAX_BYTES 4194304u /* of one connection; what would be more is not sent */
#define REDIS_RETRY_FIRST_MS   20u      /* doubled with each failure in a row, and jittered by half */
#define REDIS_RETRY_LAST_MS    1000u
#define REDIS_HANDSHAKE_MS     2000u /* from connecting until it takes commands */
#define REDIS_NODES_MAX        64u   /* of a cluster */
#define REDIS_HOPS_MAX         5u    /* redirections of one command */
#define REDIS_OLDEST_VERSION   6     /* SET … KEEPTTL */

struct redis_options {
    struct loop *loop;
    const struct redis_address *address; /* borrowed until redis_free */
    const char *password_file;           /* read at every connect; NULL: the address's */
    const char *name;                    /* CLIENT SETNAME: letters, digits, dashes */
    uint32_t timeout_ms;
};

/* From the loop's turn, never inside a redis_ function. */
struct redis_hooks {
    void (*up)(void *owner);
    void (*away)(void *owner, const char *why); /* also where it was never there */
};

struct redis *redis_new(const struct redis_options *options, const struct redis_hooks *hooks, void *owner);
/* No hook and no job's `ended` fires any more. */
void redis_free(struct redis *redis);

/* The first attempt to connect has ended, one way or the other. */
bool redis_is_settled(const struct redis *redis);
bool redis_is_up(const struct redis *redis);

enum redis_ended {
    REDIS_ANSWERED, /* `reply` is the script's */
    REDIS_REFUSED,  /* the server says no, for a reason that will not pass: `why` has its words */
    REDIS_UNDONE, /* surely nothing has happened: not sent, or turned down by a server that can't write now */
    REDIS_LOST    /* it may have been run, or not */
};

#define REDIS_JOB_HEAD_BYTES 32u /* room before the script's name, for what is known when it is sent */

/* One run of a script. Embedded in its sender's own struct; fields below `ended` are the engine's. */
struct redis_job {
    struct buf command; /* as written by redis_job_write; lives at least until `ended` */
    /* Once for each redis_send that returned true, never inside it; `reply` is valid during the call only. */
    void (*ended)(struct redis_job *job, enum redis_ended how, struct str reply, const char *why);
    struct redis_job *next;
    int64_t began_us;
    enum script script;
    uint16_t slot;
    uint8_t words; /* of the command */
    uint8_t hops;
    bool asking;
};

void redis_job_write(struct redis_job *job, const struct script_run *run);

/* False: not sent, and it won't be; nobody is there to take it now. */
bool redis_send(struct redis *redis, struct redis_job *job);

struct redis_stats {
    struct str address; /* without user and password */
    struct str server;  /* "redis 7.0.15"; empty: never connected */
    uint64_t connects, failures;
    uint32_t nodes;    /* of a cluster, as far as they were met */
    int64_t median_us; /* of the last hundred or so answers */
    int64_t worst_us;  /* since connected */
    int64_t keys;      /* of its database, when it was connected to; -1: not told */
    uint64_t answers;
    const char *why_away; /* "" while it is there */
    int64_t away_since_ms;
    int64_t write_us; /* of the last handshake */
    const struct redis_diagnostics *diagnostics;
};
void redis_stats(const struct redis *redis, struct redis_stats *out);

#endif
