/*
 * The phases: the names that policies reserve or claim, the pins of all definitions, the names that upstreams
 * use (one upstream can decide what another's tool is called), the tools, then those that pins hold: they get
 * the names that are left.
 */
#include "catalog/build.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/printable.h"
#include "base/suggest.h"
#include "catalog/definition.h"
#include "catalog/provider_formats.h"
#include "policy/config.h"
#include "policy/field.h"
#include "json/write.h"
#include "upstream/mcp/mcp_header_mapping.h"
#include "json/build.h"
#include "json/parse.h"
#include "catalog/pins.h"
#include "policy/policy_set.h"

#include <stdarg.h>

/* A bare tool name. */
struct name_use {
    const struct upstream_spec *upstream; /* the last one that offers it */
    bool shared;                          /* several upstreams offer it */
    bool exact;                           /* one of them by exactly this name, without replaced characters */
    bool reserved;                        /* a policy's own tool, or an alias, has it */
};

static struct str name_of(const struct json *definition)
{
    return json_str(json_get_text(definition, "name"));
}

/* ---- names; a hash is stable: the same server gives the same names on every host ---- */

#define HASH_SUFFIX_BYTES 9u /* "_" and eight hex digits */

/* The name, cut so that it and a hash of `hashed` have at most `max` bytes. */
static struct str name_with_hash(struct arena *arena, struct str name, struct str hashed, size_t max)
{
    struct str head = str_cut(name, max - HASH_SUFFIX_BYTES);
    return arena_printf(arena, STR_FMT "_%08x", STR_ARG(head), (unsigned)hash_stable(hashed).low);
}

/* That MCP accepts. One that has other characters keeps what it can and gets a hash of the whole, so that it
 * depends on nothing but itself. */
static struct str valid_name(struct arena *arena, struct str name)
{
    size_t i = 0;
    while (i < name.len && tool_name_fits((struct str){name.at + i, 1}))
        i++;
    if (i == name.len)
        return name.len > TOOL_NAME_MAX_BYTES ? name_with_hash(arena, name, name, TOOL_NAME_MAX_BYTES)
                                              : arena_dup(arena, name);
    struct buf kept = buf_in(arena);
    printable_write_name(&kept, name);
    if (!kept.len || kept.at[kept.len - 1] == '_') /* nothing is left of it, or of what follows a prefix */
        buf_text(&kept, "tool");
    return arena_printf(arena, STR_FMT "_%06x",
                        STR_ARG(str_cut(buf_view(&kept), TOOL_NAME_MAX_BYTES - HASH_SUFFIX_BYTES)),
                        (unsigned)(hash_stable(name).low & 0xffffff));
}

/* That every provider accepts: with '_' for each other character, and a hash of the whole as the end of a
 * name that is too long, or of any with `apart`. */
static struct str plain_name(struct arena *arena, struct str name, bool apart)
{
    char *copy = arena_copy(arena, name);
    for (size_t i = 0; i < name.len; i++)
        if (!str_is_name((struct str){copy + i, 1}))
            copy[i] = '_';
    struct str plain = {copy, name.len};
    return apart || name.len > PLAIN_NAME_MAX_BYTES ? name_with_hash(arena, plain, name, PLAIN_NAME_MAX_BYTES)
                                                    : plain;
}

/* A policy may name a tool plainly, with '_' for other characters, as all had to be named once: it guards the
 * tool, under that name. */
static struct str given_name(const struct generation_build *b, struct str name)
{
    struct arena *arena = b->g->arena;
    struct str valid = valid_name(arena, name), plain = plain_name(arena, name, false);
    bool plainly = !str_eq(valid, plain) && !policy_set_find(b->g->policies, valid) &&
                   policy_set_find(b->g->policies, plain);
    return plainly ? plain : valid;
}

/* A model knows a tool with another name by one that its provider accepts, and calls it so; programs may call
 * it by its server's name that MCP does not allow, unless several servers have it. */
