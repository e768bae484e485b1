/*
 * The life of a request in its session, as README.md draws it: all that wait when its turn comes are applied
 * and committed together. Where the store is away, outage.c takes over.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "ledger/ledger_internal.h"

#include <stdlib.h>

#define CONFLICTS_MAX         16u /* of one commit; then its requests are unavailable */
#define CONFLICTS_AT_ONCE     3u  /* further ones wait a little first, at random */
#define CONFLICT_PAUSE_MS     2u  /* doubled with each, up to CONFLICT_PAUSE_MAX_MS */
#define CONFLICT_PAUSE_MAX_MS 256u
#define HOPPING_COMMITS       4u /* without a conflict, until a session counts as staying with this daemon */
#define UNREADABLE_RETRY_MS   60000u /* and one whose value cannot be read */

void transaction_finish(struct ledger *l, struct session_request *r)
{
    if (r->is_owned) {
        free(r);
    } else if (r == l->starting) {
        l->starting = NULL; /* its caller learns it from ledger_ask */
    } else {
        LIST_REMOVE(r, waiting);
        r->done(r->owner);
    }
}

void transaction_land(struct ledger_entry *e)
{
    struct ledger *l = e->ledger;
    struct session_request *r;
    const struct session_chain *gave_up = (const struct session_chain *)e->commit.gave_up.at;
    bool come_again = e->local && l->redis && !e->unreadable; /* then what they end is logged */
    for (size_t i = 0; !come_again && i < e->commit.gave_up.len / sizeof(*gave_up); i++)
        log_gave_up(l, &gave_up[i]);
    while ((r = request_pop(&e->flying))) {
        bool looks = request_only_looks(r->kind);
        bool refused = r->kind == LEDGER_ADMIT && r->past.says != LEDGER_RUN;
        if (r->kind == LEDGER_SETTLE) { /* after its admit, before it ran */
            enum ledger_class class = r->call->class;
            refused = class == LEDGER_CLASS_INVALID || class == LEDGER_CLASS_FABRICATED ||
                      (class == LEDGER_CLASS_REFUSED && !str_is(r->call->label, "need_user_input"));
        }
        if (l->redis && !r->is_past && !looks)
            *(e->local ? &l->status.by_stand_in : &l->status.by_redis) += 1;
        e->refusals += !r->is_past && refused && !r->call->not_enforced;
        /* To a session that is reported as unknown nothing is done later, either. */
        if (come_again && !looks && (!r->answer || r->answer->error == OK))
            outage_remember(l, r);
        else if (r->is_past)
            outage_replayed(e);
        if (r->kind == LEDGER_ADMIT && r->is_cancelled && r->past.says == LEDGER_RUN)
            transaction_add(l, request_release(r)); /* it was let run, and nobody is there to run it */
        transaction_finish(l, r);
    }
}

void transaction_back_to_queue(struct ledger_entry *e)
{
    TAILQ_CONCAT(&e->flying, &e->queue, next);
    TAILQ_CONCAT(&e->queue, &e->flying, next);
}

/* ---- load ---- */

static void replace(struct buf *buf, struct str bytes)
{
    buf->len = 0;
    buf_str(buf, bytes);
}

/* A person deletes a session that cannot be read: for that it need not be. */
static bool is_forgotten(struct ledger_entry *e)
{
    const struct session_request *first = TAILQ_FIRST(&e->queue);
    if (!first || first->kind != LEDGER_FORGET)
        return false;
    memset(&e->session, 0, sizeof(e->session));
    e->session.journal_max = (uint16_t)e->ledger->history; /* nothing to resize, so no part to load */
    e->loaded = e->begun = true;
    e->stored = false;
    return true;
}

/* The session is counted in this daemon's memory for a while, and what is stored stays as it is. */
static void leave_unreadable(struct ledger_entry *e, const char *event)
{
    if (is_forgotten(e))
        return;
    uint64_t held;
    char stem[STORE_REDIS_STEM_BYTES];
    store_redis_stem(e->node.id, stem);
    if (rate_limit_allow(&e->ledger->unreadables, EVENTS_PER_S, &held))
        log_event(LOG_ERROR, event, LOG_TEXT("key", stem),
                  LOG_TEXT("why",
                           "what is stored of this session cannot be read: this daemon counts it alone, and "
                           "leaves the value as it is; delete its key, or upgrade this daemon"),
                  LOG_NUM("not_logged", held));
    entry_forget(e);
    e->session.chain_count = 0; /* of what could not be decoded */
    e->unreadable = e->ledger->redis != NULL;
    e->away_until_us = clock_mono_us() + UNREADABLE_RETRY_MS * (int64_t)1000;
    e->local = true;
}

