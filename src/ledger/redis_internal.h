/* What the redis_*.c files share: one connection, and what is said on it first. */
#ifndef TOOLGATE_LEDGER_REDIS_INTERNAL_H
#define TOOLGATE_LEDGER_REDIS_INTERNAL_H

#include "io/timer.h"
#include "ledger/redis.h"

struct redisContext;

#define REDIS_REPLY_MAX_BYTES  16777216u /* of one reply that has not ended */
#define REDIS_REPLY_MAX_ITEMS  16384u    /* of a list: more than the fields of any session's details */
#define REDIS_UNSENT_MAX_BYTES 4194304u  /* of one connection; commands beyond it are not sent */
#define REDIS_RETRY_FIRST_MS   20u       /* doubled with each failure in a row, and jittered by half */
#define REDIS_RETRY_LAST_MS    1000u
#define REDIS_CONNECT_MS       2000u /* until a connection takes commands */
#define REDIS_HOST_MS          1000u /* of them for one name, and for one sentinel */

#define REDIS_NUMERIC_BYTES   64u /* of an address in digits */
#define REDIS_STEPS_MAX       32u
#define REDIS_WHY_BYTES       512u
#define REDIS_PASSWORD_BYTES  1024u
#define REDIS_FUNCTIONS_SINCE 7 /* FUNCTION LOAD */
#define REDIS_OLDEST_VERSION  6 /* SET … KEEPTTL */

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
    const struct redis_address_host *hosts; /* of the address; a node that the cluster named has its own */
    struct redis_address_host own;
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
    int64_t address_since_ms;      /* the first connection there; 0: none yet */
    char problem[REDIS_WHY_BYTES]; /* asking: the sentinel's error of AUTH; leaving: why */
    struct redis_queue sent, waiting;

    /* The handshake. */
    char secret[REDIS_PASSWORD_BYTES]; /* from the password file */
    struct str password;               /* for AUTH; empty: none */
    struct redis_facts facts, before;  /* of this connection, of the last one that took commands */
    int64_t write_began_us, time_asked_us;
    size_t loaded, tried_trials;
    bool has_functions; /* it runs the scripts as a library */
};

/* ---- redis_connection.c ---- */

/* Borrows all; off. */
struct redis_connection *redis_connection_new(struct redis_cluster *cluster,
                                              const struct redis_options *options,
                                              const struct redis_address_host *hosts, size_t host_count);
void redis_connection_free(struct redis_connection *connection);
/* Begins an attempt to connect, unless one is under way or has failed just now. */
void redis_connection_wake(struct redis_connection *connection);
/* False: not sent, and `ended` does not fire. `waits`: it may wait for a connection that is being made. */
bool redis_connection_send(struct redis_connection *connection, struct redis_command *command, bool waits);
/* The handshake is over; it takes commands. */
void redis_connection_is_up(struct redis_connection *connection);
void redis_connection_give_up(struct redis_connection *connection, const char *why);
/* A sentinel's answer. */
void redis_connection_has_master(struct redis_connection *connection, const char *address, uint16_t port);
void redis_connection_sentinel_failed(struct redis_connection *connection, const char *how);
/* The command as this server takes it. Borrows the command's bytes. */
struct str redis_connection_bytes(const struct redis_connection *connection, struct redis_command *command);

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

/* A server's error of our AUTH, without our password, which may be empty. Redis repeats the arguments of a
 * command that it does not know, cut at 128 bytes: they are dropped as a whole, since half a password would
 * not be recognised. Elsewhere it is masked. */
void redis_redact(const char *said, struct str password, char *out, size_t size);

/* ---- redis_cluster.c, for a connection ---- */

/* `why`, and the hint how to fix it if one is known. */
void redis_add_hint(const char *why, char *out, size_t size);
void redis_cluster_on_up(struct redis_connection *connection);
void redis_cluster_on_lost(struct redis_connection *connection, const char *why);
/* Whether it connects again by itself, not only for a command. */
bool redis_cluster_needs(const struct redis_connection *connection);
void redis_cluster_on_answer(struct redis_cluster *cluster, const struct redis_command *command);
void redis_cluster_on_error(struct redis_connection *from, struct redis_command *command, const char *text);
/* The cluster has named a node; an empty host is `from`'s. NULL: there are too many. */
struct redis_connection *redis_cluster_node(struct redis_connection *from, struct str host,
                                            unsigned long port);

#endif
