/*
 * Requests that Redis does not answer: the local engine does, or nobody, and
 * what Redis must hear of them is kept.
 */
#include "ledger/engine_state.h"

#include "base/log.h"

#define REFUSALS_PER_S 2u
#include "ledger/store.h"

/* ---- the local engine ------------------------------------------------------------ */

enum err run_here(struct engine *e, const struct script_run *run, struct arena *arena, struct str *reply,
                  struct why *why)
{
    return local_run(e->local, run, e->now_ms(), arena, reply, why);
}

/* Once: it goes on as long as there are more sessions than room, and status counts them. */
static void say_forgotten(struct engine *e)
{
    struct store_usage here;
    local_usage(e->local, &here);
    if (here.forgotten && !e->has_forgotten)
        log_event(
            LOG_WARN, "ledger_evicted", LOG_NUM("sessions", here.sessions), LOG_NUM("bytes", here.bytes),
            LOG_TEXT("why", "its memory is full: of the sessions that were silent for longest, budgets and "
                            "loops begin anew; raise ledger.memory, or lower ledger.ttl_s"));
    e->has_forgotten = here.forgotten > 0;
}

void answer_here(struct engine *e, const struct script_run *run, const struct ask *ask, bool stand_in)
{
    struct why why = {""};
    struct engine_reply reply = {.how = REPLY_SAID, .engine = "local", .stand_in = stand_in};
    reply.error = run_here(e, run, ask->arena, &reply.text, &why);
    say_forgotten(e);
    if (reply.error != OK) {
        reply.how = REPLY_FAILED;
        reply.why = why.text;
    }
    e->by_stand_in += stand_in;
    ask->kind->take(ask, &reply);
}

/* ---- while Redis is away ----------------------------------------------------------- */

void say_lost(struct engine *e)
{
    e->lost++;
    if (!e->has_lost)
        log_event(LOG_ERROR, "ledger_sessions_lost", LOG_NUM("sessions", away_sessions(e->away)),
                  LOG_NUM("commands", away_commands(e->away)),
                  LOG_TEXT("why", "too much waits for Redis to return; what is more is not told to it"));
    e->has_lost = true;
}

void say_refused(struct engine *e, const char *event, const char stem[SCRIPT_KEY_BYTES - 1],
                 enum script script, const char *why)
{
    uint64_t held;
    if (!rate_limit_allow(&e->refusals, REFUSALS_PER_S, &held))
        return;
    log_event(LOG_ERROR, event, LOG_TEXT("script", script_name(script)),
              LOG_STR("key", ((struct str){stem, SCRIPT_KEY_BYTES - 1})), LOG_TEXT("why", why),
              LOG_NUM("not_logged", held));
}

struct absence *note_absence(struct engine *e, struct str key)
{
    struct absence *a = away_note(e->away, (struct str){key.at, SCRIPT_KEY_BYTES - 1});
    if (!a)
        say_lost(e);
    catch_up_later(e);
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
    redis_cluster_stats(e->redis, &stats);
    e->refused++;
    answer(ask, REPLY_FAILED, stats.why_away[0] ? stats.why_away : "Redis did not answer");
}

static void pass_uncounted(struct engine *e, const struct ask *ask)
{
    const struct ledger_admit *request = ask->request;
    e->uncounted++;
    log_event(LOG_WARN, "ledger_uncounted", LOG_STR("tool", request->tool), LOG_STR("ext", request->ext),
              LOG_STR("session", str_cut(request->place.session, 128)));
    answer(ask, REPLY_UNCOUNTED, NULL);
}

static void count_here(struct engine *e, const struct script_run *run, const struct ask *ask)
{
    struct absence *a = note_absence(e, run->keys[0]);
    answer_here(e, run, ask, true);
    if (!a)
        return;
    a->counted = true;
    if (ask->kind->standing == STANDS_FOR_A_CALL)
        absence_admit(a, ask->kind->admission(ask));
}

void keep_for_later(struct engine *e, struct str key, struct redis_job *job)
{
    struct absence *a = note_absence(e, key);
    if (a && !away_add(e->away, a, &a->late, job))
        say_lost(e);
}

static void keep_run_for_later(struct engine *e, const struct script_run *run)
{
    struct redis_job job = {.script = 0};
    redis_job_write(&job, run);
    keep_for_later(e, run->keys[0], &job);
    buf_clear(&job.command.bytes);
}

/* A person's word goes ahead of what was counted since. */
static void reset_in_both(struct engine *e, const struct script_run *run, const struct ask *ask)
{
    struct redis_job job = {.script = 0};
    count_here(e, run, ask);
    struct absence *a = note_absence(e, run->keys[0]);
    redis_job_write(&job, run);
    if (a && !away_add(e->away, a, &a->ready, &job))
        say_lost(e);
    buf_clear(&job.command.bytes);
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

void stand_in(struct engine *e, const struct script_run *run, const struct ask *ask)
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
