/*
 * The life of an MCP server: started, initialised (mcp_handshake.c), up, dead,
 * restarted with backoff, down. A transport is made and freed in a turn of its
 * own (on_soon), never inside one of its hooks.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/child.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdio.h>
#include <stdlib.h>

static const struct mcp_transport_hooks hooks;

static void on_start_timeout(void *owner)
{
    struct mcp_client *client = owner;
    client->was_slow = true;
    mcp_client_fail(client, "it was not ready within %u ms%s", mcp_client_start_ms(client),
                    client->open ? " (no response to the handshake or to tools/list)" : "");
}

static void start_now(struct mcp_client *client)
{
    client->start_wanted = false;
    client->starts++;
    client->kind = client->spec->kind == UPSTREAM_HTTP ? &mcp_transport_http : &mcp_transport_stdio;
    client->transport = client->kind->make(client->loop, client->spec, &hooks, client);
    timer_set(&client->start_deadline, client->loop, mcp_client_start_ms(client), on_start_timeout, client);
    client->kind->open(client->transport);
}

/* Passes over our own requests. */
static struct pending_request *first_call(const struct pending_list *list)
{
    struct pending_request *pending = TAILQ_FIRST(list);
    while (pending && !pending->call)
        pending = TAILQ_NEXT(pending, entry);
    return pending;
}

static void refuse_waiting(struct mcp_client *client)
{
    struct pending_request *pending;
    while ((pending = first_call(&client->pending.waiting)))
        mcp_call_unavailable(pending);
}

/* Waits for pending calls, then for the transport to close, then reports. */
static void continue_stopping(struct mcp_client *client)
{
    if (!client->ready)
        refuse_waiting(client);
    if (first_call(&client->pending.sent) || first_call(&client->pending.waiting))
        return;
    if (!client->transport) {
        client->state = MCP_STOPPED;
        client->hooks->stopped(client->owner);
    } else if (client->state != MCP_STOPPING) {
        client->ready = false;
        mcp_client_set_state(client, MCP_STOPPING);
        client->kind->close(client->transport);
    }
}

static void on_soon(void *owner)
{
    struct mcp_client *client = owner;
    if (client->closed_transport)
        client->kind->free(client->closed_transport);
    client->closed_transport = NULL;
    if (client->start_wanted && !client->transport)
        start_now(client);
    if (client->reported_state != client->state) {
        client->reported_state = client->state;
        client->hooks->state(client->owner);
    }
    if (client->stopping)
        continue_stopping(client);
}

void mcp_client_stop(struct mcp_client *client)
{
    client->stopping = true;
    client->start_wanted = false;
    timer_clear(&client->restart);
    mcp_client_schedule(client);
}

static uint32_t count_of(const struct mcp_client *client, enum upstream_list which)
{
    const struct tool_list *list = client->lists[which].list;
    return list ? tool_list_array(list)->len : 0;
}

static void become_up(struct mcp_client *client)
{
    timer_clear(&client->start_deadline);
    client->ready = client->has_started = true;
    client->up_us = clock_mono_us();
    client->error[0] = '\0';
    log_event(LOG_INFO, "upstream_up", LOG_STR("upstream", client->spec->name),
              LOG_TEXT("server", client->server), LOG_TEXT("protocol", client->version),
              LOG_NUM("tools", count_of(client, UPSTREAM_TOOLS)));
    mcp_client_set_state(client, MCP_UP);
    mcp_call_send_waiting(client);
}

static void on_restart(void *owner)
{
    struct mcp_client *client = owner;
    if (client->spec->lazy && !first_call(&client->pending.waiting))
        mcp_client_set_state(client, MCP_STOPPED);
    else
        mcp_client_start_soon(client);
}

/* With jitter, so that the daemons of one host do not restart their servers at the same time. One that was
 * too slow waits until the process before it is gone. */
static uint32_t backoff_ms(const struct mcp_client *client)
{
    uint32_t start_ms = mcp_client_start_ms(client), ms = MCP_BACKOFF_FIRST_MS;
    uint32_t most = client->was_slow ? UPSTREAM_RETRY_MS : MCP_BACKOFF_MAX_MS;
    if (client->was_slow && start_ms > ms)
        ms = start_ms < CHILD_KILL_MS ? start_ms : CHILD_KILL_MS;
    for (uint32_t failures = client->failures; failures > 1 && ms < most; failures--)
        ms *= 2;
    ms = ms < most ? ms : most;
    return ms - ms / 8 + (uint32_t)(hash_random() % (ms / 4));
}

