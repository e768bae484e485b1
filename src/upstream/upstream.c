/*
 * The set of upstreams: what a reload starts, changes and ends, the tool list of each with its cache, and the
 * state of each for `toolgate status`. dispatch.c has the calls.
 */
#include "base/alloc.h"
#include "upstream/upstream_internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/file.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MAX_BYTES 256u /* of a user's name */

int64_t upstream_now_ms(void)
{
    return clock_mono_us() / 1000;
}

struct upstream *upstream_find(const struct upstreams *set, struct str name)
{
    for (struct upstream *u = TAILQ_FIRST(&set->all); u; u = TAILQ_NEXT(u, entry))
        if (!u->leaving && str_eq(u->spec->name, name))
            return u;
    return NULL;
}

/* ---- a tool list is an arena with one array in it ---- */

struct tool_list {
    struct arena *arena;
    unsigned refs;
    struct json tools;
    uint64_t hash;
};

struct tool_list *tool_list_new(const struct json *tools)
{
    struct arena *arena = arena_new();
    struct tool_list *list = ARENA_NEW(arena, struct tool_list);
    struct buf text = {0};
    *list = (struct tool_list){.arena = arena, .refs = 1, .tools = json_copy(arena, tools)};
    list->hash = tools->type;
    /* Their order does not count: some servers list them in another one each time. */
    for (uint32_t i = 0; i < json_child_count(tools); i++) {
        text.len = 0;
        json_canonical(&text, json_child(tools, i));
        list->hash += hash_stable(buf_view(&text)).low;
    }
    buf_clear(&text);
    return list;
}

struct tool_list *tool_list_ref(struct tool_list *list)
{
    list->refs++;
    return list;
}

void tool_list_unref(struct tool_list *list)
{
    if (list && --list->refs == 0)
        arena_free(list->arena);
}

const struct json *tool_list_array(const struct tool_list *list)
{
    return &list->tools;
}

uint64_t tool_list_hash(const struct tool_list *list)
{
    return list->hash;
}

/* ---- the cache: one file for each upstream, which is replaced as a whole, so that no daemon reads half of
 * one ---- */

/* Identifies the server that answers: the templates of its configuration, not the secrets in them. */
static struct str identity_of(struct arena *arena, const struct upstream_spec *spec)
{
    struct buf text = buf_in(arena), hex = buf_in(arena);
    const struct str fields[] = {spec->name, spec->cwd, spec->url};
    buf_int(&text, spec->kind);
    for (size_t i = 0; i < 3 + spec->argc; i++) {
        json_write_string(&text, i < 3 ? fields[i] : spec->argv[i - 3]);
        buf_byte(&text, ',');
    }
    buf_hex64(&hex, hash_stable(buf_view(&text)).low);
    return buf_view(&hex);
}

/* The configuration allows only letters, digits, - and _ in names. */
static const char *path_of(struct arena *arena, const char *state, const struct upstream_spec *spec)
{
    return arena_printf(arena, "%s/" STR_FMT ".tools.json", state, STR_ARG(spec->name)).at;
}

static bool is_trusted(const char *path)
{
    struct why why;
    if (file_check_private(path, &why) == OK)
        return true;
    log_event(LOG_WARN, "upstream_tools_ignored", LOG_TEXT("why", why.text));
    return false;
}

static const char *const members[UPSTREAM_LISTS] = {"tools", "prompts", "resources", "resourceTemplates",
                                                    "instructions"};

struct tool_list *tool_cache_read(const char *state, const struct upstream_spec *spec,
                                  enum upstream_list which, enum tool_cache_owner owner)
{
    struct tool_list *list = NULL;
    struct json file;
    if (!state)
        return NULL;
    struct arena *arena = arena_new();
    const char *path = path_of(arena, state, spec);
    if (owner == TOOL_CACHE_OWN && (!is_trusted(state) || !is_trusted(path))) {
        arena_free(arena);
        return NULL;
    }
    if (json_read_file(arena, path, UPSTREAM_LINE_MAX_BYTES, &file, NULL) == OK) {
        const struct json *items = json_get_text(&file, members[which]);
        bool same = str_eq(json_str(json_get_text(&file, "upstream")), identity_of(arena, spec));
        if (same && json_is(items, JSON_ARRAY))
            list = tool_list_new(items);
    }
    arena_free(arena);
    return list;
}

