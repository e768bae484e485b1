/*
 * A request under way in Redis is a work: it owns its command, so that the
 * command can wait for Redis to return also after the call that wanted it is
 * gone.
 */
#include "ledger/engine_state.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "ledger/redis_diagnostics.h"
#include "ledger/store.h"

#include <stdlib.h>

#define WORKS_SPARE_MAX 256u /* kept for the next request */
#define SPARE_BYTES_MAX 4096u

struct work {
    struct redis_job job; /* first: it is what Redis hands back */
    struct engine *engine;
    struct ask ask;               /* nobody's where `gone` */
    const struct script_run *run; /* NULL: nothing borrowed is left to read */
    struct buf doubt;             /* admit: what takes it back */
    struct redis_job release;     /* admit that nobody waits for any more: what gives it up; empty: none */
    bool gone;
    char stem[SCRIPT_KEY_BYTES - 1];
    struct work *next, *previous; /* under way, or spare */
};

/* ---- works ---------------------------------------------------------------------------- */

static void on_ended(struct redis_job *job, enum redis_ended how, struct str reply, const char *why);

static struct work *work_new(struct engine *e, const struct script_run *run, const struct ask *ask)
{
    struct work *w = e->spare;
    if (w) {
        e->spare = w->next;
        e->spare_count--;
    } else if (!(w = calloc(1, sizeof(*w)))) {
        abort();
    }
    w->engine = e;
    w->ask = *ask;
    w->run = ask->done ? run : NULL;
    w->gone = false;
    w->job.ended = on_ended;
    w->doubt.len = 0;
    memcpy(w->stem, run->keys[0].at, sizeof(w->stem));
    redis_job_write(&w->job, run);
    if (ask->kind->standing == STANDS_FOR_A_CALL)
        pack_doubt(&w->doubt, ask->request);
    return w;
}

static void link_work(struct engine *e, struct work *w)
{
    w->previous = NULL;
    w->next = e->works;
    if (w->next)
        w->next->previous = w;
    e->works = w;
}

static void unlink_work(struct engine *e, struct work *w)
{
    if (w->previous)
        w->previous->next = w->next;
    else
        e->works = w->next;
    if (w->next)
        w->next->previous = w->previous;
}

static void work_free(struct engine *e, struct work *w)
{
    buf_clear(&w->release.command.bytes);
    if (e->spare_count == WORKS_SPARE_MAX || w->job.command.bytes.cap > SPARE_BYTES_MAX) {
        buf_clear(&w->job.command.bytes);
        buf_clear(&w->doubt);
        free(w);
        return;
    }
    w->next = e->spare;
    e->spare = w;
    e->spare_count++;
}

/* ---- a request comes back ----------------------------------------------------------------- */

static struct str key_of(const struct work *w)
{
    return (struct str){w->stem, sizeof(w->stem)};
}

/* It was let run, and nobody is there to run it. */
static void give_up_reservation(struct engine *e, struct work *w, struct str reply)
{
    if (w->release.command.bytes.len && reply.len > PACK_SAYS_AT && reply.at[PACK_SAYS_AT] == LEDGER_RUN) {
        keep_for_later(e, key_of(w), &w->release);
        catch_up(e);
    }
}

static void remember_doubt(struct engine *e, const struct work *w)
{
    struct absence *a = w->doubt.len ? note_absence(e, key_of(w)) : NULL;
    if (a)
        buf_str(&a->doubts, buf_view(&w->doubt));
}

static void take_answer(struct engine *e, struct work *w, struct str text)
{
    struct engine_reply reply = {.how = REPLY_SAID, .engine = "redis", .text = arena_dup(w->ask.arena, text)};
    e->by_redis++;
    w->ask.kind->take(&w->ask, &reply);
}

/* Nobody waits for the answer, but the word has to reach Redis. */
static void send_later(struct engine *e, struct work *w)
{
    enum standing standing = w->ask.kind->standing;
    if (standing == STANDS_BEHIND_ONE || standing == STANDS_LATER)
        keep_for_later(e, key_of(w), &w->job);
}

static void on_ended(struct redis_job *job, enum redis_ended how, struct str reply, const char *why)
{
    struct work *w = (struct work *)job;
    struct engine *e = w->engine;
    struct ask ask = w->ask;
    bool waits = !w->gone && ask.done;
    unlink_work(e, w);
    if (how == REDIS_REFUSED)
        say_refused(e, "redis_refused", w->stem, job->script, why);
    if (how == REDIS_LOST)
        remember_doubt(e, w);
    if (how == REDIS_ANSWERED && w->gone)
        give_up_reservation(e, w, reply);
    else if (how == REDIS_ANSWERED && waits)
        take_answer(e, w, reply);
    else if (how != REDIS_ANSWERED && waits)
        stand_in(e, w->run, &ask);
    else if (how == REDIS_LOST || how == REDIS_UNDONE)
        send_later(e, w);
    work_free(e, w);
    if (waits)
        ask.done(ask.owner);
}

enum ledger_state engine_run(struct engine *e, const struct script_run *run, const struct ask *ask)
{
    if (!e->redis) {
        answer_here(e, run, ask, false);
        return LEDGER_DONE;
    }
    struct absence *a = redis_cluster_is_up(e->redis) ? away_find(e->away, run->keys[0]) : NULL;
    bool ahead = redis_cluster_is_up(e->redis) && (!a || bring(e, a));
    if (ahead) {
        struct work *w = work_new(e, run, ask);
        if (redis_send(e->redis, &w->job)) {
            link_work(e, w);
            return ask->done ? LEDGER_PENDING : LEDGER_DONE;
        }
        work_free(e, w);
    }
    stand_in(e, run, ask);
    return LEDGER_DONE;
}

