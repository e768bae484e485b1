/* Building a tool: definition and policy laid over each other, the policy's word first. */
#include "catalog/tool.h"

#include "base/arena.h"
#include "base/buf.h"
#include "config/config.h"
#include "catalog/definition.h"
#include "json/build.h"
#include "upstream/http/http_tool.h"

/* Same-call budgets by what a tool declares about itself (LEDGER.md). */
#define SAME_CALL_READ        5u
#define SAME_CALL_WRITE       2u
#define SAME_CALL_DESTRUCTIVE 1u

static const struct json *first_of(const struct json *a, const struct json *b, enum json_type type)
{
    return json_is(a, type) ? a : json_is(b, type) ? b : NULL;
}

static struct str first_text(struct str a, struct str b)
{
    return a.len ? a : b;
}

static void warn(struct arena *arena, struct tool *tool, struct str text)
{
    struct str *list = ARENA_ARRAY(arena, struct str, tool->warning_count + 1);
    for (size_t i = 0; i < tool->warning_count; i++)
        list[i] = tool->warnings[i];
    list[tool->warning_count++] = text;
    tool->warnings = list;
}

/* For a definition that says nothing of its parameters, and for a policy without a schema until somebody
 * registers the tool it speaks of. */
static const struct json *any_object(struct arena *arena)
{
    struct json *schema = arena_alloc(arena, sizeof(*schema));
    struct json_member type = json_member(STR_LIT("type"), json_string(STR_LIT("object")));
    *schema = json_object(arena, &type, 1);
    return schema;
}

struct str tool_upstream(const struct policy *policy, struct str *tool)
{
    struct str whole = policy->upstream;
    const char *slash = whole.len ? memchr(whole.at, '/', whole.len) : NULL;
    size_t len = slash ? (size_t)(slash - whole.at) : whole.len;
    *tool = slash ? str_from(whole, len + 1) : policy->name;
    return (struct str){whole.at, len};
}

/* Who runs it: the policy's word, else whoever offers it, else the agent. */
static void choose_runner(struct tool *tool, const struct policy *policy)
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

static void take_definition(struct arena *arena, struct tool *tool, const struct json *definition,
                            const struct policy *policy)
{
    static const struct policy none;
    const struct policy *p = policy ? policy : &none;
    tool->name = first_text(tool->name, first_text(json_str(json_get_text(definition, "name")), p->name));
    tool->title = first_text(p->title, json_str(json_get_text(definition, "title")));
    tool->description = first_text(p->description, json_str(json_get_text(definition, "description")));
    tool->input = first_of(p->schema, json_get_text(definition, "inputSchema"), JSON_OBJECT);
    tool->output = first_of(p->output_schema, json_get_text(definition, "outputSchema"), JSON_OBJECT);
    tool->annotations = first_of(p->annotations, json_get_text(definition, "annotations"), JSON_OBJECT);
    tool->definition = definition;
    tool->policy = policy;
    choose_runner(tool, p);
    tool->unregistered = !tool->input && !definition && tool->runner == RUNNER_AGENT;
    tool->schema_pending =
        !tool->input && !definition && tool->runner == RUNNER_UPSTREAM && tool->target.kind == TARGET_MCP;
    if (!tool->input && definition)
        warn(arena, tool, STR_LIT("it has no inputSchema: any object is taken"));
    if (!tool->input && (definition || tool->unregistered || tool->schema_pending))
        tool->input = any_object(arena);
}

/* A hint from a definition is believed only where it makes budgets looser for reading; only the operator
 * declares a tool destructive, since real servers mark half of theirs so. */
static enum policy_effects effects_of(const struct tool *tool, const struct policy *policy)
{
    if (policy && policy->effects != EFFECTS_UNDECLARED)
        return policy->effects;
    return json_is_true(json_get_text(tool->annotations, "readOnlyHint")) ? EFFECTS_READ : EFFECTS_UNDECLARED;
}

/* The operator's word, else what reads, else what the tool or HTTP's method says of itself: a wrong hint
 * makes it run twice, no more, and only where the policy wants failures tried again. */
static bool is_idempotent(const struct tool *tool, const struct policy *policy)
{
    const struct http_spec *http = policy ? policy->http : NULL;
    if (policy && policy->idempotent_given)
        return policy->idempotent;
    return tool->effects == EFFECTS_READ ||
           json_is_true(json_get_text(tool->annotations, "idempotentHint")) ||
           (http && http_tool_is_idempotent(http));
}

static uint32_t same_call_by_effects(enum policy_effects effects)
{
    switch (effects) {
    case EFFECTS_READ:
        return SAME_CALL_READ;
    case EFFECTS_WRITE:
        return SAME_CALL_WRITE;
    case EFFECTS_DESTRUCTIVE:
        return SAME_CALL_DESTRUCTIVE;
    case EFFECTS_TOGGLE:
        return LEDGER_UNLIMITED;
    default:
        return ledger_default_limits.same_call;
    }
}