/* Takes over what is stored now; false: it can't be read, and requests that were applied wait again. */
static bool take_stored(struct ledger_entry *e)
{
    const struct str *stored = e->commit.store.stored;
    struct str core = stored[PART_CORE];
    entry_forget(e);
    e->loaded = true;
    if (!core.len)
        return true;
    enum codec_result result = codec_decode(core, &e->session);
    unsigned with = session_parts_with(&e->session);
    if (result == CODEC_OLDER) {
        entry_begin(e, e->session.version);
        e->session.ids = IDS_FORGOTTEN; /* its other parts are still there */
        with = PART_BIT(PART_JOURNAL) | PART_BIT(PART_IDS) | PART_BIT(PART_DETAILS);
    }
    e->begun = e->stored = true;
    e->format = (uint8_t)core.at[0];
    replace(&e->parts.journal, stored[PART_JOURNAL]);
    replace(&e->parts.ids, stored[PART_IDS]);
    e->parts.ids.len -= e->parts.ids.len % SESSION_ID_BYTES;
    replace(&e->parts.details, stored[PART_DETAILS]);
    if (result != CODEC_OK && result != CODEC_OLDER) {
        transaction_back_to_queue(e);
        leave_unreadable(e, result == CODEC_NEWER ? "ledger_format_newer" : "ledger_value_unreadable");
        return false;
    }
    if (e->ledger->redis && !e->local && with & ~e->commit.store.with)
        entry_forget(e); /* loaded again, with the parts that it tells of */
    e->with = with;
    return true;
}

/* ---- commit ---- */

static bool forgets(const struct ledger_entry *e)
{
    const struct session_request *r = TAILQ_FIRST(&e->flying);
    return r && r->kind == LEDGER_FORGET && e->begun;
}

/* The last request of the commit becomes this daemon's mark. */
static void mark(struct ledger_entry *e)
{
    const struct session_request *last = TAILQ_LAST(&e->flying, request_queue);
    struct session_mark *marks = e->session.marks, mine = {e->ledger->daemon, last->sequence};
    unsigned at = 0;
    if (!e->ledger->redis || e->local)
        return;
    while (at < SESSION_MARKS_MAX - 1 && marks[at].daemon != mine.daemon)
        at++;
    memmove(marks + 1, marks, at * sizeof(*marks));
    marks[0] = mine;
}

static void take_committed(struct ledger_entry *e)
{
    const struct session_request *r = TAILQ_FIRST(&e->flying);
    if (forgets(e)) {
        entry_forget(e);
        e->loaded = true;
        if (r->answer)
            r->answer->error = OK;
    } else {
        e->stored = true;
    }
    if (!e->conflicts && e->hopping)
        e->hopping--;
    e->conflicts = 0;
    transaction_land(e);
}

static void give_up(struct ledger_entry *e)
{
    struct session_request *r;
    uint64_t held;
    if (rate_limit_allow(&e->ledger->conflict_lines, EVENTS_PER_S, &held))
        log_event(LOG_WARN, "ledger_conflicts", LOG_NUM("tries", CONFLICTS_MAX),
                  LOG_TEXT("why", "other daemons commit to this session all the time: its calls are "
                                  "unavailable for now; let one daemon serve a session"),
                  LOG_NUM("not_logged", held));
    e->conflicts = 0;
    if (e->replays) { /* all of them together: later ones alone would leave a mark as if these had landed */
        outage_serve(e, true);
        return;
    }
    while ((r = request_pop(&e->flying))) {
        if (request_has_happened(r->kind))
            outage_remember(e->ledger, r); /* it is tried again later */
        else
            request_fail(r, ERR_UNAVAILABLE, "too many daemons change this session at once");
        transaction_finish(e->ledger, r);
    }
}

