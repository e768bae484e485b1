/*
 * The life of an MCP server: started, initialised, up, dead, restarted with
 * backoff, down. A transport is made and freed in a turn of its own (on_soon),
 * never inside one of its hooks.
 *
 * `initialize` comes first, since some servers exit at any other first message.
 * A server that rejects it gets the modern request, server/discover. Then its
 * tools are listed (mcp_lists.c).
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/child.h"
#include "json/build.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LEGACY              "2025-11-25"
#define IGNORED_READ_BYTES  4096u /* of a message, to redact secrets */
#define IGNORED_SHOWN_BYTES 80u

static void on_soon(void *owner);

/* ---- state ------------------------------------------------------------------------ */

static void schedule(struct mcp_client *client)
{
    timer_set(&client->soon, client->loop, 0, on_soon, client);
}

static void set_state(struct mcp_client *client, enum mcp_client_state state)
{
    if (client->state == state)
        return;
    client->state = state;
    schedule(client); /* reports it */
}

struct arena *mcp_client_scratch(struct mcp_client *client)
{
    arena_free(client->scratch);
    return client->scratch = arena_new();
}

struct str mcp_client_redact(const struct mcp_client *client, struct arena *arena, struct str text)
{
    return client->transport && client->kind->redact ? client->kind->redact(client->transport, arena, text)
                                                     : text;
}

void mcp_client_ignore(struct mcp_client *client, const char *why, struct str text)
{
    uint64_t held;
    client->ignored++;
    if (!rate_limit_allow(&client->ignored_rate, MCP_IGNORED_PER_S, &held))
        return;
    struct arena *arena = arena_new();
    text = str_cut(mcp_client_redact(client, arena, str_cut(text, IGNORED_READ_BYTES)), IGNORED_SHOWN_BYTES);
    log_event(LOG_INFO, "upstream_message_ignored", LOG_STR("upstream", client->spec->name),
              LOG_TEXT("why", why), LOG_STR("begins", text), LOG_NUM("not_logged", held));
    arena_free(arena);
}

uint32_t mcp_client_start_ms(const struct mcp_client *client)
{
    return client->spec->start_ms ? client->spec->start_ms : UPSTREAM_START_MS;
}

static void start_soon(struct mcp_client *client)
{
    timer_clear(&client->restart);
    set_state(client, MCP_STARTING);
}

void mcp_client_start(struct mcp_client *client)
{
    bool runs = client->state == MCP_STARTING || client->state == MCP_UP;
    if (!runs && !client->stopping)
        start_soon(client);
}

/* ---- the handshake ------------------------------------------------------------------ */

/* Kept like a list, so that they are cached, pinned and reported as changed. */
static void take_instructions(struct mcp_client *client, struct arena *arena, struct str text)
{
    text = str_trim(mcp_client_redact(client, arena, text));
    struct json_member members[] = {json_member(STR_LIT("name"), json_string(STR_LIT("instructions"))),
                                    json_member(STR_LIT("text"), json_string(text))};
    struct json entry = json_object(arena, members, 2), list = json_array(&entry, text.len ? 1 : 0);
    mcp_list_replace(&client->lists[UPSTREAM_INSTRUCTIONS], &list);
}

/* The response to `initialize`, or to `server/discover`, which follows if that is rejected. Keeps what the
 * server may be asked for, and lists its tools. Older and unknown versions are treated as LEGACY. */
