/*
 * What every file of the MCP client uses: its state, its timers, and what is
 * redacted and logged. Reaches the life of the server (mcp_client.c) only
 * through client->life.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdarg.h>
#include <stdio.h>

#define IGNORED_READ_BYTES  4096u /* of a message, to redact secrets */
#define IGNORED_SHOWN_BYTES 80u

void mcp_client_schedule(struct mcp_client *client)
{
    timer_set(&client->soon, client->loop, 0, client->life->on_soon, client);
}

void mcp_client_set_state(struct mcp_client *client, enum mcp_client_state state)
{
    if (client->state == state)
        return;
    client->state = state;
    mcp_client_schedule(client); /* reports it */
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
    if (text.len)
        log_event(LOG_INFO, "upstream_message_ignored", LOG_STR("upstream", client->spec->name),
                  LOG_TEXT("why", why), LOG_STR("begins", text), LOG_NUM("not_logged", held));
    else
        log_event(LOG_INFO, "upstream_message_ignored", LOG_STR("upstream", client->spec->name),
                  LOG_TEXT("why", why), LOG_NUM("not_logged", held));
    arena_free(arena);
}

uint32_t mcp_client_start_ms(const struct mcp_client *client)
{
    return client->spec->start_ms ? client->spec->start_ms : UPSTREAM_START_MS;
}

void mcp_client_start_soon(struct mcp_client *client)
{
    timer_clear(&client->restart);
    client->start_wanted = true;
    mcp_client_set_state(client, MCP_STARTING);
    mcp_client_schedule(client);
}

void mcp_client_start(struct mcp_client *client)
{
    bool runs = client->state == MCP_STARTING || client->state == MCP_UP;
    if (!runs && !client->stopping)
        mcp_client_start_soon(client);
}

void mcp_client_watch_deadline(struct mcp_client *client, int64_t us)
{
    if (client->deadline_us && client->deadline_us <= us)
        return;
    int64_t ms = (us - clock_mono_us()) / 1000 + 1;
    client->deadline_us = us;
    timer_set(&client->deadline, client->loop, ms > 0 ? (uint32_t)ms : 0, client->life->on_deadline, client);
}

void mcp_client_fail(struct mcp_client *client, const char *format, ...)
{
    char why[MCP_ERROR_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    if (client->transport)
        client->life->fail(client, why, STR_NONE);
}

struct pending_request *mcp_client_subject(struct mcp_client *client, uint64_t about)
{
    struct pending_request *pending, *found = NULL;
    if (about) {
        found = pending_find(&client->pending, about);
        return found && found->call ? found : NULL;
    }
    TAILQ_FOREACH (pending, &client->pending.sent, entry) {
        if (found && pending->call)
            return NULL;
        if (pending->call)
            found = pending;
    }
    bool ambiguous =
        found && abandoned_calls_by_others(&client->abandoned, found->call->request->caller, clock_mono_us());
    return ambiguous ? NULL : found;
}
