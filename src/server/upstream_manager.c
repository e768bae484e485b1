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
#include "server/notifications.h"
#include "server/reload.h"
#include "server/state_dir.h"

#include <stdlib.h>

struct server_offers {
    struct server *server;
    struct arena *arena;
    struct offers for_loading;
    struct timer change; /* set: a reload is about to be asked for */
    int64_t asked_ms;    /* when the last one was */
    bool waited;
};

/* ---- changes ---------------------------------------------------------------- */

static void on_change_due(void *owner)
{
    struct server_offers *o = owner;
    o->asked_ms = clock_mono_us() / 1000;
    if (!o->server->draining)
        reload_ask(o->server, RELOAD_FOR_UPSTREAM);
}

/* One that merely went away and came back offers what it did. */
static bool is_news(struct server *server, struct str name)
{
    struct upstream_offer *now = upstreams_offer(server->gate.upstreams, name);
    const struct upstream_offer *had = generation_offer(server->gate.generation, name);
    bool news = now && (!had || upstream_offer_hash(now) != upstream_offer_hash(had));
    upstream_offer_unref(now);
    return news;
}

static void on_changed(void *owner, struct str name)
{
    struct server_offers *o = owner;
    struct server *server = o->server;
    if (server->draining || !server->gate.generation || timer_is_set(&o->change))
        return;
    if (!is_news(server, name) && !reload_is_under_way(server))
        return;
    int64_t wait = o->asked_ms + (int64_t)OFFERS_APART_MS - clock_mono_us() / 1000;
    timer_set(&o->change, server->loop, wait > (int64_t)OFFERS_SETTLE_MS ? (uint32_t)wait : OFFERS_SETTLE_MS,
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
    notify("STATUS=starting upstreams: " STR_FMT, STR_ARG(buf_view(&names)));
    buf_clear(&names);
}

static void say_late(const struct upstreams *upstreams)
{
    struct buf names = {0};
    upstreams_name_awaited(upstreams, &names);
    log_event(LOG_WARN, "upstreams_not_settled", LOG_STR("upstreams", buf_view(&names)),
              LOG_NUM("after_ms", OFFERS_WAIT_MS),
              LOG_TEXT("effect", "served without their tools until they have told them"));
    buf_clear(&names);
}

/* So that the first list of tools is whole. */
static void wait_for_all(struct server_offers *o)
{
    struct server *server = o->server;
    struct timer limit = {0};
    bool over = false;
    timer_set(&limit, server->loop, OFFERS_WAIT_MS, on_waited, &over);
    while (!over && !server->draining && !upstreams_are_settled(server->gate.upstreams))
        loop_turn(server->loop, true);
    timer_clear(&limit);
    if (over)
        say_late(server->gate.upstreams);
}

static struct upstream_offer *find_offer(void *owner, struct str name)
{
    struct server_offers *o = owner;
    struct server *server = o->server;
    if (!o->waited)
        wait_for_all(o);
    o->waited = true;
    struct upstream_offer *offer = upstreams_offer(server->gate.upstreams, name);
    const struct upstream_offer *had =
        server->gate.generation ? generation_offer(server->gate.generation, name) : NULL;
    return offer || !had ? offer : upstream_offer_ref((struct upstream_offer *)had);
}

const struct offers *offers_for_loading(struct server_offers *o)
{
    return &o->for_loading;
}

/* ---- its life ------------------------------------------------------------------ */

static const struct upstreams_hooks hooks = {on_changed};

struct server_offers *offers_open(struct server *server, const struct config *config)
{
    struct server_offers *o = calloc(1, sizeof(*o));
    if (!o)
        abort();
    o->server = server;
    o->arena = arena_new();
    o->for_loading = (struct offers){find_offer, o};
    server->gate.upstreams =
        upstreams_new(server->loop, state_path(o->arena, config, "upstreams"), &hooks, o);
    if (config->upstream_count)
        say_waiting(config);
    offers_apply(o, config);
    return o;
}

void offers_apply(struct server_offers *o, const struct config *config)
{
    upstreams_apply(o->server->gate.upstreams, config->upstreams, config->upstream_count);
}

void offers_end(struct server_offers *o)
{
    if (o)
        upstreams_apply(o->server->gate.upstreams, NULL, 0);
}

bool offers_have_ended(const struct server_offers *o)
{
    return !o || upstreams_are_gone(o->server->gate.upstreams);
}

/* Those that are left have had their time. */
void offers_free(struct server_offers *o)
{
    if (!o)
        return;
    timer_clear(&o->change);
    upstreams_free(o->server->gate.upstreams);
    o->server->gate.upstreams = NULL;
    children_end(o->server->loop, OFFERS_KILL_MS);
    arena_free(o->arena);
    free(o);
}