static void on_handshake(struct pending_request *pending, const struct mcp_message *message)
{
    struct mcp_client *client = pending->client;
    struct arena *arena = mcp_client_scratch(client);
    struct json result;
    pending_remove(pending);
    bool read = mcp_request_read(client, arena, message->result, &result, NULL);
    struct str why = read ? STR_LIT("it answered with a version that has no handshake")
                          : mcp_request_error(client, arena, message);
    struct str version = read ? json_str(json_get_text(&result, "protocolVersion")) : STR_NONE;
    if (!client->modern && (!read || str_is(version, MCP_MODERN))) {
        snprintf(client->error, sizeof(client->error), STR_FMT,
                 STR_ARG(str_cut(why, MCP_ERROR_MAX_BYTES / 2)));
        client->modern = true;
        if (client->kind->set_version)
            client->kind->set_version(client->transport, MCP_MODERN, true);
        mcp_request(client, "server/discover", on_handshake, 0, MCP_NO_PARAMS);
        return;
    }
    if (!read) {
        mcp_client_fail(client, "it rejects both `initialize` (%s) and `server/discover` (" STR_FMT ")",
                        client->error, STR_ARG(why));
        return;
    }
    if (client->modern && !json_array_has(json_get_text(&result, "supportedVersions"), STR_LIT(MCP_MODERN))) {
        mcp_client_fail(client, "it supports no MCP version from " LEGACY " to " MCP_MODERN);
        return;
    }
    const struct json *info =
        client->modern ? json_get_text(json_get_text(&result, "_meta"), "io.modelcontextprotocol/serverInfo")
                       : json_get_text(&result, "serverInfo");
    struct str name = json_str(json_get_text(info, "name")),
               release = json_str(json_get_text(info, "version"));
    snprintf(client->server, sizeof(client->server), STR_FMT "%s" STR_FMT, STR_ARG(str_cut(name, 60)),
             name.len && release.len ? " " : "", STR_ARG(str_cut(release, 60)));
    const struct json *capabilities = json_get_text(&result, "capabilities");
    mcp_lists_offered(client, capabilities);
    client->has_subscriptions =
        json_is_true(json_get_text(json_get_text(capabilities, "resources"), "subscribe"));
    client->has_logging = json_is(json_get_text(capabilities, "logging"), JSON_OBJECT);
    version = client->modern ? STR_LIT(MCP_MODERN) : version.len ? version : STR_LIT(LEGACY);
    snprintf(client->version, sizeof(client->version), STR_FMT,
             STR_ARG(str_cut(version, sizeof(client->version) - 1)));
    if (client->kind->set_version)
        client->kind->set_version(client->transport, client->version, client->modern);
    take_instructions(client, arena, json_str(json_get_text(&result, "instructions")));
    if (!client->modern)
        mcp_notify(client, "notifications/initialized", MCP_NO_PARAMS);
    mcp_list_fetch(&client->lists[UPSTREAM_TOOLS]);
}

void mcp_client_opened(struct mcp_client *client)
{
    if (!client->transport || client->open)
        return;
    client->open = true;
    client->modern = false;
    client->notified_before = 0;
    mcp_request(client, "initialize", on_handshake, 0,
                MCP_PARAMS(FIELD_TEXT("protocolVersion", LEGACY),
                           FIELD_RAW("capabilities", STR_LIT(MCP_CAPABILITIES)),
                           FIELD_RAW("clientInfo", STR_LIT(MCP_CLIENT_INFO))));
}

void mcp_client_up(struct mcp_client *client)
{
    const struct tool_list *tools = client->lists[UPSTREAM_TOOLS].list;
    timer_clear(&client->start_deadline);
    client->ready = client->has_started = true;
    client->up_us = clock_mono_us();
    client->error[0] = client->last_stderr[0] = '\0';
    log_event(LOG_INFO, "upstream_up", LOG_STR("upstream", client->spec->name),
              LOG_TEXT("server", client->server), LOG_TEXT("protocol", client->version),
              LOG_NUM("tools", tools ? tool_list_array(tools)->len : 0));
    set_state(client, MCP_UP);
    mcp_call_send_waiting(client);
}

/* ---- failures and restarts ------------------------------------------------------------- */

static void on_restart(void *owner)
{
    struct mcp_client *client = owner;
    if (client->spec->lazy && TAILQ_EMPTY(&client->pending.waiting))
        set_state(client, MCP_STOPPED);
    else
        start_soon(client);
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
    /* One that was too slow waits until the process before it is gone. */
    uint32_t start_ms = mcp_client_start_ms(client), ms = MCP_BACKOFF_FIRST_MS;
    uint32_t max = client->was_slow ? UPSTREAM_RETRY_MS : MCP_BACKOFF_MAX_MS;
    if (client->was_slow && start_ms > ms)
        ms = start_ms < CHILD_KILL_MS ? start_ms : CHILD_KILL_MS;
    for (uint32_t failures = client->failures; failures > 1 && ms < max; failures--)
        ms *= 2;
    ms = ms < max ? ms : max;
    /* With jitter, so that the daemons of one host do not restart their servers at the same time. */
    ms = ms - ms / 8 + (uint32_t)(hash_random() % (ms / 4));
    bool down = client->failures >= UPSTREAM_DOWN_AFTER;
    if (down)
        ms = UPSTREAM_RETRY_MS;
    client->was_slow = false;
    client->next_us = clock_mono_us() + (int64_t)ms * 1000;
    timer_set(&client->restart, client->loop, ms, on_restart, client);
    if (down)
        log_event(LOG_WARN, "upstream_down", LOG_STR("upstream", client->spec->name),
                  LOG_NUM("failures", client->failures), LOG_TEXT("why", client->error),
                  LOG_NUM("again_ms", ms));
    set_state(client, down ? MCP_DOWN : MCP_WAITING);
}

/* Ends every sent call; waiting ones wait for the restart unless the server is down. Must come last: a
 * callback may call anything but mcp_client_free. */
