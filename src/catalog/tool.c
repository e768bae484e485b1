/* Builds a tool from its definition, its policy and the configuration; the policy wins. */
#include "catalog/tool.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/suggest.h"
#include "catalog/definition.h"
#include "policy/known_tools.h"
#include "policy/config.h"
#include "json/build.h"
#include "policy/policy_set.h"
#include "schema/contradiction.h"
#include "upstream/http/http_tool.h"

#include <stdarg.h>

/* Same-call budgets by effects. */
#define SAME_CALL_READ        5u
#define SAME_CALL_WRITE       2u
#define SAME_CALL_DECLARED    1u /* of a tool whose policy says that it writes */
#define SAME_CALL_DESTRUCTIVE 1u

static const struct json *first_object(const struct json *a, const struct json *b)
{
    return json_is(a, JSON_OBJECT) ? a : json_is(b, JSON_OBJECT) ? b : NULL;
}

static struct str first_of(struct str a, struct str b)
{
    return a.len ? a : b;
}

__attribute__((format(printf, 3, 4))) static void warn(struct arena *arena, struct tool *tool,
                                                       const char *format, ...)
{
    struct str *list = arena_grow(arena, (void *)tool->warnings, tool->warning_count, sizeof(*list));
    va_list args;
    va_start(args, format);
    list[tool->warning_count++] = arena_vprintf(arena, format, args);
    va_end(args);
    tool->warnings = list;
}

struct str tool_upstream(const struct policy *policy, struct str *tool)
{
    struct str rest = policy->upstream, upstream = str_split(&rest, '/');
    *tool = rest.len ? rest : policy->name;
    return upstream;
}

/* The policy decides, else the upstream that offers the tool runs it, else the agent. */
static void set_runner(struct tool *tool, const struct policy *policy)
{
    if (policy->hooks[HOOK_RUN]) {
        tool->runner = RUNNER_LUA;
    } else if (policy->exec || policy->http) {
        tool->runner = RUNNER_UPSTREAM;
        tool->target = (struct target){.kind = policy->exec ? TARGET_EXEC : TARGET_HTTP,
                                       .upstream = policy->upstream,
                                       .tool = tool->name,
                                       .http = policy->http,
                                       .exec = policy->exec};
    } else if (tool->target.upstream.len) {
        tool->runner = RUNNER_UPSTREAM;
    } else if (policy->upstream.len) {
        tool->runner = RUNNER_UPSTREAM;
        tool->target.kind = TARGET_MCP;
        tool->target.upstream = tool_upstream(policy, &tool->target.tool);
    }
}

/* A schema that a server publishes, without what cannot be read of it; of the arguments, it is one of
 * objects. What is then left of its faults is found when it is compiled. */
static const struct json *readable(struct arena *arena, struct tool *tool, const struct json *schema,
                                   const char *which)
{
    struct problems problems;
    struct why why;
    problems_init(&problems, arena);
    const struct json *type = json_get_text(schema, "type");
    if (!schema || schema->raw_len > SCHEMA_MAX_BYTES)
        return schema;
    bool is_object = !type || schema != tool->input || str_is(json_str(type), "object") ||
                     json_array_has(type, STR_LIT("object"));
    schema_repair(arena, schema, &schema, &problems, &why);
    for (size_t i = 0; i < problems.count; i++) {
        struct str path = problems.list[i].path, message = problems.list[i].message;
        bool has_path = str_contains_nocase(message, path);
        warn(arena, tool, "%s%s" STR_FMT ": " STR_FMT, which, has_path ? "" : " ",
             STR_ARG(has_path ? STR_NONE : path), STR_ARG(message));
    }
    if (!is_object && json_get_text(schema, "type")) {
        schema = json_keep(arena, json_without(arena, schema, STR_LIT("type")));
        warn(arena, tool, "%s #/type: expected \"object\"; it is left out", which);
    }
    return schema;
}

