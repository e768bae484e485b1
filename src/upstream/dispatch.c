/*
 * Calls on their way: past the breaker, through the queue of one that takes
 * only so many at once, to the kind that runs them (mcp.c, http_tool.c, exec.c),
 * and back. When a failing one is left alone is circuit_breaker.c's business.
 */
#include "upstream/upstream_internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "upstream/http/http_tool.h"

#define BUSY_AFTER_S 1 /* one that has enough to do may be asked again after this */

int64_t upstream_now_ms(void)
{
    return clock_mono_us() / 1000;
}

/* ---- how a call ended, and what it tells of who was asked ------------------- */

enum tells { TELLS_NOTHING, TELLS_ALIVE, TELLS_FAILING };

/* A no is an answer, and so is nonsense; "too many requests" is one that wants to be left alone for a while,
 * which the answer says. */
static enum tells what_it_tells(const struct upstream_answer *answer)
{
    static const enum tells known[] = {
        [UPSTREAM_RESULT] = TELLS_ALIVE,      [UPSTREAM_REFUSED] = TELLS_ALIVE,
        [UPSTREAM_TRANSIENT] = TELLS_FAILING, [UPSTREAM_UNAVAILABLE] = TELLS_NOTHING,
        [UPSTREAM_BROKEN] = TELLS_ALIVE,      [UPSTREAM_INPUT_REQUIRED] = TELLS_ALIVE,
    };
    return str_starts(answer->code, "http_4") ? TELLS_ALIVE : known[answer->outcome];
}

static void log_breaker(const struct upstream *u)
{
    const struct breaker *b = &u->breaker;
    if (b->state == BREAKER_CLOSED)
        log_event(LOG_INFO, "breaker_closed", LOG_STR("upstream", u->spec->name));
    else if (b->state == BREAKER_OPEN)
        log_event(LOG_WARN, "breaker_open", LOG_STR("upstream", u->spec->name),
                  LOG_NUM("failures_in_a_row", b->failures), LOG_NUM("for_ms", b->open_ms),
                  LOG_TEXT("why", u->last_error));
    else
        log_event(LOG_INFO, "breaker_probing", LOG_STR("upstream", u->spec->name));
}

static void remember_error(struct upstream *u, struct str why)
{
    struct str cut = str_cut(why, sizeof(u->last_error) - 1);
    memcpy(u->last_error, cut.at ? cut.at : "", cut.len);
    u->last_error[cut.len] = '\0';
    u->error_ms = upstream_now_ms();
}

void upstream_call_log_failure(struct upstream_call *run, struct str code, struct str why)
{
    log_event(LOG_WARN, "upstream_call_failed",
              LOG_STR("upstream", run->upstream ? run->upstream->spec->name : STR_NONE),
              LOG_STR("tool", run->request->target->tool), LOG_STR("code", code), LOG_STR("why", why));
    if (run->upstream) {
        run->upstream->failures++;
        remember_error(run->upstream, why);
    }
}

/* A death is told once, by who starts it again; of the rest whoever is paged wants to know why. */
static void tell_operator(struct upstream_call *run, enum tells tells)
{
    const struct upstream_answer *a = run->answer;
    bool denied = str_is(a->code, "http_401") || str_is(a->code, "http_403");
    bool fails = tells == TELLS_FAILING || denied || a->outcome == UPSTREAM_BROKEN;
    if (!fails || run->request->target->kind == TARGET_EXEC)
        return;
    if (!str_is(a->code, "crashed"))
        upstream_call_log_failure(run, a->code, a->detail);
    else if (run->upstream)
        remember_error(run->upstream, a->detail);
}

/* One death ends all calls that were under way, and is one failure. */
static bool is_same_death(struct upstream *u, const struct queued_call *p)
{
    if (!str_is(p->run.answer->code, "crashed"))
        return false;
    bool same = u->died_ms && p->began_ms <= u->died_ms;
    u->died_ms = upstream_now_ms();
    return same;
}