static void plan_restart(struct mcp_client *client, const char *why, struct str last_words)
{
    if (client->up_us && clock_mono_us() - client->up_us >= (int64_t)MCP_STEADY_MS * 1000)
        client->failures = 0;
    client->up_us = 0;
    client->failures++;
    client->has_started = true;
    log_event(LOG_WARN, "upstream_failed", LOG_STR("upstream", client->spec->name), LOG_TEXT("why", why),
              LOG_STR("last_words", last_words), LOG_NUM("failures", client->failures));
    bool down = client->failures >= UPSTREAM_DOWN_AFTER;
    uint32_t ms = down ? UPSTREAM_RETRY_MS : backoff_ms(client);
    client->was_slow = false;
    client->next_us = clock_mono_us() + (int64_t)ms * 1000;
    timer_set(&client->restart, client->loop, ms, on_restart, client);
    if (down)
        log_event(LOG_WARN, "upstream_down", LOG_STR("upstream", client->spec->name),
                  LOG_NUM("failures", client->failures), LOG_TEXT("why", client->error),
                  LOG_NUM("again_ms", ms));
    mcp_client_set_state(client, down ? MCP_DOWN : MCP_WAITING);
}

/* Ends every sent call; waiting ones wait for the restart unless the server is down. Must come last: a
 * callback may call anything but mcp_client_free. */
static void fail(struct mcp_client *client, const char *why, struct str quoted)
{
    struct arena *arena = arena_new(); /* `why` and `quoted` may belong to the transport */
    struct pending_request *pending;
    why = arena_dup(arena, str_cut(str_of(why), MCP_ERROR_MAX_BYTES / 2 - 1)).at;
    quoted = arena_dup(arena, str_cut(quoted, MCP_QUOTE_MAX_BYTES));
    snprintf(client->error, sizeof(client->error), "%s%s" STR_FMT "%s", why, quoted.len ? ": \"" : "",
             STR_ARG(str_cut(quoted, MCP_ERROR_MAX_BYTES / 2 - 8)), quoted.len ? "\"" : "");
    client->closed_transport = client->transport;
    client->transport = NULL;
    client->open = client->ready = false;
    timer_clear(&client->start_deadline);
    timer_clear(&client->relisten);
    mcp_lists_clear(client);
    mcp_subscriptions_lost(client);
    client->abandoned = (struct abandoned_calls){0};
    mcp_client_schedule(client);
    if (!client->stopping)
        plan_restart(client, why, quoted);
    while ((pending = TAILQ_FIRST(&client->pending.sent)))
        if (pending->call)
            mcp_call_crashed(pending, why, quoted);
        else
            pending_remove(&client->pending, pending);
    if (client->state == MCP_DOWN || client->stopping)
        refuse_waiting(client);
    arena_free(arena);
}

static void on_opened(void *owner)
{
    struct mcp_client *client = owner;
    if (!client->transport || client->open)
        return;
    client->open = true;
    mcp_handshake_start(client);
}

static void on_message(void *owner, uint64_t about, struct str text)
{
    struct mcp_client *client = owner;
    if (!client->transport)
        return;
    struct mcp_message message = mcp_message_scan(text);
    uint64_t id = mcp_message_own_id(message.id);
    struct pending_request *pending = pending_find(&client->pending, id);
    switch (message.kind) {
    case MCP_MESSAGE_RESPONSE:
        if (pending) {
            pending->on_response(client, pending, &message);
            break;
        }
        abandoned_calls_remove(&client->abandoned, id);
        mcp_client_ignore(client, "a response to no pending request", STR_NONE);
        break;
    case MCP_MESSAGE_REQUEST:
        mcp_notifications_request(client, about, &message);
        break;
    case MCP_MESSAGE_NOTIFICATION:
        mcp_notifications_notify(client, about, &message);
        break;
    case MCP_MESSAGE_MALFORMED:
        mcp_client_ignore(client, message.problem, STR_NONE);
        if (pending && pending->call)
            mcp_call_broken(pending, "invalid_json", message.problem);
        break;
    case MCP_MESSAGE_NOISE:
        if (str_trim(text).len)
            mcp_client_ignore(client, message.problem, text);
        break;
    }
}