static void set_definition(struct arena *arena, struct tool *tool, const struct tool_source *source)
{
    static const struct policy none;
    const struct policy *p = source->policy ? source->policy : &none;
    const struct json *d = source->definition;
    tool->name = first_of(source->name, first_of(json_str(json_get_text(d, "name")), p->name));
    tool->title = first_of(p->title, json_str(json_get_text(d, "title")));
    if (!tool->title.len && !tool_name_fits(source->target.tool)) /* by which people know it */
        tool->title = source->target.tool;
    tool->description = first_of(p->description, json_str(json_get_text(d, "description")));
    tool->input = first_object(p->schema, json_get_text(d, "inputSchema"));
    tool->output = first_object(p->output_schema, json_get_text(d, "outputSchema"));
    bool is_published = source->target.kind == TARGET_MCP && source->target.upstream.len;
    if (is_published && !p->schema)
        tool->input = readable(arena, tool, tool->input, "input schema");
    if (is_published && !p->output_schema)
        tool->output = readable(arena, tool, tool->output, "output schema");
    if (is_published && !p->output_schema)
        tool->output_misfits = ARENA_NEW(arena, bool);
    tool->annotations = first_object(p->annotations, json_get_text(d, "annotations"));
    tool->definition = d;
    tool->policy = source->policy;
    tool->origin = source->origin;
    tool->target = source->target;
    set_runner(tool, p);
    bool incomplete = !tool->input && !d;
    tool->unregistered = incomplete && tool->runner == RUNNER_AGENT;
    tool->schema_pending = incomplete && tool->runner == RUNNER_UPSTREAM && tool->target.kind == TARGET_MCP;
    if (!tool->input && d)
        warn(arena, tool, "it has no inputSchema: any object is accepted");
    if (!tool->input && (d || tool->unregistered || tool->schema_pending)) {
        struct json_member type = json_member(STR_LIT("type"), json_string(STR_LIT("object")));
        tool->input = json_keep(arena, json_object(arena, &type, 1));
    }
    tool->secret_field_count = secret_fields_find(arena, tool->input, &tool->secret_fields);
    const struct json *properties = json_get_text(tool->input, "properties");
    tool->parameters = json_is(properties, JSON_OBJECT) ? properties : NULL;
}

/* ---- overlays ---- */

/* A replay asks what a shadow would do if it were enforced. */
static enum policy_mode mode_of(const struct policy *policy, const struct config *config)
{
    enum policy_mode mode = policy && policy->mode_given ? policy->mode : config->defaults.mode;
    return mode == POLICY_SHADOW && config->enforce_shadow ? POLICY_ENFORCE : mode;
}

/* Adds the overlays that name the tool, in the order of their files, each once; returns their number. */
static size_t add_overlays(struct arena *arena, const struct tool_source *source, struct str name,
                           const struct config *config, struct overlay **list, size_t count)
{
    const struct policy **found;
    size_t added = policy_set_overlays(source->policies, name, arena, &found);
    struct overlay *all = added ? ARENA_ARRAY(arena, struct overlay, count + added) : *list;
    if (added && count)
        memcpy(all, *list, count * sizeof(*all));
    for (size_t i = 0; i < added; i++) {
        size_t at = count;
        while (at && all[at - 1].policy->position > found[i]->position)
            at--;
        if (at && all[at - 1].policy == found[i])
            continue;
        memmove(all + at + 1, all + at, (count++ - at) * sizeof(*all));
        all[at] = (struct overlay){found[i], mode_of(found[i], config)};
    }
    *list = all;
    return count;
}

/* A file may also name a former name of the tool. */
static void set_overlays(struct arena *arena, struct tool *tool, const struct tool_source *source,
                         const struct config *config)
{
    const struct policy *own = source->policy;
    struct overlay *list = NULL;
    if (own) {
        tool->wants = own->wants;
        tool->takes_ids = own->id_count > 0;
        tool->redacts = own->redact_count > 0;
    }
    if (!source->policies)
        return;
    size_t count = add_overlays(arena, source, tool->name, config, &list, 0);
    for (size_t i = 0; own && i < own->alias_count; i++)
        count = add_overlays(arena, source, own->aliases[i], config, &list, count);
    tool->overlays = list;
    tool->overlay_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct policy *p = list[i].policy;
        tool->wants.history |= p->wants.history;
        tool->wants.facts |= p->wants.facts;
        tool->wants.progress |= p->wants.progress;
        tool->takes_ids |= p->id_count > 0;
        tool->redacts |= p->redact_count > 0 || p->result_sets;
    }
}