/* Nobody is let through before. */
static void ask_later(struct upstream_answer *answer, const struct breaker *breaker)
{
    int64_t after_s = breaker->state == BREAKER_OPEN ? breaker_after_s(breaker, upstream_now_ms()) : 0;
    if (after_s > answer->after_s && after_s > 0)
        answer->after_s = after_s;
}

static void learn(struct upstream *u, const struct queued_call *p, enum tells tells)
{
    bool changed;
    if (tells == TELLS_FAILING && is_same_death(u, p))
        tells = TELLS_NOTHING;
    if (tells == TELLS_FAILING) {
        u->failures += str_is(p->run.answer->code, "crashed");
        changed = breaker_failure(&u->breaker, p->probe, upstream_now_ms());
        ask_later(p->run.answer, &u->breaker);
    } else if (tells == TELLS_ALIVE) {
        changed = breaker_success(&u->breaker);
    } else {
        changed = breaker_cancelled(&u->breaker, p->probe, upstream_now_ms());
    }
    if (changed)
        log_breaker(u);
}

static void unlink_run(struct upstream_call *run)
{
    *(run->previous ? &run->previous->next : &run->upstreams->runs) = run->next;
    if (run->next)
        run->next->previous = run->previous;
}

/* It is under way no more. */
static void conclude(struct queued_call *p, enum tells tells)
{
    struct upstream *u = p->run.upstream;
    unlink_run(&p->run);
    tell_operator(&p->run, tells);
    if (!u)
        return;
    u->in_flight--;
    learn(u, p, tells);
    if (u->queue || u->leaving)
        upstream_schedule(u);
}

void upstream_call_finish(struct upstream_call *run)
{
    struct queued_call *p = (struct queued_call *)run;
    conclude(p, what_it_tells(run->answer));
    run->done(run->owner);
}

uint32_t upstream_call_timeout_ms(const struct upstream_call *run, uint32_t own_ms)
{
    uint32_t within = run->request->max_ms;
    return within && within < own_ms ? within : own_ms;
}

struct loop *upstream_call_loop(const struct upstream_call *run)
{
    return run->upstreams->loop;
}

const struct upstream_spec *upstream_call_spec(const struct upstream_call *run)
{
    return run->upstream ? run->upstream->spec : NULL;
}

/* ---- to begin a call -------------------------------------------------------- */

static enum upstream_call_state mcp_run(struct upstream_call *run)
{
    return mcp_client_call(run->upstream->mcp, run);
}

static enum upstream_call_state (*const kinds[])(struct upstream_call *run) = {
    [TARGET_MCP] = mcp_run, [TARGET_HTTP] = http_tool_call, [TARGET_EXEC] = exec_call};

static void link_run(struct upstream_call *run)
{
    struct upstreams *set = run->upstreams;
    run->previous = NULL;
    run->next = set->runs;
    if (set->runs)
        set->runs->previous = run;
    set->runs = run;
}

static enum upstream_call_state begin(struct queued_call *p)
{
    struct upstream_call *run = &p->run;
    link_run(run);
    p->began_ms = upstream_now_ms();
    if (run->upstream) {
        run->upstream->in_flight++;
        run->upstream->calls++;
    }
    if (kinds[run->request->target->kind](run) == UPSTREAM_PENDING)
        return UPSTREAM_PENDING;
    conclude(p, what_it_tells(run->answer));
    return UPSTREAM_DONE;
}

static enum upstream_call_state turn_away(struct queued_call *p)
{
    const struct upstream *u = p->run.upstream;
    p->run.answer->after_s = breaker_after_s(&u->breaker, upstream_now_ms());
    upstream_call_answer(&p->run, UPSTREAM_UNAVAILABLE, "breaker_open",
                         "the server '" STR_FMT
                         "', which runs this tool, failed %u times in a row (last: %s); it is left "
                         "alone for a while, and this call was not sent to it",
                         STR_ARG(u->spec->name), u->breaker.failures, u->last_error);
    return UPSTREAM_DONE;
}

