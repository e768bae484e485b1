/*
 * Which tools a peer sees, and as what: the generation's in the order of
 * their names, each through its own prepare, all through the gateway's
 * prepare_tools, then the ones that the connection declared itself.
 */
#include "catalog/catalog.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "catalog/definition.h"
#include "catalog/provider_formats.h"
#include "json/build.h"
#include "json/write.h"

#include <stdlib.h>

#define CATALOG_CACHE_SLOTS 256u /* answers to "what is hidden", one a slot; a collision costs only time */

struct view {
    struct arena *arena;
    struct generation *generation;
    const struct catalog_request *request;
    struct shown {
        struct str name;
        const struct tool *tool;
        struct json definition;
    } * list;
    size_t count;
};

static struct policy_call hook_view(const struct view *v, struct str tool)
{
    const struct catalog_request *r = v->request;
    return (struct policy_call){
        .tool = tool,
        .session = r->session,
        .goal = r->goal,
        .user = r->peer ? str_of(r->peer->user) : STR_NONE,
        .uid = r->peer ? r->peer->uid : 0,
    };
}

static void log_fault(const char *event, struct str tool, const char *why)
{
    log_event(LOG_ERROR, event, LOG_STR("tool", tool), LOG_TEXT("why", why));
}

/* ---- one tool ------------------------------------------------------------- */

static bool prepares(const struct tool *tool)
{
    return tool_is_enforced(tool) && tool->policy->hooks[HOOK_PREPARE];
}

/* What a policy made of a definition, or the definition itself where that cannot be shown. */
static struct json mended(const struct view *v, struct str name, const struct json *fresh,
                          const struct json *otherwise)
{
    struct json out;
    struct why why;
    if (definition_repair(v->arena, name, fresh, &out, &why) == OK)
        return out;
    log_fault("policy_error", name, why.text);
    return *otherwise;
}

/* False: its policy hides it. A policy that breaks shows it as it is. */
static bool prepare(const struct view *v, const struct tool *tool, struct json *definition)
{
    struct policy_call call = hook_view(v, tool->name);
    struct policy_outcome outcome = {0};
    if (!prepares(tool))
        return true;
    policy_prepare(tool->policy, &call, definition, v->arena, &outcome);
    if (outcome.kind == OUTCOME_POLICY_ERROR) {
        log_fault("policy_error", tool->name, outcome.why.text);
        return true;
    }
    if (!outcome.value)
        return false;
    if (outcome.value != definition)
        *definition = mended(v, tool->name, outcome.value, definition);
    return true;
}

static bool is_wanted(const struct view *v, const struct tool *tool)
{
    const struct catalog_request *r = v->request;
    return (r->all || tool_is_listed(tool)) && !tool->unregistered &&
           (!r->peer || peer_may_call(generation_config(v->generation), r->peer, tool->name));
}

static void show(struct view *v, const struct tool *tool, bool hooks)
{
    struct shown *place = &v->list[v->count];
    struct why why;
    if (definition_from_tool(v->arena, tool, &place->definition, &why) != OK)
        log_fault("tool_omitted", tool->name, why.text);
    else if (!hooks || prepare(v, tool, &place->definition)) {
        place->name = tool->name;
        place->tool = tool;
        v->count++;
    }
}

/* ---- all of them ---------------------------------------------------------- */

static struct json as_array(const struct view *v)
{
    struct json *items = ARENA_ARRAY(v->arena, struct json, v->count + 1);
    for (size_t i = 0; i < v->count; i++)
        items[i] = v->list[i].definition;
    return json_array(items, v->count);
}

static bool is_listed(const struct view *v, struct str name)
{
    size_t i = 0;
    while (i < v->count && !str_eq(v->list[i].name, name))
        i++;
    return i < v->count;
}

/* A name that prepare_tools changed or made up takes its tool off the list: whoever wrote it wants to know.
 */
static void say_unknown_names(const struct view *v, const struct json *definitions)
{
    for (uint32_t i = 0; i < definitions->len; i++) {
        struct str name = json_str(json_get_text(&definitions->items[i], "name"));
        if (is_listed(v, name))
            continue;
        struct str why = arena_printf(v->arena,
                                      "prepare_tools: item %u is named '" STR_FMT
                                      "': expected a definition that it was given, by its own name; left out",
                                      i + 1, STR_ARG(str_cut(name, TOOL_NAME_MAX_BYTES)));
        log_fault("policy_error", policy_set_gateway_file(generation_policies(v->generation)), why.at);
    }
}