static uint32_t chosen(uint32_t by_policy, uint32_t by_config, uint32_t otherwise)
{
    return by_policy != POLICY_UNSET ? by_policy : by_config != POLICY_UNSET ? by_config : otherwise;
}

_Static_assert(POLICY_COST_UNIT == LEDGER_COST_UNIT, "costs pass from one to the other as they are");

static uint32_t limit(uint32_t by_policy, uint32_t by_config)
{
    return chosen(by_policy, by_config, 0);
}

static uint64_t cost_limit(uint64_t by_policy, uint64_t by_config)
{
    return by_policy != POLICY_COST_UNSET ? by_policy : by_config != POLICY_COST_UNSET ? by_config : 0;
}

static struct ledger_allowance allowance(const struct policy_limits *by_policy,
                                         const struct policy_limits *by_config)
{
    return (struct ledger_allowance){
        .calls_per_turn = limit(by_policy->calls_per_turn, by_config->calls_per_turn),
        .calls_per_session = limit(by_policy->calls_per_session, by_config->calls_per_session),
        .seconds_per_turn = limit(by_policy->seconds_per_turn, by_config->seconds_per_turn),
        .cost_per_turn = cost_limit(by_policy->cost_per_turn, by_config->cost_per_turn),
        .cost_per_session = cost_limit(by_policy->cost_per_session, by_config->cost_per_session),
    };
}

/* Limits by cost speak of a tool that names a cost or has such a limit of its own; any other is free. */
static void set_allowances(struct tool *tool, const struct policy *policy, const struct config *config)
{
    struct ledger_limits *l = &tool->limits;
    l->tool = allowance(policy ? &policy->limits : &policy_limits_unset, &config->tool_limits);
    l->session = allowance(&policy_limits_unset, &config->session_limits);
    l->costs =
        (policy && policy->cost != POLICY_COST_UNSET) || l->tool.cost_per_turn || l->tool.cost_per_session;
    l->cost = policy && policy->cost != POLICY_COST_UNSET ? policy->cost : 0;
    l->poll_every_ms = policy ? policy->poll_every_ms : 0;
}

static void set_limits(struct tool *tool, const struct policy *policy, const struct config *config)
{
    static const struct policy silent = {.repair = POLICY_UNSET,
                                         .same_call = POLICY_UNSET,
                                         .transient = POLICY_UNSET,
                                         .repeats = POLICY_UNSET,
                                         .halt = POLICY_UNSET,
                                         .across_turns = POLICY_UNSET,
                                         .poll_max = POLICY_UNSET};
    const struct policy *p = policy ? policy : &silent;
    const struct ledger_limits *base = &ledger_default_limits;
    tool->limits = (struct ledger_limits){
        .repair = chosen(p->repair, config->repair, base->repair),
        .same_call = chosen(p->same_call, config->same_call, same_call_by_effects(tool->effects)),
        .transient = chosen(p->transient, config->transient, base->transient),
        .repeats = chosen(p->repeats, config->repeats, base->repeats),
        .halt = chosen(p->halt, config->halt, base->halt),
        .across_turns = chosen(p->across_turns, config->across_turns, base->across_turns),
        .poll_max = chosen(p->poll_max, config->poll_max, base->poll_max),
        .polls = p->polls,
        .reads = tool->effects == EFFECTS_READ,
        .writes = tool->effects == EFFECTS_WRITE,
        .destructive = tool->effects == EFFECTS_DESTRUCTIVE,
    };
}

static void set_behaviour(struct tool *tool, const struct policy *policy, const struct config *config)
{
    tool->effects = effects_of(tool, policy);
    tool->idempotent = is_idempotent(tool, policy);
    tool->retry = policy && policy->retry_given ? policy->retry : config->again;
    tool->mode = policy && policy->mode_given ? policy->mode : config->mode;
    tool->unknown = policy && policy->unknown_given ? policy->unknown : config->unknown;
    tool->coerce = policy && policy->coerce_given ? policy->coerce : config->coerce;
    tool->compact = policy && policy->compact_given ? policy->compact : config->compact;
    set_limits(tool, policy, config);
    set_allowances(tool, policy, config);
}

static void list_parameters(struct arena *arena, struct tool *tool)
{
    const struct json *properties = json_get_text(tool->input, "properties");
    if (!json_is(properties, JSON_OBJECT))
        return;
    struct str *names = ARENA_ARRAY(arena, struct str, properties->len);
    for (uint32_t i = 0; i < properties->len; i++)
        names[i] = properties->members[i].key;
    tool->parameters = names;
    tool->parameter_count = properties->len;
}

