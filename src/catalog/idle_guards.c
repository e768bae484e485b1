/*
 * Guards that are there and never do anything, since they name what no tool has: a rule, an id or a
 * function `check` of an argument that the schema does not declare, a name in `except` of the gateway. A
 * policy's own schema is compared when the policy loads; that of a server or of a tools file is known only
 * here, and may change with the server. So these are warnings, of a generation that serves all the same.
 */
#include "catalog/build.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/suggest.h"
#include "json/value.h"
#include "policy/config.h"
#include "policy/field.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"

/* A policy and the tools that it is for. */
struct guard {
    struct generation_build *b;
    const struct policy *policy;
    const struct tool **tools;
    size_t count;
    bool rules_checked; /* against the schema of its one tool, which is closed */
};

/* False only if the schema declares all that it takes, and this is not in it: the path, or the name that it
 * begins with. */
static bool may_take(const struct tool *tool, struct str path, struct str name)
{
    struct str others = STR_LIT("$ref $dynamicRef allOf anyOf oneOf if not patternProperties "
                                "dependentSchemas then else unevaluatedProperties");
    const struct json *more = json_get_text(tool->input, "additionalProperties");
    if (!tool->parameters || !tool->parameters->len || json_is(more, JSON_OBJECT) || json_is_true(more))
        return true;
    while (others.len)
        if (json_get(tool->input, str_split(&others, ' ')))
            return true;
    return json_get(tool->parameters, path) || json_get(tool->parameters, name);
}

static struct str closest(const struct guard *g, struct str name)
{
    const struct json *properties = g->tools[0]->parameters;
    struct str *names = ARENA_ARRAY(g->b->g->arena, struct str, properties->len);
    for (uint32_t i = 0; i < properties->len; i++)
        names[i] = properties->members[i].key;
    return suggest_closest(name, names, properties->len);
}

static void see_argument(void *owner, const char *field, int line, struct str path)
{
    const struct guard *g = owner;
    struct arena *arena = g->b->g->arena;
    bool is_rule = strcmp(field, "rules") == 0; /* which does not read lists: "items[].id" is no path there */
    struct str rest = path, name = is_rule ? str_split(&rest, '.') : str_first_name(path);
    if (g->rules_checked && is_rule)
        return;
    for (size_t i = 0; i < g->count; i++)
        if (may_take(g->tools[i], path, name))
            return;
    struct str at = line ? arena_printf(arena, ":%d", line) : STR_NONE;
    generation_report_warning(
        g->b->report,
        STR_FMT STR_FMT ": %s: '" STR_FMT "' is an argument of no tool that this is for%s: "
                        "it has no effect; correct the name, or remove it",
        STR_ARG(g->policy->file), STR_ARG(at), field, STR_ARG(path), field_hint(arena, closest(g, name)));
}

static void see_conflict(void *owner, bool certain, int line, struct str sentence)
{
    const struct guard *g = owner;
    if (certain)
        generation_report_warning(g->b->report, STR_FMT ":%d: rules: " STR_FMT, STR_ARG(g->policy->file),
                                  line, STR_ARG(sentence));
}

/* Of the policy of one tool, whose schema somebody else wrote. */
static void check_rules(struct guard *g)
{
    const struct json *more = json_get_text(g->tools[0]->input, "additionalProperties");
    if (g->policy->schema || !g->tools[0]->definition)
        return;
    g->rules_checked = json_is(more, JSON_BOOL) && !more->truth;
    struct arena *scratch = arena_new();
    policy_rule_conflicts(g->policy, g->tools[0]->input, scratch, see_conflict, g);
    arena_free(scratch);
}

/* The gateway's check and result leave alone what it names: a misspelt tool is not left alone. */
static void check_exceptions(struct generation_build *b, const struct policy *gateway)
{
    for (size_t i = 0; i < gateway->except_count && b->name_count && !b->waits; i++) {
        struct str pattern = gateway->except[i];
        bool found = map_get(b->g->by_name, pattern) != NULL;
        for (size_t k = 0; k < b->name_count && !found; k++)
            found = str_glob(pattern, b->names[k]);
        if (!found)
            generation_report_warning(
                b->report, STR_FMT ": except: '" STR_FMT "' matches no tool that is known%s",
                STR_ARG(gateway->file), STR_ARG(pattern),
                field_hint(b->g->arena, suggest_closest(pattern, b->names, b->name_count)));
    }
}

/* Limits by cost refuse only what declares one: a cost, or a limit of its own. */
static void check_costs(const struct generation_build *b)
{
    const struct config *config = &b->g->config;
    const struct policy_limits *defaults = &config->defaults.limits, *all = &config->session_limits;
    bool idle = all->cost_per_turn != POLICY_COST_UNSET || all->cost_per_session != POLICY_COST_UNSET;
    idle &= defaults->cost_per_turn == POLICY_COST_UNSET && defaults->cost_per_session == POLICY_COST_UNSET;
    for (size_t i = 0; idle && i < policy_set_count(b->g->policies); i++) {
        const struct policy *p = policy_set_at(b->g->policies, i);
        idle = p->cost == POLICY_COST_UNSET && p->limits.cost_per_turn == POLICY_COST_UNSET &&
               p->limits.cost_per_session == POLICY_COST_UNSET;
    }
    if (idle)
        generation_report_warning(b->report,
                                  "%s: session_limits: no policy declares a cost, so that no call is refused "
                                  "for its cost: add cost = … to the policies of what costs",
                                  config->file);
}

/* False: nobody knows yet what it will take. */
static bool add_tool(struct guard *g, const struct tool *tool)
{
    g->tools = arena_grow(g->b->g->arena, g->tools, g->count, sizeof(struct tool *));
    g->tools[g->count++] = tool;
    return !tool->unregistered && !tool->schema_pending && !tool->held;
}

bool idle_guards_check(struct generation_build *b)
{
    const struct generation *g = b->g;
    if (b->next == 0)
        check_costs(b);
    if (b->next == policy_set_count(g->policies))
        return false;
    const struct policy *policy = policy_set_at(g->policies, b->next++);
    struct guard guard = {.b = b, .policy = policy};
    bool lies_over = policy_is_overlay(policy), known = !policy->quarantined && policy->mode != POLICY_OFF;
    const struct tool *own = lies_over ? NULL : map_get(g->by_name, policy->name);
    check_exceptions(b, policy);
    known &= lies_over ? !b->waits : own && own->policy == policy && b->options.warns_of_rules;
    if (known && own)
        known = add_tool(&guard, own);
    for (size_t i = 0; i < g->tool_count && known && lies_over; i++)
        if (policy_guards(policy, g->tools[i]->name))
            known = add_tool(&guard, g->tools[i]);
    if (!known || !guard.count)
        return true;
    if (own)
        check_rules(&guard);
    policy_each_argument(policy, see_argument, &guard);
    return true;
}
