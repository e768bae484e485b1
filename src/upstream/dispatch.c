/*
 * The way of a call: past the circuit breaker, through the queue of an
 * upstream that limits its calls at once (in_flight), to the runner of its
 * kind (mcp_call.c, http_tool.c, exec.c), and back to the caller.
 */
#include "upstream/upstream_internal.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/share.h"
#include "upstream/http/http_tool.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define BUSY_AFTER_S 1 /* when to retry after the queue was full */

enum upstream_call_state upstream_call_answer(struct upstream_call *call, enum upstream_outcome outcome,
                                              const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call->answer->outcome = outcome;
    call->answer->code = arena_dup(call->arena, str_of(code));
    call->answer->detail = arena_vprintf(call->arena, format, args);
    va_end(args);
    return UPSTREAM_DONE;
}

/* What the server does, for "the server 'x', which …". */
static const char *service(const struct upstream_call *call)
{
    return call->request->method ? "has this" : "runs this tool";
}

enum upstream_call_state upstream_call_refuse(struct upstream_call *call, enum upstream_outcome outcome,
                                              const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str sentence = arena_vprintf(call->arena, format, args);
    va_end(args);
    return upstream_call_answer(call, outcome, code, "the server '" STR_FMT "', which %s, " STR_FMT,
                                STR_ARG(call->spec->name), service(call), STR_ARG(sentence));
}

static void remember_error(struct upstream *u, struct str why)
{
    snprintf(u->last_error, sizeof(u->last_error), STR_FMT, STR_ARG(str_cut(why, sizeof(u->last_error) - 1)));
    u->error_ms = upstream_now_ms();
}

void upstream_call_log_failure(struct upstream_call *call, struct str code, struct str why)
{
    log_event(LOG_WARN, "upstream_call_failed",
              LOG_STR("upstream", call->upstream ? call->upstream->spec->name : STR_NONE),
              LOG_STR("tool", call->request->target->tool), LOG_STR("code", code), LOG_STR("why", why));
    if (call->upstream) {
        call->upstream->failures++;
        remember_error(call->upstream, why);
    }
}

/* `spec`: of its upstream; NULL: it has none. */
static uint32_t target_timeout_ms(const struct target *target, const struct upstream_spec *spec)
{
    uint32_t own = target->timeout_ms;
    if (!own && target->kind == TARGET_EXEC)
        own = target->exec->timeout_ms ? target->exec->timeout_ms : EXEC_TIMEOUT_MS;
    else if (!own && target->kind == TARGET_HTTP)
        own = target->http->timeout_ms;
    if (own)
        return own;
    if (spec && spec->timeout_ms)
        return spec->timeout_ms;
    return target->kind == TARGET_HTTP ? HTTP_TIMEOUT_MS : UPSTREAM_TIMEOUT_MS;
}

static uint32_t within_max_ms(const struct upstream_call *call, uint32_t ms)
{
    uint32_t max_ms = call->request->max_ms;
    return max_ms && max_ms < ms ? max_ms : ms;
}

uint32_t upstream_call_timeout_ms(const struct upstream_call *call)
{
    return within_max_ms(call, target_timeout_ms(call->request->target, call->spec));
}

/* ---- the circuit breaker ---- */

enum breaker_decision breaker_admit(struct breaker *b, int64_t now_ms)
{
    if (b->state == BREAKER_CLOSED)
        return BREAKER_ALLOW;
    if (b->state == BREAKER_PROBING || now_ms < b->until_ms)
        return BREAKER_REJECT;
    b->state = BREAKER_PROBING;
    return BREAKER_PROBE;
}

/* A call that began before the breaker opened also proves that the upstream answers. */
bool breaker_success(struct breaker *b)
{
    bool changed = b->state != BREAKER_CLOSED;
    *b = (struct breaker){.state = BREAKER_CLOSED};
    return changed;
}

