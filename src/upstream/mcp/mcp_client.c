/*
 * One MCP server's life: started, greeted (mcp_handshake.c), up, dead, started
 * again with patience, down. Whatever needs a transport to be freed or made
 * happens in a turn of its own (on_soon), never inside one of its hooks.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define NOISE_READ_BYTES  4096u /* of a line, for secrets */
#define NOISE_SHOWN_BYTES 80u

static const char *const state_names[] = {"stopped", "starting", "up", "waiting", "down", "stopping"};

void mcp_client_set_state(struct mcp_client *mcp, enum mcp_client_state state)
{
    if (mcp->state == state)
        return;
    mcp->state = state;
    mcp_client_schedule(mcp); /* and told: never inside a function that was called */
}

struct arena *mcp_client_scratch(struct mcp_client *mcp)
{
    if (mcp->scratch)
        arena_free(mcp->scratch);
    mcp->scratch = arena_new();
    return mcp->scratch;
}

struct str mcp_client_redact(const struct mcp_client *mcp, struct arena *arena, struct str text)
{
    return mcp->transport && mcp->kind->mask ? mcp->kind->mask(mcp->transport, arena, text) : text;
}

static void log_noise(const struct mcp_client *mcp, const char *what, struct str text, uint64_t held)
{
    struct arena *arena = arena_new();
    struct str shown =
        str_cut(mcp_client_redact(mcp, arena, str_cut(text, NOISE_READ_BYTES)), NOISE_SHOWN_BYTES);
    if (shown.len)
        log_event(LOG_INFO, "upstream_message_ignored", LOG_STR("upstream", mcp->spec->name),
                  LOG_TEXT("why", what), LOG_STR("begins", shown), LOG_NUM("not_logged", held));
    else
        log_event(LOG_INFO, "upstream_message_ignored", LOG_STR("upstream", mcp->spec->name),
                  LOG_TEXT("why", what), LOG_NUM("not_logged", held));
    arena_free(arena);
}

void mcp_client_ignore(struct mcp_client *mcp, const char *what, struct str text)
{
    uint64_t held;
    mcp->ignored++;
    if (rate_limit_allow(&mcp->noise, MCP_NOISE_PER_S, &held))
        log_noise(mcp, what, text, held);
}

/* ---- to begin, and to end --------------------------------------------------- */

static const struct mcp_transport_hooks hooks;

static void on_soon(void *owner);

void mcp_client_schedule(struct mcp_client *mcp)
{
    timer_set(&mcp->soon, mcp->loop, 0, on_soon, mcp);
}

static void on_start_takes_too_long(void *owner)
{
    struct mcp_client *mcp = owner;
    mcp_client_fail(mcp, "it was not ready within %u ms%s", mcp->spec->start_ms,
                    mcp->open ? " (it did not answer the handshake, or not list its tools)" : "");
}

uint32_t mcp_client_start_ms(const struct mcp_client *mcp)
{
    return mcp->spec->start_ms ? mcp->spec->start_ms : UPSTREAM_START_MS;
}

static void begin(struct mcp_client *mcp)
{
    mcp->wanted = false;
    mcp->starts++;
    mcp->kind = mcp->spec->kind == UPSTREAM_HTTP ? &mcp_transport_http : &mcp_transport_stdio;
    mcp->transport = mcp->kind->make(mcp->loop, mcp->spec, &hooks, mcp);
    timer_set(&mcp->starting, mcp->loop, mcp_client_start_ms(mcp), on_start_takes_too_long, mcp);
    mcp->kind->open(mcp->transport);
}

static struct pending *first_call(const struct pending_list *list)
{
    struct pending *pending = list->first;
    while (pending && !pending->run)
        pending = pending->next;
    return pending;
}

static void refuse_waiting(struct mcp_client *mcp)
{
    struct pending *pending;
    while ((pending = first_call(&mcp->pendings.waiting)))
        mcp_call_unavailable(mcp, pending);
}

/* Those that are still to be answered are; then it is closed, and when it has gone, told. */
static void go_on_stopping(struct mcp_client *mcp)
{
    if (!mcp->ready)
        refuse_waiting(mcp);
    if (first_call(&mcp->pendings.sent) || first_call(&mcp->pendings.waiting))
        return;
    if (mcp->transport && mcp->state == MCP_STOPPING)
        return; /* on its way */
    if (mcp->transport) {
        mcp->ready = false;
        mcp_client_set_state(mcp, MCP_STOPPING);
        mcp->kind->close(mcp->transport);
        return;
    }
    mcp->state = MCP_STOPPED;
    mcp->hooks->stopped(mcp->owner);
}

