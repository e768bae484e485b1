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
#include "ledger/redis_clock.h"
#include "ledger/redis_scripts.h"

#include <stdint.h>

struct redisAsyncContext;

#define REDIS_TRIALS_MAX 16u

#define REDIS_FUNCTIONS_SINCE 7 /* FUNCTION LOAD */

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