/* A call that began before the breaker opened proves nothing new, and does not prolong the opening. */
bool breaker_failure(struct breaker *b, bool probe, bool at_once, int64_t now_ms)
{
    if (b->state == BREAKER_CLOSED) {
        if (++b->failures < BREAKER_OPENS_AFTER && !at_once)
            return false;
        b->open_ms = BREAKER_OPEN_MS;
    } else if (b->state == BREAKER_PROBING && probe) {
        b->open_ms = b->open_ms >= BREAKER_OPEN_MAX_MS / 2 ? BREAKER_OPEN_MAX_MS : 2 * b->open_ms;
    } else {
        return false;
    }
    b->state = BREAKER_OPEN;
    b->until_ms = now_ms + b->open_ms;
    return true;
}

bool breaker_cancelled(struct breaker *b, bool probe, int64_t now_ms)
{
    if (b->state != BREAKER_PROBING || !probe)
        return false;
    b->state = BREAKER_OPEN;
    b->until_ms = now_ms;
    return true;
}

int64_t breaker_after_s(const struct breaker *b, int64_t now_ms)
{
    if (b->state == BREAKER_CLOSED)
        return 0;
    return b->until_ms > now_ms ? (b->until_ms - now_ms + 999) / 1000 : b->state == BREAKER_PROBING;
}

enum health { HEALTH_UNKNOWN, HEALTH_ALIVE, HEALTH_FAILING };

/* A refusal is an answer, and so is a broken result; 429 carries its own time to retry; that we have no
 * memory for an answer says nothing of who sent it. */
static enum health health_shown_by(const struct upstream_answer *answer)
{
    static const enum health by_outcome[] = {
        [UPSTREAM_RESULT] = HEALTH_ALIVE,      [UPSTREAM_REFUSED] = HEALTH_ALIVE,
        [UPSTREAM_TRANSIENT] = HEALTH_FAILING, [UPSTREAM_UNAVAILABLE] = HEALTH_UNKNOWN,
        [UPSTREAM_BROKEN] = HEALTH_ALIVE,      [UPSTREAM_INPUT_REQUIRED] = HEALTH_ALIVE,
    };
    if (str_is(answer->code, "no_memory"))
        return HEALTH_UNKNOWN;
    return str_starts(answer->code, "http_4") ? HEALTH_ALIVE : by_outcome[answer->outcome];
}

static void log_breaker(const struct upstream *u)
{
    const struct breaker *b = &u->breaker;
    if (b->state == BREAKER_OPEN)
        log_event(LOG_WARN, "breaker_open", LOG_STR("upstream", u->spec->name),
                  LOG_NUM("failures_in_a_row", b->failures), LOG_NUM("for_ms", b->open_ms),
                  LOG_TEXT("why", u->last_error));
    else
        log_event(LOG_INFO, b->state == BREAKER_CLOSED ? "breaker_closed" : "breaker_probing",
                  LOG_STR("upstream", u->spec->name));
}

static void update_breaker(struct upstream *u, const struct upstream_call *call, enum health health)
{
    struct upstream_answer *answer = call->answer;
    int64_t now = upstream_now_ms();
    bool crashed = health == HEALTH_FAILING && str_is(answer->code, "crashed"), changed;
    if (crashed) {
        /* One crash ends every call that was under way, and is one failure. */
        bool counted = u->crashed_ms && call->began_ms <= u->crashed_ms;
        u->crashed_ms = now;
        if (counted)
            health = HEALTH_UNKNOWN;
        else
            u->failures++;
    }
    if (health == HEALTH_FAILING) {
        changed = breaker_failure(&u->breaker, call->probe,
                                  str_is(answer->code, UPSTREAM_CODE_TOO_MANY_REQUESTS), now);
        int64_t after_s = u->breaker.state == BREAKER_OPEN ? breaker_after_s(&u->breaker, now) : 0;
        if (after_s > 0 && after_s > answer->after_s)
            answer->after_s = after_s;
    } else if (health == HEALTH_ALIVE) {
        changed = breaker_success(&u->breaker);
    } else {
        changed = breaker_cancelled(&u->breaker, call->probe, now);
    }
    if (changed)
        log_breaker(u);
}