/* ---- the queue of one that takes only so many at once -------------------------- */

static void unqueue(struct queued_call *p)
{
    struct upstream *u = p->run.upstream;
    struct queued_call **at = &u->queue;
    while (*at != p)
        at = &(*at)->behind;
    *at = p->behind;
    if (!p->behind)
        u->queue_end = at;
    p->queued = false;
    u->queued--;
    timer_clear(&p->deadline);
    unlink_run(&p->run);
}

static void on_waited_too_long(void *owner)
{
    struct queued_call *p = owner;
    const struct upstream *u = p->run.upstream;
    unqueue(p);
    p->run.answer->after_s = BUSY_AFTER_S;
    upstream_call_answer(
        &p->run, UPSTREAM_UNAVAILABLE, "busy",
        "the server '" STR_FMT "', which runs this tool, takes %u calls at once and had no room for this "
        "one within %u ms; it was not sent",
        STR_ARG(u->spec->name), u->spec->in_flight, upstream_call_timeout_ms(&p->run, u->spec->timeout_ms));
    p->run.done(p->run.owner);
}

static enum upstream_call_state enqueue(struct queued_call *p)
{
    struct upstream *u = p->run.upstream;
    link_run(&p->run);
    p->queued = true;
    *u->queue_end = p;
    u->queue_end = &p->behind;
    u->queued++;
    timer_set(&p->deadline, u->set->loop, upstream_call_timeout_ms(&p->run, u->spec->timeout_ms),
              on_waited_too_long, p);
    return UPSTREAM_PENDING;
}

static bool has_room(const struct upstream *u)
{
    return !u->spec->in_flight || u->in_flight < u->spec->in_flight;
}

/* Past the breaker, or turned away by it. The one that probes does not wait for those that hang. */
static enum upstream_call_state try_it(struct queued_call *p, bool may_wait)
{
    struct upstream *u = p->run.upstream;
    enum breaker_decision says = breaker_admit(&u->breaker, upstream_now_ms());
    if (says == BREAKER_REJECT)
        return turn_away(p);
    p->probe = says == BREAKER_PROBE;
    if (p->probe)
        log_breaker(u);
    return may_wait && !p->probe && (u->queue || !has_room(u)) ? enqueue(p) : begin(p);
}

static void reap(struct upstream *u)
{
    upstream_unlink(u->set, u);
    upstream_free(u);
}

/* From the loop's turn: those for whom there is room now; and the end of one that leaves. */
static void on_turn(void *owner)
{
    struct upstream *u = owner;
    while (u->queue && has_room(u)) {
        struct queued_call *p = u->queue;
        unqueue(p);
        if (try_it(p, false) == UPSTREAM_DONE)
            p->run.done(p->run.owner);
    }
    if (!u->leaving || u->in_flight || u->queue)
        return;
    if (u->over || !u->mcp) {
        reap(u);
    } else if (!u->stopping) {
        u->stopping = true;
        mcp_client_stop(u->mcp);
    }
}

void upstream_schedule(struct upstream *u)
{
    timer_set(&u->turn, u->set->loop, 0, on_turn, u);
}

/* ---- calls ------------------------------------------------------------------ */

/* Who is asked for runs this kind of tool. */
static bool is_kind_for(const struct upstream *u, enum target_kind kind)
{
    return kind == TARGET_MCP ? u->mcp != NULL : kind == TARGET_HTTP ? u->spec->url.len > 0 : true;
}