/* Only what was there before can be there after: prepare_tools rewords and hides, it grants nothing. From a
 * session that is stuck it hides nothing either: what it took for irrelevant may have been what was needed.
 */
static void keep_those_in(struct view *v, const struct json *definitions)
{
    struct map *kept = map_new(v->arena);
    size_t count = 0;
    for (uint32_t i = 0; json_is(definitions, JSON_ARRAY) && i < definitions->len; i++)
        map_add(kept, json_str(json_get_text(&definitions->items[i], "name")),
                (void *)&definitions->items[i]);
    for (size_t i = 0; i < v->count; i++) {
        const struct json *fresh = map_get(kept, v->list[i].name);
        if (!fresh && !v->request->session_stuck)
            continue;
        v->list[count] = v->list[i];
        if (fresh)
            v->list[count].definition = mended(v, v->list[i].name, fresh, &v->list[i].definition);
        count++;
    }
    v->count = count;
}

static void pass_gateway(struct view *v)
{
    struct policy_set *policies = generation_policies(v->generation);
    struct json before = as_array(v);
    struct policy_call call = hook_view(v, STR_NONE);
    struct policy_outcome outcome = {0};
    if (!policy_set_has_gateway(policies))
        return;
    policy_set_prepare_tools(policies, &call, &before, v->arena, &outcome);
    if (outcome.kind == OUTCOME_POLICY_ERROR)
        log_fault("policy_error", policy_set_gateway_file(policies), outcome.why.text);
    else if (outcome.value != &before) {
        keep_those_in(v, outcome.value);
        if (json_is(outcome.value, JSON_ARRAY) && outcome.value->len > v->count)
            say_unknown_names(v, outcome.value);
    }
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct shown *)a)->name, ((const struct shown *)b)->name);
}

/* The connection's own win over a tool of the same name that the agent runs: check and report see them so,
 * too. */
static void add_own(struct view *v, size_t own)
{
    struct client_tools *box = v->request->client_tools;
    size_t count = 0;
    for (size_t i = 0; i < v->count; i++)
        if (!client_tools_find(box, v->generation, v->list[i].name))
            v->list[count++] = v->list[i];
    v->count = count;
    for (size_t i = 0; i < own; i++) {
        const struct tool *tool = client_tools_find(box, v->generation, client_tools_name_at(box, i));
        if (tool)
            show(v, tool, false);
    }
    qsort(v->list, v->count, sizeof(*v->list), by_name);
}

static void look(struct view *v)
{
    size_t own = v->request->all ? client_tools_count(v->request->client_tools) : 0;
    size_t all = generation_tool_count(v->generation);
    v->list = ARENA_ARRAY(v->arena, struct shown, all + own + 1);
    for (size_t i = 0; i < all; i++) {
        const struct tool *tool = generation_tool_at(v->generation, i);
        if (is_wanted(v, tool) && !tool->schema_pending)
            show(v, tool, true);
    }
    pass_gateway(v);
    if (own)
        add_own(v, own);
}

static void put(struct json_out *out, const char *key, struct str text)
{
    if (!text.len)
        return;
    json_key(out, key);
    json_put_str(out, text);
}

/* For everybody: an address may hold a key, a command a path. */
static void write_places(const struct view *v)
{
    static const char *const kinds[] = {[TARGET_MCP] = "mcp", [TARGET_HTTP] = "http", [TARGET_EXEC] = "exec"};
    struct json_out out = json_out(v->request->places);
    json_open(&out, '{');
    for (size_t i = 0; i < v->count; i++) {
        const struct tool *tool = v->list[i].tool;
        if (tool->runner != RUNNER_UPSTREAM)
            continue;
        json_key_str(&out, tool->name);
        json_open(&out, '{');
        put(&out, "kind", str_of(kinds[tool->target.kind]));
        put(&out, "upstream", tool->target.upstream);
        if (tool->target.kind == TARGET_MCP)
            put(&out, "tool", tool->target.tool);
        json_close(&out, '}');
    }
    json_close(&out, '}');
}

void catalog_write(struct arena *arena, struct generation *generation, const struct catalog_request *request,
                   struct buf *buf)
{
    struct view v = {.arena = arena, .generation = generation, .request = request};
    struct json_out out = json_out(buf);
    look(&v);
    json_open(&out, '[');
    for (size_t i = 0; i < v.count; i++)
        provider_format_write(arena, request, &v.list[i].definition, &out);
    json_close(&out, ']');
    if (request->places)
        write_places(&v);
}

