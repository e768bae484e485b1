/*
 * While Redis is away: `local` counts in this daemon's memory and keeps each request; `closed` refuses,
 * `open` lets pass uncounted. When it is back, the kept requests are applied to what Redis has by then, as
 * calls that already happened.
 */
#include "base/clock.h"
#include "base/log.h"
#include "ledger/ledger_internal.h"
#include "ledger/store_redis.h"

#include <stdlib.h>

/* ---- kept requests ---- */

static void log_lost(struct ledger *l)
{
    l->lost++;
    if (!l->has_lost)
        log_event(
            LOG_ERROR, "ledger_requests_dropped", LOG_NUM("sessions", (int64_t)outage_sessions(l->outage)),
            LOG_NUM("requests", (int64_t)outage_requests(l->outage)),
            LOG_TEXT(
                "why",
                "the outage queue is full: Redis will not learn of further requests; raise ledger.memory"));
    l->has_lost = true;
}

/* Where Redis is there, no event tells when to try again. */
static void replay_soon(struct ledger *l)
{
    if (store_redis_is_up(l->redis) && !timer_is_set(&l->replay))
        timer_set(&l->replay, l->loop, REPLAY_RETRY_MS, outage_replay, l);
}

static void keep(struct ledger *l, struct session_request *copy)
{
    copy->is_past = true;
    if (!copy->sequence)
        copy->sequence = transaction_sequence(l);
    copy->is_cancelled = false;
    if (!outage_keep(l->outage, copy)) {
        log_lost(l);
        free(copy);
    }
    replay_soon(l);
}

void outage_remember(struct ledger *l, const struct session_request *r)
{
    if (!request_only_looks(r->kind) && r->kind != REQUEST_BOUNDARY)
        keep(l, request_copy(r));
}

/* ---- this daemon stands in ---- */

static void forget_here(struct ledger *l, struct hash128 id)
{
    struct store_request request = {.id = id, .forget = true};
    l->memory->kind->commit(l->memory, &request);
}

/* Goes on in memory from what was cached of the session, or from what the memory has of this outage. */
static void go_local(struct ledger_entry *e)
{
    struct ledger *l = e->ledger;
    struct commit *c = e->commit;
    e->local = true;
    if (!e->loaded || !e->begun) {
        entry_forget(e);
        return;
    }
    forget_here(l, e->node.id);
    session_boundary(&e->session, &c->changes);
    commit_finish(c, l->ttl_s, true);
    l->memory->kind->commit(l->memory, &c->store);
    e->stored = true;
}

/* What another daemon has done to the session meanwhile is not known. */
static void mark_local(struct ledger_entry *e)
{
    struct session_request *r;
    STAILQ_FOREACH (r, &e->flying, next)
        if (r->kind == REQUEST_ADMIT && r->answer) {
            struct ledger_answer *answer = r->answer;
            answer->engine = "local";
            answer->ids_complete = false;
        }
}

/* ---- nobody stands in ---- */

static void pass_uncounted(struct ledger *l, const struct session_request *r)
{
    const struct ledger_admit *admit = r->of.admit;
    struct ledger_answer *answer = r->answer;
    l->uncounted++;
    log_event(LOG_WARN, "ledger_uncounted", LOG_STR("tool", admit->tool), LOG_STR("ext", admit->ext),
              LOG_STR("session", str_cut(admit->place.session, 128)));
    if (answer)
        *answer = (struct ledger_answer){.engine = "none", .uncounted = true};
}

/* An admit that may have been committed: its reservation must not stay. */
static void take_back(struct ledger *l, const struct session_request *r)
{
    keep(l, request_release(r));
}

static void refuse(struct ledger *l, const struct session_request *r)
{
    struct redis_stats stats;
    store_redis_stats(l->redis, &stats);
    l->refused++;
    request_fail(r, ERR_UNAVAILABLE, stats.why_away[0] ? stats.why_away : "Redis did not answer");
}

