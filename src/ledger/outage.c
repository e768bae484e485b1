/*
 * While Redis is away: `local` counts in this daemon's memory and keeps each request; `closed` refuses,
 * `open` lets pass uncounted. When it is back, the kept requests are applied to what Redis has by then, as
 * calls that already happened.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "ledger/ledger_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define OUTAGE_LOG_LINES   5u     /* of redis_down, one after the other */
#define OUTAGE_LOG_LINE_MS 10000u /* until there may be one more */
#define REFUSED_RETRY_MS   500u   /* a session that Redis refused is counted here this long */
#define REPLAYING_MAX      64u    /* sessions whose kept requests are under way */
#define REPLAY_RETRY_MS    500u

static void replay(void *owner);

/* ---- the queue ---- */

struct kept_session {
    struct lru_node node; /* first */
    struct request_queue requests;
};

/* NULL: none is kept. */
static struct kept_session *find_kept(struct ledger *l, struct hash128 id)
{
    return l->kept.count ? (struct kept_session *)lru_find(&l->kept, id) : NULL;
}

static struct kept_session *kept_for(struct ledger *l, struct hash128 id)
{
    struct kept_session *kept = find_kept(l, id);
    if (kept)
        return kept;
    kept = alloc_zeroed(sizeof(*kept));
    kept->node.id = id;
    TAILQ_INIT(&kept->requests);
    lru_add(&l->kept, &kept->node);
    return kept;
}

/* Moves all of one session to the end of `queue`; returns how many. */
static uint32_t take(struct ledger *l, struct kept_session *kept, struct request_queue *queue)
{
    struct session_request *r;
    uint32_t taken = 0;
    bool admits = false;
    TAILQ_FOREACH (r, &kept->requests, next) {
        l->kept_requests--;
        l->kept_bytes -= r->bytes;
        taken++;
        r->ends_outage = false;
        admits |= r->kind == LEDGER_ADMIT;
    }
    TAILQ_LAST(&kept->requests, request_queue)->ends_outage = admits;
    TAILQ_CONCAT(queue, &kept->requests, next);
    lru_remove(&l->kept, &kept->node);
    free(kept);
    return taken;
}

void outage_drop(struct ledger *l)
{
    struct request_queue queue = TAILQ_HEAD_INITIALIZER(queue);
    struct session_request *r;
    while (l->kept.oldest)
        take(l, (struct kept_session *)l->kept.oldest, &queue);
    while ((r = request_pop(&queue)))
        free(r);
    lru_clear(&l->kept);
}

/* ---- the log ---- */

const char *const outage_names[] = {"local", "closed", "open"};

/* What is not said as an error is said in the debug log. */
void outage_redis_down(struct ledger *l, const char *why)
{
    struct outage_log *p = &l->outage_log;
    struct str address = store_redis_address(l->redis);
    char unsaid[24] = "";
    if (!p->is_away) {
        p->since_ms = clock_wall_ms();
        l->status.outages++;
        p->unsaid++;
        p->is_said = false;
    }
    p->is_away = true;
    int64_t now = clock_mono_us() / 1000, more = (now - p->refilled_ms) / OUTAGE_LOG_LINE_MS;
    if (more > 0) { /* one line more every OUTAGE_LOG_LINE_MS */
        p->lines_used = more < p->lines_used ? p->lines_used - (uint32_t)more : 0;
        p->refilled_ms = now;
    }
    bool is_news = !p->is_said || strcmp(p->why, why) != 0;
    if (!is_news || p->lines_used >= OUTAGE_LOG_LINES) {
        log_event(LOG_DEBUG, "redis_down", LOG_STR("address", address), LOG_TEXT("why", why));
        return;
    }
    if (p->unsaid > 1)
        snprintf(unsaid, sizeof(unsaid), "%llu", (unsigned long long)p->unsaid);
    log_event(LOG_ERROR, "redis_down", LOG_STR("address", address), LOG_TEXT("why", why),
              LOG_TEXT("on_outage", outage_names[l->on_outage]), LOG_TEXT("outages_since_told", unsaid));
    snprintf(p->why, sizeof(p->why), "%s", why);
    p->is_said = true;
    p->unsaid = 0;
    p->lines_used++;
}

void outage_redis_up(struct ledger *l)
{
    struct outage_log *p = &l->outage_log;
    if (p->is_away)
        log_event(p->is_said ? LOG_INFO : LOG_DEBUG, "redis_up",
                  LOG_NUM("away_ms", clock_wall_ms() - p->since_ms),
                  LOG_NUM("sessions_to_tell", (int64_t)l->kept.count));
    p->is_away = false;
    record_run(&l->lax.record);
    if (l->fleet.self.policies)
        record_run(&l->fleet.record);
    timer_set(&l->replay, l->loop, 0, replay, l);
}

/* ---- kept requests ---- */