bool import_plain_names(struct generation_build *b)
{
    struct generation *g = b->g;
    if (b->next == g->tool_count)
        return false;
    struct tool *tool = g->tools[b->next++];
    struct str own = tool->target.tool;
    const struct name_use *use = tool_name_fits(own) ? NULL : map_get(b->uses, given_name(b, own));
    if (use && use->upstream && !use->shared)
        map_add(g->by_name, own, tool);
    if (plain_name_fits(tool->name) || !tool_name_fits(tool->name))
        return true;
    struct str plain = plain_name(g->arena, tool->name, false);
    if (map_get(g->by_name, plain))
        plain = plain_name(g->arena, tool->name, true);
    if (map_add(g->by_name, plain, tool))
        tool->plain_name = plain;
    return true;
}

static struct name_use *use_of(struct generation_build *b, struct str name)
{
    struct name_use *use = map_get(b->uses, name);
    if (!use) {
        use = ARENA_NEW(b->g->arena, struct name_use);
        map_add(b->uses, arena_dup(b->g->arena, name), use);
    }
    return use;
}

/* The policy runs its tool in Lua, a command or an endpoint, or claims an upstream's: another tool of its
 * name is not meant. */
static bool has_own_tool(const struct policy *policy)
{
    return policy->hooks[HOOK_RUN] || policy->upstream.len || policy->exec || policy->http;
}

static const struct policy *claiming_policy(const struct generation_build *b, struct str upstream,
                                            struct str tool)
{
    return map_count(b->claims) ? map_get(b->claims, pin_key(b->g->arena, upstream, tool)) : NULL;
}

/* The policy that applies to a tool published under this name. */
static const struct policy *policy_for(const struct generation_build *b, struct str name)
{
    const struct policy *policy = policy_set_find(b->g->policies, name);
    return policy && !has_own_tool(policy) ? policy : NULL;
}

const struct upstream_spec *import_owner_of_name(const struct config *config, struct str name)
{
    const struct upstream_spec *owner = NULL;
    for (size_t i = 0; i < config->upstream_count; i++) {
        const struct upstream_spec *spec = config->upstreams[i];
        struct str head = {name.at, spec->name.len};
        bool fits = name.len > head.len && str_eq(head, spec->name) &&
                    str_starts(str_from(name, head.len), IMPORT_SEPARATOR);
        if (fits && (!owner || spec->name.len > owner->name.len))
            owner = spec;
    }
    return owner;
}

/* The name belongs to another upstream; NULL: to this one, or to none. */
static const struct upstream_spec *other_owner(const struct generation_build *b,
                                               const struct upstream_spec *spec, struct str name)
{
    const struct upstream_spec *owner =
        import_owner_of_name(&b->g->config, plain_name(b->g->arena, name, false));
    return owner == spec ? NULL : owner;
}

bool import_reserve_names(struct generation_build *b)
{
    struct arena *arena = b->g->arena;
    if (!b->uses) {
        b->uses = map_new(arena);
        b->seen = map_new(arena);
        b->claims = map_new(arena);
    }
    if (b->next == policy_set_count(b->g->policies))
        return false;
    const struct policy *policy = policy_set_at(b->g->policies, b->next++);
    struct str tool, upstream = tool_upstream(policy, &tool);
    if (has_own_tool(policy))
        use_of(b, policy->name)->reserved = true;
    if (upstream.len && !policy->exec && !policy->http)
        map_add(b->claims, pin_key(arena, upstream, tool), (void *)policy);
    for (size_t i = 0; i < policy->alias_count; i++)
        use_of(b, policy->aliases[i])->reserved = true;
    return true;
}

/* The tools of the present upstream; NULL: there are no more upstreams that have listed theirs. */
static const struct json *present_tools(struct generation_build *b, const struct upstream_spec **spec)
{
    const struct generation *g = b->g;
    while (b->next < g->config.upstream_count && !g->tool_lists[b->next])
        b->next++;
    if (b->next == g->config.upstream_count)
        return NULL;
    *spec = g->config.upstreams[b->next];
    return tool_list_array(g->tool_lists[b->next]);
}

