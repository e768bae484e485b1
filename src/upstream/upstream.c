/*
 * The set: who is configured, which call goes where, who waits for its turn
 * and who has to leave. How each kind runs a call is its own file's business
 * (mcp.c, http.c, exec.c), when a failing one is left alone breaker.c's.
 */
#include "upstream/upstream.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/write.h"
#include "upstream/breaker.h"
#include "upstream/kept.h"
#include "upstream/mcp.h"
#include "upstream/offer.h"
#include "upstream/run.h"

#include <stdio.h>
#include <stdlib.h>

#define LAST_ERROR_MAX_BYTES 256u
#define BUSY_AFTER_S         1 /* one that has enough to do may be asked again after this */

struct upstream {
    struct upstreams *set;
    struct upstream *next;
    struct arena *arena; /* of the spec */
    struct upstream_spec *spec;
    struct mcp *mcp;             /* NULL: an address for others' requests */
    struct upstream_offer *kept; /* what it offered before it was there; NULL: not known */
    struct breaker breaker;
    struct pending *queue, **queue_end; /* until there is room for them: spec.in_flight */
    struct timer turn;                  /* the next in the queue, or its own end */
    uint32_t in_flight, queued;
    uint64_t calls, failures;
    char last_error[LAST_ERROR_MAX_BYTES];
    bool leaving;  /* not configured any more: ended once its calls are answered */
    bool stopping; /* they are */
    bool over;     /* and its process is gone */
};

/* A call under way, or waiting for its turn. */
struct pending {
    struct upstream_run run; /* first: the kinds know it by this */
    struct pending *behind;  /* in the queue */
    struct timer deadline;   /* of waiting in the queue */
    bool queued, probe;
};

struct pause {
    struct upstreams *set;
    struct pause *next, *previous;
    struct timer timer;
    upstream_done *done;
    void *owner;
};

struct upstreams {
    struct loop *loop;
    const char *state;
    struct upstreams_hooks hooks;
    void *owner;
    struct upstream *first; /* in the order of the configuration, those that leave at the end */
    struct upstream_run *runs;
    struct pause *pauses;
};

static int64_t now_ms(void)
{
    return clock_mono_us() / 1000;
}

/* ---- one of the set ------------------------------------------------------- */

static void on_turn(void *owner);

static void take_turn(struct upstream *u)
{
    timer_set(&u->turn, u->set->loop, 0, on_turn, u);
}

static void tell_changed(struct upstream *u)
{
    if (!u->leaving && u->set->hooks.changed)
        u->set->hooks.changed(u->set->owner, u->spec->name);
}

static void on_mcp_changed(void *owner)
{
    struct upstream *u = owner;
    if (u->spec->lazy && !u->leaving && mcp_offer(u->mcp))
        kept_write(u->set->state, u->spec, mcp_offer(u->mcp));
    tell_changed(u);
}

static void on_mcp_state(void *owner)
{
    tell_changed(owner);
}

static void on_mcp_stopped(void *owner)
{
    struct upstream *u = owner;
    u->over = true;
    take_turn(u);
}

static const struct mcp_hooks mcp_hooks = {on_mcp_changed, on_mcp_state, on_mcp_stopped};

/* `before`: one of the same name that was configured otherwise; what it offered is as good as any guess until
 * this one has told. */
static struct upstream *upstream_new(struct upstreams *set, const struct upstream_spec *spec,
                                     struct upstream *before)
{
    struct upstream *u = calloc(1, sizeof(*u));
    if (!u)
        abort();
    u->set = set;
    u->arena = arena_new();
    u->spec = upstream_spec_copy(u->arena, spec);
    u->queue_end = &u->queue;
    if (spec->kind == UPSTREAM_REST)
        return u;
    u->mcp = mcp_new(set->loop, u->spec, &mcp_hooks, u);
    u->kept = spec->lazy ? kept_read(set->state, u->spec) : NULL;
    if (!u->kept && before)
        u->kept = upstreams_offer(set, spec->name);
    if (!spec->lazy || !u->kept)
        mcp_start(u->mcp);
    return u;
}

static void upstream_free(struct upstream *u)
{
    timer_clear(&u->turn);
    if (u->mcp)
        mcp_free(u->mcp);
    upstream_offer_unref(u->kept);
    arena_free(u->arena);
    free(u);
}

/* What matters to calls only may change under one that runs. */
static void adjust(struct upstream *u, const struct upstream_spec *spec)
{
    u->spec->timeout_ms = spec->timeout_ms;
    u->spec->start_ms = spec->start_ms;
    u->spec->in_flight = spec->in_flight;
    u->spec->prefix = spec->prefix;
    take_turn(u);
}

