/*
 * What is said before a connection takes commands: who we are, which
 * database, what kind of server this is, the scripts, one write, and some runs
 * of scripts, since a server that can't do these is of no use. Of a server that we have met before,
 * our old connection is ended first: what waits there unread must not be run
 * after what was done about it here.
 */
#ifndef TOOLGATE_LEDGER_REDIS_HANDSHAKE_H
#define TOOLGATE_LEDGER_REDIS_HANDSHAKE_H

#include "base/err.h"
#include "base/clock.h"
#include "ledger/redis_command.h"

#include <stdint.h>

struct arena;
struct redisAsyncContext;

/* ---- the server's clock as seen from here: its distance from a local clock that nobody sets, read off TIME.
 * The local clock is CLOCK_BOOTTIME: it goes on while the machine is suspended. ---- */

struct redis_clock {
    int64_t ahead_us; /* the server's time minus the local clock */
    int64_t error_us; /* at most so far off: half the round trip */
    int64_t read_us;  /* by the local clock; 0: never */
};

static inline int64_t redis_clock_local_us(void)
{
    return clock_read_ns(CLOCK_BOOTTIME) / 1000;
}

/* `time` is the reply to a TIME that was sent at `asked_us` by the local clock. False: it is none. */
bool redis_clock_read(struct redis_clock *clock, const struct redis_value *time, int64_t asked_us);

/* Takes over `newer` unless it is much less exact than `clock` is still. */
void redis_clock_update(struct redis_clock *clock, const struct redis_clock *newer);

/* Since 1970; by the wall clock of this machine as long as no server's was read. */
int64_t redis_clock_now_ms(const struct redis_clock *clock);

/* ---- the Lua scripts that a connection must be able to call: from Redis 7 on the functions of one library,
 * before that scripts by SHA1. The handshake loads them and tries them once on keys of its own, so that a
 * user without the rights is found at connect. Names contain a hash of the text: builds of different versions
 * load theirs side by side. ---- */

#define REDIS_SCRIPTS_MAX 2u

struct redis_scripts {
    size_t count;
    struct str library;                  /* the text for FUNCTION LOAD */
    struct str texts[REDIS_SCRIPTS_MAX]; /* for SCRIPT LOAD */
    /* Writes command `i` of the trial, mostly a call of a script, on keys that expire and that `name` makes
     * unique; NULL: there are no more. The first is a plain write. Returns what it tries, for a message. */
    const char *(*write_trial)(struct redis_command *command, size_t i, const char *name);
    bool (*is_expected)(size_t i, const struct redis_value *value);
    char functions[REDIS_SCRIPTS_MAX][REDIS_SCRIPT_NAME_BYTES];
    char shas[REDIS_SCRIPTS_MAX]
             [REDIS_SCRIPT_NAME_BYTES]; /* learned at the first handshake; same everywhere */
};

/* ---- the handshake ---- */

#define REDIS_TRIALS_MAX 16u

#define REDIS_FUNCTIONS_SINCE 7 /* FUNCTION LOAD */
#define REDIS_OLDEST_VERSION  6 /* SET … KEEPTTL */

struct redis_facts {
    char server[32]; /* "redis 7.0.15" */
    char run_id[48];
    char role[16], evicts[32]; /* maxmemory_policy, where memory is bounded */
    int version;
    long long client_id;
    int64_t write_us; /* how long the first one took, there and back */
    int64_t keys;     /* of the database; -1: not told */
    struct redis_clock clock;
    bool loading, cluster, aof;
};

/* Embedded in a connection; one handshake after the other. */
struct redis_handshake {
    struct str user, password; /* to say; empty: none */
    uint32_t db;
    const char *name;
    struct redis_scripts *scripts;              /* to load and to try */
    void (*over)(void *owner, const char *why); /* NULL: it takes commands */
    void *owner;

    struct redis_facts facts, before; /* of this connection, of the last one that got as far */
    int64_t write_began_us, time_asked_us;
    uint32_t loaded; /* scripts, where it knows no functions */
    size_t trials, tried;
    const char *trying[REDIS_TRIALS_MAX];
    char probe_name[80]; /* the same for each handshake: what a broken one left is overwritten */
    bool functions;      /* it runs them as a library */
    bool failed, is_over;
};

/* `over` fires once, from a reply; not at all where the connection ends before. */
void redis_handshake_begin(struct redis_handshake *handshake, struct redisAsyncContext *context);

/* All of them again, ahead of whatever is sent next. */
void redis_handshake_load_scripts(struct redis_handshake *handshake, struct redisAsyncContext *context);

#endif
