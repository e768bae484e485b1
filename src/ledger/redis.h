/* The old engine's scripts as calls to a redis_cluster; goes with the engine. */
#ifndef TOOLGATE_LEDGER_REDIS_H
#define TOOLGATE_LEDGER_REDIS_H

#include "ledger/redis_cluster.h"
#include "ledger/redis_scripts.h"
#include "ledger/script.h"

/* One run of a script. Embedded in its sender's own struct. */
struct redis_job {
    struct redis_command command; /* first: it is what the cluster hands back */
    void (*ended)(struct redis_job *job, enum redis_ended how, struct str reply, const char *why);
    enum script script;
};

void redis_job_write(struct redis_job *job, const struct script_run *run);
bool redis_send(struct redis_cluster *redis, struct redis_job *job);

/* The scripts, shared by all engines of the process. */
struct redis_scripts *redis_old_scripts(void);

#endif