static void on_pause_over(void *owner)
{
    struct ledger_entry *e = owner;
    e->paused = false;
    e->loaded = false; /* what the conflict returned is as old as the pause */
    transaction_run(e);
}

static void take_conflict(struct ledger_entry *e)
{
    e->ledger->status.conflicts++;
    e->conflicts++;
    e->hopping = HOPPING_COMMITS;
    if (!take_stored(e))
        return;
    if (e->conflicts > CONFLICTS_MAX) {
        give_up(e);
        return;
    }
    transaction_back_to_queue(e);
    if (e->conflicts <= CONFLICTS_AT_ONCE || !e->ledger->loop)
        return;
    unsigned doublings = e->conflicts - CONFLICTS_AT_ONCE - 1;
    uint32_t most = doublings < 7 ? CONFLICT_PAUSE_MS << doublings : CONFLICT_PAUSE_MAX_MS;
    e->paused = true;
    timer_set(&e->pause, e->ledger->loop, (uint32_t)(hash_random() % most) + 1, on_pause_over, e);
}

static void take_answer(struct ledger_entry *e)
{
    enum store_result result = e->commit.store.result;
    bool loads = store_request_loads(&e->commit.store);
    if (loads && result == STORE_REFUSED && is_forgotten(e))
        return;
    if (result == STORE_CONFLICT)
        take_conflict(e);
    else if (result != STORE_DONE)
        outage_serve(e, true);
    else if (!loads)
        take_committed(e);
    else
        take_stored(e);
}

static void on_ended(struct store_request *store)
{
    struct ledger_entry *e =
        (struct ledger_entry *)(void *)((char *)store - offsetof(struct ledger_entry, commit.store));
    take_answer(e);
    commit_end(e);
    transaction_run(e);
}

/* ---- run ---- */

/* One round: loads, or applies and commits. False: it goes on when the store has answered. */
static bool run_once(struct ledger_entry *e, int64_t now_ms)
{
    struct session_store *in = entry_store(e);
    struct store_request *store = &e->commit.store;
    if (!e->loaded) {
        e->ledger->status.loads++;
        *store = (struct store_request){.id = e->node.id, .with = e->with, .ended = on_ended};
    } else {
        apply_batch(e, now_ms);
        if (!e->commit.changed && !forgets(e)) {
            transaction_land(e);
            return true;
        }
        mark(e);
        commit_finish(e, false);
        store->forget = forgets(e);
        store->ended = on_ended;
    }
    bool has_answered = in->kind->ask(in, store);
    if (has_answered)
        take_answer(e);
    return has_answered;
}

/* Looks that the cache cannot answer, since another daemon may have changed the session. */
static void check_freshness(struct ledger_entry *e)
{
    struct session_request *r;
    TAILQ_FOREACH (r, &e->queue, next) {
        const struct ledger_call *look = r->kind == LEDGER_LOOK ? r->call : NULL;
        bool stale = !look || look->newest || e->hopping;
        if (!request_only_looks(r->kind) || r->is_fresh)
            continue;
        if (!stale && look->admission) { /* of an open call neither the call nor its arguments may be here */
            char field[SESSION_FIELD_BYTES];
            const struct session_call *call = e->begun ? session_find(&e->session, look->admission) : NULL;
            stale = !call || !detail_find_keyed(buf_view(&e->parts.details),
                                                session_field_open(call->slot, field), look->admission)
                                  .len;
        }
        if (stale)
            entry_forget(e);
        r->is_fresh = true;
    }
}

void transaction_run(struct ledger_entry *e)
{
    while (!e->busy && !e->paused && !TAILQ_EMPTY(&e->queue)) {
        e->busy = true;
        if (e->ledger->redis && !outage_can_run(e)) {
            outage_serve(e, false);
        } else {
            int64_t now_ms = ledger_now_ms(e->ledger);
            /* A cached session may have ended with its time to live. Once for the requests that wait: a store
             * whose clock was set may still have it, and would be asked again and again. */
            if (e->loaded && e->stored && !e->age_checked &&
                now_ms / 1000 - e->session.renewed_s > (int64_t)e->ledger->ttl_s)
                entry_forget(e);
            e->age_checked = true;
            if (e->ledger->redis && !e->local)
                check_freshness(e);
            if (!run_once(e, now_ms))
                return;
        }
        commit_end(e);
    }
    e->age_checked = !TAILQ_EMPTY(&e->queue);
}