/* One tool a step: each is hashed. */
bool import_review_pins(struct generation_build *b)
{
    const struct upstream_spec *spec;
    const struct json *tools = b->g->pins ? present_tools(b, &spec) : NULL;
    if (!tools)
        return false;
    if (b->next_inner < tools->len) {
        const struct json *definition = &tools->items[b->next_inner++];
        struct str tool = name_of(definition);
        if (tool.len && (name_globs_fit(&spec->tools, tool) || claiming_policy(b, spec->name, tool)))
            pins_review_add(b->g->pins, spec->name, tool, definition);
        return true;
    }
    pins_review_close(b->g->pins, spec->name);
    b->next++;
    b->next_inner = 0;
    return true;
}

static struct pin_entry *held_entry(const struct generation_build *b, const struct upstream_spec *spec,
                                    struct str tool)
{
    struct pin_entry *entry = b->g->pins ? pins_review_find(b->g->pins, spec->name, tool) : NULL;
    return entry && entry->held ? entry : NULL;
}

bool import_count_names(struct generation_build *b)
{
    const struct upstream_spec *spec;
    const struct json *tools = present_tools(b, &spec);
    if (!tools)
        return false;
    if (spec->prefix != UPSTREAM_PREFIX_ALWAYS && b->next_inner < tools->len) {
        struct str tool = name_of(&tools->items[b->next_inner++]), bare = given_name(b, tool);
        if (!tool.len || !name_globs_fit(&spec->tools, tool) || claiming_policy(b, spec->name, tool) ||
            other_owner(b, spec, bare) || held_entry(b, spec, tool))
            return true;
        struct name_use *use = use_of(b, bare);
        use->shared |= use->upstream && use->upstream != spec;
        use->exact |= str_eq(bare, tool);
        use->upstream = spec;
        return true;
    }
    b->next++;
    b->next_inner = 0;
    return true;
}

__attribute__((format(printf, 4, 5))) static void leave_out(const struct generation_build *b,
                                                            const struct upstream_spec *spec, struct str tool,
                                                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str why = arena_vprintf(b->g->arena, format, args);
    va_end(args);
    generation_report_warning(b->report, "upstream " STR_FMT ": tool '" STR_FMT "' is left out: " STR_FMT,
                              STR_ARG(spec->name), STR_ARG(str_cut(tool, 2 * TOOL_NAME_MAX_BYTES)),
                              STR_ARG(why));
}

/* NULL: it is left out, with a warning. */
static struct tool *build(struct generation_build *b, const struct upstream_spec *spec, struct str name,
                          const struct policy *policy, const struct json *definition)
{
    struct tool_source source = {
        .definition = definition,
        .policy = policy,
        .policies = b->g->policies,
        .pool = b->g->pool,
        .origin = arena_printf(b->g->arena, "upstream " STR_FMT, STR_ARG(spec->name)),
        .name = name,
        .target = {.kind = TARGET_MCP, .upstream = spec->name, .tool = name_of(definition)}};
    struct tool *tool = NULL;
    struct why why;
    struct hidden_text found;
    source.definition = hidden_text_strip(b->g->arena, definition, &found);
    if (found.removed && !found.refused)
        generation_report_warning(
            b->report,
            "upstream " STR_FMT ": tool '" STR_FMT
            "': %zu hidden character%s (zero-width, bidirectional, tags) removed from its "
            "definition: read what the server hides there",
            STR_ARG(spec->name), STR_ARG(str_cut(source.target.tool, 2 * TOOL_NAME_MAX_BYTES)), found.removed,
            found.removed == 1 ? "" : "s");
    /* tools/list is one line: one upstream's long definitions must not leave out the others'. */
    struct buf text = {0};
    json_write(&text, definition);
    size_t bytes = text.len;
    buf_clear(&text);
    bool fits = b->upstream_bytes + bytes <= IMPORT_SOURCE_MAX_BYTES;
    enum err err = OK;
    if (found.refused) {
        err = err_set(&why, ERR_SCHEMA, "%s has hidden characters (zero-width, bidirectional, tags)",
                      found.refused);
    } else if (!fits || b->bytes + bytes > IMPORT_MAX_BYTES) {
        err = err_set(&why, ERR_LIMIT,
                      "its definition has %zu bytes, and those of %s may have %u together: choose fewer with "
                      "tools = {…}",
                      bytes, fits ? "all upstreams" : "one upstream",
                      fits ? IMPORT_MAX_BYTES : IMPORT_SOURCE_MAX_BYTES);
    } else {
        b->upstream_bytes += bytes;
        b->bytes += bytes;
    }
    if (err == OK && spec->kind == UPSTREAM_HTTP) /* marked arguments also go into headers */
        err = header_mapping_check(json_get_text(definition, "inputSchema"), &why);
    if (err == OK)
        err = tool_build(b->g->arena, &b->g->config, &source, &tool, &why);
    if (err == OK)
        return tool;
    leave_out(b, spec, source.target.tool, "%s", why.text);
    return NULL;
}