void engine_cancel(struct engine *e, void *owner)
{
    for (struct work *w = e->works; w; w = w->next) {
        if (w->gone || !w->ask.done || w->ask.owner != owner)
            continue;
        if (w->ask.kind->release) {
            struct script_run run;
            memcpy(run.keys, w->run->keys, sizeof(run.keys));
            w->ask.kind->release(&w->ask, &e->options, &run);
            redis_job_write(&w->release, &run);
        }
        w->gone = true;
        w->run = NULL;
    }
}

/* ---- Redis comes and goes -------------------------------------------------------------------- */

static void on_up(void *owner)
{
    struct engine *e = owner;
    redis_outage_log_back(&e->outage_log, away_sessions(e->away));
    e->has_lost = false;
    timer_set(&e->catch_up, e->loop, 0, catch_up, e);
}

static const char *const outages[] = {"local", "closed", "open"};

static void on_away(void *owner, const char *why)
{
    struct engine *e = owner;
    struct redis_stats stats;
    redis_cluster_stats(e->redis, &stats);
    redis_outage_log_away(&e->outage_log, stats.address, why, outages[e->on_outage]);
}

static const struct redis_hooks redis_hooks = {on_up, on_away};

/* ---- from outside ------------------------------------------------------------------------------ */

static void start_redis(struct engine *e, const struct redis_options *given)
{
    struct redis_options options = *given;
    options.scripts = redis_old_scripts();
    e->loop = given->loop;
    e->away = away_new(e);
    e->redis = redis_cluster_new(&options, &redis_hooks, e);
}

enum err engine_new(const struct ledger_options *o, const struct redis_options *redis, struct engine **out,
                    struct why *why)
{
    *out = NULL;
    struct engine *e = calloc(1, sizeof(*e));
    if (!e)
        return err_set(why, ERR_LIMIT, "no memory for the ledger");
    e->now_ms = o->now_ms ? o->now_ms : clock_wall_ms;
    e->options.ttl_s = o->ttl_s ? o->ttl_s : LEDGER_TTL_S_DEFAULT;
    e->options.history = o->history ? o->history : LEDGER_HISTORY_DEFAULT;
    e->on_outage = o->on_outage;
    enum err err = local_new(o->memory_bytes ? o->memory_bytes : LEDGER_MEMORY_BYTES, &e->local, why);
    if (err != OK) {
        engine_free(e);
        return err;
    }
    if (redis)
        start_redis(e, redis);
    *out = e;
    return OK;
}

static void say_untold(const struct engine *e)
{
    size_t sessions = e->away ? away_sessions(e->away) : 0;
    if (sessions)
        log_event(LOG_WARN, "ledger_sessions_lost", LOG_NUM("sessions", sessions),
                  LOG_NUM("commands", away_commands(e->away)),
                  LOG_TEXT("why",
                           "the daemon ends before Redis is back: what it counted of them meanwhile is "
                           "told to nobody"));
}

void engine_free(struct engine *e)
{
    if (!e)
        return;
    timer_clear(&e->catch_up);
    say_untold(e);
    redis_cluster_free(e->redis);
    while (e->works) {
        struct work *w = e->works;
        e->works = w->next;
        buf_clear(&w->release.command.bytes);
        buf_clear(&w->job.command.bytes);
        buf_clear(&w->doubt);
        free(w);
    }
    while (e->spare) {
        struct work *w = e->spare;
        e->spare = w->next;
        buf_clear(&w->job.command.bytes);
        buf_clear(&w->doubt);
        free(w);
    }
    away_free(e->away);
    local_free(e->local);
    free(e);
}

const struct pack_options *engine_options(const struct engine *e)
{
    return &e->options;
}

bool engine_is_settled(const struct engine *e)
{
    return !e->redis || redis_cluster_is_settled(e->redis);
}

void engine_status(const struct engine *e, struct ledger_status *out)
{
    struct store_usage here;
    local_usage(e->local, &here);
    *out = (struct ledger_status){.engine = e->redis ? "redis" : "local",
                                  .why_away = "",
                                  .sessions = here.sessions,
                                  .bytes = here.bytes,
                                  .forgotten = here.forgotten};
    if (!e->redis)
        return;
    struct redis_stats stats;
    redis_cluster_stats(e->redis, &stats);
    out->connected = redis_cluster_is_up(e->redis);
    out->on_outage = outages[e->on_outage];
    out->server = stats.server;
    out->why_away = stats.why_away;
    out->away_since_ms = stats.away_since_ms;
    out->connects = stats.connects;
    out->by_redis = e->by_redis;
    out->by_stand_in = e->by_stand_in;
    out->uncounted = e->uncounted;
    out->refused = e->refused;
    out->waiting = away_sessions(e->away);
    out->merged = e->merged;
    out->lost = e->lost;
    out->median_us = stats.median_us;
    out->keys = stats.keys;
    out->outages = e->outage_log.outages;
    out->worst_us = stats.worst_us;
    out->nodes = stats.nodes;
    out->warning_count = stats.diagnostics->count;
    for (size_t i = 0; i < stats.diagnostics->count; i++)
        out->warnings[i] = stats.diagnostics->said[i];
}