/* Does nothing if `state` is NULL; logs what cannot be written. An entry is NULL where there is no list. */
static void tool_cache_write(const char *state, const struct upstream_spec *spec,
                             struct tool_list *const lists[UPSTREAM_LISTS])
{
    if (!state)
        return;
    struct arena *arena = arena_new();
    struct buf text = buf_in(arena);
    const char *path = path_of(arena, state, spec);
    struct why why;
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_key(&out, "upstream");
    json_put_str(&out, identity_of(arena, spec));
    for (size_t i = 0; i < UPSTREAM_LISTS; i++)
        if (lists[i]) {
            json_key(&out, members[i]);
            json_put(&out, tool_list_array(lists[i]));
        }
    json_close(&out, '}');
    mkdir(state, 0700);
    if (file_check_private(state, &why) != OK || file_replace(path, buf_view(&text), false, &why) != OK)
        log_event(LOG_WARN, "upstream_tools_not_cached", LOG_STR("upstream", spec->name),
                  LOG_TEXT("file", path), LOG_TEXT("why", why.text),
                  LOG_TEXT("effect", spec->lazy ? "the next start asks the upstream for its tools"
                                                : "toolgate replay will not know its tools"));
    arena_free(arena);
}

/* ---- the set's turns ---- */

static void on_turn(void *owner);

void upstream_schedule(struct upstream *u)
{
    timer_set(&u->turn, u->set->loop, 0, on_turn, u);
}

/* ---- what its MCP client reports ---- */

void upstream_state_changed(struct upstream *u)
{
    if (!u->leaving && !u->base && u->set->hooks.changed)
        u->set->hooks.changed(u->set->owner, u->spec->name);
}

static struct tool_list *list_of(const struct upstream *u, enum upstream_list list)
{
    struct tool_list *own = u->mcp ? mcp_client_list(u->mcp, list) : NULL;
    return own ? own : u->last[list];
}

void upstream_listed(struct upstream *u, enum upstream_list list)
{
    struct tool_list *lists[UPSTREAM_LISTS];
    if (u->leaving || u->base) /* the lists of a user's instance are for that user alone */
        return;
    if (list != UPSTREAM_TOOLS) { /* what it had before, under another configuration, is over */
        tool_list_unref(u->last[list]);
        u->last[list] = NULL;
    }
    for (size_t i = 0; i < UPSTREAM_LISTS; i++)
        lists[i] = list_of(u, (enum upstream_list)i);
    if (mcp_client_list(u->mcp, UPSTREAM_TOOLS))
        tool_cache_write(u->set->state, u->spec, lists);
    if (list == UPSTREAM_TOOLS)
        upstream_state_changed(u);
    else if (u->set->hooks.listed)
        u->set->hooks.listed(u->set->owner, u->spec->name, list);
}

void upstream_updated(struct upstream *u, struct str uri)
{
    if (!u->leaving && !u->base && u->set->hooks.updated)
        u->set->hooks.updated(u->set->owner, u->spec->name, uri);
}

void upstream_stopped(struct upstream *u)
{
    u->stopped = true;
    upstream_schedule(u);
}

static void remove_upstream(struct upstream *u)
{
    TAILQ_REMOVE(&u->set->all, u, entry);
    timer_clear(&u->turn);
    timer_clear(&u->idle);
    if (u->mcp)
        mcp_client_free(u->mcp);
    for (size_t i = 0; i < UPSTREAM_LISTS; i++)
        tool_list_unref(u->last[i]);
    arena_free(u->arena);
    free(u);
}

static void on_turn(void *owner)
{
    struct upstream *u = owner;
    upstream_start_queued(u);
    if (!u->leaving || u->in_flight || u->queue.count)
        return;
    if (u->stopped || !u->mcp)
        remove_upstream(u);
    else
        mcp_client_stop(u->mcp);
}

/* It ends after its calls are answered. */
static void leave(struct upstream *u)
{
    u->leaving = true;
    timer_clear(&u->idle);
    upstream_schedule(u);
}

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

/* `before`: an upstream of this name with another configuration; its tools are the best guess until the new
 * one has listed its own. */