/* In shadow and off an overlay has no part in limits and effects: the ledger answers for all at once. */
static const struct policy *next_enforced_overlay(const struct tool *tool, size_t *next)
{
    while (*next < tool->overlay_count) {
        const struct overlay *overlay = &tool->overlays[(*next)++];
        if (overlay->mode == POLICY_ENFORCE)
            return overlay->policy;
    }
    return NULL;
}

const struct policy *tool_enforced_policy(const struct tool *tool, size_t *next)
{
    size_t overlay = *next ? *next - 1 : 0;
    bool first = *next == 0;
    *next = 1;
    if (first && tool_is_enforced(tool))
        return tool->policy;
    const struct policy *policy = next_enforced_overlay(tool, &overlay);
    *next = overlay + 1;
    return policy;
}

/* ---- limits ---- */

_Static_assert(POLICY_RATES_MAX == LEDGER_RATES_MAX && (int)RATE_BY_USER == LEDGER_RATE_BY_USER &&
                   (int)RATE_BY_TOOL == LEDGER_RATE_BY_TOOL,
               "rates pass from one to the other as they are");
_Static_assert(POLICY_COST_UNIT == LEDGER_COST_UNIT, "costs pass from one to the other as they are");

/* What is left of `now` when a policy or the configuration gives a limit. `lowers`: of two limits the
 * stricter holds; 0 is no limit. */
static uint64_t limited(uint64_t now, uint64_t given, uint64_t unset, bool lowers)
{
    bool stays = given == unset || (lowers && (!given || (now && now < given)));
    return stays ? now : given;
}

static void take_allowance(struct ledger_allowance *a, const struct policy_limits *p, bool lowers)
{
    a->calls_per_turn = (uint32_t)limited(a->calls_per_turn, p->calls_per_turn, POLICY_UNSET, lowers);
    a->calls_per_session =
        (uint32_t)limited(a->calls_per_session, p->calls_per_session, POLICY_UNSET, lowers);
    a->seconds_per_turn = (uint32_t)limited(a->seconds_per_turn, p->seconds_per_turn, POLICY_UNSET, lowers);
    a->cost_per_turn = limited(a->cost_per_turn, p->cost_per_turn, POLICY_COST_UNSET, lowers);
    a->cost_per_session = limited(a->cost_per_session, p->cost_per_session, POLICY_COST_UNSET, lowers);
}

/* Takes the limits that a policy, or the configuration's defaults, declare. `lowers`: only stricter ones. */
static void take_limits(struct ledger_limits *l, const struct policy *p, bool lowers)
{
    const struct {
        uint32_t *limit, given;
    } counts[] = {{&l->repair, p->repair},       {&l->same_call, p->same_call},
                  {&l->transient, p->transient}, {&l->repeats, p->repeats},
                  {&l->halt, p->halt},           {&l->across_turns, p->across_turns},
                  {&l->poll_max, p->poll_max}};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i].given != POLICY_UNSET && (!lowers || counts[i].given < *counts[i].limit))
            *counts[i].limit = counts[i].given;
    l->same_call_hard |= p->same_call != POLICY_UNSET;
    if (p->compare && !(lowers && l->compare_arguments))
        l->compare_arguments = p->compare == COMPARE_ARGUMENTS;
    uint32_t same_failure = p->same_failure == SAME_FAILURE_NOTE     ? LEDGER_UNLIMITED
                            : p->same_failure == SAME_FAILURE_REFUSE ? LEDGER_SAME_FAILURE_REFUSED
                                                                     : (uint32_t)p->same_failure;
    if (p->same_failure && (!lowers || same_failure < l->same_failure))
        l->same_failure = same_failure;
    take_allowance(&l->tool, &p->limits, lowers);
}

/* What a name alone says: a known tool's effects, else those of its verb. */
static enum policy_effects effects_by_name(struct str name)
{
    static const enum policy_effects known[KNOWN_KINDS] = {[KNOWN_READS] = EFFECTS_READ,
                                                           [KNOWN_NOTES] = EFFECTS_READ,
                                                           [KNOWN_EDITS] = EFFECTS_WRITE,
                                                           [KNOWN_SHELLS] = EFFECTS_UNDECLARED};
    enum known_tool kind = known_tools_find(name);
    if (!kind && known_tools_lists(KNOWN_POLLS, name)) /* which only looks, so that it re-arms nothing */
        return EFFECTS_READ;
    return kind ? known[kind] : effects_guess(name);
}

