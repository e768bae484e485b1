/*
 * First all names are gathered, since one upstream decides what another's
 * tool is called; then the tools are built, one a step.
 */
#include "catalog/import.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "config/config.h"
#include "json/canonical.h"
#include "json/write.h"
#include "base/suggest.h"
#include "upstream/mcp/mcp_header_mapping.h"

#include <stdio.h>

#define IMPORT_MARK_BYTES 9u /* "_" and eight hex digits, for a name that would not be its own otherwise */

/* A name that upstreams or the operator use: how often, and whether it is the operator's. */
struct use {
    const struct import_source *source; /* that would publish it, the last one seen */
    bool shared;                        /* and another one would, too */
    bool exact;                         /* one calls it so, and hasn't been made to fit */
    bool reserved;                      /* by a policy that runs its own tool, or an alias */
};

struct import {
    struct import_request request;
    struct map *uses;              /* bare names to struct use */
    struct map *seen;              /* "upstream/tool" of those that were built or left out */
    struct map *claims;            /* "upstream/tool" to the policy that has it under its own name */
    size_t source, tool;           /* where the next step goes on */
    size_t policy;                 /* likewise, while names are reserved */
    size_t taken_of_source;        /* tools of this one that were published */
    size_t bytes_of_source, bytes; /* of the definitions that were taken: of this one, of all */
    bool (*phase)(struct import *import, struct tool **out);
};

/* ---- names ------------------------------------------------------------------ */

static struct str full_name(struct arena *arena, struct str upstream, struct str tool)
{
    return arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(upstream), STR_ARG(tool));
}

static struct str marked(struct arena *arena, struct str name, struct str whole)
{
    struct str head = str_cut(name, TOOL_NAME_MAX_BYTES - IMPORT_MARK_BYTES);
    return arena_printf(arena, STR_FMT "_%08x", STR_ARG(head), (unsigned)hash_stable(whole).low);
}

/* Letters, digits, '_' and '-' as they are, everything else '_'; what is too long is cut, and told apart by a
 * mark of the whole. */
static struct str fitting(struct arena *arena, struct str name)
{
    struct str fits = arena_dup(arena, name);
    for (size_t i = 0; i < fits.len; i++)
        if (!tool_name_fits((struct str){fits.at + i, 1}))
            ((char *)fits.at)[i] = '_';
    return fits.len <= TOOL_NAME_MAX_BYTES ? fits : marked(arena, fits, name);
}

static struct str prefixed(struct arena *arena, struct str upstream, struct str tool)
{
    struct str name = arena_printf(arena, STR_FMT IMPORT_SEPARATOR STR_FMT, STR_ARG(upstream), STR_ARG(tool));
    return fitting(arena, name);
}

static struct use *use_of(struct import *im, struct str name)
{
    struct use *use = map_get(im->uses, name);
    if (!use) {
        use = ARENA_NEW(im->request.arena, struct use);
        *use = (struct use){0};
        map_add(im->uses, arena_dup(im->request.arena, name), use);
    }
    return use;
}

/* ---- who may have it --------------------------------------------------------- */

static struct str name_of(const struct json *definition)
{
    return json_str(json_get_text(definition, "name"));
}

/* The upstream of a policy that names one for its tool; empty: it does not, or has an address of it only. */
static struct str claimed_upstream(const struct policy *policy, struct str *tool)
{
    struct str all = policy->upstream;
    const char *slash = all.len ? memchr(all.at, '/', all.len) : NULL;
    size_t len = slash ? (size_t)(slash - all.at) : all.len;
    *tool = slash ? str_from(all, len + 1) : policy->name;
    return (struct str){all.at, len};
}

static const struct policy *claimant(const struct import *im, struct str upstream, struct str tool)
{
    return map_count(im->claims) ? map_get(im->claims, full_name(im->request.arena, upstream, tool)) : NULL;
}

/* What a policy claims is wanted whatever the globs say. */
static bool is_wanted(const struct import_source *source, struct str tool)
{
    const struct upstream_spec *spec = source->spec;
    for (size_t i = 0; i < spec->tool_count; i++)
        if (str_glob(spec->tools[i], tool))
            return true;
    return !spec->tool_count;
}

/* A command or an endpoint runs it. */
static bool has_target(const struct policy *policy)
{
    return policy->exec || policy->http;
}

