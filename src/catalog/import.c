/*
 * The phases: the names that policies reserve or claim, the pins of all definitions, the names that upstreams
 * use (one upstream can decide what another's tool is called), the tools, then those that pins hold: they get
 * the names that are left.
 */
#include "catalog/import.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/suggest.h"
#include "catalog/definition.h"
#include "catalog/provider_formats.h"
#include "policy/config.h"
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

struct import {
    struct import_request request;
    struct map *uses;   /* bare names to struct name_use */
    struct map *seen;   /* "upstream/tool" of all tools met so far */
    struct map *claims; /* "upstream/tool" to the policy that claims it */
    bool (*phase)(struct import *import, struct tool **out);
    size_t policy, upstream, tool; /* the next one */
    size_t upstream_taken;         /* tools of this upstream that are published */
    size_t upstream_bytes, bytes;  /* definitions of this upstream, of all */
};

static struct str name_of(const struct json *definition)
{
    return json_str(json_get_text(definition, "name"));
}

static struct str tool_key(struct arena *arena, struct str upstream, struct str tool)
{
    return arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(upstream), STR_ARG(tool));
}

/* A name that MCP accepts: '_' replaces other characters, and a hash the end of a long name. A policy may
 * name a tool plainly, as all had to be named once: it guards the tool, under that name. */
static struct str given_name(const struct import *im, struct str name)
{
    struct arena *arena = im->request.arena;
    struct str valid = name_replaced(arena, name, tool_name_fits), plain = plain_name(arena, name);
    if (valid.len > TOOL_NAME_MAX_BYTES)
        valid = plain_name_with_hash(arena, valid, name, TOOL_NAME_MAX_BYTES);
    bool plainly = !str_eq(valid, plain) && !policy_set_find(im->request.policies, valid) &&
                   policy_set_find(im->request.policies, plain);
    return plainly ? plain : valid;
}

static struct name_use *use_of(struct import *im, struct str name)
{
    struct name_use *use = map_get(im->uses, name);
    if (!use) {
        use = ARENA_NEW(im->request.arena, struct name_use);
        map_add(im->uses, arena_dup(im->request.arena, name), use);
    }
    return use;
}

/* The policy runs its tool in Lua, a command or an endpoint, or claims an upstream's: another tool of its
 * name is not meant. */
static bool has_own_tool(const struct policy *policy)
{
    return policy->hooks[HOOK_RUN] || policy->upstream.len || policy->exec || policy->http;
}

static const struct policy *claiming_policy(const struct import *im, struct str upstream, struct str tool)
{
    return map_count(im->claims) ? map_get(im->claims, tool_key(im->request.arena, upstream, tool)) : NULL;
}

/* The policy that applies to a tool published under this name. */
static const struct policy *policy_for(const struct import *im, struct str name)
{
    const struct policy *policy = policy_set_find(im->request.policies, name);
    return policy && !has_own_tool(policy) ? policy : NULL;
}