#define META_SCHEMA "dev.toolgate/schema"
#define META_REPAIR "dev.toolgate/repair"

/* What an agent's definition says of its own tool: a schema made of a function's signature is exact, and the
 * function's author may have set how often the model may try again. NULL: nothing. */
static const struct json *own_meta(const struct tool *tool, const char *key)
{
    return tool->runner == RUNNER_AGENT ? json_get_text(json_get_text(tool->definition, "_meta"), key) : NULL;
}

/* Counts that a policy has written and that the ledger cannot tell, or that others of them leave without
 * effect. */
static void check_counts(struct arena *arena, struct tool *tool, const struct policy *p,
                         const struct ledger_limits *l, bool same_call_given)
{
    const struct {
        const char *name;
        uint32_t given, most;
    } counts[] = {{"retry.repair", p->repair, LEDGER_COUNT_MAX},
                  {"retry.transient", p->transient, LEDGER_COUNT_MAX},
                  {"retry.same_call", p->same_call, LEDGER_SAME_CALL_MAX},
                  {"loop.repeats", p->repeats, LEDGER_COUNT_MAX},
                  {"loop.halt", p->halt, LEDGER_COUNT_MAX},
                  {"loop.across_turns", p->across_turns, LEDGER_COUNT_MAX},
                  {"loop.poll.max", p->poll_max, LEDGER_POLLS_MAX}};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i].given != POLICY_UNSET && counts[i].given > counts[i].most)
            warn(arena, tool, "%s = %u counts as %u, since the ledger tells no more of them apart",
                 counts[i].name, counts[i].given, counts[i].most);
    bool repeats = p->repeats != POLICY_UNSET && !l->polls;
    if (repeats && l->repeats > l->halt)
        warn(arena, tool,
             "loop.repeats = %u is above loop.halt = %u, so that the call it refuses ends the run: "
             "set loop.halt, too",
             l->repeats, l->halt);
    if (repeats && !same_call_given && l->same_call < l->repeats - 1)
        warn(arena, tool,
             "loop.repeats = %u has no effect, as retry.same_call = %u refuses such a call before: "
             "set that, too",
             l->repeats, l->same_call);
    if (p->polls && p->same_call != POLICY_UNSET)
        warn(arena, tool,
             "retry.same_call has no effect beside loop.poll, whose max says how often: remove it");
}

#define DEFINITION_REPAIR_MAX 1000

static void set_limits(struct arena *arena, struct tool *tool, const struct tool_source *source,
                       const struct config *config)
{
    const struct policy *policy = source->policy;
    static const uint32_t same_call[] = {[EFFECTS_READ] = SAME_CALL_READ,
                                         [EFFECTS_WRITE] = SAME_CALL_WRITE,
                                         [EFFECTS_DESTRUCTIVE] = SAME_CALL_DESTRUCTIVE,
                                         [EFFECTS_TOGGLE] = LEDGER_UNLIMITED};
    /* A toggle's effects depend on when it is called: the ledger treats them as unknown. */
    static const enum ledger_effects effects[] = {[EFFECTS_UNDECLARED] = LEDGER_EFFECTS_UNKNOWN,
                                                  [EFFECTS_READ] = LEDGER_EFFECTS_READ,
                                                  [EFFECTS_WRITE] = LEDGER_EFFECTS_WRITE,
                                                  [EFFECTS_DESTRUCTIVE] = LEDGER_EFFECTS_DESTRUCTIVE,
                                                  [EFFECTS_TOGGLE] = LEDGER_EFFECTS_UNKNOWN};
    struct ledger_limits limits = ledger_default_limits, *l = &limits;
    l->hinted = tool->effects == EFFECTS_DESTRUCTIVE && tool->effects_from == EFFECTS_FROM_ANNOTATIONS &&
                effects_by_name(tool->name) != EFFECTS_DESTRUCTIVE;
    l->edits_files = known_tools_find(tool->name) == KNOWN_EDITS;
    l->polls = known_tools_lists(KNOWN_POLLS, tool->name) || known_tools_lists(KNOWN_STEPS, tool->name) ||
               steps_guess(tool->name);
    l->effects = effects[tool->effects];
    if (l->hinted)
        l->same_call = SAME_CALL_WRITE;
    else if (policy && policy->effects == EFFECTS_WRITE)
        l->same_call = SAME_CALL_DECLARED;
    else if (tool->effects != EFFECTS_UNDECLARED)
        l->same_call = same_call[tool->effects];
    take_limits(l, &config->defaults, false);
    take_allowance(&l->session, &config->session_limits, false);
    int64_t repair;
    if (json_int(own_meta(tool, META_REPAIR), &repair) && repair >= 0 && repair <= DEFINITION_REPAIR_MAX) {
        l->repair = (uint32_t)repair;
        l->repair_hard = true;
    }
    if (policy) {
        take_limits(l, policy, false);
        l->repair_hard |= policy->repair != POLICY_UNSET;
        l->poll_every_ms = policy->poll_every_ms;
        if (policy->polls_given)
            l->polls = policy->polls;
        for (size_t i = 0; i < policy->rate_count; i++)
            l->rates[l->rate_count++] =
                (struct ledger_rate){policy->rates[i].count, policy->rates[i].window_s};
        l->rate_by = (enum ledger_rate_by)policy->rate_by;
        l->costs = policy->cost != POLICY_COST_UNSET;
        l->cost = l->costs ? policy->cost : 0;
        check_counts(arena, tool, policy, l, l->same_call_hard);
    }
    const struct policy *overlay;
    for (size_t i = 0; (overlay = next_enforced_overlay(tool, &i));) {
        take_limits(l, overlay, true);
        l->repair_hard |= overlay->repair != POLICY_UNSET;
        if (overlay->unknown_given && overlay->unknown > tool->unknown)
            tool->unknown = overlay->unknown;
    }
    /* Cost limits of the session apply to tools that have a cost or a cost limit; others are free. */
    l->costs |= l->tool.cost_per_turn || l->tool.cost_per_session;
    tool->limits = source->pool ? arena_pool_keep(source->pool, l, sizeof(*l))
                                : arena_copy(arena, (struct str){(const char *)l, sizeof(*l)});
}