static struct upstream *make(struct upstreams *set, const struct upstream_spec *spec, struct upstream *before)
{
    char name[NAMES_MAX_BYTES];
    struct upstream *u = alloc_zeroed(sizeof(*u));
    u->set = set;
    TAILQ_INSERT_TAIL(&set->all, u, entry);
    u->arena = arena_new();
    u->configured = upstream_spec_copy(u->arena, spec, NULL);
    u->spec = u->configured;
    if (spec->per_user) {
        /* A daemon without a name in the passwd database has no file of its own: the upstream then says which
         * is missing. */
        struct upstream_user user = {geteuid(), arena_printf(u->arena, "%u", (unsigned)geteuid())};
        if (name_of(geteuid(), name))
            user.name = str_of(name);
        u->spec = upstream_spec_copy(u->arena, spec, &user);
    }
    TAILQ_INIT(&u->queue.calls);
    if (spec->kind == UPSTREAM_REST)
        return u;
    u->mcp = mcp_client_new(set->loop, u->spec, u);
    mcp_client_set_log_level(u->mcp, set->log_level);
    if (before && before->mcp)
        mcp_client_inherit(u->mcp, before->mcp);
    for (size_t i = 0; i < UPSTREAM_LISTS; i++) {
        enum upstream_list list = (enum upstream_list)i;
        u->last[i] = spec->lazy ? tool_cache_read(set->state, u->spec, list, TOOL_CACHE_OWN) : NULL;
        if (!u->last[i] && before && list_of(before, list))
            u->last[i] = tool_list_ref(list_of(before, list));
    }
    if (!spec->lazy || !u->last[UPSTREAM_TOOLS])
        mcp_client_start(u->mcp);
    return u;
}

struct upstreams *upstreams_new(struct loop *loop, const char *state, const struct upstreams_hooks *hooks,
                                void *owner)
{
    struct upstreams *set = alloc_zeroed(sizeof(*set));
    *set = (struct upstreams){.loop = loop, .state = state, .hooks = *hooks, .owner = owner, .log_level = -1};
    TAILQ_INIT(&set->all);
    return set;
}

void upstreams_free(struct upstreams *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < HASH_OWNERS; i++)
        while (!LIST_EMPTY(&set->calls[i]))
            upstream_cancel(set, LIST_FIRST(&set->calls[i])->owner);
    while (!TAILQ_EMPTY(&set->all))
        remove_upstream(TAILQ_FIRST(&set->all));
    free(set);
}

/* ---- instances of users --------------------------------------------------------------------------
 * Of an upstream with per_user = true each user who calls has an instance, with the credentials of that user
 * alone. The daemon's own user has the upstream itself, which also lists the tools. An instance is made at
 * its user's first call, and ends some time after the last one. */

static void on_idle(void *owner)
{
    struct upstream *u = owner;
    if (u->in_flight || u->queue.count) /* the end of a call sets the timer again */
        return;
    log_event(LOG_INFO, "upstream_idle", LOG_STR("upstream", u->spec->name), LOG_NUM("calls", u->calls));
    leave(u);
}

void upstream_user_called(struct upstream *u)
{
    uint32_t ms = u->spec->user_idle_ms ? u->spec->user_idle_ms : UPSTREAM_USER_IDLE_MS;
    if (u->base && !u->leaving)
        timer_set(&u->idle, u->set->loop, ms, on_idle, u);
}

struct upstream *upstream_of_user(struct upstream *base, struct upstream_call *call)
{
    uid_t uid = call->request->user;
    char name[NAMES_MAX_BYTES];
    uint32_t count = 0;
    if (!base->spec->per_user || uid == geteuid())
        return base;
    for (struct upstream *u = TAILQ_FIRST(&base->set->all); u; u = TAILQ_NEXT(u, entry)) {
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
        struct arena *scratch = arena_new();
        const struct upstream_user user = {uid, str_of(name)};
        struct upstream_spec *spec = upstream_spec_copy(scratch, base->configured, &user);
        spec->name = arena_printf(scratch, STR_FMT "@%s", STR_ARG(spec->name), name);
        spec->lazy = false;
        spec->per_user = false; /* filled in already */
        struct upstream *u = make(base->set, spec, NULL);
        arena_free(scratch);
        u->base = base;
        u->uid = uid;
        upstream_user_called(u);
        return u;
    }
    return NULL;
}

/* ---- the set ---- */

static void take_limits(struct upstream *u, const struct upstream_spec *spec)
{
    u->spec->timeout_ms = spec->timeout_ms;
    u->spec->start_ms = spec->start_ms;
    u->spec->resubscribe_ms = spec->resubscribe_ms;
    u->spec->in_flight = spec->in_flight;
    u->spec->prefix = spec->prefix;
    u->spec->user_idle_ms = spec->user_idle_ms;
    u->spec->forward_meta = spec->forward_meta;
}