static void fail(struct mcp_client *client, const char *why, struct str quoted)
{
    struct arena *arena = arena_new(); /* `why` and `quoted` may belong to the transport */
    struct pending_request *pending;
    why = arena_dup(arena, str_cut(str_of(why), MCP_ERROR_MAX_BYTES / 2 - 1)).at;
    if (client->kind->last_stderr) /* also if it was too slow */
        quoted = client->kind->last_stderr(client->transport);
    quoted = arena_dup(arena, str_cut(quoted, MCP_QUOTE_MAX_BYTES));
    snprintf(
        client->last_stderr, sizeof(client->last_stderr), STR_FMT,
        STR_ARG(client->kind->last_stderr ? str_cut(quoted, sizeof(client->last_stderr) - 1) : STR_NONE));
    snprintf(client->error, sizeof(client->error), "%s%s" STR_FMT "%s", why, quoted.len ? ": \"" : "",
             STR_ARG(str_cut(quoted, MCP_ERROR_MAX_BYTES / 2 - 8)), quoted.len ? "\"" : "");
    client->closed_transport = client->transport;
    client->transport = NULL;
    client->open = client->ready = false;
    timer_clear(&client->start_deadline);
    timer_clear(&client->relisten);
    mcp_lists_lost(client);
    memset(client->abandoned, 0, sizeof(client->abandoned));
    schedule(client);
    if (!client->stopping)
        plan_restart(client, why, quoted);
    while ((pending = TAILQ_FIRST(&client->pending.sent)))
        if (pending->call)
            mcp_call_crashed(pending, why, quoted);
        else
            pending_remove(pending);
    while (client->state == MCP_DOWN && (pending = TAILQ_FIRST(&client->pending.waiting)))
        mcp_call_unavailable(pending);
    arena_free(arena);
}