static void leave(struct upstream *u)
{
    u->leaving = true;
    take_turn(u);
}

static struct upstream *find(const struct upstreams *set, struct str name)
{
    for (struct upstream *u = set->first; u; u = u->next)
        if (!u->leaving && str_eq(u->spec->name, name))
            return u;
    return NULL;
}

/* ---- the set -------------------------------------------------------------- */

struct upstreams *upstreams_new(struct loop *loop, const char *state, const struct upstreams_hooks *hooks,
                                void *owner)
{
    struct upstreams *set = calloc(1, sizeof(*set));
    if (!set)
        abort();
    set->loop = loop;
    set->state = state;
    set->hooks = *hooks;
    set->owner = owner;
    return set;
}

void upstreams_free(struct upstreams *set)
{
    if (!set)
        return;
    while (set->runs)
        upstream_cancel(set, set->runs->owner);
    while (set->pauses)
        upstream_cancel(set, set->pauses->owner);
    while (set->first) {
        struct upstream *u = set->first;
        set->first = u->next;
        upstream_free(u);
    }
    free(set);
}

/* One configured anew: as it is, adjusted, or another in its place. */
static struct upstream *renew(struct upstreams *set, const struct upstream_spec *spec)
{
    struct upstream *u = find(set, spec->name);
    if (u && upstream_spec_same(u->spec, spec)) {
        adjust(u, spec);
        if (u->mcp && !spec->lazy)
            mcp_start(u->mcp); /* one that is down is tried again */
        return u;
    }
    struct upstream *made = upstream_new(set, spec, u);
    if (u)
        leave(u);
    return made;
}

static void unlink_upstream(struct upstreams *set, struct upstream *gone)
{
    for (struct upstream **at = &set->first; *at; at = &(*at)->next)
        if (*at == gone) {
            *at = gone->next;
            return;
        }
}

void upstreams_apply(struct upstreams *set, const struct upstream_spec *const *specs, size_t count)
{
    struct upstream *first = NULL, **end = &first;
    for (size_t i = 0; i < count; i++) {
        struct upstream *u = renew(set, specs[i]);
        unlink_upstream(set, u);
        *end = u;
        end = &u->next;
    }
    for (struct upstream *u = set->first; u; u = u->next)
        if (!u->leaving)
            leave(u);
    *end = set->first;
    set->first = first;
}

bool upstreams_are_settled(const struct upstreams *set)
{
    struct mcp_view view;
    for (const struct upstream *u = set->first; u; u = u->next) {
        if (!u->mcp || u->leaving || (u->spec->lazy && u->kept))
            continue;
        mcp_look(u->mcp, &view);
        if (!view.settled)
            return false;
    }
    return true;
}

struct upstream_offer *upstreams_offer(struct upstreams *set, struct str name)
{
    const struct upstream *u = find(set, name);
    struct upstream_offer *told = u && u->mcp ? mcp_offer(u->mcp) : NULL;
    struct upstream_offer *offer = told ? told : u ? u->kept : NULL;
    return offer ? upstream_offer_ref(offer) : NULL;
}

/* ---- for people ----------------------------------------------------------- */

static void put_number(struct json_out *out, const char *key, int64_t n)
{
    json_key(out, key);
    json_put_int(out, n);
}

static void put_text(struct json_out *out, const char *key, struct str text)
{
    if (!text.len)
        return;
    json_key(out, key);
    json_put_str(out, text);
}

static void put_breaker(struct json_out *out, const struct breaker *breaker)
{
    put_text(out, "breaker", str_of(breaker_state_name(breaker->state)));
    if (breaker->state != BREAKER_CLOSED)
        put_number(out, "breaker_after_s", breaker_after_s(breaker, now_ms()));
}

static void put_mcp(struct json_out *out, const struct mcp_view *view)
{
    put_number(out, "starts", (int64_t)view->starts);
    put_number(out, "failed_in_a_row", view->failures);
    if (view->next_ms >= 0)
        put_number(out, "next_try_ms", view->next_ms);
    if (view->ignored)
        put_number(out, "ignored_messages", (int64_t)view->ignored);
    put_text(out, "protocol", view->version);
    put_text(out, "server", view->server);
}