/* ---- hidden or not -------------------------------------------------------- */

/*
 * Every call asks whether its tool is hidden, and the answer needs all
 * definitions in Lua: so it is kept with the generation, for a user, a session
 * and a goal, which is all that the hooks are told. They are kept as a hash,
 * since a client may make them as long as its messages.
 */
struct slot {
    struct hash128 key;
    uint8_t *hidden; /* a bit for each tool of the generation; NULL: nothing is kept here */
};

struct hidden {
    uint64_t salt[2]; /* nobody can choose what collides */
    struct slot slots[CATALOG_CACHE_SLOTS];
};

static void hidden_free(void *memo)
{
    struct hidden *kept = memo;
    for (size_t i = 0; i < CATALOG_CACHE_SLOTS; i++)
        free(kept->slots[i].hidden);
    free(kept);
}

static struct hidden *hidden_of(struct generation *generation)
{
    struct generation_cache *memo = generation_cache(generation);
    if (memo->data)
        return memo->data;
    struct hidden *kept = calloc(1, sizeof(*kept));
    if (!kept)
        abort();
    kept->salt[0] = hash_random();
    kept->salt[1] = hash_random();
    *memo = (struct generation_cache){.data = kept, .free = hidden_free};
    return kept;
}

static struct hash128 key_of(const struct view *v, const struct hidden *kept)
{
    const struct catalog_request *r = v->request;
    int64_t uid = r->peer ? (int64_t)r->peer->uid : -1;
    struct buf key = buf_in(v->arena);
    buf_add(&key, kept->salt, sizeof(kept->salt));
    buf_add(&key, &uid, sizeof(uid));
    buf_byte(&key, r->session_stuck);
    buf_add(&key, &r->session.len, sizeof(r->session.len));
    buf_str(&key, r->session);
    buf_str(&key, r->goal);
    return hash_stable(buf_view(&key));
}

/* The tool's place in the generation; both lists are in the order of names. */
static size_t place_of(const struct generation *generation, struct str name)
{
    size_t low = 0, high = generation_tool_count(generation);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(generation_tool_at(generation, middle)->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void fill_slot(struct slot *slot, struct view *v, struct hash128 key)
{
    size_t bytes = generation_tool_count(v->generation) / 8 + 1;
    if (!slot->hidden && !(slot->hidden = malloc(bytes)))
        abort();
    slot->key = key;
    memset(slot->hidden, 0xff, bytes);
    look(v);
    for (size_t i = 0; i < v->count; i++) {
        size_t place = place_of(v->generation, v->list[i].name);
        slot->hidden[place / 8] &= (uint8_t) ~(1u << place % 8);
    }
}

static bool is_hidden(struct view *v, struct str tool)
{
    struct hidden *kept = hidden_of(v->generation);
    struct hash128 key = key_of(v, kept);
    struct slot *slot = &kept->slots[key.low % CATALOG_CACHE_SLOTS];
    size_t place = place_of(v->generation, tool);
    if (!slot->hidden || slot->key.low != key.low || slot->key.high != key.high)
        fill_slot(slot, v, key);
    return slot->hidden[place / 8] & 1u << place % 8;
}

bool catalog_may_hide(const struct generation *generation, struct str name)
{
    const struct tool *tool = generation_find(generation, name);
    return tool && (prepares(tool) || policy_set_has_gateway(generation_policies(generation)));
}

bool catalog_has_hooks(const struct generation *generation)
{
    bool any = policy_set_has_gateway(generation_policies(generation));
    for (size_t i = 0; !any && i < generation_tool_count(generation); i++)
        any = prepares(generation_tool_at(generation, i));
    return any;
}

bool catalog_shows(struct arena *arena, struct generation *generation, const struct catalog_request *request,
                   struct str name)
{
    struct catalog_request everything = *request;
    const struct tool *tool = generation_find(generation, name);
    struct view v = {.arena = arena, .generation = generation, .request = &everything};
    everything.all = true;
    everything.client_tools = NULL;
    if (!tool || !is_wanted(&v, tool))
        return false;
    if (tool->schema_pending || (!prepares(tool) && !policy_set_has_gateway(generation_policies(generation))))
        return true; /* what nobody can list yet, no hook has seen either */
    return !is_hidden(&v, name);
}