/* ---- rates ---- */

/* Outlives its request, which may be cancelled. */
struct rate_wait {
    struct store_rate_request store;
    struct ledger *ledger;
    struct session_request *request; /* NULL: cancelled */
    LIST_ENTRY(rate_wait) next;
};

/* Who shares a bucket: the tool's name, then whom it is counted by. */
static struct hash128 bucket_of(const struct ledger_call *admit, struct hash128 session)
{
    struct buf name = {.at = NULL};
    buf_str(&name, admit->tool);
    buf_byte(&name, '\0');
    if (admit->limits->rate_by == LEDGER_RATE_BY_SESSION)
        buf_add(&name, &session, sizeof(session));
    else if (admit->limits->rate_by == LEDGER_RATE_BY_USER)
        buf_str(&name, admit->peer);
    struct hash128 bucket = hash_stable(buf_view(&name));
    buf_clear(&name);
    return bucket;
}

uint32_t transaction_sequence(struct ledger *l)
{
    l->sequence += l->sequence == UINT32_MAX ? 2 : 1; /* 0 is none */
    return l->sequence;
}

void transaction_add(struct ledger *l, struct session_request *r)
{
    struct ledger_entry *e = entries_get(l, r->id);
    r->sequence = transaction_sequence(l);
    if (!e->name_len && (r->kind == LEDGER_ADMIT || r->kind == LEDGER_TURN)) { /* reports know its id only */
        e->name_len = session_keep_text(e->name, sizeof(e->name), r->call->place.session);
        e->user = r->call->place.uid;
    }
    TAILQ_INSERT_TAIL(&e->queue, r, next);
    transaction_run(e);
}

static void on_rate(struct store_rate_request *store)
{
    struct rate_wait *wait = (struct rate_wait *)store;
    struct ledger *l = wait->ledger;
    struct session_request *r = wait->request;
    if (store->result == STORE_REFUSED)
        outage_log_refused(l, store->bucket, store->why);
    if ((r || store->held_us) && store->result != STORE_DONE) /* Redis is away: this daemon counts */
        l->memory->kind->rate(l->memory, store);
    if (!r && !store->held_us && store->result == STORE_DONE && !store->wait_ms) { /* taken, and cancelled */
        store->held_us = 1;
        if (ledger_store(l)->kind->rate(ledger_store(l), store))
            on_rate(store);
        return;
    }
    if (r) {
        r->rate_wait = NULL;
        r->rate_wait_ms = store->wait_ms;
        r->rated_us = store->wait_ms ? 0 : clock_mono_us();
    }
    LIST_REMOVE(wait, next);
    free(wait);
    if (r)
        transaction_add(l, r);
}

void transaction_drop_rates(struct ledger *l)
{
    struct rate_wait *wait;
    while ((wait = LIST_FIRST(&l->rate_waits))) {
        LIST_REMOVE(wait, next);
        buf_clear(&wait->store.command.bytes);
        free(wait);
    }
}

/* `r` NULL: the call did not run, and is given back after `held_us`. */
static void ask_rates(struct ledger *l, const struct ledger_call *admit, struct hash128 session,
                      struct session_request *r, uint64_t held_us)
{
    struct session_store *store = ledger_store(l);
    struct rate_wait *wait = alloc_zeroed(sizeof(*wait));
    wait->ledger = l;
    wait->request = r;
    wait->store.bucket = bucket_of(admit, session);
    wait->store.user = admit->place.uid;
    wait->store.admission = admit->admission;
    wait->store.held_us = held_us;
    wait->store.rate_count = admit->limits->rate_count;
    memcpy(wait->store.rates, admit->limits->rates, sizeof(admit->limits->rates));
    wait->store.ended = on_rate;
    LIST_INSERT_HEAD(&l->rate_waits, wait, next);
    if (r)
        r->rate_wait = wait;
    if (store->kind->rate(store, &wait->store))
        on_rate(&wait->store);
}

void ledger_give_rate_back(struct ledger *l, const struct ledger_call *admit, uint64_t held_us)
{
    ask_rates(l, admit, ledger_place_id(&admit->place), NULL, held_us + 1);
}