/* Our own request gets the failure as a malformed response, for log and status. */
static void on_failed(void *owner, uint64_t id, const struct mcp_failure *failure)
{
    struct mcp_client *client = owner;
    char problem[MCP_ERROR_MAX_BYTES];
    struct pending_request *pending = NULL;
    if (client->transport)
        pending = id ? pending_find(&client->pending, id) : mcp_client_subject(client, 0);
    if (!pending)
        return;
    if (pending->call) {
        mcp_call_failed(pending, failure);
        return;
    }
    snprintf(problem, sizeof(problem), failure->quoted.len ? "%.600s: \"" STR_FMT "\"" : "%s", failure->why,
             STR_ARG(failure->quoted));
    const struct mcp_message message = {.kind = MCP_MESSAGE_MALFORMED, .problem = problem};
    bool rejected = failure->outcome == UPSTREAM_REFUSED || failure->outcome == UPSTREAM_BROKEN;
    if (!client->ready && !rejected)
        mcp_client_fail(client, "%s", problem); /* unreachable: the modern handshake would not help */
    else
        pending->on_response(client, pending, &message);
}

static void on_closed(void *owner, const char *why, struct str quoted)
{
    struct mcp_client *client = owner;
    if (client->transport)
        fail(client, why, quoted);
}

static const struct mcp_transport_hooks hooks = {on_opened, on_message, on_failed, on_closed};

static void on_request_timeout(struct mcp_client *client, struct pending_request *pending)
{
    static const struct mcp_message late = {.kind = MCP_MESSAGE_MALFORMED,
                                            .problem = "there was no response in time"};
    if (pending->call)
        mcp_call_timed_out(pending);
    else
        pending->on_response(client, pending, &late);
}

/* Ends at most one request, since a callback may end others. *next: the earliest deadline that is left. */
static bool end_one(struct mcp_client *client, const struct pending_list *list, int64_t now, int64_t *next)
{
    struct pending_request *pending;
    TAILQ_FOREACH (pending, list, entry) {
        if (pending->deadline_us && pending->deadline_us <= now) {
            on_request_timeout(client, pending);
            return true;
        }
        if (pending->deadline_us && (!*next || pending->deadline_us < *next))
            *next = pending->deadline_us;
    }
    return false;
}

static void on_deadline(void *owner)
{
    struct mcp_client *client = owner;
    int64_t now = clock_mono_us(), next;
    client->deadline_us = 0;
    do
        next = 0;
    while (end_one(client, &client->pending.sent, now, &next) ||
           end_one(client, &client->pending.waiting, now, &next));
    if (next)
        mcp_client_watch_deadline(client, next);
}

static const struct mcp_client_life life = {on_soon, on_deadline, fail, become_up};

struct mcp_client *mcp_client_new(struct loop *loop, const struct upstream_spec *spec,
                                  const struct mcp_client_hooks *client_hooks, void *owner)
{
    struct mcp_client *client = calloc(1, sizeof(*client));
    if (!client)
        abort();
    client->life = &life;
    client->loop = loop;
    client->spec = spec;
    client->hooks = client_hooks;
    client->owner = owner;
    client->log_level = -1;
    LIST_INIT(&client->subscriptions);
    pending_init(&client->pending);
    for (size_t i = 0; i < UPSTREAM_LISTS; i++)
        client->lists[i].client = client;
    return client;
}

void mcp_client_free(struct mcp_client *client)
{
    struct timer *const timers[] = {&client->deadline, &client->start_deadline, &client->restart,
                                    &client->soon, &client->relisten};
    for (size_t i = 0; i < sizeof(timers) / sizeof(*timers); i++)
        timer_clear(timers[i]);
    if (client->transport)
        client->kind->free(client->transport);
    if (client->closed_transport)
        client->kind->free(client->closed_transport);
    mcp_lists_clear(client);
    mcp_subscriptions_free(client);
    pending_clear(&client->pending);
    for (size_t i = 0; i < UPSTREAM_LISTS; i++)
        tool_list_unref(client->lists[i].list);
    arena_free(client->scratch);
    buf_clear(&client->out);
    free(client);
}

struct tool_list *mcp_client_list(const struct mcp_client *client, enum upstream_list list)
{
    return client->lists[list].list;
}

void mcp_client_view(const struct mcp_client *client, struct mcp_client_status *status)
{
    static const char *const names[] = {"stopped", "starting", "up", "waiting", "down", "stopping"};
    int64_t left = (client->next_us - clock_mono_us()) / 1000;
    const struct pending_request *pending;
    *status = (struct mcp_client_status){
        .name = names[client->state],
        .has_started = client->has_started,
        .error = str_of(client->error),
        .failures = client->failures,
        .next_ms = timer_is_set(&client->restart) ? (left > 0 ? left : 0) : -1,
        .ignored = client->ignored,
        .starts = client->starts,
        .pid = client->transport && client->kind->pid ? client->kind->pid(client->transport) : 0,
        .version = str_of(client->version),
        .server = str_of(client->server),
    };
    TAILQ_FOREACH (pending, &client->pending.waiting, entry) {
        status->queued++;
    }
}