static void end_call(struct upstream_call *call, enum health health)
{
    struct upstream *u = call->upstream;
    const struct upstream_answer *a = call->answer;
    bool denied =
        str_is(a->code, "http_401") || str_is(a->code, "http_403") || str_is(a->code, "misconfigured");
    bool failed = health == HEALTH_FAILING || denied || a->outcome == UPSTREAM_BROKEN;
    LIST_REMOVE(call, entry);
    call->upstreams->files -= call->files;
    /* mcp_client.c logs a crash, once for all calls, and exec.c its commands. */
    if (failed && call->request->target->kind != TARGET_EXEC) {
        if (!str_is(a->code, "crashed"))
            upstream_call_log_failure(call, a->code, a->detail);
        else if (u)
            remember_error(u, a->detail);
    }
    if (!u)
        return;
    u->in_flight--;
    upstream_user_called(u);
    update_breaker(u, call, health);
    if (u->queue.count || u->leaving)
        upstream_schedule(u);
}

static void finish(struct upstream_call *call)
{
    end_call(call, health_shown_by(call->answer));
    call->done(call->owner);
}

/* Of a call under way. A server that we started has its pipes in any case, and exec.c bounds commands. */
static uint32_t files_of(const struct upstream_call *call)
{
    bool to_server = call->request->target->kind == TARGET_MCP;
    bool over_http = call->spec && call->spec->kind == UPSTREAM_HTTP;
    return call->request->target->kind == TARGET_HTTP || (to_server && over_http);
}

static enum upstream_call_state begin(struct upstream_call *call)
{
    enum upstream_call_state state = UPSTREAM_DONE;
    call->upstreams->files += call->files = files_of(call);
    LIST_INSERT_HEAD(&call->upstreams->calls[hash_owner(call->owner)], call, entry);
    call->began_ms = upstream_now_ms();
    if (call->upstream) {
        call->upstream->in_flight++;
        call->upstream->calls++;
    }
    switch (call->request->target->kind) {
    case TARGET_MCP:
        assert(call->upstream); /* find_upstream */
        state = mcp_client_call(call->upstream->mcp, call);
        break;
    case TARGET_HTTP:
        state = http_tool_call(call);
        break;
    case TARGET_EXEC:
        state = exec_call(call);
        break;
    }
    if (state == UPSTREAM_DONE)
        end_call(call, health_shown_by(call->answer));
    return state;
}

/* ---- queues ---- */

bool call_queue_has_room(const struct call_queue *queue, uid_t user, uint32_t max)
{
    const struct upstream_call *other;
    uint32_t held = 0;
    TAILQ_FOREACH (other, &queue->calls, queue_entry)
        held += other->request->user == user;
    return share_leaves_room(queue->count, held, 1, max);
}

void call_queue_add(struct call_queue *queue, struct upstream_call *call)
{
    TAILQ_INSERT_TAIL(&queue->calls, call, queue_entry);
    queue->count++;
}

void call_queue_remove(struct call_queue *queue, struct upstream_call *call)
{
    TAILQ_REMOVE(&queue->calls, call, queue_entry);
    queue->count--;
}

/* Users take turns in the order of their ids. */
struct upstream_call *call_queue_next(struct call_queue *queue)
{
    struct upstream_call *call, *next = TAILQ_FIRST(&queue->calls);
    uid_t least = UINT32_MAX;
    TAILQ_FOREACH (call, &queue->calls, queue_entry) {
        uid_t distance = call->request->user - queue->last_user - 1; /* modulo 2^32: the last one is last */
        next = distance < least ? call : next;
        least = distance < least ? distance : least;
    }
    queue->last_user = next->request->user;
    return next;
}

static void unqueue(struct upstream_call *call)
{
    if (call->upstream)
        call_queue_remove(&call->upstream->queue, call);
    LIST_REMOVE(call, entry);
    timer_clear(&call->deadline);
    call->queued = false;
}

