/*
 * A request under way in Redis is a work: it owns its command, so that the
 * command can wait for Redis to return also after the call that wanted it is
 * gone. What goes back to Redis afterwards is made in bring().
 */
#include "ledger/engine.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/timer.h"
#include "ledger/away.h"
#include "ledger/local.h"

#include <stdlib.h>

#define FLYING_MAX      64u /* commands that catch up at the same time, beside those that calls bring along */
#define CATCH_UP_MS     500u /* from one try to the next while Redis is there and a session's node is not */
#define WORKS_SPARE_MAX 256u /* kept for the next request */
#define SPARE_BYTES_MAX 4096u
#define SAYS_AT         4u /* in admit's reply */

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

struct engine {
    struct local *local;
    struct redis *redis; /* NULL: there is only the local one */
    struct away *away;
    struct pack_options options;
    enum ledger_outage on_outage;
    int64_t (*now_ms)(void);
    struct loop *loop;
    struct timer catch_up;
    struct work *works, *spare;
    size_t spare_count, flying;
    bool is_away, has_lost;
    int64_t away_since_ms;
    uint64_t by_redis, by_stand_in, uncounted, refused, merged, lost;
};

static void catch_up(void *owner);

/* ---- the local engine ------------------------------------------------------------ */

static enum err run_here(struct engine *e, const struct script_run *run, struct arena *arena,
                         struct str *reply, struct why *why)
{
    return local_run(e->local, run, e->now_ms(), arena, reply, why);
}

static void answer_here(struct engine *e, const struct script_run *run, const struct ask *ask, bool stand_in)
{
    struct why why = {""};
    struct engine_reply reply = {.how = REPLY_SAID, .engine = "local", .stand_in = stand_in};
    reply.error = run_here(e, run, ask->arena, &reply.text, &why);
    if (reply.error != OK) {
        reply.how = REPLY_FAILED;
        reply.why = why.text;
    }
    e->by_stand_in += stand_in;
    ask->kind->take(ask, &reply);
}

/* ---- while Redis is away ----------------------------------------------------------- */

static void say_lost(struct engine *e)
{
    e->lost++;
    if (!e->has_lost)
        log_event(LOG_ERROR, "ledger_lost", LOG_NUM("sessions", away_sessions(e->away)),
                  LOG_NUM("commands", away_commands(e->away)),
                  LOG_TEXT("why", "too much waits for Redis to return; what is more is not told to it"));
    e->has_lost = true;
}

static struct absence *note(struct engine *e, struct str key)
{
    struct absence *a = away_note(e->away, (struct str){key.at, SCRIPT_KEY_BYTES - 1});
    if (!a)
        say_lost(e);
    return a;
}

static void answer(const struct ask *ask, enum reply_how how, const char *why)
{
    struct engine_reply reply = {.how = how, .engine = "none", .error = ERR_UNAVAILABLE, .why = why};
    ask->kind->take(ask, &reply);
}

static void refuse(struct engine *e, const struct ask *ask)
{
    struct redis_stats stats;
    redis_stats(e->redis, &stats);
    e->refused++;
    answer(ask, REPLY_FAILED, stats.why_away[0] ? stats.why_away : "Redis did not answer");
}

static void pass_uncounted(struct engine *e, const struct ask *ask)
{
    const struct ledger_admit *request = ask->request;
    e->uncounted++;
    log_event(LOG_WARN, "ledger_uncounted", LOG_STR("tool", request->tool), LOG_STR("ext", request->ext));
    answer(ask, REPLY_UNCOUNTED, NULL);
}

static void count_here(struct engine *e, const struct script_run *run, const struct ask *ask)
{
    struct absence *a = note(e, run->keys[0]);
    answer_here(e, run, ask, true);
    if (!a)
        return;
    a->counted = true;
    if (ask->kind->standing == STANDS_FOR_A_CALL)
        absence_admit(a, ask->kind->admission(ask));
}

static void keep_for_later(struct engine *e, struct str key, struct redis_job *job)
{
    struct absence *a = note(e, key);
    if (a && !away_add(e->away, a, &a->late, job))
        say_lost(e);
}

static void keep_run_for_later(struct engine *e, const struct script_run *run)
{
    struct redis_job job = {.hops = 0};
    redis_job_write(&job, run);
    keep_for_later(e, run->keys[0], &job);
    buf_clear(&job.command);
}

/* A person's word goes ahead of what was counted since. */
static void reset_in_both(struct engine *e, const struct script_run *run, const struct ask *ask)
{
    struct redis_job job = {.hops = 0};
    count_here(e, run, ask);
    struct absence *a = note(e, run->keys[0]);
    redis_job_write(&job, run);
    if (a && !away_add(e->away, a, &a->ready, &job))
        say_lost(e);
    buf_clear(&job.command);
}

