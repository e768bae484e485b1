/*
 * Lists the tools that one peer sees: those of the generation and the client's own, each through its prepare
 * hook, then all of them through the gateway's prepare_tools. A cache in the generation answers whether hooks
 * hide a tool, which every call asks.
 */
#include "catalog/catalog.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "catalog/client_tools.h"
#include "catalog/definition.h"
#include "json/build.h"
#include "json/write.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"

#include <stdlib.h>

#define CACHE_SLOTS 256u

/* The hooks of a list share this processor time, as they hold the loop one after the other. No hook may use
 * more than half of what is left, so that a slow one does not take it from all others. */
#define CATALOG_PREPARE_MS    60u
#define CATALOG_HOOK_LEAST_MS 5u   /* that a hook gets if anything is left */
#define CATALOG_FAILED_MS     1000 /* for this long calls find the hidden tools of a list that failed */

/* The list while it is made. */
struct view {
    struct arena *arena;
    struct generation *generation;
    const struct catalog_request *request;
    struct listed_tool {
        struct str name;
        const struct tool *tool;
        struct json definition;
    } * list;
    size_t count, next; /* next: of the generation's tools, then of the client's */
    struct str *own;    /* the names of the client's tools when the list began */
    size_t own_count;
    struct map *own_names;
    bool failed;     /* a hook broke: the list is no answer to keep */
    int64_t used_us; /* by prepare hooks, of CATALOG_PREPARE_MS */
    size_t late;     /* tools whose hook had no time left */
};

static struct policy_call call_for_hook(const struct view *v, struct str tool)
{
    static const struct ledger_answer nothing;
    const struct catalog_request *r = v->request;
    const struct ledger_answer *past = r->past ? r->past : &nothing;
    return (struct policy_call){
        .tool = tool,
        .session = r->session,
        .goal = r->goal,
        .step = r->step,
        .context = r->context,
        .turn = past->turn,
        .no_progress = past->no_progress,
        .history = json_is(&past->history, JSON_ARRAY) ? &past->history : NULL,
        .facts = json_is(&past->facts, JSON_OBJECT) ? &past->facts : NULL,
        .user = r->peer ? str_of(r->peer->user) : STR_NONE,
        .uid = r->peer ? r->peer->uid : 0,
    };
}

static bool is_stuck(const struct catalog_request *r)
{
    return r->past && r->past->stuck;
}

static void log_policy_error(struct str tool, const char *why)
{
    log_event(LOG_ERROR, "policy_error", LOG_STR("tool", tool), LOG_TEXT("why", why));
}

static bool has_prepare(const struct tool *tool)
{
    return tool_is_enforced(tool) && tool->policy->hooks[HOOK_PREPARE];
}

/* A definition that a hook returned, or the original if that one cannot be shown. */
static struct json repaired_or(const struct view *v, struct str name, const struct json *changed,
                               const struct json *original)
{
    struct json out;
    struct why why;
    if (definition_repair(v->arena, name, changed, &out, &why) == OK)
        return out;
    log_policy_error(name, why.text);
    return *original;
}

/* False: the prepare hook hides the tool. One that breaks hides it, too, unless the policy fails open. */
static bool prepare(struct view *v, const struct tool *tool, struct json *definition)
{
    struct policy_call call = call_for_hook(v, tool->name);
    struct policy_outcome outcome = {0};
    if (!has_prepare(tool))
        return true;
    bool late = v->used_us >= CATALOG_PREPARE_MS * 1000;
    if (late) {
        policy_prepare_late(tool->policy, CATALOG_PREPARE_MS, v->arena, &outcome);
    } else {
        int64_t began = clock_cpu_us();
        call.most_ms = (uint32_t)(CATALOG_PREPARE_MS - v->used_us / 1000) / 2;
        if (call.most_ms < CATALOG_HOOK_LEAST_MS)
            call.most_ms = CATALOG_HOOK_LEAST_MS;
        policy_prepare(tool->policy, &call, definition, v->arena, &outcome);
        v->used_us += clock_cpu_us() - began;
    }
    if (outcome.kind == OUTCOME_POLICY_ERROR) {
        if (!late)
            log_policy_error(tool->name, outcome.why.text);
        v->late += late;
        v->failed = true;
        return tool->policy->fails_open;
    }
    if (outcome.value && outcome.value != definition)
        *definition = repaired_or(v, tool->name, outcome.value, definition);
    return outcome.value != NULL;
}

