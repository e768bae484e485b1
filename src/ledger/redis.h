/*
 * One Redis (or Valkey): alone, watched by sentinels, or a cluster, whose nodes are met as they are named.
 * Outside src/ledger/redis_*.c only the last part is used.
 */
#ifndef TOOLGATE_LEDGER_REDIS_H
#define TOOLGATE_LEDGER_REDIS_H

#include "base/clock.h"
#include "base/err.h"
#include "ledger/redis_address.h"
#include "ledger/redis_command.h"

#include <stddef.h>
#include <stdint.h>

struct ledger_status;
struct loop;
struct redisAsyncContext;

/* ---- redis_adapter.c: a connection of hiredis on our loop, and what it may hear: a reply that nobody asked
 * for trips an assertion in hiredis, and a list of as many items as a peer likes is allocated at once. A peer
 * that sends such things is no Redis, or has lost count; the connection ends, by the way that any broken one
 * does. ---- */

#define REDIS_REPLY_MAX_BYTES 16777216u /* of one reply that has not ended */
#define REDIS_REPLY_MAX_ITEMS 16384u    /* of a list: more than the fields of any session's details */

/* Before the first command; until the context is freed. The reader's privdata is taken. */
void redis_adapter_attach(struct loop *loop, struct redisAsyncContext *context);

/* Why it ended, in words for an operator; valid as long as the context. */
const char *redis_adapter_why(const struct redisAsyncContext *context, char *out, unsigned long size);

/* ---- redis_discovery.c: where to connect to now: a path as it is, a host's address from the resolver, a
 * master's from its sentinels. Names are looked up aside, so that a resolver that is slow holds up nobody.
 * ---- */

struct redis_discovery;
#define REDIS_DISCOVERY_TIMEOUT_MS 1000u /* of one name, and of one sentinel */
#define REDIS_DISCOVERY_HOST_BYTES 64u   /* a numeric address */

/* Numeric; port 0: `host` is a socket's path. */
struct redis_place {
    char host[108];
    uint16_t port;
};

/* Fires once, never inside redis_discovery_start. `place` NULL: not found, `why` says so. */
typedef void redis_discovery_found(void *owner, const struct redis_place *place, const struct why *why);

/* `address` is borrowed. */
struct redis_discovery *redis_discovery_start(struct loop *loop, const struct redis_address *address,
                                              redis_discovery_found *found, void *owner);
void redis_discovery_free(struct redis_discovery *discovery); /* `found` does not fire any more */

/* ---- redis_handshake.c: what is said before a connection takes commands: who we are, which database, what
 * kind of server this is, the scripts, one write, and some runs of scripts, since a server that can't do
 * these is of no use. Of a server that we have met before, our old connection is ended first: what waits
 * there unread must not be run after what was done about it here. ---- */

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

/* ---- redis_diagnostics.c: what an operator should know of a Redis: warnings about one that works (it may
 * evict keys, it is slow), checked at each connect, logged when new, and shown in the daemon's status; and
 * hints how to fix what keeps it away. ---- */

#define REDIS_DIAGNOSTICS_MAX       4u
#define REDIS_DIAGNOSTICS_BYTES     256u
#define REDIS_DIAGNOSTICS_SLOW_PART 4u /* a write that takes this part of timeout_ms is slow */

struct redis_diagnostics {
    size_t count;
    const char *events[REDIS_DIAGNOSTICS_MAX];                 /* "redis_eviction_enabled" … */
    char said[REDIS_DIAGNOSTICS_MAX][REDIS_DIAGNOSTICS_BYTES]; /* what it is, and the fix */
};

/* Logs what `diagnostics` did not hold yet. */
void redis_diagnostics_run(struct redis_diagnostics *diagnostics, const struct redis_facts *facts,
                           uint32_t timeout_ms);

/* The reason for which Redis is away, and behind it how to fix that, if it is known. */
void redis_diagnostics_add_hint(const char *why, char *out, size_t size);

/* What a server has against our AUTH, without our password, which may be empty: of a command that it does not
 * know Redis repeats the arguments, cut at 128 bytes. They go as a whole, since half a password is not known
 * for one; elsewhere it is masked. */
void redis_redact(const char *said, struct str password, char *out, size_t size);

/* ---- redis_cluster.c: sends commands to whoever holds their slot, follows redirections, loads scripts again
 * that a server has lost, and reports each command's end, in time. What to do while Redis is away is for
 * others to decide. ---- */

struct redis_cluster;

#define REDIS_UNSENT_MAX_BYTES 4194304u /* of one connection; what would be more is not sent */
#define REDIS_RETRY_FIRST_MS   20u      /* doubled with each failure in a row, and jittered by half */
#define REDIS_RETRY_LAST_MS    1000u
#define REDIS_HANDSHAKE_MS     2000u /* from connecting until it takes commands */

struct redis_options {
    struct loop *loop;
    const struct redis_address *address; /* borrowed until the end */
    const char *password_file;           /* read at every connect; NULL: the address's */
    const char *name;                    /* CLIENT SETNAME: letters, digits, dashes */
    uint32_t timeout_ms;                 /* until an answer */
    struct redis_scripts *scripts;       /* borrowed until the end */
};

#define REDIS_NODES_MAX 64u /* of a cluster */
#define REDIS_HOPS_MAX  5u  /* redirections of one command */

/* From the loop's turn, never inside a redis_cluster_ function. */
struct redis_hooks {
    void (*up)(void *owner);
    void (*away)(void *owner, const char *why); /* also where it was never there */
};

struct redis_cluster *redis_cluster_new(const struct redis_options *options, const struct redis_hooks *hooks,
                                        void *owner);
/* No hook and no command's `ended` fires any more. */
void redis_cluster_free(struct redis_cluster *cluster);

/* The first attempt to connect has ended, one way or the other. */
bool redis_cluster_is_settled(const struct redis_cluster *cluster);
bool redis_cluster_is_up(const struct redis_cluster *cluster);

/* `ended` fires once, never inside this call. False: not sent, and it won't be; nobody is there to take it.
 */
bool redis_cluster_send(struct redis_cluster *cluster, struct redis_command *command);
/* The same for a command that belongs to no slot: to the server that is configured. */
bool redis_cluster_send_first(struct redis_cluster *cluster, struct redis_command *command);

/* Of the server that is configured, from its last handshake. */
const struct redis_facts *redis_cluster_facts(const struct redis_cluster *cluster);
/* Why it is away; "" while it is there. */
const char *redis_cluster_why_away(const struct redis_cluster *cluster);

/* Fills in what it knows of Redis and the way there. Borrowed until the next call of any function here. */
void redis_cluster_status(const struct redis_cluster *cluster, struct ledger_status *out);

#endif