/* It runs its tool itself, so an upstream's of that name is another one. */
static bool has_own_tool(const struct policy *policy)
{
    return policy->hooks[HOOK_RUN] || policy->upstream.len || has_target(policy);
}

/* ---- the names that the operator uses ------------------------------------------ */

static bool count_names(struct import *im, struct tool **out);
static bool build_tools(struct import *im, struct tool **out);

static bool reserve_names(struct import *im, struct tool **out)
{
    (void)out;
    struct policy_set *policies = im->request.policies;
    if (im->policy == policy_set_count(policies)) {
        im->phase = count_names;
        return true;
    }
    const struct policy *policy = policy_set_at(policies, im->policy++);
    struct str tool, upstream = claimed_upstream(policy, &tool);
    if (has_own_tool(policy))
        use_of(im, policy->name)->reserved = true;
    if (upstream.len && !has_target(policy))
        map_add(im->claims, full_name(im->request.arena, upstream, tool), (void *)policy);
    for (size_t i = 0; i < policy->alias_count; i++)
        use_of(im, policy->aliases[i])->reserved = true;
    return true;
}

/* ---- the names that upstreams use ------------------------------------------------ */

static const struct import_source *next_source(struct import *im)
{
    const struct config *config = im->request.config;
    while (im->source < config->upstream_count && !im->request.sources[im->source].offer)
        im->source++;
    return im->source < config->upstream_count ? &im->request.sources[im->source] : NULL;
}

static void count_name(struct import *im, const struct import_source *source, struct str tool)
{
    struct arena *arena = im->request.arena;
    struct str upstream = source->spec->name;
    if (!tool.len || !is_wanted(source, tool) || claimant(im, upstream, tool) ||
        source->spec->prefix == UPSTREAM_PREFIX_ALWAYS)
        return;
    struct str bare = fitting(arena, tool);
    struct use *use = use_of(im, bare);
    use->shared |= use->source && use->source != source;
    use->exact |= str_eq(bare, tool);
    use->source = source;
}

static bool count_names(struct import *im, struct tool **out)
{
    (void)out;
    const struct import_source *source = next_source(im);
    if (!source) {
        im->source = 0;
        im->phase = build_tools;
        return true;
    }
    const struct json *tools = tool_list_array(source->offer);
    for (uint32_t i = 0; i < tools->len; i++)
        count_name(im, source, name_of(&tools->items[i]));
    im->source++;
    return true;
}

/* ---- one tool ---------------------------------------------------------------------- */

/* A policy of that name that has a tool of its own is not meant. */
static const struct policy *policy_over(const struct import *im, struct str name)
{
    const struct policy *policy = policy_set_find(im->request.policies, name);
    return policy && !has_own_tool(policy) ? policy : NULL;
}

static struct str published(struct import *im, const struct import_source *source, struct str tool)
{
    const struct import_request *r = &im->request;
    struct str upstream = source->spec->name, bare = fitting(r->arena, tool);
    struct str full = prefixed(r->arena, upstream, tool);
    const struct use *use = map_get(im->uses, bare);
    bool another = use && (use->reserved || use->shared || (use->exact && !str_eq(bare, tool)));
    bool always = source->spec->prefix == UPSTREAM_PREFIX_ALWAYS || policy_over(im, full);
    struct str name = always || another || map_get(r->taken, bare) ? full : bare;
    return map_get(r->taken, name) ? marked(r->arena, name, tool) : name;
}

static struct str origin_of(const struct import *im, const struct import_source *source)
{
    return arena_printf(im->request.arena, "upstream " STR_FMT, STR_ARG(source->spec->name));
}

static void leave_out(const struct import *im, const struct import_source *source, struct str tool,
                      const char *why)
{
    struct str origin = origin_of(im, source);
    generation_report_warning(im->request.report, STR_FMT ": tool '" STR_FMT "' is left out: %s",
                              STR_ARG(origin), STR_ARG(str_cut(tool, 2 * TOOL_NAME_MAX_BYTES)), why);
}

/* All tools go to a client in one line: one server's wordiness is not to keep the others' from it. */
static bool has_room(struct import *im, const struct json *definition, struct why *why)
{
    struct buf text = {0};
    json_write(&text, definition);
    size_t bytes = text.len;
    buf_clear(&text);
    bool own = im->bytes_of_source + bytes <= IMPORT_SOURCE_MAX_BYTES;
    if (!own || im->bytes + bytes > IMPORT_MAX_BYTES) {
        err_set(why, ERR_LIMIT,
                "its definition has %zu bytes, and those of %s may have %u together: choose fewer with "
                "tools = {…}",
                bytes, own ? "all upstreams" : "one upstream",
                own ? IMPORT_MAX_BYTES : IMPORT_SOURCE_MAX_BYTES);
        return false;
    }
    im->bytes_of_source += bytes;
    im->bytes += bytes;
    return true;
}