static bool is_granted(const struct view *v, const struct tool *tool)
{
    const struct catalog_request *r = v->request;
    return (r->all || tool_is_listed(tool)) && !tool->unregistered &&
           (!r->peer || (peer_may_call(&v->generation->config, r->peer, tool->name) &&
                         peer_sees_upstream(&v->generation->config, r->peer, tool->target.upstream)));
}

static void add(struct view *v, const struct tool *tool)
{
    struct listed_tool *listed = &v->list[v->count];
    struct why why;
    if (definition_from_tool(v->arena, tool, &listed->definition, &why) != OK) {
        log_event(LOG_ERROR, "tool_omitted", LOG_STR("tool", tool->name), LOG_TEXT("why", why.text));
    } else if (prepare(v, tool, &listed->definition)) {
        listed->name = tool->name;
        listed->tool = tool;
        v->count++;
    }
}

/* prepare_tools rewords and hides, it adds nothing. For a session that is stuck it hides nothing either: what
 * seemed irrelevant may have been what was needed. */
static void keep_returned(struct view *v, const struct json *definitions)
{
    struct map *returned = map_new(v->arena);
    size_t count = 0;
    for (uint32_t i = 0; json_is(definitions, JSON_ARRAY) && i < definitions->len; i++)
        map_add(returned, json_str(json_get_text(&definitions->items[i], "name")),
                (void *)&definitions->items[i]);
    for (size_t i = 0; i < v->count; i++) {
        const struct json *changed = map_get(returned, v->list[i].name);
        if (!changed && !is_stuck(v->request))
            continue;
        v->list[count] = v->list[i];
        if (changed)
            v->list[count].definition = repaired_or(v, v->list[i].name, changed, &v->list[i].definition);
        count++;
    }
    v->count = count;
}

static void prepare_tools(struct view *v)
{
    const struct policy *gateway = policy_set_gateway(v->generation->policies);
    struct policy_call call = call_for_hook(v, STR_NONE);
    struct policy_outcome outcome = {0};
    if (!gateway->hooks[HOOK_PREPARE])
        return;
    struct json *items = ARENA_ARRAY(v->arena, struct json, v->count + 1);
    for (size_t i = 0; i < v->count; i++)
        items[i] = v->list[i].definition;
    struct json before = json_array(items, v->count);
    policy_prepare(gateway, &call, &before, v->arena, &outcome);
    if (outcome.kind == OUTCOME_POLICY_ERROR) {
        size_t count = 0; /* of tools that are declared or annotated as reading: only those are left */
        for (size_t i = 0; i < v->count; i++)
            if (v->list[i].tool->effects == EFFECTS_READ &&
                v->list[i].tool->effects_from != EFFECTS_FROM_NAME)
                v->list[count++] = v->list[i];
        v->count = count;
        v->failed = true;
        log_policy_error(gateway->file, outcome.why.text);
    } else if (outcome.value != &before) {
        keep_returned(v, outcome.value);
        bool has_more = json_is(outcome.value, JSON_ARRAY) && outcome.value->len > v->count;
        struct map *kept = map_new_for(v->arena, has_more ? v->count : 0);
        for (size_t i = 0; has_more && i < v->count; i++)
            map_add(kept, v->list[i].name, v);
        /* The author of prepare_tools learns that a definition with a changed or invented name is ignored. */
        for (uint32_t i = 0; has_more && i < outcome.value->len; i++) {
            struct str name = json_str(json_get_text(&outcome.value->items[i], "name"));
            if (map_get(kept, name))
                continue;
            struct str why =
                arena_printf(v->arena,
                             "prepare_tools: item %u is named '" STR_FMT
                             "': expected a definition that it was given, by its own name; left out",
                             i + 1, STR_ARG(str_cut(name, TOOL_NAME_MAX_BYTES)));
            log_policy_error(gateway->file, why.at);
        }
    }
}