static void put_upstream(struct json_out *out, const struct upstream *u)
{
    static const char *const kinds[] = {"stdio", "http", "rest"};
    struct upstream_offer *offer = upstreams_offer(u->set, u->spec->name);
    struct mcp_view view = {.name = "ready", .next_ms = -1};
    if (u->mcp)
        mcp_look(u->mcp, &view);
    json_open(out, '{');
    put_text(out, "name", u->spec->name);
    put_text(out, "kind", str_of(kinds[u->spec->kind]));
    put_text(out, "state", str_of(view.name));
    if (u->mcp)
        put_number(out, "tools", offer ? upstream_offer_tools(offer)->len : 0);
    put_number(out, "calls", (int64_t)u->calls);
    put_number(out, "in_flight", u->in_flight);
    put_number(out, "queued", u->queued + view.queued);
    put_number(out, "failures", (int64_t)u->failures);
    put_breaker(out, &u->breaker);
    put_text(out, "last_error", view.error.len ? view.error : str_of(u->last_error));
    if (u->mcp)
        put_mcp(out, &view);
    json_close(out, '}');
    upstream_offer_unref(offer);
}

void upstreams_write(struct json_out *out, const struct upstreams *set)
{
    json_open(out, '[');
    for (const struct upstream *u = set->first; u; u = u->next)
        if (!u->leaving)
            put_upstream(out, u);
    json_close(out, ']');
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
        [UPSTREAM_BROKEN] = TELLS_ALIVE,      [UPSTREAM_ASKS] = TELLS_ALIVE,
    };
    return str_starts(answer->code, "http_4") ? TELLS_ALIVE : known[answer->ended];
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

static void remember_error(struct upstream *u, const struct upstream_answer *answer)
{
    struct str cut = str_cut(answer->detail, sizeof(u->last_error) - 1);
    memcpy(u->last_error, cut.at ? cut.at : "", cut.len);
    u->last_error[cut.len] = '\0';
}

static void learn(struct upstream *u, const struct pending *p, enum tells tells)
{
    bool changed;
    if (tells == TELLS_FAILING) {
        u->failures++;
        remember_error(u, p->run.answer);
        changed = breaker_failed(&u->breaker, p->probe, now_ms());
    } else if (tells == TELLS_ALIVE) {
        changed = breaker_succeeded(&u->breaker);
    } else {
        changed = breaker_untold(&u->breaker, p->probe, now_ms());
    }
    if (changed)
        log_breaker(u);
}

static void unlink_run(struct upstream_run *run)
{
    *(run->previous ? &run->previous->next : &run->upstreams->runs) = run->next;
    if (run->next)
        run->next->previous = run->previous;
}

/* It is under way no more. */
static void conclude(struct pending *p, enum tells tells)
{
    struct upstream *u = p->run.upstream;
    unlink_run(&p->run);
    if (!u)
        return;
    u->in_flight--;
    learn(u, p, tells);
    if (u->queue || u->leaving)
        take_turn(u);
}

void run_finish(struct upstream_run *run)
{
    struct pending *p = (struct pending *)run;
    conclude(p, what_it_tells(run->answer));
    run->done(run->owner);
}

struct loop *run_loop(const struct upstream_run *run)
{
    return run->upstreams->loop;
}

const struct upstream_spec *run_spec(const struct upstream_run *run)
{
    return run->upstream ? run->upstream->spec : NULL;
}

/* ---- to begin a call -------------------------------------------------------- */

static enum upstream_state mcp_run(struct upstream_run *run)
{
    return mcp_call(run->upstream->mcp, run);
}

static enum upstream_state (*const kinds[])(struct upstream_run *run) = {
    [TARGET_MCP] = mcp_run, [TARGET_HTTP] = http_run, [TARGET_EXEC] = exec_run};

static void link_run(struct upstream_run *run)
{
    struct upstreams *set = run->upstreams;
    run->previous = NULL;
    run->next = set->runs;
    if (set->runs)
        set->runs->previous = run;
    set->runs = run;
}

static enum upstream_state begin(struct pending *p)
{
    struct upstream_run *run = &p->run;
    link_run(run);
    if (run->upstream) {
        run->upstream->in_flight++;
        run->upstream->calls++;
    }
    if (kinds[run->request->target->kind](run) == UPSTREAM_PENDING)
        return UPSTREAM_PENDING;
    conclude(p, what_it_tells(run->answer));
    return UPSTREAM_DONE;
}

static enum upstream_state turn_away(struct pending *p)
{
    const struct upstream *u = p->run.upstream;
    p->run.answer->after_s = breaker_after_s(&u->breaker, now_ms());
    run_answer(&p->run, UPSTREAM_UNAVAILABLE, "breaker_open",
               "the server '" STR_FMT
               "', which runs this tool, failed %u times in a row (last: %s); it is left "
               "alone for a while, and this call was not sent to it",
               STR_ARG(u->spec->name), u->breaker.failures, u->last_error);
    return UPSTREAM_DONE;
}