static enum err check_size(const struct json *source, const char *which, struct why *why)
{
    if (source->raw_len > SCHEMA_MAX_BYTES)
        return err_set(why, ERR_LIMIT, "%s is %u bytes, more than the %u allowed", which, source->raw_len,
                       SCHEMA_MAX_BYTES);
    return OK;
}

static enum err compile(struct arena *arena, struct tool *tool, const struct json *source, const char *which,
                        const struct schema_options *options, struct schema **out, struct why *why)
{
    struct problems warnings;
    problems_init(&warnings, arena);
    enum err err = check_size(source, which, why);
    if (err == OK)
        err = schema_compile(arena, source, options, out, &warnings, why);
    for (size_t i = 0; err == OK && i < warnings.count; i++)
        warn(arena, tool, "%s " STR_FMT ": " STR_FMT, which, STR_ARG(warnings.list[i].path),
             STR_ARG(warnings.list[i].message));
    if (err != OK)
        err_prefix(why, which);
    return err;
}

/* Hints and keys of toolgate that are read, and would be passed over for their spelling alone. */
static void check_hints(struct arena *arena, struct tool *tool)
{
    static const struct str hints[] = {STR("readOnlyHint"), STR("destructiveHint"), STR("idempotentHint"),
                                       STR("openWorldHint")};
    const size_t count = sizeof(hints) / sizeof(hints[0]);
    for (uint32_t i = 0; json_is(tool->annotations, JSON_OBJECT) && i < tool->annotations->len; i++) {
        struct str key = tool->annotations->members[i].key, meant = suggest_closest(key, hints, count);
        enum json_type type = (enum json_type)tool->annotations->members[i].value.type;
        if (meant.len && (!str_eq(meant, key) || (type != JSON_BOOL && type != JSON_NULL)))
            warn(arena, tool,
                 "annotations: '" STR_FMT "' has no effect: expected " STR_FMT " = true or false",
                 STR_ARG(str_cut(key, 60)), STR_ARG(meant));
    }
    const struct json *mode = own_meta(tool, META_SCHEMA), *repair = own_meta(tool, META_REPAIR);
    static const char *const modes[] = {"strict", "learn", "advise"};
    int64_t n;
    if (mode && !STR_IS_ONE_OF(json_str(mode), modes))
        warn(arena, tool, "_meta: " META_SCHEMA " has no effect: expected strict, learn or advise");
    if (repair && !(json_int(repair, &n) && n >= 0 && n <= DEFINITION_REPAIR_MAX))
        warn(arena, tool, "_meta: " META_REPAIR " has no effect: expected a whole number from 0 to 1000");
}

