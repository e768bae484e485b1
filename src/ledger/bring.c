/*
 * Redis is back: session by session it is told what the stand-in counted and
 * whatever else waits, a few sessions at a time, or at once where a call of
 * that session arrives.
 */
#include "ledger/engine_state.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"

#define FLYING_MAX  64u  /* commands that catch up at the same time, beside those that calls bring along */
#define CATCH_UP_MS 500u /* from one try to the next while Redis is there and a session's node is not */

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
    if (away_sessions(e->away) > 0 || e->outage_log.is_away || e->merged == e->merged_told)
        return;
    log_event(LOG_INFO, "ledger_merged", LOG_NUM("sessions", e->merged), LOG_NUM("lost", e->lost));
    e->merged_told = e->merged;
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
    if (how == REDIS_REFUSED) {
        e->lost++;
        say_refused(e, "ledger_merge_failed", a->stem, job->script, why);
    }
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
    struct redis_job job = {.script = 0};
    struct str account = account_of(e, a, arena);
    if (account.len || a->doubts.len) {
        begin_on(&run, SCRIPT_MERGE, a, keys);
        pack_merge(&run, hash_random(), buf_view(&a->doubts), account, &e->options, arena);
        redis_job_write(&job, &run);
        if (!away_add(e->away, a, &a->ready, &job))
            say_lost(e);
    }
    buf_clear(&job.command.bytes);
    buf_clear(&a->doubts);
    a->counted = false;
    arena_free(arena);
}

/* The account first, then what waits for it to be there. False: Redis takes nothing now. */
bool bring(struct engine *e, struct absence *a)
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

void catch_up(void *owner)
{
    struct engine *e = owner;
    bool taken = true;
    while (taken && e->flying < FLYING_MAX && redis_cluster_is_up(e->redis) && away_first(e->away)) {
        struct absence *a = away_first(e->away);
        taken = bring(e, a);
    }
    if (!taken)
        catch_up_later(e);
}

void catch_up_later(struct engine *e)
{
    if (redis_cluster_is_up(e->redis) && !timer_is_set(&e->catch_up))
        timer_set(&e->catch_up, e->loop, CATCH_UP_MS, catch_up, e);
}