/* Where Redis is there, no event tells when to try again. */
static void replay_soon(struct ledger *l)
{
    if (store_redis_is_up(l->redis) && !timer_is_set(&l->replay))
        timer_set(&l->replay, l->loop, REPLAY_RETRY_MS, replay, l);
}

static void keep(struct ledger *l, struct session_request *copy)
{
    copy->is_past = true;
    if (!copy->sequence)
        copy->sequence = transaction_sequence(l);
    copy->is_cancelled = false;
    if (l->kept_bytes + copy->bytes <= l->kept_bytes_max) {
        struct kept_session *to = kept_for(l, copy->id);
        TAILQ_INSERT_TAIL(&to->requests, copy, next);
        l->kept_requests++;
        l->kept_bytes += copy->bytes;
    } else {
        l->status.lost++;
        if (!l->has_lost)
            log_event(LOG_ERROR, "ledger_requests_dropped", LOG_NUM("sessions", (int64_t)l->kept.count),
                      LOG_NUM("requests", (int64_t)l->kept_requests),
                      LOG_TEXT("why", "the outage queue is full: Redis will not learn of further requests; "
                                      "raise ledger.memory"));
        l->has_lost = true;
        free(copy);
    }
    replay_soon(l);
}

void outage_remember(struct ledger *l, const struct session_request *r)
{
    if (!request_only_looks(r->kind))
        keep(l, request_copy(r));
}

/* ---- this daemon stands in ---- */

static void forget_here(struct ledger *l, struct hash128 id)
{
    struct store_request request = {.id = id, .forget = true};
    l->memory->kind->ask(l->memory, &request);
}

/* Goes on in memory from what was cached of the session, or from what the memory has of this outage. */
static void go_local(struct ledger_entry *e)
{
    struct ledger *l = e->ledger;
    e->local = true;
    if (!e->loaded || !e->begun) {
        entry_forget(e);
        return;
    }
    forget_here(l, e->node.id);
    session_boundary(&e->session);
    commit_finish(e, true);
    l->memory->kind->ask(l->memory, &e->commit.store);
    e->stored = true;
}

static void refuse(struct ledger *l, const struct session_request *r)
{
    struct ledger_status status;
    ledger_status(l, &status);
    l->status.refused++;
    request_fail(r, ERR_UNAVAILABLE, status.why_away[0] ? status.why_away : "Redis did not answer");
}

static void serve_uncounted(struct ledger *l, const struct session_request *r)
{
    const struct ledger_call *admit = r->call;
    if (request_has_happened(r->kind)) {
        keep(l, request_copy(r));
    } else if (r->kind == LEDGER_ADMIT && l->on_outage == LEDGER_OUTAGE_OPEN) {
        l->status.uncounted++;
        log_event(LOG_WARN, "ledger_uncounted", LOG_STR("tool", admit->tool), LOG_STR("ext", admit->ext),
                  LOG_STR("session", str_cut(admit->place.session, 128)));
        if (r->answer)
            *r->answer = (struct ledger_answer){.engine = "none", .uncounted = true};
    } else if (r->kind != LEDGER_LAPSED) {
        refuse(l, r);
    }
}

/* An admit of a lost commit may have been committed: release its reservation. The releases are kept last, as
 * their numbers are the highest, and session_mark compares numbers to find which requests have landed. */
static void serve_all_uncounted(struct ledger_entry *e, bool lost)
{
    struct request_queue releases = TAILQ_HEAD_INITIALIZER(releases);
    struct session_request *r;
    for (;;) {
        bool flew = !TAILQ_EMPTY(&e->flying);
        if (!(r = request_pop(flew ? &e->flying : &e->queue)))
            break;
        if (flew && lost && r->kind == LEDGER_ADMIT) {
            struct session_request *release = request_release(r);
            TAILQ_INSERT_TAIL(&releases, release, next);
        }
        serve_uncounted(e->ledger, r);
        transaction_finish(e->ledger, r);
    }
    while ((r = request_pop(&releases)))
        keep(e->ledger, r);
    entry_forget(e);
}

static void put_kept_back(struct ledger_entry *e, bool refused)
{
    struct ledger *l = e->ledger;
    struct session_request *r, *before;
    uint64_t held; /* a server that turns kept requests down for good would do so again */
    if (refused && rate_limit_allow(&l->refusals, EVENTS_PER_S, &held))
        log_event(LOG_ERROR, "ledger_merge_failed", LOG_TEXT("why", e->commit.store.why),
                  LOG_NUM("not_logged", held));
    transaction_back_to_queue(e);
    for (r = TAILQ_LAST(&e->queue, request_queue); r; r = before) {
        before = TAILQ_PREV(r, request_queue, next);
        if (!r->is_past)
            continue;
        TAILQ_REMOVE(&e->queue, r, next);
        if (refused) {
            l->status.lost++;
            free(r);
            continue;
        }
        struct kept_session *to = kept_for(l, e->node.id);
        TAILQ_INSERT_HEAD(&to->requests, r, next); /* ahead of those kept since */
        l->kept_requests++;
        l->kept_bytes += r->bytes;
    }
    e->replays = 0;
    l->replaying--;
    entry_forget(e);
    e->local = l->on_outage == LEDGER_OUTAGE_LOCAL;
    e->unreadable = refused && e->local; /* Redis would refuse what is kept next, too */
    replay_soon(l);
}