/* If a policy has the bare name of a tool that several upstreams offer, only its author knows which one it is
 * for; a tool without that policy would be unguarded, so none is published. */
static struct tool *import_by_name(struct generation_build *b, const struct upstream_spec *spec,
                                   struct str tool, const struct json *definition)
{
    struct str bare = given_name(b, tool);
    struct str prefixed = given_name(
        b, arena_printf(b->g->arena, STR_FMT IMPORT_SEPARATOR STR_FMT, STR_ARG(spec->name), STR_ARG(tool)));
    const struct name_use *use = map_get(b->uses, bare);
    bool collides = use && (use->reserved || use->shared || (use->exact && !str_eq(bare, tool)));
    bool always = spec->prefix == UPSTREAM_PREFIX_ALWAYS || policy_for(b, prefixed);
    struct str name = always || collides || map_get(b->g->by_name, bare) ? prefixed : bare;
    if (map_get(b->g->by_name, name))
        name = name_with_hash(b->g->arena, name, tool, TOOL_NAME_MAX_BYTES);
    const struct upstream_spec *owner = other_owner(b, spec, name);
    if (owner) {
        leave_out(b, spec, tool,
                  "names that begin with '" STR_FMT IMPORT_SEPARATOR "' belong to the upstream " STR_FMT
                  "; if you trust " STR_FMT ", set prefix = \"always\" for it",
                  STR_ARG(owner->name), STR_ARG(owner->name), STR_ARG(spec->name));
        return NULL;
    }
    bool ambiguous = use && use->shared && !policy_for(b, name) && !map_get(b->g->by_name, bare);
    const struct policy *policy = ambiguous ? policy_for(b, bare) : NULL;
    const struct policy *own = policy_for(b, name);
    struct guarded_tool *guarded = own && !policy ? guarded_tools_find(b->g, own->name) : NULL;
    if (!policy && (!guarded || str_eq(guarded->upstream, spec->name)))
        return build(b, spec, name, own, definition);
    if (!policy) { /* a policy that names no upstream stays with the one whose tool it guarded */
        guarded->moved_to = spec->name;
        leave_out(b, spec, tool,
                  STR_FMT " guarded that of upstream '" STR_FMT "', which does not offer it now; if the "
                          "policy is for this one, declare upstream = \"" STR_FMT "\" in it",
                  STR_ARG(own->file), STR_ARG(guarded->upstream), STR_ARG(spec->name));
        return NULL;
    }
    leave_out(b, spec, tool,
              "several upstreams offer it, and " STR_FMT
              " does not say which of them it is for (upstream = \"" STR_FMT "\"); it would be '" STR_FMT
              "', without that policy",
              STR_ARG(policy->file), STR_ARG(spec->name), STR_ARG(name));
    return NULL;
}