static void on_soon(void *owner)
{
    struct mcp_client *mcp = owner;
    if (mcp->dying)
        mcp->kind->free(mcp->dying);
    mcp->dying = NULL;
    if (mcp->wanted && !mcp->transport)
        begin(mcp);
    if (mcp->told != mcp->state) {
        mcp->told = mcp->state;
        mcp->hooks->state(mcp->owner);
    }
    if (mcp->stopping)
        go_on_stopping(mcp);
}

static void want(struct mcp_client *mcp)
{
    timer_clear(&mcp->again);
    mcp->wanted = true;
    mcp_client_set_state(mcp, MCP_STARTING);
    mcp_client_schedule(mcp);
}

void mcp_client_start(struct mcp_client *mcp)
{
    bool runs = mcp->state == MCP_STARTING || mcp->state == MCP_UP;
    if (!runs && !mcp->stopping)
        want(mcp);
}

void mcp_client_stop(struct mcp_client *mcp)
{
    mcp->stopping = true;
    mcp->wanted = false;
    timer_clear(&mcp->again);
    mcp_client_schedule(mcp);
}

/* ---- up, and down ----------------------------------------------------------- */

void mcp_client_up(struct mcp_client *mcp)
{
    timer_clear(&mcp->starting);
    mcp->ready = mcp->settled = true;
    mcp->up_us = clock_mono_us();
    mcp->error[0] = '\0';
    log_event(LOG_INFO, "upstream_up", LOG_STR("upstream", mcp->spec->name), LOG_TEXT("server", mcp->server),
              LOG_TEXT("protocol", mcp->version),
              LOG_NUM("tools", mcp->offer ? tool_list_array(mcp->offer)->len : 0));
    mcp_client_set_state(mcp, MCP_UP);
    mcp_call_send_waiting(mcp);
}

static void on_again(void *owner)
{
    struct mcp_client *mcp = owner;
    if (mcp->spec->lazy && !first_call(&mcp->pendings.waiting))
        mcp_client_set_state(mcp, MCP_STOPPED);
    else
        want(mcp);
}

/* Doubled with each failure, a quarter of it by chance: many daemons on one host start their servers apart.
 */
static uint32_t backoff_ms(uint32_t failures)
{
    uint32_t ms = MCP_BACKOFF_FIRST_MS;
    while (failures-- > 1 && ms < MCP_BACKOFF_MAX_MS)
        ms *= 2;
    ms = ms < MCP_BACKOFF_MAX_MS ? ms : MCP_BACKOFF_MAX_MS;
    return ms - ms / 8 + (uint32_t)(hash_random() % (ms / 4));
}

static void wait_and_try(struct mcp_client *mcp)
{
    bool down = mcp->failures >= UPSTREAM_DOWN_AFTER;
    uint32_t ms = down ? UPSTREAM_RETRY_MS : backoff_ms(mcp->failures);
    mcp->next_us = clock_mono_us() + (int64_t)ms * 1000;
    timer_set(&mcp->again, mcp->loop, ms, on_again, mcp);
    if (down)
        log_event(LOG_WARN, "upstream_down", LOG_STR("upstream", mcp->spec->name),
                  LOG_NUM("failures", mcp->failures), LOG_TEXT("why", mcp->error), LOG_NUM("again_ms", ms));
    mcp_client_set_state(mcp, down ? MCP_DOWN : MCP_WAITING);
}

static void drop_transport(struct mcp_client *mcp)
{
    mcp->dying = mcp->transport;
    mcp->transport = NULL;
    mcp->open = mcp->ready = false;
    timer_clear(&mcp->starting);
    timer_clear(&mcp->relist);
    timer_clear(&mcp->relisten);
    mcp_tools_clear(&mcp->listing);
    mcp->abandoned_calls = (struct abandoned_calls){0}; /* what it was about ended with it */
    mcp_client_schedule(mcp);
}

static void count_failure(struct mcp_client *mcp)
{
    if (mcp->up_us && clock_mono_us() - mcp->up_us >= (int64_t)MCP_STEADY_MS * 1000)
        mcp->failures = 0;
    mcp->up_us = 0;
    mcp->failures++;
    mcp->settled = true;
}

/* Our own questions die silently, the calls that were sent with an answer; those that wait for it wait on,
 * unless it is down. The last thing that is done: whoever is told may call anything but mcp_client_free. */
static void end_pending(struct mcp_client *mcp, const char *why, struct str quoted)
{
    struct pending *pending;
    while ((pending = mcp->pendings.sent.first))
        if (pending->run)
            mcp_call_died(mcp, pending, why, quoted);
        else
            pending_remove(&mcp->pendings, pending);
    if (mcp->state == MCP_DOWN || mcp->stopping)
        refuse_waiting(mcp);
}