static enum policy_schema_mode mode_of_definition(const struct tool *tool)
{
    struct str mode = json_str(own_meta(tool, META_SCHEMA));
    return str_is(mode, "strict")   ? SCHEMA_STRICT
           : str_is(mode, "advise") ? SCHEMA_ADVISE
                                    : SCHEMA_MODE_UNSET;
}

/* The author of a schema decides how strict it is: what a policy wrote is meant as it is, what a server or an
 * agent published may be stricter than what runs it. To insist is never enough for a tool that destroys. */
static void set_schema_mode(struct tool *tool, const struct policy *policy, const struct config *config)
{
    enum policy_schema_mode told = policy ? policy->schema_mode : SCHEMA_MODE_UNSET;
    const struct upstream_spec *spec = config_find_upstream(config, tool->target.upstream);
    if (!told && !(policy && policy->schema) && spec)
        told = (enum policy_schema_mode)spec->schema_mode;
    told = told ? told : mode_of_definition(tool);
    tool->keeps_contradictions = told == SCHEMA_STRICT || (policy && policy->schema);
    bool published = tool->definition && !(policy && policy->schema);
    tool->schema_mode = told ? told : published ? SCHEMA_LEARN : SCHEMA_STRICT;
    if (tool->schema_mode == SCHEMA_LEARN && tool->effects == EFFECTS_DESTRUCTIVE)
        tool->schema_mode = SCHEMA_STRICT;
}

/* A schema that contradicts itself is read without the contradiction, unless a policy has written it or wants
 * it kept: then lint reports it. */
static enum err compile_input(struct arena *arena, struct tool *tool, struct why *why)
{
    const struct policy *policy = tool->policy;
    const struct schema_options options = {.local_times = tool->formats == FORMATS_LENIENT};
    bool is_written = policy && policy->schema, is_kept = tool->keeps_contradictions;
    struct problems found;
    problems_init(&found, arena);
    const struct json *given = is_written ? tool->input : schema_drop_open_branches(arena, tool->input);
    const struct json *soft = schema_soften(arena, given, &found);
    tool->contradictions = found.list;
    tool->contradiction_count = found.count;
    for (size_t i = 0; !is_kept && i < found.count; i++)
        warn(arena, tool, "input schema " STR_FMT ": " STR_FMT, STR_ARG(found.list[i].path),
             STR_ARG(found.list[i].message));
    enum err err = check_size(tool->input, "input schema", why);
    if (err == OK)
        err =
            compile(arena, tool, is_kept ? given : soft, "input schema", &options, &tool->input_schema, why);
    if (err == OK && !is_kept && soft != given)
        err = schema_compile(arena, given, &options, &tool->contradictory, NULL, why);
    if (err == OK && tool->timezone && !schema_takes_local_times(tool->input_schema))
        warn(arena, tool, "timezone has no effect: the input schema has no \"format\": \"date-time\"");
    return err;
}

bool tool_name_fits(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] != '.' && !str_is_name((struct str){name.at + i, 1}))
            return false;
    return name.len && name.len <= TOOL_NAME_MAX_BYTES;
}

static enum err check_definition(struct arena *arena, struct tool *tool, const struct config *config,
                                 struct why *why)
{
    if (!tool->name.len)
        return err_set(why, ERR_SCHEMA, "a tool needs a name");
    if (!tool->input)
        return err_set(why, ERR_SCHEMA,
                       "tool '" STR_FMT
                       "' has no input schema: declare schema = json [[…]] or params{…}, or give "
                       "its definition with --tools",
                       STR_ARG(tool->name));
    bool is_required = config->require_descriptions && tool_is_described(tool);
    if (is_required && !tool->description.len)
        return err_set(why, ERR_SCHEMA,
                       "tool '" STR_FMT "' has no description, and require_descriptions is set",
                       STR_ARG(tool->name));
    const struct json *parameters = json_get_text(tool->input, "properties");
    struct buf names = buf_in(arena);
    for (uint32_t i = 0; is_required && json_is(parameters, JSON_OBJECT) && i < parameters->len; i++) {
        const struct json *schema = &parameters->members[i].value;
        if (!json_str(json_get_text(schema, "description")).len && !json_get_text(schema, "$ref"))
            buf_printf(&names, "%s'" STR_FMT "'", names.len ? ", " : "", STR_ARG(parameters->members[i].key));
    }
    if (names.len)
        return err_set(why, ERR_SCHEMA,
                       "tool '" STR_FMT "': no description of " STR_FMT
                       ", and require_descriptions is set: describe each, as in str \"Task title\"",
                       STR_ARG(tool->name), STR_ARG(buf_view(&names)));
    if (tool->runner != RUNNER_AGENT && !tool_name_fits(tool->name))
        return err_set(why, ERR_SCHEMA,
                       "tool name '" STR_FMT "' must be 1 to %u letters, digits, '_', '-' or '.'",
                       STR_ARG(tool->name), TOOL_NAME_MAX_BYTES);
    if (!tool_name_fits(tool->name))
        warn(arena, tool, "its name does not fit MCP (letters, digits, '_', '-' and '.', at most 128)");
    return OK;
}

