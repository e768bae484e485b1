/*
 * What the three files of the engine share: engine.c (requests under way),
 * stand_in.c (while Redis is away), bring.c (when it is back). Nobody else
 * includes this.
 */
#ifndef TOOLGATE_LEDGER_ENGINE_STATE_H
#define TOOLGATE_LEDGER_ENGINE_STATE_H

#include "io/timer.h"
#include "ledger/away.h"
#include "ledger/engine.h"
#include "ledger/local.h"
#include "ledger/redis_outage_log.h"
#include "base/rate_limit.h"

struct loop;
struct work;

struct engine {
    struct local *local;
    struct redis_cluster *redis; /* NULL: there is only the local one */
    struct away *away;
    struct pack_options options;
    enum ledger_outage on_outage;
    int64_t (*now_ms)(void);
    struct loop *loop;
    struct timer catch_up;
    struct work *works, *spare;
    size_t spare_count, flying;
    bool has_lost, has_forgotten;
    struct redis_outage_log outage_log;
    struct rate_limit refusals;
    uint64_t by_redis, by_stand_in, uncounted, refused, merged, merged_told, lost;
};

/* ---- stand_in.c ---- */

/* The local engine's answer; `stand_in`: in Redis' place. */
void answer_here(struct engine *engine, const struct script_run *run, const struct ask *ask, bool stand_in);
enum err run_here(struct engine *engine, const struct script_run *run, struct arena *arena, struct str *reply,
                  struct why *why);

/* As on_outage and the kind of request have it; the answer is filled in. */
void stand_in(struct engine *engine, const struct script_run *run, const struct ask *ask);

/* A command that Redis has to hear when it is back; it is moved out of the job. `key`: any of the session's.
 */
void keep_for_later(struct engine *engine, struct str key, struct redis_job *job);
/* What has to be told of a session; NULL: no place. */
struct absence *note_absence(struct engine *engine, struct str key);
void say_lost(struct engine *engine);
/* A server turned a script down for good; a few lines a second. `stem`: what the session's keys begin with.
 */
void say_refused(struct engine *engine, const char *event, const char stem[SCRIPT_KEY_BYTES - 1],
                 enum script script, const char *why);

/* ---- bring.c ---- */

/* Sends what waits of one session, its account first. False: Redis takes nothing now. */
bool bring(struct engine *engine, struct absence *absence);
/* The same for all, some at a time. */
void catch_up(void *owner);
/* For what was not taken by a Redis that is there: its return is no event to wait for. */
void catch_up_later(struct engine *engine);

#endif