/* False, with the answer: it names one that cannot run it. */
static bool find_upstream(struct upstream_call *run)
{
    const struct target *target = run->request->target;
    if (!target->upstream.len && target->kind != TARGET_MCP)
        return true;
    run->upstream = upstream_find(run->upstreams, target->upstream);
    if (run->upstream && is_kind_for(run->upstream, target->kind))
        return true;
    if (!run->upstream)
        upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "not_configured",
                             "the server '" STR_FMT
                             "', which runs this tool, is not in the gateway's configuration",
                             STR_ARG(target->upstream));
    else
        upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "not_configured",
                             "the server '" STR_FMT "' is configured, but not as one that runs this tool: %s",
                             STR_ARG(target->upstream),
                             target->kind == TARGET_MCP ? "it speaks no MCP" : "it has no address");
    return false;
}

uint32_t target_timeout_ms(const struct target *target, const struct upstream_spec *spec)
{
    uint32_t asked = target->timeout_ms;
    uint32_t otherwise = target->kind == TARGET_HTTP ? HTTP_TIMEOUT_MS : UPSTREAM_TIMEOUT_MS;
    if (spec && spec->timeout_ms)
        otherwise = spec->timeout_ms;
    if (!asked && target->kind == TARGET_EXEC)
        asked = target->exec->timeout_ms ? target->exec->timeout_ms : EXEC_TIMEOUT_MS;
    else if (!asked && target->kind == TARGET_HTTP)
        asked = target->http->timeout_ms;
    return asked ? asked : otherwise;
}

uint32_t upstream_max_duration_ms(const struct upstreams *set, const struct target *target)
{
    const struct upstream *u = target->upstream.len ? upstream_find(set, target->upstream) : NULL;
    const struct upstream_spec *spec = u ? u->spec : NULL;
    uint64_t ms = target_timeout_ms(target, spec);
    ms *= target->kind == TARGET_MCP ? MCP_PROGRESS_TIMES : 1;
    if (spec && spec->in_flight)
        ms += spec->timeout_ms;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

enum upstream_call_state upstream_start(struct upstreams *set, const struct upstream_request *request,
                                        struct arena *arena, struct upstream_answer *answer,
                                        upstream_done *done, void *owner)
{
    struct queued_call *p = ARENA_NEW(arena, struct queued_call);
    *answer = (struct upstream_answer){.after_s = -1};
    p->run = (struct upstream_call){
        .upstreams = set, .request = request, .arena = arena, .answer = answer, .done = done, .owner = owner};
    if (!find_upstream(&p->run))
        return UPSTREAM_DONE;
    return p->run.upstream ? try_it(p, true) : begin(p);
}

static void unlink_pause(struct pause *pause)
{
    *(pause->previous ? &pause->previous->next : &pause->set->pauses) = pause->next;
    if (pause->next)
        pause->next->previous = pause->previous;
    timer_clear(&pause->timer);
}

static void on_pause_over(void *owner)
{
    struct pause *pause = owner;
    unlink_pause(pause);
    pause->done(pause->owner);
}

void upstream_delay(struct upstreams *set, uint32_t ms, struct arena *arena, upstream_done *done, void *owner)
{
    struct pause *pause = ARENA_NEW(arena, struct pause);
    *pause = (struct pause){.set = set, .next = set->pauses, .done = done, .owner = owner};
    if (pause->next)
        pause->next->previous = pause;
    set->pauses = pause;
    timer_set(&pause->timer, set->loop, ms, on_pause_over, pause);
}

static void cancel_run(struct upstream_call *run)
{
    struct queued_call *p = (struct queued_call *)run;
    if (p->queued) {
        unqueue(p);
        return;
    }
    conclude(p, TELLS_NOTHING);
    if (run->stop)
        run->stop(run);
}

void upstream_cancel(struct upstreams *set, void *owner)
{
    struct upstream_call *next_run;
    struct pause *next_pause;
    for (struct upstream_call *run = set->runs; run; run = next_run) {
        next_run = run->next;
        if (run->owner == owner)
            cancel_run(run);
    }
    for (struct pause *pause = set->pauses; pause; pause = next_pause) {
        next_pause = pause->next;
        if (pause->owner == owner)
            unlink_pause(pause);
    }
}