/* The policy decides; else the stricter of annotations and name, since either may be wrong. MCP's defaults
 * for a hint that is left out say nothing of the tool. An overlay replaces a guess, and otherwise only makes
 * the effects stricter. */
static void set_effects(struct tool *tool, const struct policy *policy)
{
    /* What is unknown or a toggle is stricter than reading only. */
    static const int rank[] = {[EFFECTS_READ] = 0,
                               [EFFECTS_UNDECLARED] = 1,
                               [EFFECTS_TOGGLE] = 1,
                               [EFFECTS_WRITE] = 2,
                               [EFFECTS_DESTRUCTIVE] = 3};
    const struct json *reads = json_get_text(tool->annotations, "readOnlyHint");
    bool destroys = json_is_true(json_get_text(tool->annotations, "destructiveHint"));
    enum policy_effects annotated = json_is_true(reads)         ? EFFECTS_READ
                                    : destroys                  ? EFFECTS_DESTRUCTIVE
                                    : json_is(reads, JSON_BOOL) ? EFFECTS_WRITE
                                                                : EFFECTS_UNDECLARED;
    enum policy_effects guessed = effects_by_name(tool->name);
    if (policy && policy->effects != EFFECTS_UNDECLARED) {
        tool->effects = policy->effects;
        tool->effects_from = EFFECTS_FROM_POLICY;
    } else if (annotated >= guessed) {
        tool->effects = annotated;
        tool->effects_from = annotated ? EFFECTS_FROM_ANNOTATIONS : EFFECTS_FROM_NOTHING;
    } else {
        tool->effects = guessed;
        tool->effects_from = EFFECTS_FROM_NAME;
    }
    const struct policy *overlay;
    for (size_t i = 0; (overlay = next_enforced_overlay(tool, &i));) {
        bool is_guess = tool->effects_from == EFFECTS_FROM_NAME || tool->effects_from == EFFECTS_FROM_NOTHING;
        if (overlay->effects == EFFECTS_UNDECLARED ||
            (!is_guess && rank[overlay->effects] <= rank[tool->effects]))
            continue;
        tool->effects = overlay->effects;
        tool->effects_from = EFFECTS_FROM_POLICY;
    }
}

/* What the policy says, else the configuration. */
static void set_options(struct tool *tool, const struct policy *policy, const struct config *config)
{
    static const struct policy none;
    const struct policy *p = policy ? policy : &none;
    /* Whether toolgate may repeat a call by itself. A guess never makes it do that, and idempotentHint makes
     * no write a read: the second identical write of a turn is as odd as any, whether or not it changes
     * anything. */
    bool reads = tool->effects == EFFECTS_READ && tool->effects_from != EFFECTS_FROM_NAME;
    tool->idempotent = reads || json_is_true(json_get_text(tool->annotations, "idempotentHint")) ||
                       (p->http && http_tool_is_idempotent(p->http));
    if (p->idempotent_given)
        tool->idempotent = p->idempotent;
    tool->retry = p->retry_given ? p->retry : config->defaults.retry;
    tool->mode = mode_of(policy, config);
    tool->unknown = p->unknown_given ? p->unknown : config->defaults.unknown;
    tool->compact = p->compact_given ? p->compact : config->defaults.compact;
    tool->timezone = p->timezone;
    tool->formats = p->formats_given ? p->formats : config->defaults.formats;
    if (tool->timezone) /* which is for date-times that the configuration would refuse */
        tool->formats = FORMATS_LENIENT;
    tool->coerce = tool->proposes = p->coerce_given ? p->coerce : config->defaults.coerce;
    if (tool_destroys(tool)) { /* then a repair that the policy does not name is only proposed */
        tool->coerce = p->coerce_given ? p->coerce_named : (struct coerce_options){0};
        tool->coerce.json = tool->proposes.json;
        tool->coerce.floats = tool->proposes.floats;
    }
}