static struct tool *import_tool(struct generation_build *b, const struct upstream_spec *spec,
                                const struct json *definition)
{
    struct str name = name_of(definition);
    const struct policy *policy = claiming_policy(b, spec->name, name);
    const struct json *task = json_get_text(json_get_text(definition, "execution"), "taskSupport");
    struct tool *tool = NULL;
    if (!name.len)
        leave_out(b, spec, STR_LIT("?"), "it has no name");
    else if (!map_add(b->seen, pin_key(b->g->arena, spec->name, name), b))
        leave_out(b, spec, name, "it is offered more than once");
    else if (str_is(json_str(task), "required"))
        leave_out(b, spec, name, "it only runs as a task, which toolgate does not support");
    else if (spec->excluded.given && name_globs_fit(&spec->excluded, name))
        tool = NULL; /* as the file of its server says */
    else if (policy &&
             map_get(b->g->by_name, policy->name)) /* a tools file, which the operator prefers, has it */
        b->taken++;
    else if (policy)
        tool = build(b, spec, policy->name, policy, definition);
    else if (name_globs_fit(&spec->tools, name))
        tool = import_by_name(b, spec, name, definition);
    b->taken += tool != NULL;
    struct pin_entry *entry = tool ? pins_review_find(b->g->pins, spec->name, name) : NULL;
    if (entry)
        entry->published = tool->name;
    if (tool)
        generation_build_add(b, tool);
    return tool;
}

/* Of a server that lists tools: one that is switched off by a misspelt name would be served in silence, one
 * that is chosen by it would not. */
static void warn_of_globs(struct generation_build *b, const struct upstream_spec *spec,
                          const struct json *tools, const struct name_globs *globs, const char *what)
{
    struct str *names = ARENA_ARRAY(b->g->arena, struct str, tools->len);
    for (uint32_t i = 0; i < tools->len; i++)
        names[i] = name_of(&tools->items[i]);
    for (size_t k = 0; k < globs->count; k++) {
        struct str glob = globs->list[k];
        bool found = false;
        for (uint32_t i = 0; i < tools->len && !found; i++)
            found = str_glob(glob, names[i]);
        if (!found && tools->len)
            generation_report_warning(b->report,
                                      STR_FMT ": '" STR_FMT "' of upstream " STR_FMT
                                              " is to be %s, but it offers no tool of this name%s",
                                      STR_ARG(spec->from), STR_ARG(glob), STR_ARG(spec->name), what,
                                      field_hint(b->g->arena, suggest_closest(glob, names, tools->len)));
    }
}

bool import_tools(struct generation_build *b)
{
    const struct upstream_spec *spec;
    const struct json *tools = present_tools(b, &spec);
    if (!tools)
        return false;
    if (b->next_inner < tools->len) {
        const struct json *definition = &tools->items[b->next_inner++];
        if (held_entry(b, spec, name_of(definition)))
            b->taken++;
        else
            import_tool(b, spec, definition);
        return true;
    }
    if (spec->tools.given && tools->len && !b->taken)
        generation_report_warning(
            b->report, STR_FMT ": upstreams." STR_FMT ".tools: none of the %u tools that it offers %s",
            STR_ARG(spec->from), STR_ARG(spec->name), tools->len,
            spec->tools.count ? "has such a name"
                              : "is served, because the list is empty: leave it out to serve all");
    else
        warn_of_globs(b, spec, tools, &spec->tools, "served");
    warn_of_globs(b, spec, tools, &spec->excluded, "left out");
    b->next++;
    b->next_inner = b->taken = b->upstream_bytes = 0;
    return true;
}