static enum err compile(struct arena *arena, struct tool *tool, const struct json *source, const char *which,
                        struct schema **out, struct why *why)
{
    struct problems odd;
    problems_init(&odd, arena);
    if (source->raw_len > SCHEMA_MAX_BYTES)
        return err_set(why, ERR_LIMIT, "%s is %u bytes, more than the %u allowed", which, source->raw_len,
                       SCHEMA_MAX_BYTES);
    enum err err = schema_compile(arena, source, NULL, out, &odd, why);
    for (size_t i = 0; err == OK && i < odd.count; i++)
        warn(arena, tool,
             arena_printf(arena, "%s %.*s: " STR_FMT, which, STR_ARG(odd.list[i].path),
                          STR_ARG(odd.list[i].message)));
    if (err != OK)
        err_prefix(why, which);
    return err;
}

bool tool_name_fits(struct str name)
{
    return str_is_name(name) && name.len <= TOOL_NAME_MAX_BYTES;
}

/* Where the operator wants none without: the tool itself, and each of its parameters, all at once. */
static enum err check_descriptions(struct arena *arena, const struct tool *tool, struct why *why)
{
    const struct json *parameters = json_get_text(tool->input, "properties");
    struct buf names = buf_in(arena);
    if (!tool->description.len)
        return err_set(why, ERR_SCHEMA,
                       "tool '" STR_FMT "' has no description, and require_descriptions is set",
                       STR_ARG(tool->name));
    for (uint32_t i = 0; json_is(parameters, JSON_OBJECT) && i < parameters->len; i++) {
        const struct json *schema = &parameters->members[i].value;
        if (!json_str(json_get_text(schema, "description")).len && !json_get_text(schema, "$ref"))
            buf_printf(&names, "%s'" STR_FMT "'", names.len ? ", " : "", STR_ARG(parameters->members[i].key));
    }
    if (names.len)
        return err_set(why, ERR_SCHEMA,
                       "tool '" STR_FMT "': no description of " STR_FMT
                       ", and require_descriptions is set: say what each is, as in str \"Task title\"",
                       STR_ARG(tool->name), STR_ARG(buf_view(&names)));
    return OK;
}

static enum err check_whole(struct arena *arena, struct tool *tool, const struct config *config,
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
    if (config->require_descriptions && tool_is_described(tool) && check_descriptions(arena, tool, why) != OK)
        return ERR_SCHEMA;
    if (tool->runner != RUNNER_AGENT && !tool_name_fits(tool->name))
        return err_set(why, ERR_SCHEMA, "tool name '" STR_FMT "' must be 1 to %u letters, digits, '_' or '-'",
                       STR_ARG(tool->name), TOOL_NAME_MAX_BYTES);
    if (!tool_name_fits(tool->name))
        warn(arena, tool, STR_LIT("its name does not fit MCP (letters, digits, '_' and '-', at most 64)"));
    return OK;
}

/* What no list can hold is left out of everything. */
static enum err check_listed(const struct tool *tool, struct why *why)
{
    struct arena *scratch = arena_new();
    struct json listed;
    enum err err = definition_from_tool(scratch, tool, &listed, why);
    arena_free(scratch);
    return err;
}

static enum err build(struct arena *arena, struct tool *tool, const struct json *definition,
                      const struct policy *policy, const struct config *config, struct tool **out,
                      struct why *why)
{
    *out = NULL;
    take_definition(arena, tool, definition, policy);
    set_behaviour(tool, policy, config);
    enum err err = check_whole(arena, tool, config, why);
    if (err == OK)
        err = compile(arena, tool, tool->input, "input schema", &tool->input_schema, why);
    if (err == OK && tool->output)
        err = compile(arena, tool, tool->output, "output schema", &tool->output_schema, why);
    if (err != OK)
        return err;
    err = check_listed(tool, why);
    if (err != OK)
        return err;
    list_parameters(arena, tool);
    *out = tool;
    return OK;
}

enum err tool_build(struct arena *arena, const struct json *definition, const struct policy *policy,
                    const struct config *config, struct str origin, struct tool **out, struct why *why)
{
    struct tool *tool = ARENA_NEW(arena, struct tool);
    tool->origin = origin;
    return build(arena, tool, definition, policy, config, out, why);
}

enum err tool_build_from_upstream(struct arena *arena, struct str name, const struct json *definition,
                                  const struct target *target, const struct policy *policy,
                                  const struct config *config, struct str origin, struct tool **out,
                                  struct why *why)
{
    struct tool *tool = ARENA_NEW(arena, struct tool);
    tool->origin = origin;
    tool->name = name;
    tool->target = *target;
    return build(arena, tool, definition, policy, config, out, why);
}

bool tool_is_listed(const struct tool *tool)
{
    return tool->runner != RUNNER_AGENT && !tool->schema_pending;
}

bool tool_is_described(const struct tool *tool)
{
    return !tool->unregistered && !tool->schema_pending;
}

bool tool_is_enforced(const struct tool *tool)
{
    return tool->policy && tool->mode == POLICY_ENFORCE;
}

const struct tool *tool_as_enforced(struct arena *arena, const struct tool *tool)
{
    if (tool->mode == POLICY_ENFORCE)
        return tool;
    struct tool *felt = ARENA_NEW(arena, struct tool);
    *felt = *tool;
    felt->mode = POLICY_ENFORCE;
    return felt;
}
