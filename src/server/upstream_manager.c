/* See upstream_manager.h. What upstreams are and do is src/upstream's business; this is when they matter to a
 * daemon.
 */
#include "server/upstream_manager.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalog/generation.h"
#include "io/child.h"
#include "io/timer.h"
#include "server/systemd.h"
#include "server/reload.h"
#include "server/state_dir.h"

#include <stdlib.h>

struct upstream_manager {
    struct server *server;
    struct arena *arena;
    struct tool_list_source for_loading;
    struct timer change; /* set: a reload is about to be asked for */
    int64_t asked_ms;    /* when the last one was */
    bool waited;
};

/* ---- changes ---------------------------------------------------------------- */

static void on_change_due(void *owner)
{
    struct upstream_manager *o = owner;
    o->asked_ms = clock_mono_us() / 1000;
    if (!o->server->draining)
        reload_request(o->server, RELOAD_CAUSE_UPSTREAM);
}

/* One that merely went away and came back offers what it did. */
static bool is_news(struct server *server, struct str name)
{
    struct tool_list *now = upstreams_tool_list(server->gate.upstreams, name);
    const struct tool_list *had = generation_tool_list(server->gate.generation, name);
    bool news = now && (!had || tool_list_hash(now) != tool_list_hash(had));
    tool_list_unref(now);
    return news;
}

static void on_changed(void *owner, struct str name)
{
    struct upstream_manager *o = owner;
    struct server *server = o->server;
    if (server->draining || !server->gate.generation || timer_is_set(&o->change))
        return;
    if (!is_news(server, name) && !reload_is_running(server))
        return;
    int64_t wait = o->asked_ms + (int64_t)UPSTREAM_MANAGER_INTERVAL_MS - clock_mono_us() / 1000;
    timer_set(&o->change, server->loop,
              wait > (int64_t)UPSTREAM_MANAGER_DELAY_MS ? (uint32_t)wait : UPSTREAM_MANAGER_DELAY_MS,
              on_change_due, o);
}

/* ---- for loading -------------------------------------------------------------- */

static void on_waited(void *owner)
{
    *(bool *)owner = true;
}

static void say_waiting(const struct config *config)
{
    struct buf names = {0};
    for (size_t i = 0; i < config->upstream_count; i++)
        buf_printf(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(config->upstreams[i]->name));
    systemd_notify("STATUS=starting upstreams: " STR_FMT, STR_ARG(buf_view(&names)));
    buf_clear(&names);
}

static void say_late(const struct upstreams *upstreams)
{
    struct buf names = {0};
    upstreams_list_starting(upstreams, &names);
    log_event(LOG_WARN, "upstreams_not_ready", LOG_STR("upstreams", buf_view(&names)),
              LOG_NUM("after_ms", UPSTREAM_MANAGER_START_MS),
              LOG_TEXT("effect", "served without their tools until they have told them"));
    buf_clear(&names);
}

/* So that the first list of tools is whole. */
static void wait_for_all(struct upstream_manager *o)
{
    struct server *server = o->server;
    struct timer limit = {0};
    bool over = false;
    timer_set(&limit, server->loop, UPSTREAM_MANAGER_START_MS, on_waited, &over);
    while (!over && !server->draining && !upstreams_are_ready(server->gate.upstreams))
        loop_turn(server->loop, true);
    timer_clear(&limit);
    if (over)
        say_late(server->gate.upstreams);
}

static struct tool_list *find_offer(void *owner, struct str name)
{
    struct upstream_manager *o = owner;
    struct server *server = o->server;
    if (!o->waited)
        wait_for_all(o);
    o->waited = true;
    struct tool_list *offer = upstreams_tool_list(server->gate.upstreams, name);
    const struct tool_list *had =
        server->gate.generation ? generation_tool_list(server->gate.generation, name) : NULL;
    return offer || !had ? offer : tool_list_ref((struct tool_list *)had);
}

const struct tool_list_source *upstream_manager_source(struct upstream_manager *o)
{
    return &o->for_loading;
}

/* ---- its life ------------------------------------------------------------------ */

static const struct upstreams_hooks hooks = {on_changed};

struct upstream_manager *upstream_manager_new(struct server *server, const struct config *config)
{
    struct upstream_manager *o = calloc(1, sizeof(*o));
    if (!o)
        abort();
    o->server = server;
    o->arena = arena_new();
    o->for_loading = (struct tool_list_source){find_offer, o};
    server->gate.upstreams =
        upstreams_new(server->loop, state_dir_path(o->arena, config, "upstreams"), &hooks, o);
    if (config->upstream_count)
        say_waiting(config);
    upstream_manager_apply(o, config);
    return o;
}

void upstream_manager_apply(struct upstream_manager *o, const struct config *config)
{
    upstreams_apply(o->server->gate.upstreams, config->upstreams, config->upstream_count);
}

void upstream_manager_stop(struct upstream_manager *o)
{
    if (o)
        upstreams_apply(o->server->gate.upstreams, NULL, 0);
}

bool upstream_manager_is_stopped(const struct upstream_manager *o)
{
    return !o || upstreams_are_stopped(o->server->gate.upstreams);
}

/* Those that are left have had their time. */
void upstream_manager_free(struct upstream_manager *o)
{
    if (!o)
        return;
    timer_clear(&o->change);
    upstreams_free(o->server->gate.upstreams);
    o->server->gate.upstreams = NULL;
    child_terminate_all(o->server->loop, UPSTREAM_MANAGER_KILL_MS);
    arena_free(o->arena);
    free(o);
}