void outage_log_refused(struct ledger *l, struct hash128 id, const char *why)
{
    uint64_t held;
    char stem[STORE_REDIS_STEM_BYTES];
    store_redis_stem(id, stem);
    if (rate_limit_allow(&l->refusals, EVENTS_PER_S, &held))
        log_event(LOG_ERROR, "redis_refused", LOG_TEXT("key", stem), LOG_TEXT("why", why),
                  LOG_NUM("not_logged", held));
}

void outage_serve(struct ledger_entry *e, bool tried)
{
    struct ledger *l = e->ledger;
    enum store_result result = tried ? e->commit.store.result : STORE_UNDONE;
    bool applied = tried && !store_request_loads(&e->commit.store), refused = result == STORE_REFUSED;
    if (tried && store_redis_is_up(l->redis)) /* its return is no event to wait for */
        e->away_until_us = clock_mono_us() + REFUSED_RETRY_MS * 1000;
    if (refused)
        outage_log_refused(l, e->node.id, e->commit.store.why);
    if (e->replays) {
        put_kept_back(e, refused);
        return;
    }
    if (l->on_outage != LEDGER_OUTAGE_LOCAL) {
        serve_all_uncounted(e, result == STORE_LOST);
        return;
    }
    go_local(e);
    if (!applied)
        return;
    struct session_request *r;
    TAILQ_FOREACH (r, &e->flying, next)
        if (r->kind == LEDGER_ADMIT && r->answer) {
            r->answer->engine = "local";
            r->answer->ids_complete = false; /* what another daemon has done to the session is not known */
        }
    transaction_land(e);
}

/* ---- Redis is back ---- */

bool outage_can_run(struct ledger_entry *e)
{
    struct ledger *l = e->ledger;
    const struct session_request *first = TAILQ_FIRST(&e->queue);
    bool is_up = store_redis_is_up(l->redis), is_local = l->on_outage == LEDGER_OUTAGE_LOCAL;
    if (e->local && first && first->kind == LEDGER_FORGET) /* also what Redis has refused */
        e->away_until_us = 0;
    if (!is_up || (e->away_until_us && clock_mono_us() < e->away_until_us)) {
        bool was_let_go = !e->replays && find_kept(l, e->node.id); /* since this daemon began to stand in */
        bool stands_in = is_local ? e->local || was_let_go : is_up && e->unreadable;
        if (stands_in != e->local)
            entry_forget(e);
        return e->local = stands_in;
    }
    if (e->local)
        entry_forget(e);
    e->local = e->unreadable = false;
    struct kept_session *kept = e->replays ? NULL : find_kept(l, e->node.id);
    if (kept) {
        struct request_queue ahead = TAILQ_HEAD_INITIALIZER(ahead);
        e->replays = take(l, kept, &ahead);
        l->replaying++;
        TAILQ_CONCAT(&ahead, &e->queue, next);
        TAILQ_CONCAT(&e->queue, &ahead, next);
    }
    return true;
}

void outage_replayed(struct ledger_entry *e)
{
    struct ledger *l = e->ledger;
    if (!e->replays || --e->replays)
        return;
    forget_here(l, e->node.id);
    l->replaying--;
    l->status.merged++;
    if (!l->kept.count && !l->replaying && l->status.merged != l->replayed_logged) {
        log_event(LOG_INFO, "ledger_merged", LOG_NUM("sessions", (int64_t)l->status.merged),
                  LOG_NUM("lost", (int64_t)l->status.lost));
        l->replayed_logged = l->status.merged;
        l->has_lost = false;
    }
    if (l->kept.count && !timer_is_set(&l->replay))
        timer_set(&l->replay, l->loop, 0, replay, l);
}

/* Redis is back: what was kept goes to it, some sessions at a time, past those that it does not take now. */
static void replay(void *owner)
{
    struct ledger *l = owner;
    struct hash128 ids[REPLAYING_MAX]; /* what runs may take others out of the queue */
    unsigned count = 0;
    for (const struct lru_node *node = l->kept.oldest; node && count < REPLAYING_MAX; node = node->newer)
        ids[count++] = node->id;
    for (unsigned i = 0; i < count && l->replaying < REPLAYING_MAX && store_redis_is_up(l->redis); i++) {
        struct ledger_entry *e = entries_get(l, ids[i]);
        if (!e->busy && outage_can_run(e) && !e->local)
            transaction_run(e);
    }
    if (l->kept.count)
        replay_soon(l);
}
