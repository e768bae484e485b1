/*
 * Upstreams with per_user = true: each user who calls has an instance, with the
 * credentials of that user alone. The daemon's own user has the upstream
 * itself, which also lists the tools. An instance is made at its user's first
 * call, and ends some time after the last one.
 */
#include "upstream/upstream_internal.h"

#include "base/arena.h"
#include "base/log.h"

#include <pwd.h>
#include <unistd.h>

#define NAMES_MAX_BYTES 256u

/* The name becomes part of a path: false if it could leave its folder, or if there is no such user. */
static bool name_of(uid_t uid, char out[NAMES_MAX_BYTES])
{
    const struct passwd *user = getpwuid(uid);
    if (!user || !*user->pw_name || *user->pw_name == '.' || strchr(user->pw_name, '/') ||
        strchr(user->pw_name, '}') || strlen(user->pw_name) >= NAMES_MAX_BYTES)
        return false;
    memcpy(out, user->pw_name, strlen(user->pw_name) + 1);
    return true;
}

/* A daemon without a name in the passwd database has no file of its own: the upstream then says which is
 * missing. */
struct upstream_spec *upstream_own_spec(struct arena *arena, const struct upstream_spec *spec)
{
    char name[NAMES_MAX_BYTES];
    struct str user =
        name_of(geteuid(), name) ? str_of(name) : arena_printf(arena, "%u", (unsigned)geteuid());
    return upstream_spec_for_user(arena, spec, geteuid(), user);
}

static void on_idle(void *owner)
{
    struct upstream *u = owner;
    if (u->in_flight || u->queued) { /* the end of a call sets the timer again */
        return;
    }
    log_event(LOG_INFO, "upstream_idle", LOG_STR("upstream", u->spec->name), LOG_NUM("calls", u->calls));
    upstream_leave(u);
}

void upstream_user_called(struct upstream *u)
{
    uint32_t ms = u->spec->user_idle_ms ? u->spec->user_idle_ms : UPSTREAM_USER_IDLE_MS;
    if (u->base && !u->leaving)
        timer_set(&u->idle, u->set->loop, ms, on_idle, u);
}

static struct upstream *make_instance(struct upstream *base, uid_t uid, struct str user)
{
    struct arena *scratch = arena_new();
    struct upstream_spec *spec = upstream_spec_for_user(scratch, base->configured, uid, user);
    spec->name = arena_printf(scratch, STR_FMT "@" STR_FMT, STR_ARG(spec->name), STR_ARG(user));
    spec->lazy = false;
    spec->per_user = false; /* filled in already */
    struct upstream *u = upstream_new(base->set, spec, NULL), *last = base;
    arena_free(scratch);
    u->base = base;
    u->uid = uid;
    while (last->next)
        last = last->next;
    last->next = u;
    upstream_user_called(u);
    return u;
}

struct upstream *upstream_of_user(struct upstream *base, struct upstream_call *call)
{
    uid_t uid = call->request->user;
    char name[NAMES_MAX_BYTES];
    uint32_t count = 0;
    if (!base->spec->per_user || uid == geteuid())
        return base;
    for (struct upstream *u = base->set->first; u; u = u->next) {
        if (u->base != base || u->leaving)
            continue;
        if (u->uid == uid)
            return u;
        count++;
    }
    if (!name_of(uid, name)) {
        upstream_call_answer(call, UPSTREAM_UNAVAILABLE, "no_user",
                             "the server '" STR_FMT
                             "' has an instance for each user, and the user with uid %u has no "
                             "name on this host; the operator must create it",
                             STR_ARG(base->spec->name), (unsigned)uid);
    } else if (count >= UPSTREAM_USERS_MAX) {
        call->answer->after_s = 60;
        upstream_call_answer(call, UPSTREAM_UNAVAILABLE, "busy",
                             "the server '" STR_FMT
                             "' has an instance for each user, and serves %u users already, the "
                             "most it may; this call was not sent",
                             STR_ARG(base->spec->name), count);
    } else {
        return make_instance(base, uid, str_of(name));
    }
    return NULL;
}