static int compare_names(const void *a, const void *b)
{
    return str_cmp(((const struct listed_tool *)a)->name, ((const struct listed_tool *)b)->name);
}

static void begin_list(struct view *v)
{
    struct client_tools *own = v->request->all ? v->request->client_tools : NULL;
    size_t count = client_tools_count(own);
    v->own = ARENA_ARRAY(v->arena, struct str, count);
    v->own_names = map_new_for(v->arena, count);
    for (size_t i = 0; i < count; i++) {
        struct str name = client_tools_name_at(own, i);
        if (name.len && map_add(v->own_names, name, v))
            v->own[v->own_count++] = name;
    }
    v->list = ARENA_ARRAY(v->arena, struct listed_tool, v->generation->tool_count + v->own_count + 1);
}

static const struct tool *find_own(const struct view *v, struct str name)
{
    return client_tools_find(v->request->client_tools, v->generation, name);
}

/* Lists one more tool. A client's own tool replaces one of the same name that the agent runs, as check and
 * report find it. False: it was the last, and prepare_tools has seen all of them. */
static bool list_next(struct view *v)
{
    size_t all_count = v->generation->tool_count, at = v->next++;
    if (at < all_count) {
        const struct tool *tool = v->generation->tools[at];
        bool is_replaced = map_get(v->own_names, tool->name) && find_own(v, tool->name);
        if (is_granted(v, tool) && !tool->schema_pending && !tool->held && !is_replaced)
            add(v, tool);
        return true;
    }
    if (at < all_count + v->own_count) {
        const struct tool *tool = find_own(v, v->own[at - all_count]);
        if (tool)
            add(v, tool);
        return true;
    }
    if (v->late)
        log_event(LOG_ERROR, "tools_not_prepared", LOG_NUM("tools", v->late),
                  LOG_NUM("ms", CATALOG_PREPARE_MS),
                  LOG_TEXT("why", "the prepare hooks of a list took all of its time: the tools of those that "
                                  "did not run are hidden"),
                  LOG_TEXT("fix", "make the hooks faster; toolgate status names those that failed"));
    if (v->own_count)
        qsort(v->list, v->count, sizeof(*v->list), compare_names);
    prepare_tools(v);
    return false;
}

/* Each object has a member for each tool of which there is something to say. Every client may read the
 * places, so they have no addresses (which may hold keys) and no commands (paths). */
static void write_details(const struct view *v, bool guards, struct buf *to)
{
    static const char *const kinds[] = {[TARGET_MCP] = "mcp", [TARGET_HTTP] = "http", [TARGET_EXEC] = "exec"};
    struct json_out out = json_out(to);
    json_field_open(&out, "runs_at", '{');
    for (size_t i = 0; i < v->count; i++) {
        const struct tool *tool = v->list[i].tool;
        if (tool->runner != RUNNER_UPSTREAM)
            continue;
        json_key_str(&out, tool->name);
        json_put_object(&out, FIELD_TEXT("kind", kinds[tool->target.kind]),
                        FIELD_OPTIONAL("upstream", tool->target.upstream),
                        FIELD_IF(tool->target.kind == TARGET_MCP, FIELD_OPTIONAL("tool", tool->target.tool)));
    }
    json_close(&out, '}');
    json_field_open(&out, "guessed_effects", '{');
    for (size_t i = 0; i < v->count; i++)
        if (v->list[i].tool->effects_from == EFFECTS_FROM_NAME) {
            json_key_str(&out, v->list[i].tool->name);
            json_put_text(&out, tool_effects_name(v->list[i].tool));
        }
    json_close(&out, '}');
    if (!guards)
        return;
    json_field_open(&out, "guarded_by", '{');
    for (size_t i = 0; i < v->count; i++) {
        const struct tool *tool = v->list[i].tool;
        if (!tool->overlay_count)
            continue;
        json_key_str(&out, tool->name);
        json_open(&out, '[');
        for (size_t k = 0; k < tool->overlay_count; k++)
            json_put_str(&out, tool->overlays[k].policy->file);
        json_close(&out, ']');
    }
    json_close(&out, '}');
}