/* By `tools` in the upstream's configuration; a claimed tool is imported in any case. */
static bool is_selected(const struct upstream_spec *spec, struct str tool)
{
    for (size_t i = 0; i < spec->tool_count; i++)
        if (str_glob(spec->tools[i], tool))
            return true;
    return !spec->tool_count;
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
static const struct upstream_spec *other_owner(const struct import *im, const struct upstream_spec *spec,
                                               struct str name)
{
    const struct upstream_spec *owner =
        import_owner_of_name(im->request.config, plain_name(im->request.arena, name));
    return owner == spec ? NULL : owner;
}

static bool review_pins(struct import *im, struct tool **out);
static bool count_names(struct import *im, struct tool **out);
static bool import_tools(struct import *im, struct tool **out);
static bool import_held(struct import *im, struct tool **out);

static bool reserve_names(struct import *im, struct tool **out)
{
    (void)out;
    struct policy_set *policies = im->request.policies;
    if (im->policy == policy_set_count(policies)) {
        im->phase = im->request.pins ? review_pins : count_names;
        return true;
    }
    const struct policy *policy = policy_set_at(policies, im->policy++);
    struct str tool, upstream = tool_upstream(policy, &tool);
    if (has_own_tool(policy))
        use_of(im, policy->name)->reserved = true;
    if (upstream.len && !policy->exec && !policy->http)
        map_add(im->claims, tool_key(im->request.arena, upstream, tool), (void *)policy);
    for (size_t i = 0; i < policy->alias_count; i++)
        use_of(im, policy->aliases[i])->reserved = true;
    return true;
}

/* Its tools; NULL: there are no more upstreams that have listed theirs. */
static const struct json *next_upstream(struct import *im, const struct upstream_spec **spec)
{
    const struct import_request *r = &im->request;
    while (im->upstream < r->config->upstream_count && !r->tool_lists[im->upstream])
        im->upstream++;
    if (im->upstream == r->config->upstream_count)
        return NULL;
    *spec = r->config->upstreams[im->upstream];
    return tool_list_array(r->tool_lists[im->upstream]);
}

/* One tool a step: each is hashed. */
static bool review_pins(struct import *im, struct tool **out)
{
    (void)out;
    struct pins_review *pins = im->request.pins;
    const struct upstream_spec *spec;
    const struct json *tools = next_upstream(im, &spec);
    if (!tools) {
        im->upstream = 0;
        im->phase = count_names;
        return true;
    }
    if (!im->tool)
        pins_review_open(pins, spec->name);
    if (im->tool < tools->len) {
        const struct json *definition = &tools->items[im->tool++];
        struct str tool = name_of(definition);
        if (tool.len && (is_selected(spec, tool) || claiming_policy(im, spec->name, tool)))
            pins_review_tool(pins, definition);
        return true;
    }
    pins_review_close(pins);
    im->upstream++;
    im->tool = 0;
    return true;
}

static struct pin_entry *held_entry(const struct import *im, const struct upstream_spec *spec,
                                    struct str tool)
{
    struct pin_entry *entry = im->request.pins ? pins_review_find(im->request.pins, spec->name, tool) : NULL;
    return entry && entry->held ? entry : NULL;
}

static bool count_names(struct import *im, struct tool **out)
{
    (void)out;
    const struct upstream_spec *spec;
    const struct json *tools = next_upstream(im, &spec);
    if (!tools) {
        im->upstream = 0;
        im->phase = import_tools;
        return true;
    }
    for (uint32_t i = 0; spec->prefix != UPSTREAM_PREFIX_ALWAYS && i < tools->len; i++) {
        struct str tool = name_of(&tools->items[i]), bare = given_name(im, tool);
        if (!tool.len || !is_selected(spec, tool) || claiming_policy(im, spec->name, tool) ||
            other_owner(im, spec, bare) || held_entry(im, spec, tool))
            continue;
        struct name_use *use = use_of(im, bare);
        use->shared |= use->upstream && use->upstream != spec;
        use->exact |= str_eq(bare, tool);
        use->upstream = spec;
    }
    im->upstream++;
    return true;
}

__attribute__((format(printf, 4, 5))) static void
leave_out(const struct import *im, const struct upstream_spec *spec, struct str tool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str why = arena_vprintf(im->request.arena, format, args);
    va_end(args);
    generation_report_warning(
        im->request.report, "upstream " STR_FMT ": tool '" STR_FMT "' is left out: " STR_FMT,
        STR_ARG(spec->name), STR_ARG(str_cut(tool, 2 * TOOL_NAME_MAX_BYTES)), STR_ARG(why));
}

/* NULL: it is left out, with a warning. */
static struct tool *build(struct import *im, const struct upstream_spec *spec, struct str name,
                          const struct policy *policy, const struct json *definition)
{
    const struct import_request *r = &im->request;
    struct tool_source source = {
        .definition = definition,
        .policy = policy,
        .policies = r->policies,
        .origin = arena_printf(r->arena, "upstream " STR_FMT, STR_ARG(spec->name)),
        .name = name,
        .target = {.kind = TARGET_MCP, .upstream = spec->name, .tool = name_of(definition)}};
    struct tool *tool = NULL;
    struct why why;
    struct hidden_text found;
    source.definition = hidden_text_strip(r->arena, definition, &found);
    if (found.removed && !found.refused)
        generation_report_warning(
            r->report,
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
    bool fits = im->upstream_bytes + bytes <= IMPORT_SOURCE_MAX_BYTES;
    enum err err = OK;
    if (found.refused) {
        err = err_set(&why, ERR_SCHEMA, "%s has hidden characters (zero-width, bidirectional, tags)",
                      found.refused);
    } else if (!fits || im->bytes + bytes > IMPORT_MAX_BYTES) {
        err = err_set(&why, ERR_LIMIT,
                      "its definition has %zu bytes, and those of %s may have %u together: choose fewer with "
                      "tools = {…}",
                      bytes, fits ? "all upstreams" : "one upstream",
                      fits ? IMPORT_MAX_BYTES : IMPORT_SOURCE_MAX_BYTES);
    } else {
        im->upstream_bytes += bytes;
        im->bytes += bytes;
    }
    if (err == OK && spec->kind == UPSTREAM_HTTP) /* marked arguments also go into headers */
        err = header_mapping_check(json_get_text(definition, "inputSchema"), &why);
    if (err == OK)
        err = tool_build(r->arena, r->config, &source, &tool, &why);
    if (err == OK)
        return tool;
    leave_out(im, spec, source.target.tool, "%s", why.text);
    return NULL;
}

/* If a policy has the bare name of a tool that several upstreams offer, only its author knows which one it is
 * for; a tool without that policy would be unguarded, so none is published. */
static struct tool *import_by_name(struct import *im, const struct upstream_spec *spec, struct str tool,
                                   const struct json *definition)
{
    const struct import_request *r = &im->request;
    struct str bare = given_name(im, tool);
    struct str prefixed = given_name(
        im, arena_printf(r->arena, STR_FMT IMPORT_SEPARATOR STR_FMT, STR_ARG(spec->name), STR_ARG(tool)));
    const struct name_use *use = map_get(im->uses, bare);
    bool collides = use && (use->reserved || use->shared || (use->exact && !str_eq(bare, tool)));
    bool always = spec->prefix == UPSTREAM_PREFIX_ALWAYS || policy_for(im, prefixed);
    struct str name = always || collides || map_get(r->by_name, bare) ? prefixed : bare;
    if (map_get(r->by_name, name))
        name = plain_name_with_hash(r->arena, name, tool, TOOL_NAME_MAX_BYTES);
    const struct upstream_spec *owner = other_owner(im, spec, name);
    if (owner) {
        leave_out(im, spec, tool,
                  "names that begin with '" STR_FMT IMPORT_SEPARATOR "' belong to the upstream " STR_FMT
                  "; if you trust " STR_FMT ", set prefix = \"always\" for it",
                  STR_ARG(owner->name), STR_ARG(owner->name), STR_ARG(spec->name));
        return NULL;
    }
    bool ambiguous = use && use->shared && !policy_for(im, name) && !map_get(r->by_name, bare);
    const struct policy *policy = ambiguous ? policy_for(im, bare) : NULL;
    const struct policy *own = policy_for(im, name);
    struct guarded_tool *guarded = own && !policy ? guarded_tools_find(r->generation, own->name) : NULL;
    if (!policy && (!guarded || str_eq(guarded->upstream, spec->name)))
        return build(im, spec, name, own, definition);
    if (!policy) { /* a policy that names no upstream stays with the one whose tool it guarded */
        guarded->moved_to = spec->name;
        leave_out(im, spec, tool,
                  STR_FMT " guarded that of upstream '" STR_FMT "', which does not offer it now; if the "
                          "policy is for this one, declare upstream = \"" STR_FMT "\" in it",
                  STR_ARG(own->file), STR_ARG(guarded->upstream), STR_ARG(spec->name));
        return NULL;
    }
    leave_out(im, spec, tool,
              "several upstreams offer it, and " STR_FMT
              " does not say which of them it is for (upstream = \"" STR_FMT "\"); it would be '" STR_FMT
              "', without that policy",
              STR_ARG(policy->file), STR_ARG(spec->name), STR_ARG(name));
    return NULL;
}

static struct tool *import_tool(struct import *im, const struct upstream_spec *spec,
                                const struct json *definition)
{
    const struct import_request *r = &im->request;
    struct str name = name_of(definition);
    const struct policy *policy = claiming_policy(im, spec->name, name);
    const struct json *task = json_get_text(json_get_text(definition, "execution"), "taskSupport");
    struct tool *tool = NULL;
    if (!name.len)
        leave_out(im, spec, STR_LIT("?"), "it has no name");
    else if (!map_add(im->seen, tool_key(r->arena, spec->name, name), im))
        leave_out(im, spec, name, "it is offered more than once");
    else if (str_is(json_str(task), "required"))
        leave_out(im, spec, name, "it only runs as a task, which toolgate does not support");
    else if (policy &&
             map_get(r->by_name, policy->name)) /* a tools file, which the operator prefers, has it */
        im->upstream_taken++;
    else if (policy)
        tool = build(im, spec, policy->name, policy, definition);
    else if (is_selected(spec, name))
        tool = import_by_name(im, spec, name, definition);
    im->upstream_taken += tool != NULL;
    struct pin_entry *entry = tool ? pins_review_find(r->pins, spec->name, name) : NULL;
    if (entry)
        entry->published = tool->name;
    return tool;
}

static bool import_tools(struct import *im, struct tool **out)
{
    const struct upstream_spec *spec;
    const struct json *tools = next_upstream(im, &spec);
    if (!tools) {
        im->phase = import_held;
        im->tool = 0;
        return im->request.pins && im->request.pins->held;
    }
    if (im->tool < tools->len) {
        const struct json *definition = &tools->items[im->tool++];
        bool held = held_entry(im, spec, name_of(definition)) != NULL;
        *out = held ? NULL : import_tool(im, spec, definition);
        im->upstream_taken += held;
        return true;
    }
    if (spec->tool_count && tools->len && !im->upstream_taken)
        generation_report_warning(im->request.report,
                                  STR_FMT ": upstreams." STR_FMT
                                          ".tools: none of the %u tools that it offers has such a name",
                                  STR_ARG(spec->from), STR_ARG(spec->name), tools->len);
    im->upstream++;
    im->tool = im->upstream_taken = im->upstream_bytes = 0;
    return true;
}

/* im->tool counts the entries of the review. */
static bool import_held(struct import *im, struct tool **out)
{
    const struct import_request *r = &im->request;
    if (im->tool == r->pins->count)
        return false;
    struct pin_entry *entry = &r->pins->entries[im->tool++];
    const struct upstream_spec *spec = NULL;
    for (size_t i = 0; entry->held && i < r->config->upstream_count; i++)
        if (str_eq(r->config->upstreams[i]->name, entry->upstream))
            spec = r->config->upstreams[i];
    if (!spec)
        return true;
    /* As it was accepted, under its present name; without that, any object is accepted: nothing of a new text
     * is used. */
    struct json *old = ARENA_NEW(r->arena, struct json);
    struct json_error error;
    if (!entry->was_text.len || json_parse(r->arena, entry->was_text, NULL, old, &error) != OK)
        json_parse(r->arena, STR_LIT("{\"inputSchema\":{\"type\":\"object\"}}"), NULL, old, &error);
    *old = json_with(r->arena, old, STR_LIT("name"), json_string(entry->tool));
    struct tool *tool = *out = import_tool(im, spec, old);
    if (!tool)
        return true;
    bool is_changed = entry->state == PIN_CHANGED || entry->state == PIN_RENAMED;
    tool->held = is_changed ? TOOL_HELD_CHANGED : TOOL_HELD_NEW;
    tool->schema_pending |= tool->held == TOOL_HELD_NEW;
    return true;
}

struct import *import_begin(const struct import_request *request)
{
    struct import *im = ARENA_NEW(request->arena, struct import);
    *im = (struct import){.request = *request,
                          .uses = map_new(request->arena),
                          .seen = map_new(request->arena),
                          .claims = map_new(request->arena),
                          .phase = reserve_names};
    return im;
}

bool import_step(struct import *im, struct tool **out)
{
    *out = NULL;
    return im->phase(im, out);
}

void import_check_policy(const struct import *im, const struct policy *policy)
{
    const struct import_request *r = &im->request;
    const struct name_use *use = map_get(im->uses, policy->name);
    struct str tool, name = tool_upstream(policy, &tool);
    size_t at = 0;
    if (!has_own_tool(policy) && use && use->shared && !map_get(r->by_name, policy->name))
        generation_report_warning(r->report,
                                  STR_FMT
                                  ": it applies to no tool: '" STR_FMT
                                  "' is offered by several upstreams; name one, e.g. upstream = \"NAME\"",
                                  STR_ARG(policy->file), STR_ARG(policy->name));
    if (!name.len || (!r->config->upstream_count && r->config->offline))
        return;
    while (at < r->config->upstream_count && !str_eq(r->config->upstreams[at]->name, name))
        at++;
    if (at == r->config->upstream_count) {
        struct str *names = ARENA_ARRAY(r->arena, struct str, at + 1);
        struct buf known = buf_in(r->arena), line = buf_in(r->arena);
        for (size_t i = 0; i < at; i++) {
            names[i] = r->config->upstreams[i]->name;
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
        generation_report_error(r->report, STR_FMT, STR_ARG(buf_view(&line)));
        return;
    }
    bool is_rest = r->config->upstreams[at]->kind == UPSTREAM_REST;
    if (is_rest != (policy->exec || policy->http))
        generation_report_error(
            r->report, STR_FMT ": upstream: '" STR_FMT "' is %s", STR_ARG(policy->file), STR_ARG(name),
            is_rest ? "an address (rest), which offers no tools: declare the request with http = {…}"
                    : "an MCP server, and http = {…} goes to an address (rest): remove one of the two");
}