static void on_queue_timeout(void *owner)
{
    struct upstream_call *call = owner;
    const struct upstream_spec *spec = call->upstream->spec;
    unqueue(call);
    call->answer->after_s = BUSY_AFTER_S;
    upstream_call_refuse(call, UPSTREAM_UNAVAILABLE, "busy",
                         "takes %u call%s at once and had no room for this one within %u ms; it was not sent",
                         spec->in_flight, spec->in_flight == 1 ? "" : "s",
                         within_max_ms(call, spec->timeout_ms));
    call->done(call->owner);
}

static bool has_room(const struct upstream *u)
{
    return !u->spec->in_flight || u->in_flight < u->spec->in_flight;
}

/* Each user has a share of the files (`of` NULL) and of an upstream's calls that are under way. */
static bool leaves_room(const struct upstream_call *call, const struct upstream *of, uint32_t used,
                        uint32_t wanted, uint32_t max)
{
    const struct upstream_call *other;
    uint32_t held = 0;
    if (share_is_plenty(used, max))
        return used + wanted <= max;
    for (size_t i = 0; i < HASH_OWNERS; i++)
        LIST_FOREACH (other, &call->upstreams->calls[i], entry)
            if (!other->queued && (!of || other->upstream == of) &&
                other->request->user == call->request->user)
                held += of ? 1 : other->files;
    return share_leaves_room(used, held, wanted, max);
}

static bool is_busy(struct upstream_call *call, bool may_queue)
{
    const struct upstreams *set = call->upstreams;
    const struct upstream *u = call->upstream;
    uint32_t files = files_of(call);
    call->answer->after_s = BUSY_AFTER_S;
    if (files && set->files_max && !leaves_room(call, NULL, set->files, files, set->files_max))
        upstream_call_answer(
            call, UPSTREAM_UNAVAILABLE, "busy",
            "too many calls are under way for the gateway's limit of open files, which leaves "
            "%u to them; this call was not sent",
            set->files_max);
    else if (u && !u->spec->in_flight && !leaves_room(call, u, u->in_flight, 1, UPSTREAM_IN_FLIGHT))
        upstream_call_refuse(
            call, UPSTREAM_UNAVAILABLE, "busy",
            "has %u calls under way, and the rest of the %u that it takes at once is for others; "
            "this call was not sent",
            u->in_flight, UPSTREAM_IN_FLIGHT);
    else if (u && may_queue && u->spec->in_flight &&
             !call_queue_has_room(&u->queue, call->request->user, UPSTREAM_QUEUED))
        upstream_call_answer(call, UPSTREAM_UNAVAILABLE, "busy",
                             "%u calls wait for the server '" STR_FMT "', which %s, and the rest "
                             "of the %u that may wait is for others; this call was not sent",
                             u->queue.count, STR_ARG(u->spec->name), service(call), UPSTREAM_QUEUED);
    else
        call->answer->after_s = -1;
    return call->answer->after_s >= 0;
}

/* A probe does not queue behind calls that may hang. */
static enum upstream_call_state admit(struct upstream_call *call, bool may_queue)
{
    struct upstream *u = call->upstream;
    if (is_busy(call, may_queue))
        return UPSTREAM_DONE;
    enum breaker_decision decision = breaker_admit(&u->breaker, upstream_now_ms());
    if (decision == BREAKER_REJECT) {
        call->answer->after_s = breaker_after_s(&u->breaker, upstream_now_ms());
        return upstream_call_refuse(
            call, UPSTREAM_UNAVAILABLE, "breaker_open",
            "failed %u time%s in a row (last: %s); calls to it are paused, and this one was "
            "not sent",
            u->breaker.failures, u->breaker.failures == 1 ? "" : "s", u->last_error);
    }
    call->probe = decision == BREAKER_PROBE;
    if (call->probe)
        log_breaker(u);
    if (call->probe || !may_queue || (!u->queue.count && has_room(u)))
        return begin(call);
    LIST_INSERT_HEAD(&u->set->calls[hash_owner(call->owner)], call, entry);
    call_queue_add(&u->queue, call);
    call->queued = true;
    timer_set(&call->deadline, u->set->loop, within_max_ms(call, u->spec->timeout_ms), on_queue_timeout,
              call);
    return UPSTREAM_PENDING;
}