struct catalog_writing {
    struct view view;
    struct provider_options provider;
    struct json_out out;
    bool lists;  /* what there is to write is not known yet */
    size_t next; /* of view.list */
};

struct catalog_writing *catalog_write_begin(struct arena *arena, struct generation *generation,
                                            const struct catalog_request *request, struct buf *out)
{
    struct catalog_writing *w = ARENA_NEW(arena, struct catalog_writing);
    w->view = (struct view){.arena = arena, .generation = generation, .request = request};
    w->provider = request->provider;
    w->out = json_out(out);
    w->lists = true;
    begin_list(&w->view);
    json_open(&w->out, '[');
    return w;
}

bool catalog_write_next(struct catalog_writing *w)
{
    struct view *v = &w->view;
    if (w->lists) {
        w->lists = list_next(v);
        return true;
    }
    if (w->next < v->count) {
        const struct listed_tool *next = &v->list[w->next];
        w->next += !provider_format_write(v->arena, &w->provider, &next->definition, next->tool->plain_name,
                                          &w->out);
        return true;
    }
    json_close(&w->out, ']');
    if (v->request->details)
        write_details(v, v->request->guards, v->request->details);
    return false;
}

bool catalog_write_is_inside(const struct catalog_writing *w)
{
    return w->provider.under_way;
}

void catalog_write_end(struct catalog_writing *w)
{
    provider_format_end(&w->provider);
}

void catalog_write(struct arena *arena, struct generation *generation, const struct catalog_request *request,
                   struct buf *out)
{
    struct catalog_writing *w = catalog_write_begin(arena, generation, request, out);
    while (catalog_write_next(w))
        continue;
}

/*
 * To know whether hooks hide a tool, all definitions have to go through them. The answer depends on user,
 * session, goal, context, progress and the client's own tools only, and on what else of the session the hooks
 * read; the generation keeps it, keyed by their hash: clients can make them as long as a message.
 */
struct cache_slot {
    struct hash128 key;
    int64_t until_ms; /* 0: as long as the slot is not needed; else of a list that failed */
    uint8_t *hidden;  /* one bit per tool of the generation, then per tool of the client; NULL: empty */
};

struct hidden_cache {
    struct policy_wants wants; /* of all prepare hooks and prepare_tools */
    uint64_t salt[2];          /* keeps clients from choosing keys that collide */
    struct cache_slot slots[CACHE_SLOTS];
};

void catalog_forget(struct generation *generation)
{
    struct hidden_cache *cache = generation->hidden;
    for (size_t i = 0; cache && i < CACHE_SLOTS; i++)
        free(cache->slots[i].hidden);
    free(cache);
}

static struct hidden_cache *hidden_cache(struct generation *generation)
{
    if (generation->hidden)
        return generation->hidden;
    struct hidden_cache *cache = alloc_zeroed(sizeof(*cache));
    cache->wants = policy_set_gateway(generation->policies)->wants;
    for (size_t i = 0; i < generation->tool_count; i++) {
        const struct tool *tool = generation->tools[i];
        if (!has_prepare(tool))
            continue;
        cache->wants.history |= tool->policy->wants.history;
        cache->wants.facts |= tool->policy->wants.facts;
        cache->wants.progress |= tool->policy->wants.progress;
    }
    cache->salt[0] = hash_random();
    cache->salt[1] = hash_random();
    generation->hidden = cache;
    return cache;
}