static void settle_somewhere(struct engine *e, const struct script_run *run, const struct ask *ask)
{
    const struct absence *a = away_find(e->away, run->keys[0]);
    if (a && absence_admitted(a, ask->kind->admission(ask))) {
        count_here(e, run, ask);
        return;
    }
    keep_run_for_later(e, run);
    answer(ask, REPLY_LATER, NULL);
}

static void stand_in(struct engine *e, const struct script_run *run, const struct ask *ask)
{
    enum standing standing = ask->kind->standing;
    bool local = e->on_outage == LEDGER_OUTAGE_LOCAL;
    if (standing == STANDS_BEHIND_ONE)
        settle_somewhere(e, run, ask);
    else if (standing == STANDS_LATER && !local)
        keep_run_for_later(e, run);
    else if (standing == STANDS_FOR_A_CALL && e->on_outage == LEDGER_OUTAGE_OPEN)
        pass_uncounted(e, ask);
    else if (!local)
        refuse(e, ask);
    else if (standing == STANDS_IN_BOTH)
        reset_in_both(e, run, ask);
    else if (standing == STANDS_HERE)
        answer_here(e, run, ask, true);
    else
        count_here(e, run, ask);
}

/* ---- when it is back ------------------------------------------------------------------ */

static void log_chains(struct str list, const char *outcome)
{
    struct reply reply = reply_of(list);
    while (reply.at < reply.end && !reply.bad) {
        uint8_t retries = reply_u8(&reply);
        struct str tool = reply_take(&reply, reply_u8(&reply));
        struct str ext = reply_take(&reply, reply_u8(&reply));
        ledger_log_chain(tool, ext, str_of(outcome), retries);
    }
}

static void read_merged(struct engine *e, struct str text)
{
    struct reply reply = reply_of(text);
    e->merged += reply_u8(&reply) == '1';
    log_chains(reply_part(&reply), "llm_gave_up");
    log_chains(reply_part(&reply), "success");
}

static bool any_sent(const struct absence *a)
{
    for (const struct late *late = a->ready.first; late; late = late->next)
        if (late->sent)
            return true;
    return false;
}

static void come_to_rest(struct engine *e, struct absence *a)
{
    if (any_sent(a))
        return;
    away_fly(e->away, a, false);
    away_settle(e->away, a);
    if (away_sessions(e->away) == 0 && !e->is_away)
        log_event(LOG_INFO, "ledger_merged", LOG_NUM("sessions", e->merged), LOG_NUM("lost", e->lost));
}

static void on_late_ended(struct redis_job *job, enum redis_ended how, struct str reply, const char *why)
{
    struct late *late = (struct late *)job;
    struct absence *a = late->of;
    struct engine *e = away_owner(a->away);
    late->sent = false;
    e->flying--;
    if (how == REDIS_ANSWERED && job->script == SCRIPT_MERGE)
        read_merged(e, reply);
    if (how == REDIS_REFUSED)
        log_event(LOG_ERROR, "ledger_merge_failed", LOG_TEXT("script", script_name(job->script)),
                  LOG_TEXT("why", why));
    if (how == REDIS_ANSWERED || how == REDIS_REFUSED)
        away_remove(e->away, late);
    come_to_rest(e, a);
    if (!timer_is_set(&e->catch_up))
        timer_set(&e->catch_up, e->loop, how == REDIS_ANSWERED ? 0 : CATCH_UP_MS, catch_up, e);
}

/* A run on the keys of a session that is known by what they have in common. */
static void begin_on(struct script_run *run, enum script script, const struct absence *a,
                     char key_bytes[SCRIPT_KEYS][SCRIPT_KEY_BYTES])
{
    run->script = script;
    run->arg_count = 0;
    for (size_t i = 0; i < SCRIPT_KEYS; i++) {
        memcpy(key_bytes[i], a->stem, sizeof(a->stem));
        key_bytes[i][sizeof(a->stem)] = SCRIPT_KEY_LETTERS[i];
        run->keys[i] = (struct str){key_bytes[i], SCRIPT_KEY_BYTES};
    }
}

/* What the stand-in counted since it was asked last. */
static struct str account_of(struct engine *e, const struct absence *a, struct arena *arena)
{
    char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
    struct script_run run;
    struct str account = STR_NONE;
    struct why why;
    begin_on(&run, SCRIPT_LEAVE, a, keys);
    pack_leave(&run, &e->options, arena);
    if (a->counted && run_here(e, &run, arena, &account, &why) != OK) {
        log_event(LOG_ERROR, "ledger_leave_failed", LOG_TEXT("why", why.text));
        return STR_NONE;
    }
    return account;
}

static void add_merge(struct engine *e, struct absence *a)
{
    if (!a->counted && !a->doubts.len)
        return;
    char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
    struct arena *arena = arena_new();
    struct script_run run;
    struct redis_job job = {.hops = 0};
    struct str account = account_of(e, a, arena);
    if (account.len || a->doubts.len) {
        begin_on(&run, SCRIPT_MERGE, a, keys);
        pack_merge(&run, hash_random(), buf_view(&a->doubts), account, &e->options, arena);
        redis_job_write(&job, &run);
        if (!away_add(e->away, a, &a->ready, &job))
            say_lost(e);
    }
    buf_clear(&job.command);
    buf_clear(&a->doubts);
    a->counted = false;
    arena_free(arena);
}