/* Tools that pins hold get the names that are left. One entry of the review a step. */
bool import_held(struct generation_build *b)
{
    if (!b->g->pins || !b->g->pins->held || b->next == b->g->pins->count)
        return false;
    struct pin_entry *entry = b->g->pins->entries[b->next++];
    const struct upstream_spec *spec = config_find_upstream(&b->g->config, entry->upstream);
    if (!entry->held || !spec)
        return true;
    /* As it was accepted, under its present name; without that, any object is accepted: nothing of a new text
     * is used. */
    struct json *old = ARENA_NEW(b->g->arena, struct json);
    if (!entry->was_text.len || json_parse(b->g->arena, entry->was_text, NULL, old, NULL) != OK)
        json_parse(b->g->arena, STR_LIT("{\"inputSchema\":{\"type\":\"object\"}}"), NULL, old, NULL);
    *old = json_with(b->g->arena, old, STR_LIT("name"), json_string(entry->tool));
    struct tool *tool = import_tool(b, spec, old);
    if (!tool)
        return true;
    bool is_changed = entry->state == PIN_CHANGED || entry->state == PIN_RENAMED;
    tool->held = is_changed ? TOOL_HELD_CHANGED : TOOL_HELD_NEW;
    tool->schema_pending |= tool->held == TOOL_HELD_NEW;
    return true;
}

void import_check_policy(const struct generation_build *b, const struct policy *policy)
{
    const struct name_use *use = map_get(b->uses, policy->name);
    struct str tool, name = tool_upstream(policy, &tool);
    size_t at = 0;
    if (!has_own_tool(policy) && use && use->shared && !map_get(b->g->by_name, policy->name))
        generation_report_warning(b->report,
                                  STR_FMT
                                  ": it applies to no tool: '" STR_FMT
                                  "' is offered by several upstreams; name one, e.g. upstream = \"NAME\"",
                                  STR_ARG(policy->file), STR_ARG(policy->name));
    if (!name.len || (!b->g->config.upstream_count && b->g->config.offline))
        return;
    while (at < b->g->config.upstream_count && !str_eq(b->g->config.upstreams[at]->name, name))
        at++;
    if (at == b->g->config.upstream_count) {
        struct str *names = ARENA_ARRAY(b->g->arena, struct str, at + 1);
        struct buf known = buf_in(b->g->arena), line = buf_in(b->g->arena);
        for (size_t i = 0; i < at; i++) {
            names[i] = b->g->config.upstreams[i]->name;
            buf_printf(&known, "%s" STR_FMT, i ? ", " : "", STR_ARG(names[i]));
        }
        struct str closest = suggest_closest(name, names, at);
        buf_printf(&line, STR_FMT ": upstream: no upstream '" STR_FMT "' is configured",
                   STR_ARG(policy->file), STR_ARG(name));
        if (closest.len)
            buf_printf(&line, " (did you mean '" STR_FMT "'?)", STR_ARG(closest));
        else
            buf_printf(&line,
                       ", only " STR_FMT ": name it in the configuration (upstreams = {…}, --mcp-config)",
                       STR_ARG(at ? buf_view(&known) : STR_LIT("none at all")));
        generation_report_error(b->report, STR_FMT, STR_ARG(buf_view(&line)));
        return;
    }
    bool is_rest = b->g->config.upstreams[at]->kind == UPSTREAM_REST;
    if (is_rest != (policy->exec || policy->http))
        generation_report_error(
            b->report, STR_FMT ": upstream: '" STR_FMT "' is %s", STR_ARG(policy->file), STR_ARG(name),
            is_rest ? "an address (rest), which offers no tools: declare the request with http = {…}"
                    : "an MCP server, and http = {…} goes to an address (rest): remove one of the two");
}

/* ---- policies that guard no tool: names in policies are compared with those of the tools ---- */

/* A tool that does not only exist because a policy or an example names it. */
static bool is_defined(const struct tool *tool)
{
    return tool && !tool->unregistered;
}

void import_list_names(struct generation_build *b)
{
    const struct generation *g = b->g;
    b->names = ARENA_ARRAY(g->arena, struct str, g->tool_count + 1);
    for (size_t i = 0; i < g->tool_count; i++)
        if (is_defined(g->tools[i]))
            b->names[b->name_count++] = g->tools[i]->name;
    for (size_t i = 0; i < g->config.upstream_count; i++)
        b->waits |= g->config.upstreams[i]->kind != UPSTREAM_REST && !g->tool_lists[i];
}