void upstream_start_queued(struct upstream *u)
{
    while (u->queue.count && has_room(u)) {
        struct upstream_call *next = call_queue_next(&u->queue);
        unqueue(next);
        if (admit(next, false) == UPSTREAM_DONE)
            next->done(next->owner);
    }
}

/* False, with the answer: the target names an upstream that cannot run it. */
static bool find_upstream(struct upstream_call *call)
{
    const struct target *target = call->request->target;
    if (!target->upstream.len && target->kind != TARGET_MCP)
        return true;
    struct upstream *u = call->upstream = upstream_find(call->upstreams, target->upstream);
    const char *problem = NULL;
    call->spec = u ? u->spec : NULL;
    if (!u)
        upstream_call_answer(call, UPSTREAM_UNAVAILABLE, "not_configured",
                             "the server '" STR_FMT "', which %s, is not in the gateway's configuration",
                             STR_ARG(target->upstream), service(call));
    else if (target->kind == TARGET_MCP && !u->mcp)
        problem = "is not an MCP server";
    else if (target->kind == TARGET_HTTP && !u->spec->url.len)
        problem = "has no address";
    if (problem)
        upstream_call_answer(call, UPSTREAM_UNAVAILABLE, "not_configured",
                             "the server '" STR_FMT "' is configured, but cannot run this tool: it %s",
                             STR_ARG(target->upstream), problem);
    if (!u || problem)
        return false;
    u = call->upstream = upstream_of_user(u, call);
    call->spec = u ? u->spec : NULL;
    return u != NULL;
}

void upstreams_limit_files(struct upstreams *set, uint32_t files)
{
    if (set)
        set->files_max = files ? files : 1;
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
    struct upstream_call *call = ARENA_NEW(arena, struct upstream_call);
    *answer = (struct upstream_answer){.after_s = -1};
    *call = (struct upstream_call){.upstreams = set,
                                   .loop = set->loop,
                                   .request = request,
                                   .arena = arena,
                                   .answer = answer,
                                   .finish = finish,
                                   .done = done,
                                   .owner = owner};
    if (!find_upstream(call))
        return UPSTREAM_DONE;
    if (call->upstream)
        return admit(call, true);
    return is_busy(call, false) ? UPSTREAM_DONE : begin(call);
}

static void on_delay_over(void *owner)
{
    struct upstream_call *delay = owner;
    unqueue(delay);
    delay->done(delay->owner);
}

/* A queued call without an upstream. */
void upstream_delay(struct upstreams *set, uint32_t ms, struct arena *arena, upstream_done *done, void *owner)
{
    struct upstream_call *delay = ARENA_NEW(arena, struct upstream_call);
    *delay = (struct upstream_call){.queued = true, .done = done, .owner = owner};
    LIST_INSERT_HEAD(&set->calls[hash_owner(owner)], delay, entry);
    timer_set(&delay->deadline, set->loop, ms, on_delay_over, delay);
}

void upstream_reply(struct upstreams *set, void *owner, struct str result)
{
    struct upstream_call *call;
    LIST_FOREACH (call, &set->calls[hash_owner(owner)], entry)
        if (call->owner == owner && call->reply) {
            call->reply(call, result);
            return;
        }
}

void upstream_cancel(struct upstreams *set, void *owner)
{
    struct upstream_call *next;
    for (struct upstream_call *call = LIST_FIRST(&set->calls[hash_owner(owner)]); call; call = next) {
        next = LIST_NEXT(call, entry);
        if (call->owner != owner)
            continue;
        if (call->queued) {
            unqueue(call);
            continue;
        }
        end_call(call, HEALTH_UNKNOWN);
        if (call->stop)
            call->stop(call);
    }
}