static struct tool *build(struct import *im, const struct import_source *source, struct str name,
                          const struct policy *policy, const struct json *definition)
{
    const struct import_request *r = &im->request;
    struct target target = {.kind = TARGET_MCP, .upstream = source->spec->name, .tool = name_of(definition)};
    struct tool *built;
    struct why why;
    if (!has_room(im, definition, &why)) {
        leave_out(im, source, target.tool, why.text);
        return NULL;
    }
    bool mirrored =
        source->spec->kind == UPSTREAM_HTTP; /* its calls carry marked arguments in headers, too */
    if (mirrored && header_mapping_check(json_get_text(definition, "inputSchema"), &why) != OK)
        leave_out(im, source, target.tool, why.text);
    else if (tool_build_from_upstream(r->arena, name, definition, &target, policy, r->config,
                                      origin_of(im, source), &built, &why) == OK)
        return built;
    else
        leave_out(im, source, target.tool, why.text);
    return NULL;
}

/* A plain call of it only hears that. */
static bool is_task_only(const struct json *definition)
{
    const struct json *execution = json_get_text(definition, "execution");
    return str_is(json_str(json_get_text(execution, "taskSupport")), "required");
}

/* A policy was written for a tool of this name, and which of those that have it now only its author can say.
 * Served under another name its tool would be unguarded. NULL: nothing of the kind. */
static const struct policy *undecided(const struct import *im, struct str tool, struct str name)
{
    struct str bare = fitting(im->request.arena, tool);
    const struct use *use = map_get(im->uses, bare);
    bool meant = use && use->shared && !policy_over(im, name) && !map_get(im->request.taken, bare);
    return meant ? policy_over(im, bare) : NULL;
}

static struct tool *offer_by_name(struct import *im, const struct import_source *source, struct str tool,
                                  const struct json *definition)
{
    struct str name = published(im, source, tool);
    const struct policy *whose = undecided(im, tool, name);
    if (!whose)
        return build(im, source, name, policy_over(im, name), definition);
    leave_out(im, source, tool,
              arena_printf(im->request.arena,
                           "several upstreams offer it, and " STR_FMT
                           " does not say which of them it is for (upstream = \"" STR_FMT
                           "\"); it would be '" STR_FMT "', without that policy",
                           STR_ARG(whose->file), STR_ARG(source->spec->name), STR_ARG(name))
                  .at);
    return NULL;
}

static void offer_one(struct import *im, const struct import_source *source, const struct json *definition,
                      struct tool **out)
{
    const struct import_request *r = &im->request;
    struct str tool = name_of(definition), upstream = source->spec->name;
    const struct policy *policy = claimant(im, upstream, tool);
    if (!tool.len)
        leave_out(im, source, STR_LIT("?"), "it has no name");
    else if (!map_add(im->seen, full_name(r->arena, upstream, tool), im))
        leave_out(im, source, tool, "it is offered more than once");
    else if (is_task_only(definition))
        leave_out(im, source, tool, "it runs as a task only, which the gateway does not ask for");
    else if (policy && map_get(r->taken, policy->name))
        im->taken_of_source++; /* its definition is in a file of tools, which the operator prefers */
    else if (policy)
        *out = build(im, source, policy->name, policy, definition);
    else if (is_wanted(source, tool))
        *out = offer_by_name(im, source, tool, definition);
    im->taken_of_source += *out != NULL;
}

static void end_source(struct import *im, const struct import_source *source)
{
    uint32_t count = tool_list_array(source->offer)->len;
    if (source->spec->tool_count && count && !im->taken_of_source)
        generation_report_warning(im->request.report,
                                  STR_FMT ": upstreams." STR_FMT
                                          ".tools: none of the %u tools that it offers has such a name",
                                  STR_ARG(source->spec->from), STR_ARG(source->spec->name), count);
    im->source++;
    im->tool = 0;
    im->taken_of_source = im->bytes_of_source = 0;
}