static void serve_uncounted(struct ledger *l, const struct session_request *r, bool lost)
{
    switch (r->kind) {
    case REQUEST_ADMIT:
        if (lost)
            take_back(l, r);
        if (l->on_outage == LEDGER_OUTAGE_OPEN)
            pass_uncounted(l, r);
        else
            refuse(l, r);
        break;
    case REQUEST_SETTLE:
    case REQUEST_RELEASE:
    case REQUEST_SEE:
        keep(l, request_copy(r));
        break;
    case REQUEST_TURN:
    case REQUEST_RESET:
    case REQUEST_FORGET:
    case REQUEST_LOOK:
    case REQUEST_VIEW:
        refuse(l, r);
        break;
    case REQUEST_BOUNDARY:
    case REQUEST_LAPSED:
        break;
    }
}

static void serve_all_uncounted(struct ledger_entry *e, bool lost)
{
    struct session_request *r;
    while ((r = STAILQ_FIRST(&e->flying))) {
        STAILQ_REMOVE_HEAD(&e->flying, next);
        serve_uncounted(e->ledger, r, lost);
        transaction_finish(e->ledger, r);
    }
    while ((r = STAILQ_FIRST(&e->queue))) {
        STAILQ_REMOVE_HEAD(&e->queue, next);
        serve_uncounted(e->ledger, r, false);
        transaction_finish(e->ledger, r);
    }
    entry_forget(e);
}

/* ---- a replay that failed ---- */

/* A server that turns kept requests down for good would do so again. */
static void give_up_kept(struct ledger_entry *e, struct request_queue *kept)
{
    struct session_request *r;
    uint64_t held;
    if (rate_limit_allow(&e->ledger->refusals, EVENTS_PER_S, &held))
        log_event(LOG_ERROR, "ledger_merge_failed", LOG_TEXT("why", e->commit->store.why),
                  LOG_NUM("not_logged", held));
    while ((r = STAILQ_FIRST(kept))) {
        STAILQ_REMOVE_HEAD(kept, next);
        e->ledger->lost++;
        free(r);
    }
}

static void put_kept_back(struct ledger_entry *e, bool refused)
{
    struct request_queue kept = STAILQ_HEAD_INITIALIZER(kept), others = STAILQ_HEAD_INITIALIZER(others);
    struct session_request *r;
    transaction_back_to_queue(e);
    while ((r = STAILQ_FIRST(&e->queue))) {
        STAILQ_REMOVE_HEAD(&e->queue, next);
        if (r->kind == REQUEST_BOUNDARY)
            free(r);
        else if (r->is_past)
            STAILQ_INSERT_TAIL(&kept, r, next);
        else
            STAILQ_INSERT_TAIL(&others, r, next);
    }
    STAILQ_CONCAT(&e->queue, &others);
    if (refused)
        give_up_kept(e, &kept);
    outage_put_back(e->ledger->outage, e->node.id, &kept);
    e->replays = 0;
    e->ledger->replaying--;
    entry_forget(e);
    e->local = e->ledger->on_outage == LEDGER_OUTAGE_LOCAL;
    e->unreadable = refused && e->local; /* Redis would refuse what is kept next, too */
    replay_soon(e->ledger);
}

/* ---- deciding ---- */

static void log_refused(struct ledger_entry *e)
{
    uint64_t held;
    char stem[STORE_REDIS_STEM_BYTES];
    store_redis_stem(e->node.id, stem);
    if (rate_limit_allow(&e->ledger->refusals, EVENTS_PER_S, &held))
        log_event(LOG_ERROR, "redis_refused", LOG_TEXT("key", stem), LOG_TEXT("why", e->commit->store.why),
                  LOG_NUM("not_logged", held));
}

void outage_serve(struct ledger_entry *e, bool tried, bool applied, bool lost)
{
    struct ledger *l = e->ledger;
    bool refused = tried && e->commit->store.result == STORE_REFUSED;
    if (tried && store_redis_is_up(l->redis)) /* its return is no event to wait for */
        e->away_until_us = clock_mono_us() + REFUSED_RETRY_MS * 1000;
    if (refused)
        log_refused(e);
    if (e->replays) {
        put_kept_back(e, refused);
        return;
    }
    if (l->on_outage != LEDGER_OUTAGE_LOCAL) {
        serve_all_uncounted(e, lost);
        return;
    }
    go_local(e);
    if (!applied)
        return;
    mark_local(e);
    transaction_land(e);
}