/* The arguments that do not make a call another one: those that the policies name; without them what is known
 * of the tool, and beside a command what labels it. */
static void set_volatiles(struct arena *arena, struct tool *tool, const struct policy *policy)
{
    struct buf list = buf_in(arena); /* of struct str */
    enum known_tool kind = known_tools_find(tool->name);
    bool is_shell = kind == KNOWN_SHELLS;
    const struct policy *overlay;
    size_t count;
    if (policy)
        buf_add(&list, policy->volatiles, policy->volatile_count * sizeof(struct str));
    is_shell |= !policy && json_get_text(tool->parameters, "command");
    if ((kind || is_shell) && !list.len) {
        const struct str *labels = known_tools_list(is_shell ? KNOWN_COMMAND_LABELS : KNOWN_LABELS, &count);
        buf_add(&list, labels, count * sizeof(struct str));
    }
    for (size_t i = 0; (overlay = next_enforced_overlay(tool, &i));)
        buf_add(&list, overlay->volatiles, overlay->volatile_count * sizeof(struct str));
    tool->volatiles = (const struct str *)(void *)list.at;
    tool->volatile_count = list.len / sizeof(struct str);
}

enum err tool_build(struct arena *arena, const struct config *config, const struct tool_source *source,
                    struct tool **out, struct why *why)
{
    const struct policy *policy = source->policy;
    struct tool *tool = ARENA_NEW(arena, struct tool);
    set_definition(arena, tool, source);
    set_overlays(arena, tool, source, config);
    set_effects(tool, policy);
    set_schema_mode(tool, policy, config);
    set_options(tool, policy, config);
    set_limits(arena, tool, source, config);
    check_hints(arena, tool);
    enum err err = check_definition(arena, tool, config, why);
    if (err == OK)
        err = compile_input(arena, tool, why);
    if (err == OK)
        set_volatiles(arena, tool, policy);
    if (err == OK && tool->output) {
        err = compile(arena, tool, tool->output, "output schema", NULL, &tool->output_schema, why);
        /* A server's own that cannot be used is as good as none; a policy's is meant. */
        if (err && !(policy && policy->output_schema) && tool->target.kind == TARGET_MCP &&
            tool->target.upstream.len) {
            warn(arena, tool, "%s; it is ignored", why->text);
            tool->output = NULL;
            err = OK;
        }
    }
    if (err == OK) { /* a tool that cannot be listed is not served at all */
        struct arena *scratch = arena_new();
        struct json definition;
        err = definition_from_tool(scratch, tool, &definition, why);
        arena_free(scratch);
    }
    *out = err == OK ? tool : NULL;
    return err;
}

const char *tool_effects_name(const struct tool *tool)
{
    static const char *const names[] = {[EFFECTS_UNDECLARED] = "unknown",
                                        [EFFECTS_READ] = "read",
                                        [EFFECTS_WRITE] = "write",
                                        [EFFECTS_DESTRUCTIVE] = "destructive",
                                        [EFFECTS_TOGGLE] = "toggle"};
    return names[tool->effects];
}

const struct tool *tool_as_enforced(struct arena *arena, const struct tool *tool,
                                    const struct policy *overlay)
{
    if (tool->mode == POLICY_ENFORCE && !overlay)
        return tool;
    struct tool *copy = ARENA_NEW(arena, struct tool);
    struct overlay *overlays = ARENA_ARRAY(arena, struct overlay, tool->overlay_count + 1);
    *copy = *tool;
    copy->mode = POLICY_ENFORCE;
    copy->overlays = overlays;
    for (size_t i = 0; i < tool->overlay_count; i++) {
        overlays[i] = tool->overlays[i];
        if (overlays[i].policy == overlay)
            overlays[i].mode = POLICY_ENFORCE;
    }
    return copy;
}