static bool build_tools(struct import *im, struct tool **out)
{
    const struct import_source *source = next_source(im);
    if (!source)
        return false;
    const struct json *tools = tool_list_array(source->offer);
    if (im->tool < tools->len)
        offer_one(im, source, &tools->items[im->tool++], out);
    else
        end_source(im, source);
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

/* ---- what policies say of upstreams --------------------------------------------------- */

static const struct import_source *find_source(const struct import_request *r, struct str name)
{
    for (size_t i = 0; i < r->config->upstream_count; i++)
        if (str_eq(r->sources[i].spec->name, name))
            return &r->sources[i];
    return NULL;
}

static void complain_of_unknown(const struct import_request *r, const struct policy *policy, struct str name)
{
    size_t count = r->config->upstream_count;
    struct str *names = ARENA_ARRAY(r->arena, struct str, count + 1);
    struct buf known = buf_in(r->arena);
    for (size_t i = 0; i < count; i++) {
        names[i] = r->sources[i].spec->name;
        buf_printf(&known, "%s" STR_FMT, i ? ", " : "", STR_ARG(names[i]));
    }
    struct str near = suggest_closest(name, names, count);
    struct buf line = buf_in(r->arena);
    buf_printf(&line, STR_FMT ": upstream: no upstream '" STR_FMT "' is configured", STR_ARG(policy->file),
               STR_ARG(name));
    if (near.len)
        buf_printf(&line, " (did you mean '" STR_FMT "'?)", STR_ARG(near));
    else
        buf_printf(&line, ", only " STR_FMT ": name it in the configuration (upstreams = {…}, --mcp-config)",
                   STR_ARG(count ? buf_view(&known) : STR_LIT("none at all")));
    generation_report_error(r->report, STR_FMT, STR_ARG(buf_view(&line)));
}

/* An address offers no tools, and a server is no address. */
static bool kind_fits(const struct import_request *r, const struct policy *policy,
                      const struct import_source *source)
{
    bool rest = source->spec->kind == UPSTREAM_REST;
    if (rest == has_target(policy))
        return true;
    generation_report_error(r->report, STR_FMT ": upstream: '" STR_FMT "' is %s", STR_ARG(policy->file),
                            STR_ARG(source->spec->name),
                            rest ? "an address (rest), which offers no tools: say with http = {…} what is "
                                   "asked of it"
                                 : "an MCP server, and http = {…} goes to an address (rest): remove one of "
                                   "the two");
    return false;
}

static void warn_of_missing(const struct import_request *r, const struct policy *policy,
                            const struct import_source *source, struct str tool)
{
    const struct json *tools = tool_list_array(source->offer);
    struct str *names = ARENA_ARRAY(r->arena, struct str, tools->len + 1);
    for (uint32_t i = 0; i < tools->len; i++) {
        names[i] = name_of(&tools->items[i]);
        if (str_eq(names[i], tool))
            return;
    }
    struct str near = suggest_closest(tool, names, tools->len);
    generation_report_warning(
        r->report, STR_FMT ": upstream '" STR_FMT "' offers no tool '" STR_FMT "'%s" STR_FMT "%s",
        STR_ARG(policy->file), STR_ARG(source->spec->name), STR_ARG(tool), near.len ? " (did you mean '" : "",
        STR_ARG(near), near.len ? "'?)" : ": its calls will fail");
}

/* Two upstreams offer it, so neither has the bare name, and this policy guards neither. */
static void warn_of_nothing_below(const struct import *im, const struct policy *policy)
{
    const struct use *use = map_get(im->uses, policy->name);
    if (use && use->shared && !map_get(im->request.taken, policy->name))
        generation_report_warning(im->request.report,
                                  STR_FMT
                                  ": it is laid over no tool: '" STR_FMT
                                  "' is offered by several upstreams; say which, e.g. upstream = \"NAME\"",
                                  STR_ARG(policy->file), STR_ARG(policy->name));
}

void import_check_policy(const struct import *im, const struct policy *policy)
{
    const struct import_request *r = &im->request;
    struct str tool, name = claimed_upstream(policy, &tool);
    const struct import_source *source = find_source(r, name);
    if (!has_own_tool(policy))
        warn_of_nothing_below(im, policy);
    if (!name.len || (!r->config->upstream_count && r->config->offline))
        return;
    if (!source)
        complain_of_unknown(r, policy, name);
    else if (kind_fits(r, policy, source) && source->offer)
        warn_of_missing(r, policy, source, tool);
}
