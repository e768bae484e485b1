/* Starts, waits for, reloads and stops the upstreams of src/upstream. */
#include "server/upstream_manager.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalog/generation.h"
#include "io/child.h"
#include "io/timer.h"
#include "io/systemd.h"
#include "server/method_table.h"
#include "server/subscriptions.h"
#include "server/state_dir.h"

#include <stdlib.h>

struct upstream_manager {
    struct server *server;
    struct arena *arena;
    struct tool_list_source source;
    struct timer reload; /* set: it will request a reload */
    int64_t reload_ms;   /* of the last request */
    void (*tools_changed)(struct server *server);
    bool waited; /* for the tools of all upstreams, once */
};

static void on_reload_due(void *owner)
{
    struct upstream_manager *m = owner;
    m->reload_ms = clock_mono_us() / 1000;
    if (!m->server->draining)
        m->tools_changed(m->server);
}

static void on_changed(void *owner, struct str name)
{
    struct upstream_manager *m = owner;
    struct server *server = m->server;
    if (server->draining || !server->gate.generation || timer_is_set(&m->reload))
        return;
    /* An upstream that restarted usually has the same tools. */
    struct tool_list *now = upstreams_tool_list(server->gate.upstreams, name);
    const struct tool_list *before = generation_tool_list(server->gate.generation, name);
    bool differs = now && (!before || tool_list_hash(now) != tool_list_hash(before));
    tool_list_unref(now);
    if (!differs && !server->reloading)
        return;
    int64_t delay = m->reload_ms + (int64_t)UPSTREAM_MANAGER_INTERVAL_MS - clock_mono_us() / 1000;
    if (delay < (int64_t)UPSTREAM_MANAGER_DELAY_MS)
        delay = UPSTREAM_MANAGER_DELAY_MS;
    timer_set(&m->reload, server->loop, (uint32_t)delay, on_reload_due, m);
}

static void on_limit(void *owner)
{
    *(bool *)owner = true;
}

/* Turns the loop until `done`, a signal to stop if `until_drain`, or for `ms`. False: it took too long. */
static bool wait_for(struct server *server, bool (*done)(const struct upstreams *upstreams), bool until_drain,
                     uint32_t ms)
{
    struct timer limit = {0};
    bool late = false;
    timer_set(&limit, server->loop, ms, on_limit, &late);
    while (!late && !(until_drain && server->draining) && !done(server->gate.upstreams))
        loop_turn(server->loop, true);
    timer_clear(&limit);
    return !late;
}

/* An upstream that has no tools yet counts with those of the serving generation. */
static struct tool_list *find_tools(void *owner, struct str name)
{
    struct upstream_manager *m = owner;
    struct server *server = m->server;
    struct buf names = {0};
    if (!m->waited && !wait_for(server, upstreams_are_ready, true, UPSTREAM_MANAGER_START_MS)) {
        upstreams_list_starting(server->gate.upstreams, &names);
        log_event(LOG_WARN, "upstreams_not_ready", LOG_STR("upstreams", buf_view(&names)),
                  LOG_NUM("after_ms", UPSTREAM_MANAGER_START_MS),
                  LOG_TEXT("effect", "their tools are missing until they have listed them"));
        buf_clear(&names);
    }
    m->waited = true;
    struct tool_list *tools = upstreams_tool_list(server->gate.upstreams, name);
    const struct tool_list *before =
        server->gate.generation ? generation_tool_list(server->gate.generation, name) : NULL;
    return tools || !before ? tools : tool_list_ref((struct tool_list *)before);
}

const struct tool_list_source *upstream_manager_source(struct upstream_manager *m)
{
    return &m->source;
}

static void on_listed(void *owner, struct str name, enum upstream_list list)
{
    struct upstream_manager *m = owner;
    (void)name, (void)list;
    passing_lists_changed(m->server);
}

static void on_updated(void *owner, struct str name, struct str uri)
{
    struct upstream_manager *m = owner;
    subscriptions_resource_updated(m->server, name, uri);
}

static const struct upstreams_hooks hooks = {on_changed, on_listed, on_updated};

struct upstream_manager *upstream_manager_new(struct server *server, const struct config *config,
                                              void (*tools_changed)(struct server *server))
{
    struct upstream_manager *m = calloc(1, sizeof(*m));
    struct buf names = {0};
    if (!m)
        abort();
    m->server = server;
    m->tools_changed = tools_changed;
    m->arena = arena_new();
    m->source = (struct tool_list_source){find_tools, m};
    server->gate.upstreams =
        upstreams_new(server->loop, state_dir_path(m->arena, config, "upstreams"), &hooks, m);
    for (size_t i = 0; i < config->upstream_count; i++)
        buf_printf(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(config->upstreams[i]->name));
    if (names.len)
        systemd_notify("STATUS=starting upstreams: " STR_FMT, STR_ARG(buf_view(&names)));
    buf_clear(&names);
    upstream_manager_apply(m, config);
    return m;
}

void upstream_manager_apply(struct upstream_manager *m, const struct config *config)
{
    hidden_paths_apply(m->server->loop, config, NULL, 0);
    upstreams_apply(m->server->gate.upstreams, config->upstreams, config->upstream_count);
}

void upstream_manager_stop(struct upstream_manager *m)
{
    if (!m)
        return;
    upstreams_apply(m->server->gate.upstreams, NULL, 0);
    wait_for(m->server, upstreams_are_stopped, false, UPSTREAM_MANAGER_STOP_MS);
}

void upstream_manager_free(struct upstream_manager *m)
{
    if (!m)
        return;
    timer_clear(&m->reload);
    upstreams_free(m->server->gate.upstreams);
    m->server->gate.upstreams = NULL;
    child_terminate_all(m->server->loop, UPSTREAM_MANAGER_KILL_MS);
    arena_free(m->arena);
    free(m);
}