/* ---- the queue of one that takes only so many at once -------------------------- */

static void unqueue(struct pending *p)
{
    struct upstream *u = p->run.upstream;
    struct pending **at = &u->queue;
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
    struct pending *p = owner;
    const struct upstream *u = p->run.upstream;
    unqueue(p);
    p->run.answer->after_s = BUSY_AFTER_S;
    run_answer(&p->run, UPSTREAM_UNAVAILABLE, "busy",
               "the server '" STR_FMT
               "', which runs this tool, takes %u calls at once and had no room for this "
               "one within %u ms; it was not sent",
               STR_ARG(u->spec->name), u->spec->in_flight, u->spec->timeout_ms);
    p->run.done(p->run.owner);
}

static enum upstream_state enqueue(struct pending *p)
{
    struct upstream *u = p->run.upstream;
    link_run(&p->run);
    p->queued = true;
    *u->queue_end = p;
    u->queue_end = &p->behind;
    u->queued++;
    timer_set(&p->deadline, u->set->loop, u->spec->timeout_ms, on_waited_too_long, p);
    return UPSTREAM_PENDING;
}

static bool has_room(const struct upstream *u)
{
    return !u->spec->in_flight || u->in_flight < u->spec->in_flight;
}

/* Past the breaker, or turned away by it. The one that probes does not wait for those that hang. */
static enum upstream_state try_it(struct pending *p, bool may_wait)
{
    struct upstream *u = p->run.upstream;
    enum breaker_says says = breaker_asks(&u->breaker, now_ms());
    if (says == BREAKER_WAIT)
        return turn_away(p);
    p->probe = says == BREAKER_PROBE;
    if (p->probe)
        log_breaker(u);
    return may_wait && !p->probe && (u->queue || !has_room(u)) ? enqueue(p) : begin(p);
}

static void reap(struct upstream *u)
{
    unlink_upstream(u->set, u);
    upstream_free(u);
}

/* From the loop's turn: those for whom there is room now; and the end of one that leaves. */
static void on_turn(void *owner)
{
    struct upstream *u = owner;
    while (u->queue && has_room(u)) {
        struct pending *p = u->queue;
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
        mcp_stop(u->mcp);
    }
}

/* ---- calls ------------------------------------------------------------------ */

/* Who is asked for runs this kind of tool. */
static bool is_kind_for(const struct upstream *u, enum target_kind kind)
{
    return kind == TARGET_MCP ? u->mcp != NULL : kind == TARGET_HTTP ? u->spec->url.len > 0 : true;
}

/* False, with the answer: it names one that cannot run it. */
static bool find_upstream(struct upstream_run *run)
{
    const struct target *target = run->request->target;
    if (!target->upstream.len && target->kind != TARGET_MCP)
        return true;
    run->upstream = find(run->upstreams, target->upstream);
    if (run->upstream && is_kind_for(run->upstream, target->kind))
        return true;
    if (!run->upstream)
        run_answer(run, UPSTREAM_UNAVAILABLE, "not_configured",
                   "the server '" STR_FMT "', which runs this tool, is not in the gateway's configuration",
                   STR_ARG(target->upstream));
    else
        run_answer(run, UPSTREAM_UNAVAILABLE, "not_configured",
                   "the server '" STR_FMT "' is configured, but not as one that runs this tool: %s",
                   STR_ARG(target->upstream),
                   target->kind == TARGET_MCP ? "it speaks no MCP" : "it has no address");
    return false;
}

enum upstream_state upstream_start(struct upstreams *set, const struct upstream_request *request,
                                   struct arena *arena, struct upstream_answer *answer, upstream_done *done,
                                   void *owner)
{
    struct pending *p = ARENA_NEW(arena, struct pending);
    *answer = (struct upstream_answer){.after_s = -1};
    p->run = (struct upstream_run){
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

void upstream_after(struct upstreams *set, uint32_t ms, struct arena *arena, upstream_done *done, void *owner)
{
    struct pause *pause = ARENA_NEW(arena, struct pause);
    *pause = (struct pause){.set = set, .next = set->pauses, .done = done, .owner = owner};
    if (pause->next)
        pause->next->previous = pause;
    set->pauses = pause;
    timer_set(&pause->timer, set->loop, ms, on_pause_over, pause);
}

static void cancel_run(struct upstream_run *run)
{
    struct pending *p = (struct pending *)run;
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
    struct upstream_run *next_run;
    struct pause *next_pause;
    for (struct upstream_run *run = set->runs; run; run = next_run) {
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