void upstreams_apply(struct upstreams *set, const struct upstream_spec *const *specs, size_t count)
{
    struct upstream_head configured = TAILQ_HEAD_INITIALIZER(configured);
    for (size_t i = 0; i < count; i++) {
        /* The running one, perhaps with other limits, or a new one. */
        struct upstream *u = upstream_find(set, specs[i]->name), *replaced = u;
        if (!u || !upstream_spec_equal(u->configured, specs[i])) {
            u = make(set, specs[i], replaced);
            if (replaced)
                leave(replaced);
        } else {
            take_limits(u, specs[i]);
            upstream_schedule(u);
            if (u->mcp && !specs[i]->lazy)
                mcp_client_start(u->mcp); /* retries one that is down */
        }
        TAILQ_REMOVE(&set->all, u, entry);
        TAILQ_INSERT_TAIL(&configured, u, entry);
    }
    /* What is left: those that are removed, and instances of users, each behind its upstream. */
    for (struct upstream *u = TAILQ_FIRST(&set->all); u; u = TAILQ_NEXT(u, entry)) {
        if (u->leaving)
            continue;
        if (!u->base)
            log_event(LOG_INFO, "upstream_removed", LOG_STR("upstream", u->spec->name),
                      LOG_NUM("calls_in_flight", u->in_flight));
        if (!u->base || u->base->leaving) {
            leave(u);
            continue;
        }
        take_limits(u, u->base->spec);
        if (u->mcp)
            mcp_client_start(u->mcp);
    }
    TAILQ_CONCAT(&configured, &set->all, entry);
    TAILQ_CONCAT(&set->all, &configured, entry);
}

static bool is_starting(const struct upstream *u)
{
    struct mcp_client_status status;
    if (!u->mcp || u->leaving || u->base || (u->spec->lazy && u->last[UPSTREAM_TOOLS]))
        return false;
    mcp_client_view(u->mcp, &status);
    return !status.has_started;
}

bool upstreams_are_ready(const struct upstreams *set)
{
    for (const struct upstream *u = TAILQ_FIRST(&set->all); u; u = TAILQ_NEXT(u, entry))
        if (is_starting(u))
            return false;
    return true;
}

void upstreams_list_starting(const struct upstreams *set, struct buf *out)
{
    for (const struct upstream *u = TAILQ_FIRST(&set->all); u; u = TAILQ_NEXT(u, entry))
        if (is_starting(u))
            buf_printf(out, "%s" STR_FMT, out->len ? ", " : "", STR_ARG(u->spec->name));
}

bool upstreams_are_stopped(const struct upstreams *set)
{
    return TAILQ_EMPTY(&set->all);
}

struct tool_list *upstreams_list(struct upstreams *set, struct str name, enum upstream_list which)
{
    const struct upstream *u = upstream_find(set, name);
    struct tool_list *list = u ? list_of(u, which) : NULL;
    return list ? tool_list_ref(list) : NULL;
}

void upstreams_refresh(struct upstreams *set, enum upstream_list list)
{
    for (struct upstream *u = TAILQ_FIRST(&set->all); u; u = TAILQ_NEXT(u, entry))
        if (u->mcp && !u->leaving && !u->base)
            mcp_lists_refresh(u->mcp, list);
}

uint32_t upstreams_subscriptions(const struct upstreams *set, struct str name)
{
    const struct upstream *u = upstream_find(set, name);
    return u && u->mcp ? mcp_client_subscriptions(u->mcp) : 0;
}

const char *upstreams_subscribe(struct upstreams *set, struct str name, struct str uri)
{
    struct upstream *u = upstream_find(set, name);
    if (!u || !u->mcp)
        return "is not in the gateway's configuration";
    if (u->spec->per_user)
        return "has an instance for each user, whose changes are not reported";
    return mcp_client_subscribe(u->mcp, uri);
}

void upstreams_unsubscribe(struct upstreams *set, struct str name, struct str uri)
{
    struct upstream *u = upstream_find(set, name);
    if (u && u->mcp)
        mcp_client_unsubscribe(u->mcp, uri);
}

void upstreams_set_log_level(struct upstreams *set, int level)
{
    if (set->log_level == level)
        return;
    set->log_level = level;
    for (struct upstream *u = TAILQ_FIRST(&set->all); u; u = TAILQ_NEXT(u, entry))
        if (u->mcp)
            mcp_client_set_log_level(u->mcp, level);
}

