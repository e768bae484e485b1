/*
 * What the redis_*.c files and store_redis.c share; no other file includes it. One Redis (or Valkey): a
 * single server, a master behind sentinels, or a cluster. Commands go to the node that has their slot, follow
 * redirections, and end in time. What happens during an outage is decided elsewhere.
 */
#ifndef TOOLGATE_LEDGER_REDIS_H
#define TOOLGATE_LEDGER_REDIS_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/rate_limit.h"
#include "io/timer.h"
#include "ledger/redis_address.h"
#include "ledger/store.h"

struct redisContext;

/* ---- commands (redis_cluster.c): a plain command, or a call of one of the scripts below. Whether that is
 * FCALL or EVALSHA is known only when it is sent, so its head is written then. ---- */

#define REDIS_SCRIPT_NAME_BYTES 40u  /* of a function; a SHA1 has as many */
#define REDIS_PLAIN_COMMAND     255u /* as `script` */

/* A plain command: its words follow. */
void redis_command_begin(struct redis_command *command);
/* A call of a script: `key_count` keys have to follow, then its arguments. */
void redis_command_begin_script(struct redis_command *command, unsigned script, size_t key_count);
void redis_command_word(struct redis_command *command, struct str word);
void redis_command_number(struct redis_command *command, uint64_t number);
/* As redis_command_word; the first one decides about the slot. */
void redis_command_key(struct redis_command *command, struct str key);

/* `at` NULL: the reply is no string. */
struct str redis_reply_text(const struct redisReply *reply);

/* ---- the server's clock as seen from here: its distance from CLOCK_BOOTTIME, which is never set and which
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
/* Replaces `clock` by `newer`, unless `newer` is much less exact than `clock` is by now. */
void redis_clock_update(struct redis_clock *clock, const struct redis_clock *newer);
/* Since 1970; by the wall clock of this machine until a server's was read. */
int64_t redis_clock_now_ms(const struct redis_clock *clock);

/* ---- the Lua scripts that each connection must be able to call: from Redis 7 on the functions of one
 * library, before that scripts by SHA1. The handshake loads them and runs the trials, so that a missing right
 * is found at connect. Names contain a hash of the text: builds of different versions load theirs side by
 * side. ---- */

enum { REDIS_SCRIPT_COMMIT, REDIS_SCRIPT_RATE, REDIS_SCRIPT_PROBE, REDIS_SCRIPTS }; /* lua/ledger */

struct redis_scripts {
    struct str library;              /* the text for FUNCTION LOAD */
    struct str texts[REDIS_SCRIPTS]; /* for SCRIPT LOAD */
    char probe[64];                  /* how the keys of the trials begin: the same for each handshake of this
                                        daemon, so that what a broken one left is overwritten */
    char functions[REDIS_SCRIPTS][REDIS_SCRIPT_NAME_BYTES];
    char shas[REDIS_SCRIPTS][REDIS_SCRIPT_NAME_BYTES]; /* from the first handshake; same everywhere */
};

/* ---- redis_connection.c ---- */

struct redis_options {
    struct loop *loop;
    struct redis_address address;
    const char *password_file; /* read at every connect; NULL: the address's */
    char name[32];             /* CLIENT SETNAME: letters, digits, dashes */
    uint32_t timeout_ms;       /* until an answer */
};

#define REDIS_NUMERIC_BYTES   64u /* of an address in digits */
#define REDIS_STEPS_MAX       16u
#define REDIS_WHY_BYTES       512u
#define REDIS_PASSWORD_BYTES  1024u
#define REDIS_FUNCTIONS_SINCE 7 /* FUNCTION LOAD */

/* What a server says of itself. */
struct redis_facts {
    char server[32]; /* "redis 7.0.15" */
    char run_id[48];
    char role[16], evicts[32]; /* maxmemory_policy, if memory is bounded */
    int version;
    long long client_id;
    int64_t write_us; /* how long the first write took, there and back */
    int64_t keys;     /* of the database; -1: unknown */
    struct redis_clock clock;
    bool loading, cluster, aof;
};

enum redis_state {
    REDIS_OFF,       /* until the pause is over, or a command needs it */
    REDIS_RESOLVING, /* a host's name */
    REDIS_ASKING,    /* a sentinel for the master */
    REDIS_GREETING,  /* the handshake */
    REDIS_UP,
    REDIS_LEAVING /* takes no more commands; those that were sent are still answered */
};

STAILQ_HEAD(redis_queue, redis_command);

struct redis_connection {
    struct redis_cluster *cluster;
    const struct redis_options *options;
    const struct redis_address_host *hosts; /* of the address; a node that the cluster named has its own, */
    struct redis_address_host own;          /* as has a master that a sentinel named. Port 0: none */
    char own_name[REDIS_ADDRESS_HOST_MAX_BYTES + 1];
    size_t host_count;  /* more than one: sentinels; 0: a socket's path */
    size_t host, tried; /* the one in use; how many have failed in this attempt */
    enum redis_state state;