void mcp_client_fail(struct mcp_client *client, const char *format, ...)
{
    char why[MCP_ERROR_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    if (client->transport)
        fail(client, why, STR_NONE);
}

static void on_start_timeout(void *owner)
{
    struct mcp_client *client = owner;
    client->was_slow = true;
    mcp_client_fail(client, "it was not ready within %u ms%s", mcp_client_start_ms(client),
                    client->open ? " (no response to the handshake or to tools/list)" : "");
}

/* ---- a turn of its own ----------------------------------------------------------------- */

static void on_soon(void *owner)
{
    struct mcp_client *client = owner;
    if (client->closed_transport)
        client->kind->free(client->closed_transport);
    client->closed_transport = NULL;
    if (client->state == MCP_STARTING && !client->transport && !client->stopping) {
        client->starts++;
        client->kind = client->spec->kind == UPSTREAM_HTTP ? &mcp_transport_http : &mcp_transport_stdio;
        timer_set(&client->start_deadline, client->loop, mcp_client_start_ms(client), on_start_timeout,
                  client);
        client->transport = client->kind->open(client->loop, client->spec, client);
    }
    if (client->reported_state != client->state) {
        client->reported_state = client->state;
        upstream_state_changed(client->upstream);
    }
    if (!client->stopping)
        return;
    if (!client->transport) {
        client->state = MCP_STOPPED;
        upstream_stopped(client->upstream);
    } else if (client->state != MCP_STOPPING) {
        client->ready = false;
        set_state(client, MCP_STOPPING);
        client->kind->close(client->transport);
    }
}

void mcp_client_stop(struct mcp_client *client)
{
    client->stopping = true;
    timer_clear(&client->restart);
    schedule(client);
}

/* ---- messages ------------------------------------------------------------------------------ */

/* What a message without an id that is ours answers: the only call, or the only request, that is pending.
 * Many servers answer notifications, too, by an error with `id: null`: until they have answered a later
 * request, an error may be about the notification. Others write their log, as JSON, to stdout. */
static struct pending_request *only_pending(struct mcp_client *client, uint64_t about,
                                            const struct mcp_message *message)
{
    struct pending_request *first = TAILQ_FIRST(&client->pending.sent);
    bool is_whole = message->kind == MCP_MESSAGE_RESPONSE;
    if (!about && is_whole && (!message->has_version || client->notified_before))
        return NULL;
    if (!about && first && !first->call && !TAILQ_NEXT(first, entry) && !first->subscription)
        return first;
    return pending_subject(client, about);
}

static void take_message(struct mcp_client *client, uint64_t about, struct mcp_message message,
                         struct str text)
{
    uint64_t id = mcp_message_own_id(message.id);
    struct pending_request *pending = pending_find(client, id);
    bool answers = message.kind == MCP_MESSAGE_RESPONSE || message.is_response;
    if (!pending && !message.id.len && answers)
        pending = only_pending(client, about, &message);
    switch (message.kind) {
    case MCP_MESSAGE_RESPONSE:
        if (pending) {
            if (id >= client->notified_before)
                client->notified_before = 0;
            pending->on_response(pending, &message);
            break;
        }
        for (size_t i = 0; id && i < MCP_ABANDONED_MAX; i++)
            if (client->abandoned[i].id == id)
                client->abandoned[i] = (struct abandoned_call){0};
        mcp_client_ignore(client, "a response to no pending request", STR_NONE);
        break;
    case MCP_MESSAGE_REQUEST:
        if (mcp_message_is(&message, "ping"))
            mcp_request_respond(client, message.id, "result", STR_LIT("{}"));
        else if (mcp_message_is(&message, "elicitation/create"))
            mcp_elicitation_request(client, about, &message);
        else
            mcp_request_respond(client, message.id, "error",
                                STR_LIT("{\"code\":-32601,\"message\":\"Method not found: this client only "
                                        "calls tools; it has no roots and no sampling\"}"));
        break;
    case MCP_MESSAGE_NOTIFICATION:
        mcp_notification(client, about, &message);
        break;
    case MCP_MESSAGE_MALFORMED:
        mcp_client_ignore(client, message.problem, STR_NONE);
        if (pending && pending->call)
            mcp_call_broken(pending, "invalid_json", message.problem);
        else if (pending && message.is_response)
            pending->on_response(pending, &message);
        break;
    case MCP_MESSAGE_NOISE:
        if (str_trim(text).len)
            mcp_client_ignore(client, message.problem, text);
        break;
    }
}

void mcp_client_message(struct mcp_client *client, uint64_t about, struct str text)
{
    struct str rest = text;
    while (client->transport && (rest.len || rest.at == text.at)) {
        struct str now = rest;
        struct mcp_message message = mcp_message_next(&rest);
        take_message(client, about, message, now);
        if (!rest.len)
            break;
    }
}

/* Our own request gets the failure as a malformed response, for log and status. */
void mcp_client_failed(struct mcp_client *client, uint64_t id, const struct mcp_failure *failure)
{
    char problem[MCP_ERROR_MAX_BYTES];
    struct pending_request *pending = NULL;
    if (client->transport)
        pending = id ? pending_find(client, id) : pending_subject(client, 0);
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
        pending->on_response(pending, &message);
}

void mcp_client_closed(struct mcp_client *client, const char *why, struct str quoted)
{
    if (client->transport)
        fail(client, why, quoted);
}

/* ---- the client ---------------------------------------------------------------------------- */

struct mcp_client *mcp_client_new(struct loop *loop, const struct upstream_spec *spec,
                                  struct upstream *upstream)
{
    struct mcp_client *client = alloc_zeroed(sizeof(*client));
    client->loop = loop;
    client->spec = spec;
    client->upstream = upstream;
    client->log_level = -1;
    TAILQ_INIT(&client->pending.sent);
    TAILQ_INIT(&client->pending.waiting);
    for (size_t i = 0; i < UPSTREAM_LISTS; i++) {
        client->lists[i].client = client;
        client->lists[i].which = (enum upstream_list)i;
    }
    return client;
}

void mcp_client_free(struct mcp_client *client)
{
    struct timer *const timers[] = {&client->start_deadline, &client->restart, &client->soon,
                                    &client->relisten};
    for (size_t i = 0; i < sizeof(timers) / sizeof(*timers); i++)
        timer_clear(timers[i]);
    if (client->transport)
        client->kind->free(client->transport);
    if (client->closed_transport)
        client->kind->free(client->closed_transport);
    mcp_lists_free(client);
    struct pending_request *pending;
    while ((pending = TAILQ_FIRST(&client->pending.sent)) ||
           (pending = TAILQ_FIRST(&client->pending.waiting)))
        pending_remove(pending);
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
    bool lives = client->state != MCP_UP && client->transport && client->kind->last_stderr;
    struct str last_stderr = lives ? client->kind->last_stderr(client->transport) : STR_NONE;
    *status = (struct mcp_client_status){
        .name = names[client->state],
        .has_started = client->has_started,
        .error = str_of(client->error),
        .last_stderr = last_stderr.len ? last_stderr : str_of(client->last_stderr),
        .queued = client->pending.waiting_count,
        .failures = client->failures,
        .next_ms = timer_is_set(&client->restart) ? (left > 0 ? left : 0) : -1,
        .ignored = client->ignored,
        .starts = client->starts,
        .pid = client->transport && client->kind->pid ? client->kind->pid(client->transport) : 0,
        .version = str_of(client->version),
        .server = str_of(client->server),
    };
}