static void put_upstream(struct json_out *out, const struct upstream *u)
{
    static const char *const kinds[] = {"stdio", "http", "rest"};
    static const char *const breaker_states[] = {"closed", "open", "probing"};
    struct tool_list *tools = upstreams_list(u->set, u->spec->name, UPSTREAM_TOOLS);
    struct mcp_client_status status = {.name = "ready", .next_ms = -1};
    if (u->mcp)
        mcp_client_view(u->mcp, &status);
    const char *sandbox = NULL, *missing = NULL;
    if (u->spec->sandbox.on) { /* an operator must see that nothing holds the process */
        struct confine_support support = confine_support();
        bool whole = support.landlock_abi && support.seccomp;
        sandbox = whole ? "on" : "incomplete";
        if (!whole && u->spec->sandbox.best_effort)
            missing = support.landlock_abi ? "seccomp: it may open any socket"
                                           : "landlock: it may read and write any file of its user";
    }
    bool is_mcp = u->mcp != NULL;
    json_put_object(
        out, FIELD_OPTIONAL("name", u->spec->name), FIELD_OPTIONAL("kind", str_of(kinds[u->spec->kind])),
        FIELD_OPTIONAL("state", str_of(status.name)),
        FIELD_IF(is_mcp, FIELD_NUM("tools", tools ? tool_list_array(tools)->len : 0)),
        FIELD_OPTIONAL("sandbox", str_of(sandbox)), FIELD_OPTIONAL("sandbox_missing", str_of(missing)),
        FIELD_IF(u->spec->per_user && !u->base, FIELD_BOOL("per_user", true)),
        FIELD_IF(u->base != NULL, FIELD_NUM("uid", u->uid)),
        /* its sandbox and user are the spawner's to know */
        FIELD_IF(u->spec->spawner.len != 0, FIELD_BOOL("spawned", true)), FIELD_NUM("calls", u->calls),
        FIELD_NUM("in_flight", u->in_flight), FIELD_NUM("queued", u->queue.count + status.queued),
        FIELD_NUM("failures", u->failures),
        FIELD_OPTIONAL("breaker", str_of(breaker_states[u->breaker.state])),
        FIELD_IF(u->breaker.state != BREAKER_CLOSED,
                 FIELD_NUM("breaker_after_s", breaker_after_s(&u->breaker, upstream_now_ms()))),
        FIELD_OPTIONAL("last_stderr", status.last_stderr),
        FIELD_OPTIONAL("last_error", status.error.len ? status.error : str_of(u->last_error)),
        FIELD_IF(!status.error.len && u->error_ms,
                 FIELD_NUM("last_error_s_ago", (upstream_now_ms() - u->error_ms) / 1000)),
        FIELD_IF(status.pid != 0, FIELD_NUM("pid", status.pid)),
        FIELD_IF(is_mcp, FIELD_NUM("starts", status.starts)),
        FIELD_IF(is_mcp, FIELD_NUM("failed_in_a_row", status.failures)),
        FIELD_IF(status.next_ms >= 0, FIELD_NUM("next_try_ms", status.next_ms)),
        FIELD_IF(status.ignored, FIELD_NUM("ignored_messages", status.ignored)),
        FIELD_OPTIONAL("protocol", status.version), FIELD_OPTIONAL("server", status.server));
    tool_list_unref(tools);
}

size_t upstreams_figures(const struct upstreams *set, struct arena *arena, struct upstream_figures **out)
{
    size_t count = 0;
    *out = NULL;
    for (const struct upstream *u = TAILQ_FIRST(&set->all); u; u = TAILQ_NEXT(u, entry)) {
        struct mcp_client_status status = {.name = "ready"};
        if (u->leaving)
            continue;
        if (u->mcp)
            mcp_client_view(u->mcp, &status);
        bool idle = strcmp(status.name, "stopped") == 0 && !status.failures;
        *out = arena_grow(arena, *out, count, sizeof(**out));
        (*out)[count++] = (struct upstream_figures){
            .name = u->spec->name,
            .up = idle || strcmp(status.name, "up") == 0 || strcmp(status.name, "ready") == 0,
            .circuit_open = u->breaker.state != BREAKER_CLOSED,
            .calls = u->calls,
            .failures = u->failures,
            .starts = status.starts,
            .in_flight = u->in_flight,
            .queued = u->queue.count + status.queued,
        };
    }
    return count;
}

void upstreams_write_status(struct json_out *out, const struct upstreams *set)
{
    json_open(out, '[');
    for (const struct upstream *u = TAILQ_FIRST(&set->all); u; u = TAILQ_NEXT(u, entry))
        if (!u->leaving)
            put_upstream(out, u);
    json_close(out, ']');
}