static void add_gap(struct generation_build *b, const struct policy *policy, struct str name, const char *why)
{
    struct generation *g = b->g;
    g->unmatched = arena_grow(g->arena, g->unmatched, g->unmatched_count, sizeof(*g->unmatched));
    g->unmatched[g->unmatched_count++] = (struct unmatched_policy){policy->file, name, why};
}

static void wait(struct generation_build *b, const struct policy *policy, struct str name)
{
    generation_report_warning(b->report,
                              STR_FMT ": waiting for a server that has not listed its tools yet: until it "
                                      "offers '" STR_FMT "', this guards nothing there",
                              STR_ARG(policy->file), STR_ARG(name));
    add_gap(b, policy, name, NULL);
}

/* The generation goes live without the guard only if no operator asked for this load. */
__attribute__((format(printf, 5, 6))) static void fail(struct generation_build *b,
                                                       const struct policy *policy, struct str name,
                                                       bool refuses, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str why = arena_vprintf(b->g->arena, format, args);
    va_end(args);
    if (refuses && !b->options.tools_changed) {
        generation_report_error(b->report, STR_FMT ": " STR_FMT, STR_ARG(policy->file), STR_ARG(why));
        return;
    }
    generation_report_warning(b->report, STR_FMT ": " STR_FMT, STR_ARG(policy->file), STR_ARG(why));
    add_gap(b, policy, name, why.at);
}

/* ---- the policy of one tool ---- */

static void report_bare(struct generation_build *b, const struct policy *policy)
{
    struct str meant = suggest_misspelled(policy->name, b->names, b->name_count);
    const struct tool *other = meant.len ? generation_find(b->g, meant) : NULL;
    const struct guarded_tool *guarded = guarded_tools_find(b->g, policy->name);
    if (guarded && guarded->moved_to.len)
        fail(b, policy, policy->name, false,
             "it guarded the tool of upstream '" STR_FMT
             "', which offers it no more; that of upstream '" STR_FMT
             "' is left out until the policy names its upstream: upstream = \"" STR_FMT "\"",
             STR_ARG(guarded->upstream), STR_ARG(guarded->moved_to), STR_ARG(guarded->moved_to));
    else if (b->waits)
        wait(b, policy, policy->name);
    else if (other && !other->policy) /* the author of two policies knows both names */
        fail(b, policy, policy->name, true,
             "guards no tool: did you mean '" STR_FMT "'? Rename the file and its tool \"" STR_FMT "\"",
             STR_ARG(meant), STR_ARG(policy->name));
    else
        generation_report_warning(
            b->report,
            STR_FMT ": guards nothing yet, as no tool '" STR_FMT "' is known: it takes effect when an agent "
                    "registers the tool; if a server offers it, name that with upstream = \"NAME\", if "
                    "toolgate runs it, declare run, exec or http, and else its schema",
            STR_ARG(policy->file), STR_ARG(policy->name));
}

static void check_own_tool(struct generation_build *b, const struct policy *policy)
{
    const struct tool *tool = generation_find(b->g, policy->name);
    struct str name, upstream = tool_upstream(policy, &name);
    const struct tool_list *list = upstream.len ? generation_tool_list(b->g, upstream) : NULL;
    if (!tool || tool->policy != policy || tool->held)
        return;
    if (tool->unregistered)
        report_bare(b, policy);
    else if (tool->schema_pending && !list && b->waits)
        wait(b, policy, policy->name);
    if (tool->unregistered || !tool->schema_pending || !list)
        return;
    /* Its server has listed its tools, and this is not one of them. */
    const struct json *tools = tool_list_array(list);
    struct str *names = ARENA_ARRAY(b->g->arena, struct str, tools->len + 1);
    for (uint32_t i = 0; i < tools->len; i++)
        names[i] = json_str(json_get_text(&tools->items[i], "name"));
    struct str slip = suggest_misspelled(name, names, tools->len);
    struct str meant = slip.len ? slip : suggest_closest(name, names, tools->len);
    fail(b, policy, policy->name, slip.len > 0,
         "upstream '" STR_FMT "' offers no tool '" STR_FMT "'%s" STR_FMT "%s", STR_ARG(upstream),
         STR_ARG(name), meant.len ? " (did you mean '" : "", STR_ARG(meant),
         meant.len ? "'?)" : ": its calls will fail");
}