/* The account first, then what waits for it to be there. False: Redis takes nothing now. */
static bool bring(struct engine *e, struct absence *a)
{
    bool taken = true;
    add_merge(e, a);
    if (a->late.first) {
        *(a->ready.last ? &a->ready.last->next : &a->ready.first) = a->late.first;
        a->ready.last = a->late.last;
        a->late = (struct late_list){NULL, NULL};
    }
    if (!a->ready.first) {
        away_settle(e->away, a);
        return true;
    }
    if (!a->flying)
        away_fly(e->away, a, true);
    for (struct late *late = a->ready.first; late && taken; late = late->next) {
        if (late->sent)
            continue;
        late->job.ended = on_late_ended;
        taken = late->sent = redis_send(e->redis, &late->job);
        e->flying += taken;
    }
    if (!taken)
        come_to_rest(e, a);
    return taken;
}

static void catch_up(void *owner)
{
    struct engine *e = owner;
    bool taken = true;
    while (taken && e->flying < FLYING_MAX && redis_is_up(e->redis) && away_first(e->away)) {
        struct absence *a = away_first(e->away);
        taken = bring(e, a);
    }
    if (!taken && redis_is_up(e->redis))
        timer_set(&e->catch_up, e->loop, CATCH_UP_MS, catch_up, e);
}

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
    buf_clear(&w->release.command);
    if (e->spare_count == WORKS_SPARE_MAX || w->job.command.cap > SPARE_BYTES_MAX) {
        buf_clear(&w->job.command);
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
    if (w->release.command.len && reply.len > SAYS_AT && reply.at[SAYS_AT] == LEDGER_RUN) {
        keep_for_later(e, key_of(w), &w->release);
        catch_up(e);
    }
}

static void remember_doubt(struct engine *e, const struct work *w)
{
    struct absence *a = w->doubt.len ? note(e, key_of(w)) : NULL;
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
        log_event(LOG_ERROR, "redis_refused", LOG_TEXT("script", script_name(job->script)),
                  LOG_TEXT("why", why));
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
    struct absence *a = redis_is_up(e->redis) ? away_find(e->away, run->keys[0]) : NULL;
    bool ahead = redis_is_up(e->redis) && (!a || bring(e, a));
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
    if (e->is_away)
        log_event(LOG_INFO, "ledger_back", LOG_NUM("away_ms", clock_wall_ms() - e->away_since_ms),
                  LOG_NUM("sessions_to_tell", away_sessions(e->away)));
    e->is_away = e->has_lost = false;
    timer_set(&e->catch_up, e->loop, 0, catch_up, e);
}

static const char *const outages[] = {"local", "closed", "open"};

static void on_away(void *owner, const char *why)
{
    struct engine *e = owner;
    log_event(e->is_away ? LOG_DEBUG : LOG_ERROR, "ledger_away", LOG_TEXT("why", why),
              LOG_TEXT("on_outage", outages[e->on_outage]));
    if (!e->is_away)
        e->away_since_ms = clock_wall_ms();
    e->is_away = true;
}

static const struct redis_hooks redis_hooks = {on_up, on_away};

/* ---- from outside ------------------------------------------------------------------------------ */

static void start_redis(struct engine *e, const struct redis_options *given)
{
    struct redis_options options = *given;
    e->loop = given->loop;
    e->away = away_new(e);
    e->redis = redis_new(&options, &redis_hooks, e);
}

enum err engine_new(const struct ledger_options *o, const struct redis_options *redis, struct engine **out,
                    struct why *why)
{
    *out = NULL;
    struct engine *e = calloc(1, sizeof(*e));
    if (!e)
        return why_set(why, ERR_LIMIT, "no memory for the ledger");
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

void engine_free(struct engine *e)
{
    if (!e)
        return;
    timer_clear(&e->catch_up);
    redis_free(e->redis);
    while (e->works) {
        struct work *w = e->works;
        e->works = w->next;
        buf_clear(&w->release.command);
        buf_clear(&w->job.command);
        buf_clear(&w->doubt);
        free(w);
    }
    while (e->spare) {
        struct work *w = e->spare;
        e->spare = w->next;
        buf_clear(&w->job.command);
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
    return !e->redis || redis_is_settled(e->redis);
}

void engine_status(const struct engine *e, struct ledger_status *out)
{
    *out = (struct ledger_status){.engine = e->redis ? "redis" : "local", .why_away = ""};
    local_usage(e->local, &out->sessions, &out->bytes);
    if (!e->redis)
        return;
    struct redis_stats stats;
    redis_stats(e->redis, &stats);
    out->connected = redis_is_up(e->redis);
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
    out->mean_us = stats.mean_us;
    out->worst_us = stats.worst_us;
    out->nodes = stats.nodes;
}
