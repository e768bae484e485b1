/*
 * The set: who is configured, what becomes of it with a reload, what each
 * offers. How its calls get there is dispatch.c's business.
 */
#include "upstream/upstream_internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "upstream/tool_cache.h"
#include "upstream/tool_list.h"

#include <stdlib.h>

/* ---- one of the set ------------------------------------------------------- */

static void tell_changed(struct upstream *u)
{
    if (!u->leaving && u->set->hooks.changed)
        u->set->hooks.changed(u->set->owner, u->spec->name);
}

static void on_mcp_changed(void *owner)
{
    struct upstream *u = owner;
    if (u->spec->lazy && !u->leaving && mcp_client_tools(u->mcp))
        tool_cache_write(u->set->state, u->spec, mcp_client_tools(u->mcp));
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
    upstream_schedule(u);
}

static const struct mcp_client_hooks mcp_client_hooks = {on_mcp_changed, on_mcp_state, on_mcp_stopped};

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
    u->mcp = mcp_client_new(set->loop, u->spec, &mcp_client_hooks, u);
    u->kept = spec->lazy ? tool_cache_read(set->state, u->spec) : NULL;
    if (!u->kept && before)
        u->kept = upstreams_tool_list(set, spec->name);
    if (!spec->lazy || !u->kept)
        mcp_client_start(u->mcp);
    return u;
}

void upstream_free(struct upstream *u)
{
    timer_clear(&u->turn);
    if (u->mcp)
        mcp_client_free(u->mcp);
    tool_list_unref(u->kept);
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
    upstream_schedule(u);
}

static void leave(struct upstream *u)
{
    u->leaving = true;
    upstream_schedule(u);
}

struct upstream *upstream_find(const struct upstreams *set, struct str name)
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
    struct upstream *u = upstream_find(set, spec->name);
    if (u && upstream_spec_equal(u->spec, spec)) {
        adjust(u, spec);
        if (u->mcp && !spec->lazy)
            mcp_client_start(u->mcp); /* one that is down is tried again */
        return u;
    }
    struct upstream *made = upstream_new(set, spec, u);
    if (u)
        leave(u);
    return made;
}

void upstream_unlink(struct upstreams *set, struct upstream *gone)
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
        upstream_unlink(set, u);
        *end = u;
        end = &u->next;
    }
    for (struct upstream *u = set->first; u; u = u->next)
        if (!u->leaving) {
            log_event(LOG_INFO, "upstream_removed", LOG_STR("upstream", u->spec->name),
                      LOG_NUM("calls_in_flight", u->in_flight));
            leave(u);
        }
    *end = set->first;
    set->first = first;
}

static bool is_awaited(const struct upstream *u)
{
    struct mcp_client_status view;
    if (!u->mcp || u->leaving || (u->spec->lazy && u->kept))
        return false;
    mcp_client_view(u->mcp, &view);
    return !view.settled;
}

bool upstreams_are_ready(const struct upstreams *set)
{
    for (const struct upstream *u = set->first; u; u = u->next)
        if (is_awaited(u))
            return false;
    return true;
}

void upstreams_list_starting(const struct upstreams *set, struct buf *out)
{
    for (const struct upstream *u = set->first; u; u = u->next)
        if (is_awaited(u))
            buf_printf(out, "%s" STR_FMT, out->len ? ", " : "", STR_ARG(u->spec->name));
}

bool upstreams_are_stopped(const struct upstreams *set)
{
    return !set->first;
}

struct tool_list *upstreams_tool_list(struct upstreams *set, struct str name)
{
    const struct upstream *u = upstream_find(set, name);
    struct tool_list *told = u && u->mcp ? mcp_client_tools(u->mcp) : NULL;
    struct tool_list *offer = told ? told : u ? u->kept : NULL;
    return offer ? tool_list_ref(offer) : NULL;
}
