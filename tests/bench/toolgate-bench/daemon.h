/* The bench's daemons, toolgate and the echo, in a temporary folder; all end with the bench. */
#ifndef TOOLGATE_BENCH_DAEMON_H
#define TOOLGATE_BENCH_DAEMON_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BENCH_START_MS 10000 /* how long a daemon may take to accept */
#define BENCH_PATH_MAX 96    /* bytes of a path in the folder: a socket's must fit its address */

/* The folder with a configuration and the bench's policy. */
struct bench_folder {
    char path[BENCH_PATH_MAX];
};
enum err bench_folder_make(struct bench_folder *folder, struct why *why);
void bench_folder_drop(const struct bench_folder *folder);

enum bench_role {
    BENCH_GATE,     /* toolgate without its decision log */
    BENCH_RECORDED, /* toolgate with it, as it is by default */
    BENCH_ECHO,     /* every line goes back as it came */
    BENCH_ROLES
};

struct bench_daemon {
    pid_t pid; /* 0: not started */
    char socket[BENCH_PATH_MAX];
};

/* Returns when it accepts. `redis`: where its ledger is; NULL: its own. */
enum err bench_daemon_start(const struct bench_folder *folder, enum bench_role role, const char *redis,
                            struct bench_daemon *daemon, struct why *why);
void bench_daemon_stop(struct bench_daemon *daemon);

/* Time of all its threads on a CPU since its start; 0 where the kernel does not tell. */
int64_t bench_daemon_cpu_ns(const struct bench_daemon *daemon);

#endif