static void fail(struct mcp_client *mcp, const char *why, struct str quoted)
{
    char words[MCP_ERROR_MAX_BYTES / 2], last[MCP_QUOTE_MAX_BYTES];
    quoted = str_cut(quoted, sizeof(last));
    if (quoted.len)
        memcpy(last, quoted.at, quoted.len);
    snprintf(words, sizeof(words), "%s", why);
    snprintf(mcp->error, sizeof(mcp->error), "%s%s" STR_FMT "%s", words, quoted.len ? ": \"" : "",
             STR_ARG(str_cut(quoted, MCP_ERROR_MAX_BYTES / 2 - 8)), quoted.len ? "\"" : "");
    drop_transport(mcp);
    if (mcp->stopping) {
        end_pending(mcp, words, (struct str){last, quoted.len});
        return;
    }
    count_failure(mcp);
    log_event(LOG_WARN, "upstream_failed", LOG_STR("upstream", mcp->spec->name), LOG_TEXT("why", words),
              LOG_STR("last_words", quoted), LOG_NUM("failures", mcp->failures));
    wait_and_try(mcp);
    end_pending(mcp, words, (struct str){last, quoted.len});
}

void mcp_client_fail(struct mcp_client *mcp, const char *format, ...)
{
    char why[MCP_ERROR_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    if (mcp->transport)
        fail(mcp, why, STR_NONE);
}

/* ---- what the transport tells ------------------------------------------------ */

static void on_opened(void *owner)
{
    struct mcp_client *mcp = owner;
    if (!mcp->transport || mcp->open)
        return;
    mcp->open = true;
    mcp_handshake_start(mcp);
}

static void hear_answer(struct mcp_client *mcp, const struct mcp_message *line)
{
    struct pending *pending = pending_find(&mcp->pendings, mcp_message_own_id(line->id));
    if (pending) {
        pending->heard(mcp, pending, line);
        return;
    }
    abandoned_calls_remove(&mcp->abandoned_calls, mcp_message_own_id(line->id));
    mcp_client_ignore(mcp, "an answer to what nobody asked, or not any more", STR_NONE);
}

/* A line that is none, but tells for whom it was. */
static void hear_broken(struct mcp_client *mcp, const struct mcp_message *line)
{
    struct pending *pending = pending_find(&mcp->pendings, mcp_message_own_id(line->id));
    mcp_client_ignore(mcp, line->trouble, STR_NONE);
    if (pending && pending->run)
        mcp_call_broken(mcp, pending, "invalid_json", line->trouble);
}

static void on_message(void *owner, uint64_t about, struct str message)
{
    struct mcp_client *mcp = owner;
    if (!mcp->transport)
        return;
    struct mcp_message line = mcp_message_scan(message);
    switch (line.kind) {
    case MCP_MESSAGE_RESPONSE:
        hear_answer(mcp, &line);
        break;
    case MCP_MESSAGE_REQUEST:
        mcp_notifications_request(mcp, about, &line);
        break;
    case MCP_MESSAGE_NOTIFICATION:
        mcp_notifications_notify(mcp, about, &line);
        break;
    case MCP_MESSAGE_MALFORMED:
        hear_broken(mcp, &line);
        break;
    case MCP_MESSAGE_NOISE:
        if (str_trim(message).len)
            mcp_client_ignore(mcp, line.trouble, message);
        break;
    }
}

/* Our own question without an answer is like one that was answered by nothing. */
static void on_failed(void *owner, uint64_t id, enum upstream_outcome how, const char *code, const char *why,
                      struct str quoted, int64_t after_s)
{
    struct mcp_client *mcp = owner;
    char words[MCP_ERROR_MAX_BYTES]; /* of our own question: for log and status */
    struct pending *pending = !mcp->transport ? NULL
                              : id            ? pending_find(&mcp->pendings, id)
                                              : mcp_notifications_subject(mcp, 0);
    snprintf(words, sizeof(words), quoted.len ? "%.600s: \"" STR_FMT "\"" : "%s", why, STR_ARG(quoted));
    const struct mcp_message refused = {.kind = MCP_MESSAGE_MALFORMED, .trouble = words};
    bool no = how == UPSTREAM_REFUSED || how == UPSTREAM_BROKEN;
    if (pending && pending->run)
        mcp_call_failed(mcp, pending, how, code, why, quoted, after_s);
    else if (pending && !mcp->ready && !no)
        mcp_client_fail(mcp, "%s", words); /* it wasn't asked: to ask in another way helps nothing */
    else if (pending)
        pending->heard(mcp, pending, &refused);
}

static void on_closed(void *owner, const char *why, struct str quoted)
{
    struct mcp_client *mcp = owner;
    if (mcp->transport)
        fail(mcp, why, quoted);
}

static const struct mcp_transport_hooks hooks = {on_opened, on_message, on_failed, on_closed};

/* ---- deadlines: one timer for all ---------------------------------------------- */

static bool is_over(struct mcp_client *mcp, struct pending *pending, int64_t now)
{
    if (!pending->deadline_us || pending->deadline_us > now)
        return false;
    if (pending->run)
        mcp_call_timed_out(mcp, pending);
    else {
        const struct mcp_message late = {.kind = MCP_MESSAGE_MALFORMED,
                                         .trouble = "it was not answered in time"};
        pending->heard(mcp, pending, &late);
    }
    return true;
}

/* One at a time: whoever is told may end others. *next: the earliest of those that are left, 0: none. */
static bool end_one(struct mcp_client *mcp, const struct pending_list *list, int64_t now, int64_t *next)
{
    for (struct pending *pending = list->first; pending; pending = pending->next) {
        if (is_over(mcp, pending, now))
            return true;
        if (pending->deadline_us && (!*next || pending->deadline_us < *next))
            *next = pending->deadline_us;
    }
    return false;
}

static void on_deadline(void *owner)
{
    struct mcp_client *mcp = owner;
    int64_t now = clock_mono_us(), next;
    mcp->armed_us = 0;
    do
        next = 0;
    while (end_one(mcp, &mcp->pendings.sent, now, &next) || end_one(mcp, &mcp->pendings.waiting, now, &next));
    if (next)
        mcp_client_watch_deadline(mcp, next);
}

void mcp_client_watch_deadline(struct mcp_client *mcp, int64_t us)
{
    if (mcp->armed_us && mcp->armed_us <= us)
        return;
    int64_t ms = (us - clock_mono_us()) / 1000 + 1;
    mcp->armed_us = us;
    timer_set(&mcp->deadline, mcp->loop, ms > 0 ? (uint32_t)ms : 0, on_deadline, mcp);
}

/* ---- made, looked at, freed ------------------------------------------------------ */

struct mcp_client *mcp_client_new(struct loop *loop, const struct upstream_spec *spec,
                                  const struct mcp_client_hooks *mcp_client_hooks, void *owner)
{
    struct mcp_client *mcp = calloc(1, sizeof(*mcp));
    if (!mcp)
        abort();
    mcp->loop = loop;
    mcp->spec = spec;
    mcp->hooks = mcp_client_hooks;
    mcp->owner = owner;
    return mcp;
}

void mcp_client_free(struct mcp_client *mcp)
{
    struct timer *const timers[] = {&mcp->deadline, &mcp->starting, &mcp->again,
                                    &mcp->soon,     &mcp->relist,   &mcp->relisten};
    for (size_t i = 0; i < sizeof(timers) / sizeof(*timers); i++)
        timer_clear(timers[i]);
    if (mcp->transport)
        mcp->kind->free(mcp->transport);
    if (mcp->dying)
        mcp->kind->free(mcp->dying);
    mcp_tools_clear(&mcp->listing);
    pendings_clear(&mcp->pendings);
    tool_list_unref(mcp->offer);
    if (mcp->scratch)
        arena_free(mcp->scratch);
    buf_clear(&mcp->out);
    free(mcp);
}

struct tool_list *mcp_client_tools(const struct mcp_client *mcp)
{
    return mcp->offer;
}

void mcp_client_view(const struct mcp_client *mcp, struct mcp_client_status *view)
{
    int64_t left = (mcp->next_us - clock_mono_us()) / 1000;
    *view = (struct mcp_client_status){
        .state = mcp->state,
        .name = state_names[mcp->state],
        .has_started = mcp->settled,
        .error = str_of(mcp->error),
        .failures = mcp->failures,
        .next_ms = timer_is_set(&mcp->again) ? (left > 0 ? left : 0) : -1,
        .queued = mcp->pendings.waiting.count,
        .ignored = mcp->ignored,
        .starts = mcp->starts,
        .pid = mcp->transport && mcp->kind->pid ? mcp->kind->pid(mcp->transport) : 0,
        .version = str_of(mcp->version),
        .server = str_of(mcp->server),
    };
    for (const struct pending *pending = mcp->pendings.sent.first; pending; pending = pending->next)
        view->calls += pending->run != NULL;
}