    struct redis_lookup *lookup; /* NULL: none under way */
    struct redisContext *context;
    struct descriptor *descriptor;
    bool is_connected;
    uint32_t closed;                                        /* contexts so far */
    uint8_t steps[REDIS_STEPS_MAX], step_count, steps_done; /* replies that belong to no command */
    struct timer step;     /* of the host in use: the next look at the resolver, a sentinel's silence */
    struct timer attempt;  /* off: until the next attempt; else until this one is given up */
    struct timer deadline; /* of the oldest command */
    uint32_t failures;     /* in a row */
    char address[108];     /* where it connects to: numeric, or a socket's path if `port` is 0 */
    uint16_t port;
    int64_t address_since_ms; /* the first connection there; 0: none yet */
    /* Asking: the sentinel's error of AUTH; greeting: an error that did not matter so far; leaving: why. */
    char problem[REDIS_WHY_BYTES];
    struct redis_queue sent, waiting;

    /* The handshake. */
    char secret[REDIS_PASSWORD_BYTES]; /* from the password file */
    struct str password;               /* for AUTH; empty: none */
    struct redis_facts facts, before;  /* of this connection, of the last one that took commands */
    int64_t write_began_us, time_asked_us;
    size_t loaded, tried_trials;
    bool has_functions; /* it runs the scripts as a library */
};

/* Borrows all; off. */
struct redis_connection *redis_connection_new(struct redis_cluster *cluster,
                                              const struct redis_address_host *hosts, size_t host_count);
void redis_connection_free(struct redis_connection *connection);
/* Begins an attempt to connect, unless one is under way or has failed just now. */
void redis_connection_wake(struct redis_connection *connection);
/* False: not sent, and `ended` does not fire. `waits`: it may wait for a connection that is being made. */
bool redis_connection_send(struct redis_connection *connection, struct redis_command *command, bool waits);
/* The handshake is over; it takes commands. */
void redis_connection_is_up(struct redis_connection *connection);
void redis_connection_give_up(struct redis_connection *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets `own`. */
void redis_connection_name(struct redis_connection *connection, struct str host, uint16_t port);
/* Connects to it: an address, or, where sentinels announce names, a name, which is looked up. */
void redis_connection_to_master(struct redis_connection *connection, struct str host, uint16_t port);
/* The host in use did not lead to the goal: the next sentinel is asked, if there is one. */
void redis_connection_host_failed(struct redis_connection *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- redis_handshake.c: who we are, which database, what kind of server this is, the scripts and their
 * trials. If the server knows our last connection, that is ended first: commands that wait there unread must
 * not be run after what was done about them here. ---- */

void redis_handshake_begin(struct redis_connection *connection);
void redis_handshake_ask_sentinel(struct redis_connection *connection);
/* `step`: one of connection->steps. */
void redis_handshake_on_reply(struct redis_connection *connection, uint8_t step,
                              const struct redisReply *reply);
/* Sends all of them again; returns how many replies will follow. */
uint8_t redis_handshake_load_scripts(struct redis_connection *connection);

/* ---- redis_cluster.c: the nodes of a Redis ---- */

#define REDIS_NODES_MAX     64u
#define REDIS_MEDIAN_OF     128u
#define REDIS_WARNING_BYTES 256u

struct redis_cluster {
    const struct redis_options *options;
    struct redis_scripts *scripts;
    struct store_redis *store;
    struct redis_connection *nodes[REDIS_NODES_MAX], *first;
    uint32_t node_count, named_count; /* the named ones stand first */
    uint32_t failed;                  /* attempts in a row, of any first node */
    uint8_t *slots;                   /* a node for each; NULL: no cluster, as far as is known */
    struct str shown;                 /* the address, for people */
    bool is_up;
    bool is_settled;              /* the first attempt to connect has ended, one way or the other */
    struct rate_limit lost_nodes; /* in the log */
    uint64_t connects, answers;
    uint32_t took_us[REDIS_MEDIAN_OF]; /* the last answers */
    int64_t worst_us, away_since_ms;
    struct histogram times;
    char why_away[REDIS_WHY_BYTES];                          /* empty while it is up */
    struct redis_facts known;                                /* of the last first node */
    char warnings[LEDGER_WARNINGS_MAX][REDIS_WARNING_BYTES]; /* empty: it does not apply */
};

/* Begins to connect; borrows all. */
void redis_cluster_init(struct redis_cluster *cluster, const struct redis_options *options,
                        struct redis_scripts *scripts, struct store_redis *store, struct str shown);
/* No command's `ended` fires any more. */
void redis_cluster_clear(struct redis_cluster *cluster);
/* To the node of the command's slot, or to any if it has no key. `ended` fires once, never inside this call.
 * False: not sent, and `ended` does not fire. */
bool redis_cluster_send(struct redis_cluster *cluster, struct redis_command *command);

/* For a connection: */

void redis_cluster_on_up(struct redis_connection *connection);
void redis_cluster_on_lost(struct redis_connection *connection, const char *why);
void redis_cluster_on_error(struct redis_connection *from, struct redis_command *command, const char *text);
/* The cluster has named a node; an empty host is `from`'s. NULL: there are too many. */
struct redis_connection *redis_cluster_node(struct redis_connection *from, struct str host,
                                            unsigned long port);

/* ---- store_redis.c, which hears of both from the loop's turn, never inside a redis_cluster_ function ----
 */

void store_redis_on_up(struct store_redis *store);
void store_redis_on_away(struct store_redis *store, const char *why);

#endif