/* ---- Redis is back ---- */

/* Runs of identical calls start anew behind calls that this daemon has counted alone. */
static void add_boundary(struct ledger_entry *e, struct request_queue *kept)
{
    const struct session_request *r;
    STAILQ_FOREACH (r, kept, next)
        if (r->kind == REQUEST_ADMIT)
            break;
    if (!r)
        return;
    struct session_request *boundary = calloc(1, sizeof(*boundary));
    if (!boundary)
        abort();
    *boundary = (struct session_request){
        .kind = REQUEST_BOUNDARY, .id = e->node.id, .is_owned = true, .ledger = e->ledger};
    STAILQ_INSERT_TAIL(kept, boundary, next);
}

static void begin_replay(struct ledger_entry *e)
{
    struct ledger *l = e->ledger;
    struct request_queue kept = STAILQ_HEAD_INITIALIZER(kept);
    e->replays = outage_take(l->outage, e->node.id, &kept);
    l->replaying++;
    add_boundary(e, &kept);
    STAILQ_CONCAT(&kept, &e->queue);
    STAILQ_CONCAT(&e->queue, &kept);
}

bool outage_can_run(struct ledger_entry *e)
{
    struct ledger *l = e->ledger;
    const struct session_request *first = STAILQ_FIRST(&e->queue);
    bool forgets = e->local && first && first->kind == REQUEST_FORGET; /* also what Redis has refused */
    if (forgets)
        e->away_until_us = 0;
    bool waits = e->away_until_us && clock_mono_us() < e->away_until_us;
    bool away = !store_redis_is_up(l->redis) || waits;
    bool stands_in = l->on_outage == LEDGER_OUTAGE_LOCAL || e->unreadable;
    if (away) {
        if (!e->local && stands_in && outage_has(l->outage, e->node.id) && !e->replays) {
            entry_forget(e); /* it was let go of since this daemon began to stand in */
            e->local = true;
        }
        return e->local;
    }
    if (e->local)
        entry_forget(e);
    e->local = e->unreadable = false;
    if (!e->replays && outage_has(l->outage, e->node.id))
        begin_replay(e);
    return true;
}

static void log_merged(struct ledger *l)
{
    if (outage_sessions(l->outage) || l->replaying || l->replayed == l->replayed_logged)
        return;
    log_event(LOG_INFO, "ledger_merged", LOG_NUM("sessions", (int64_t)l->replayed),
              LOG_NUM("lost", (int64_t)l->lost));
    l->replayed_logged = l->replayed;
    l->has_lost = false;
}

void outage_replayed(struct ledger_entry *e, const struct session_request *r, bool taken)
{
    struct ledger *l = e->ledger;
    if (r->kind == REQUEST_BOUNDARY || !e->replays)
        return;
    l->lost += !taken;
    if (--e->replays)
        return;
    forget_here(l, e->node.id);
    l->replaying--;
    l->replayed++;
    log_merged(l);
    if (outage_sessions(l->outage) && !timer_is_set(&l->replay))
        timer_set(&l->replay, l->loop, 0, outage_replay, l);
}

void outage_replay(void *owner)
{
    struct ledger *l = owner;
    struct hash128 id;
    unsigned left = REPLAYING_MAX;
    while (left-- && l->replaying < REPLAYING_MAX && store_redis_is_up(l->redis) &&
           outage_first(l->outage, &id)) {
        struct ledger_entry *e = entries_get(&l->entries, l, id);
        if (e->busy || !outage_can_run(e) || e->local || !e->replays)
            break;
        transaction_run(e);
    }
    if (outage_sessions(l->outage) && store_redis_is_up(l->redis) && !timer_is_set(&l->replay))
        timer_set(&l->replay, l->loop, REPLAY_RETRY_MS, outage_replay, l);
}