/* ---- a policy for several tools ---- */

static bool matches_any(const struct generation_build *b, struct str pattern)
{
    if (!str_is_glob(pattern)) {
        const struct tool *tool = generation_find(b->g, pattern);
        return is_defined(tool) || (tool && tool->policy);
    }
    for (size_t i = 0; i < b->g->tool_count; i++) {
        const struct tool *tool = b->g->tools[i];
        if ((is_defined(tool) || tool->policy) && str_glob(pattern, tool->name))
            return true;
    }
    return false;
}

/* The name, or for PREFIX* the pattern with a name's beginning, that is meant; STR_NONE: none is close. */
static struct str meant_pattern(const struct generation_build *b, struct str pattern)
{
    struct arena *arena = b->g->arena;
    struct str prefix = pattern;
    if (!str_is_glob(pattern))
        return suggest_misspelled(pattern, b->names, b->name_count);
    for (size_t i = 0; i < prefix.len; i++)
        if (prefix.at[i] == '*' || prefix.at[i] == '?')
            prefix.len = i;
    struct str *beginnings = ARENA_ARRAY(arena, struct str, b->name_count + 1);
    for (size_t i = 0; i < b->name_count; i++)
        beginnings[i] = str_cut(b->names[i], prefix.len);
    struct str meant = suggest_misspelled(prefix, beginnings, b->name_count);
    if (!meant.len || str_eq(meant, prefix))
        return STR_NONE;
    return arena_printf(arena, STR_FMT STR_FMT, STR_ARG(meant), STR_ARG(str_from(pattern, prefix.len)));
}

static void check_pattern(struct generation_build *b, const struct policy *policy, struct str pattern)
{
    struct str slip = meant_pattern(b, pattern);
    struct str meant = slip.len ? slip : suggest_closest(pattern, b->names, b->name_count);
    bool in_example = false; /* then it is meant, though no such tool is registered yet */
    for (size_t i = 0; i < policy->example_count; i++)
        in_example |= str_glob(pattern, policy->examples[i].tool);
    if (b->waits)
        wait(b, policy, pattern);
    else if (slip.len)
        fail(b, policy, pattern, true, "tools: '" STR_FMT "' is no tool: did you mean '" STR_FMT "'?",
             STR_ARG(pattern), STR_ARG(slip));
    else if (!b->name_count || in_example)
        generation_report_warning(b->report,
                                  STR_FMT ": tools: '" STR_FMT "' matches no tool that is known: it takes "
                                          "effect when an agent registers one",
                                  STR_ARG(policy->file), STR_ARG(pattern));
    else
        fail(b, policy, pattern, true,
             "tools: '" STR_FMT "' matches no tool%s" STR_FMT "%s; for a tool that agents register, add an "
             "example that calls it",
             STR_ARG(pattern), meant.len ? " (the closest is '" : "", STR_ARG(meant), meant.len ? "')" : "");
}

bool import_check_unmatched(struct generation_build *b)
{
    if (b->next == policy_set_count(b->g->policies))
        return false;
    const struct policy *policy = policy_set_at(b->g->policies, b->next++);
    if (policy->quarantined) /* its examples are not known, and the daemon must start */
        return true;
    if (!policy_is_overlay(policy))
        check_own_tool(b, policy);
    for (size_t i = 0; i < policy->guard_count; i++)
        if (!matches_any(b, policy->guards[i]))
            check_pattern(b, policy, policy->guards[i]);
    return true;
}