static struct hash128 cache_key(const struct view *v, const struct hidden_cache *cache)
{
    const struct catalog_request *r = v->request;
    int64_t uid = r->peer ? (int64_t)r->peer->uid : -1;
    struct buf key = buf_in(v->arena);
    buf_add(&key, cache->salt, sizeof(cache->salt));
    buf_add(&key, &uid, sizeof(uid));
    buf_byte(&key, is_stuck(r));
    if (r->past && (cache->wants.history || cache->wants.facts))
        buf_add(&key, &r->past->version, sizeof(r->past->version));
    if (r->past && cache->wants.progress) {
        buf_add(&key, &r->past->turn, sizeof(r->past->turn));
        buf_add(&key, &r->past->no_progress, sizeof(r->past->no_progress));
        buf_add(&key, &r->step.len, sizeof(r->step.len));
        buf_str(&key, r->step);
    }
    if (client_tools_count(r->client_tools)) {
        uint64_t revision = client_tools_revision(r->client_tools);
        buf_add(&key, &revision, sizeof(revision));
    }
    buf_add(&key, &r->session.len, sizeof(r->session.len));
    buf_str(&key, r->session);
    buf_add(&key, &r->goal.len, sizeof(r->goal.len));
    buf_str(&key, r->goal);
    if (r->context)
        json_write(&key, r->context);
    return hash_stable(buf_view(&key));
}

/* Its bit in a slot of the cache. */
static size_t bit_of(const struct view *v, const struct tool *tool)
{
    size_t low = 0, all = v->generation->tool_count, high = all;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(v->generation->tools[middle]->name, tool->name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool own = low == all || v->generation->tools[low] != tool;
    return own ? all + client_tools_index(v->request->client_tools, tool->name) : low;
}

static bool is_hidden(struct view *v, const struct tool *tool)
{
    struct hidden_cache *cache = hidden_cache(v->generation);
    struct hash128 key = cache_key(v, cache);
    struct cache_slot *slot = &cache->slots[key.low % CACHE_SLOTS];
    size_t bit = bit_of(v, tool), bytes = (v->generation->tool_count + 2 * CLIENT_TOOLS_MAX) / 8 + 1;
    if (!slot->hidden || slot->key.low != key.low || slot->key.high != key.high ||
        (slot->until_ms && clock_mono_us() / 1000 >= slot->until_ms)) {
        if (!slot->hidden && !(slot->hidden = malloc(bytes)))
            abort();
        slot->key = key;
        memset(slot->hidden, 0xff, bytes);
        for (begin_list(v); list_next(v);)
            continue;
        for (size_t i = 0; i < v->count; i++) {
            size_t shown = bit_of(v, v->list[i].tool);
            slot->hidden[shown / 8] &= (uint8_t) ~(1u << shown % 8);
        }
        slot->until_ms = v->failed ? clock_mono_us() / 1000 + CATALOG_FAILED_MS : 0;
    }
    return slot->hidden[bit / 8] & 1u << bit % 8;
}

static bool may_hide(const struct generation *generation, const struct tool *tool)
{
    return has_prepare(tool) || policy_set_gateway(generation->policies)->hooks[HOOK_PREPARE];
}

bool catalog_may_hide(struct generation *generation, struct client_tools *own, struct str name)
{
    const struct tool *tool = client_tools_find(own, generation, name);
    if (!tool)
        tool = generation_find(generation, name);
    return tool && may_hide(generation, tool);
}

bool catalog_has_hooks(const struct generation *generation)
{
    bool any = policy_set_gateway(generation->policies)->hooks[HOOK_PREPARE];
    for (size_t i = 0; !any && i < generation->tool_count; i++)
        any = has_prepare(generation->tools[i]);
    return any;
}

void catalog_wants(struct generation *generation, struct ledger_call *look)
{
    const struct policy_wants *wants = &hidden_cache(generation)->wants;
    look->wants_history = wants->history;
    look->wants_facts = wants->facts;
}

bool catalog_shows(struct arena *arena, struct generation *generation, const struct catalog_request *request,
                   const struct tool *tool)
{
    struct catalog_request all = *request;
    struct view v = {.arena = arena, .generation = generation, .request = &all};
    all.all = true;
    if (!is_granted(&v, tool))
        return false;
    if (tool->schema_pending || !may_hide(generation, tool)) /* a tool without schema passes no hook */
        return true;
    return !is_hidden(&v, tool);
}