/* ---- start, cancel ---- */

/* No caller waits for it any more: what has to be counted goes on as a copy. An admit whose caller is gone,
 * and that is not applied yet, is as if it had never been asked. */
static void detach(struct ledger *l, struct session_request *r, bool cancelled)
{
    struct ledger_entry *e = (struct ledger_entry *)lru_find(&l->entries, r->id);
    bool is_dropped = cancelled && r->kind == LEDGER_ADMIT, flies = false;
    const struct session_request *at;
    if (r->rate_wait) {
        r->rate_wait->request = NULL;
        return;
    }
    if (cancelled && r->rated_us)
        ledger_give_rate_back(l, r->call, (uint64_t)(clock_mono_us() - r->rated_us));
    TAILQ_FOREACH (at, &e->flying, next)
        flies |= at == r;
    if (!request_only_looks(r->kind) && (flies || !is_dropped)) {
        struct session_request *copy = request_copy(r);
        copy->is_cancelled = is_dropped;
        TAILQ_INSERT_BEFORE(r, copy, next);
    }
    TAILQ_REMOVE(flies ? &e->flying : &e->queue, r, next);
}

/* All that must be done is done in this call, or `done` fires later. */
static enum ledger_state start(struct ledger *l, struct session_request *r)
{
    struct session_request *outer = l->starting;
    l->starting = r;
    const struct ledger_limits *limits = r->kind == LEDGER_ADMIT ? r->call->limits : NULL;
    if (limits && limits->rate_count && r->call->so_far == LEDGER_SO_FAR_VALID)
        ask_rates(l, r->call, r->id, r, 0);
    else
        transaction_add(l, r);
    bool over = l->starting != r;
    l->starting = outer;
    if (over)
        return LEDGER_DONE;
    if (!r->done) {
        detach(l, r, false);
        return LEDGER_DONE;
    }
    LIST_INSERT_HEAD(&l->waiting[hash_owner(r->owner)], r, waiting);
    return LEDGER_PENDING;
}

/* What is answered where no caller waits for the ledger: as to a first attempt. True: nobody may wait.
 * Nothing but notes for the model depends on the answer, except where a repair may be the last. */
static bool begin_settle(const struct ledger *l, const struct ledger_call *request,
                         struct ledger_answer *answer)
{
    const struct ledger_limits *limits = request->limits ? request->limits : &ledger_default_limits;
    bool is_invalid = request->class == LEDGER_CLASS_INVALID;
    LEDGER_CLEAR(answer);
    answer->says = is_invalid ? LEDGER_REPAIR : LEDGER_RUN;
    answer->attempt = 1;
    answer->attempts_left = limits->repair;
    return l->redis && l->settles_unheard && !is_invalid && request->class != LEDGER_CLASS_FABRICATED;
}

enum ledger_state ledger_ask(struct ledger *l, enum ledger_kind kind, const struct ledger_call *request,
                             struct arena *arena, struct ledger_answer *answer, ledger_done *done,
                             void *owner)
{
    bool unheard = kind == LEDGER_SETTLE && begin_settle(l, request, answer);
    if (kind == LEDGER_SETTLE && request->uncounted)
        return LEDGER_DONE;
    struct session_request *r = arena_alloc(arena, sizeof(*r));
    *r = (struct session_request){.kind = kind,
                                  .id = ledger_place_id(&request->place),
                                  .call = request,
                                  .answer = answer,
                                  .arena = arena,
                                  .done = unheard ? NULL : done,
                                  .owner = owner};
    if (kind == LEDGER_TURN || kind == LEDGER_RESET)
        r->number = (uint32_t)hash_random() | 1;
    if (answer) {
        answer->error = OK;
        answer->engine = "none";
    }
    return start(l, r);
}

void ledger_cancel(struct ledger *l, void *owner)
{
    struct session_request *r = LIST_FIRST(&l->waiting[hash_owner(owner)]);
    while (r) {
        struct session_request *next = LIST_NEXT(r, waiting);
        if (r->owner == owner) {
            LIST_REMOVE(r, waiting);
            detach(l, r, true);
        }
        r = next;
    }
}
