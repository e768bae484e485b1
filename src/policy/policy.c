/*
 * The hooks, each the same walk: rules where the stage has them, then the
 * policy's function in the sandbox, then what it said as an outcome. A policy
 * without the function says nothing, and nothing of Lua is touched.
 */
#include "policy/policy.h"
#include "base/arena.h"
#include "sandbox/bridge.h"
#include "sandbox/bridge_origins.h"
#include "policy/call_table.h"
#include "sandbox/read_only_proxy.h"
#include "policy/policy_internal.h"
#include "policy/outcome.h"
#include "sandbox/diagnostics.h"

/* What one run of a hook needs, inside the protected call. */
struct running {
    const struct policy *policy; /* NULL: prepare_tools */
    enum policy_hook hook;
    int ref;
    const struct json *subject; /* what is handed to the function first */
    struct arena *arena;
    struct policy_outcome *outcome;
    void (*take)(lua_State *L,
                 struct running *r); /* reads what was returned: at index 2; the subject's table is at 1 */
};

static void run_step(lua_State *L, void *context)
{
    struct running *r = context;
    bridge_push_pinned(L, r->subject);
    lua_rawgeti(L, LUA_REGISTRYINDEX, r->ref);
    lua_pushvalue(L, 1);
    call_table_push(L);
    lua_call(L, 2, 1);
    proxy_unwrap(L, 2);
    r->take(L, r);
}

/* Few policies ever break: what is told of one takes room only then. */
void policy_add_failure(struct policy_set *set, const struct policy *policy, const struct why *why)
{
    struct policy_failures **fault = policy ? &policy->code->fault : &set->gateway_fault;
    if (!*fault)
        *fault = ARENA_NEW(set->arena, struct policy_failures);
    (*fault)->count++;
    (*fault)->last = *why;
}

static void broke(struct policy_set *set, const struct policy *policy, struct policy_outcome *outcome)
{
    struct why why = outcome->why;
    policy_add_failure(set, policy, &why);
    struct arena *arena = outcome->problems.arena;
    outcome_init(outcome, arena);
    outcome->why = why;
    outcome->kind = OUTCOME_POLICY_ERROR;
}

static void run(struct policy_set *set, struct running *r, struct sandbox_context *now)
{
    struct bridge_origins origins = {.arena = r->arena};
    now->arena = r->arena;
    now->origins = &origins;
    if (sandbox_run(set->sandbox, set->options.deadline_ms, now, run_step, r, &r->outcome->why) != OK)
        broke(set, r->policy, r->outcome);
}

/* True where there is nothing to run: no such function, or a quarantined policy, which has broken. */
static bool is_idle(const struct policy *policy, enum policy_hook hook, struct policy_outcome *outcome)
{
    if (!policy->code->quarantined)
        return policy->code->hooks[hook].ref == HOOK_NONE;
    err_set(&outcome->why, ERR_POLICY,
            STR_FMT ": is quarantined, as it stalled the process: mend the file, and it is tried again",
            STR_ARG(policy->file));
    broke(policy->set, policy, outcome);
    return true;
}

static struct sandbox_context now_of(const struct policy *policy, enum policy_hook hook,
                                     const struct policy_call *call)
{
    return (struct sandbox_context){.call = call,
                                    .file = policy->file.at,
                                    .source_hash = policy->code->text,
                                    .lazy = !policy->code->walks,
                                    .hook = outcome_hook_name(hook),
                                    .hook_line = policy->code->hooks[hook].line};
}

static void run_hook(const struct policy *policy, enum policy_hook hook, const struct policy_call *call,
                     const struct json *subject, const struct json *args,
                     void (*take)(lua_State *L, struct running *r), struct arena *arena,
                     struct policy_outcome *outcome)
{
    struct running r = {policy, hook, policy->code->hooks[hook].ref, subject, arena, outcome, take};
    struct sandbox_context now = now_of(policy, hook, call);
    now.args = args;
    run(policy->set, &r, &now);
}

/* ---- what came back --------------------------------------------------------------------- */

static void take_verdict(lua_State *L, struct running *r)
{
    if (lua_isnil(L, 2))
        return;
    if (!outcome_is(L, 2)) {
        diagnostics_push_value(L, 2);
        luaL_error(L, "%s returned %s: expected nothing, or what repair, refuse, ask, ok, partial, … give",
                   outcome_hook_name(r->hook), lua_tostring(L, -1));
    }
    outcome_read(L, 2, r->hook, r->arena, r->outcome);
}

/* The arguments, changed in place or returned; or repair{…}. */
static void take_arguments(lua_State *L, struct running *r)
{
    if (outcome_is(L, 2)) {
        outcome_read(L, 2, r->hook, r->arena, r->outcome);
        return;
    }
    if (!lua_isnil(L, 2) && !lua_istable(L, 2)) {
        diagnostics_push_value(L, 2);
        luaL_error(L, "normalise returned %s: expected the arguments", lua_tostring(L, -1));
    }
    struct bridge_hints hints = {.original = r->subject, .schema = r->policy->schema};
    const struct json *args = bridge_read(L, lua_isnil(L, 2) ? 1 : 2, "arguments", &hints, r->arena);
    if (args->type != JSON_OBJECT)
        luaL_error(L, "normalise returned a list: expected the arguments by their names");
    r->outcome->args = args;
}

static void take_value(lua_State *L, struct running *r)
{
    struct bridge_hints hints = {.schema = r->policy->output_schema};
    if (outcome_is(L, 2)) {
        outcome_read(L, 2, r->hook, r->arena, r->outcome);
        return;
    }
    r->outcome->kind = OUTCOME_VALUE;
    r->outcome->value = bridge_read(L, 2, "result", &hints, r->arena);
}

static void take_definition(lua_State *L, struct running *r)
{
    struct bridge_hints hints = {.original = r->subject};
    if (lua_isnil(L, 2))
        return;
    if (!lua_istable(L, 2) || outcome_is(L, 2)) {
        diagnostics_push_value(L, 2);
        luaL_error(L, "%s returned %s: expected the definition, or nil to hide the tool",
                   outcome_hook_name(r->hook), lua_tostring(L, -1));
    }
    r->outcome->value = bridge_read(L, 2, "definition", &hints, r->arena);
}

/* ---- the rules ------------------------------------------------------------------------------- */

/* Rules with predicates run where policies do, all those of one stage within one deadline. */
struct judging {
    const struct rules *rules;
    const struct json *args;
    struct problems *problems; /* NULL: refuse, else apply */
    struct condition_tests tests;
    const struct rule *refusing;
};

static void judge_step(lua_State *L, void *context)
{
    struct judging *j = context;
    j->tests = (struct condition_tests){.L = L, .refs = j->rules->tests};
    if (j->problems)
        j->args = rule_apply_all(j->rules, j->args, j->problems->arena, j->problems, &j->tests);
    else
        j->refusing = rule_find_refusal(j->rules, j->args, &j->tests);
}

/* A predicate is found by its rule: its own line may be anywhere. */
static void blame_rule(const struct judging *j, struct why *why)
{
    const struct rule *rule = j->tests.rule;
    struct why cause = *why;
    if (rule)
        err_set(why, ERR_POLICY, "%.1500s (in the rule on line %d, " STR_FMT ")", cause.text, rule->line,
                STR_ARG(str_cut(rule->when, 300)));
}

/* Where a predicate breaks the outcome says so. */
static void judge(const struct policy *policy, const struct policy_call *call, struct judging *j,
                  struct policy_outcome *outcome)
{
    struct policy_set *set = policy->set;
    struct sandbox_context now = {.call = call,
                                  .arena = outcome->problems.arena,
                                  .file = policy->file.at,
                                  .source_hash = policy->code->text};
    j->rules = &policy->code->rules;
    if (sandbox_run(set->sandbox, set->options.deadline_ms, &now, judge_step, j, &outcome->why) == OK)
        return;
    blame_rule(j, &outcome->why);
    broke(set, policy, outcome);
}

/* The arguments as the rules leave them. */
static const struct json *apply_rules(const struct policy *policy, const struct policy_call *call,
                                      const struct json *args, struct arena *arena,
                                      struct policy_outcome *outcome)
{
    if (!policy->code->rules.test_count)
        return rule_apply_all(&policy->code->rules, args, arena, &outcome->problems, NULL);
    struct judging j = {.args = args, .problems = &outcome->problems};
    judge(policy, call, &j, outcome);
    return j.args;
}

static const struct rule *refusing_rule(const struct policy *policy, const struct policy_call *call,
                                        const struct json *args, struct policy_outcome *outcome)
{
    if (!policy->code->rules.test_count)
        return rule_find_refusal(&policy->code->rules, args, NULL);
    struct judging j = {.args = args};
    judge(policy, call, &j, outcome);
    return j.refusing;
}

/* ---- the hooks ------------------------------------------------------------------------------ */

void policy_normalise(const struct policy *policy, const struct policy_call *call, const struct json *args,
                      struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    args = apply_rules(policy, call, args, arena, outcome);
    if (outcome->kind == OUTCOME_POLICY_ERROR)
        return;
    outcome->args = args;
    if (outcome->problems.errors || outcome->problems.more) {
        outcome->kind = OUTCOME_REPAIR;
        return;
    }
    if (!is_idle(policy, HOOK_NORMALISE, outcome))
        run_hook(policy, HOOK_NORMALISE, call, args, NULL, take_arguments, arena, outcome);
}

void policy_rules_explain(const struct policy *policy, const struct json *args, struct problems *problems)
{
    rule_explain_all(&policy->code->rules, args, problems);
}

void policy_check(const struct policy *policy, const struct policy_call *call, const struct json *args,
                  struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    const struct rule *refusing = refusing_rule(policy, call, args, outcome);
    if (outcome->kind == OUTCOME_POLICY_ERROR)
        return;
    if (refusing) {
        outcome->kind = OUTCOME_REFUSE;
        outcome->code = refusing->code;
        outcome->detail = refusing->message;
        outcome->hint = refusing->hint;
        return;
    }
    if (!is_idle(policy, HOOK_CHECK, outcome))
        run_hook(policy, HOOK_CHECK, call, args, NULL, take_verdict, arena, outcome);
}

void policy_run(const struct policy *policy, const struct policy_call *call, const struct json *args,
                struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    if (!is_idle(policy, HOOK_RUN, outcome))
        run_hook(policy, HOOK_RUN, call, args, NULL, take_value, arena, outcome);
}

void policy_judge(const struct policy *policy, const struct policy_call *call, const struct json *args,
                  const struct json *result, struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    if (!is_idle(policy, HOOK_RESULT, outcome))
        run_hook(policy, HOOK_RESULT, call, result, args, take_verdict, arena, outcome);
}

void policy_prepare(const struct policy *policy, const struct policy_call *call,
                    const struct json *definition, struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    outcome->value = definition;
    if (is_idle(policy, HOOK_PREPARE, outcome))
        return;
    outcome->value = NULL;
    run_hook(policy, HOOK_PREPARE, call, definition, NULL, take_definition, arena, outcome);
}

/* ---- the gateway's --------------------------------------------------------------------------- */

/* Definitions move when some of them are left out: each is known by its table, not by its place. */
static void take_definitions(lua_State *L, struct running *r)
{
    struct bridge_hints hints = {.original = r->subject};
    if (lua_isnil(L, 2))
        return;
    r->outcome->value = bridge_read(L, 2, "definitions", &hints, r->arena);
    if (r->outcome->value->type != JSON_ARRAY)
        luaL_error(L, "prepare_tools returned no list: expected the definitions to show, or nil to hide all");
}

void policy_set_prepare_tools(struct policy_set *set, const struct policy_call *call,
                              const struct json *definitions, struct arena *arena,
                              struct policy_outcome *outcome)
{
    struct running r = {NULL,  HOOK_PREPARE, set->prepare_tools.ref, definitions,
                        arena, outcome,      take_definitions};
    struct sandbox_context now = {.call = call,
                                  .file = set->gateway_file.at,
                                  .source_hash = set->gateway_text,
                                  .hook = "prepare_tools",
                                  .hook_line = set->prepare_tools.line};
    outcome_init(outcome, arena);
    outcome->value = definitions;
    if (set->prepare_tools.ref == HOOK_NONE)
        return;
    outcome->value = NULL;
    run(set, &r, &now);
}

const uint64_t *policy_rule_hits(const struct policy *policy)
{
    return policy->code->rules.hits;
}

const struct policy_failures *policy_failures(const struct policy *policy)
{
    return policy->code->fault;
}

const struct policy_failures *policy_set_gateway_failures(const struct policy_set *policies)
{
    return policies->gateway_fault;
}

void policy_set_free_examples(struct policy_set *policies)
{
    for (size_t i = 0; i < policies->count; i++) {
        policies->list[i]->examples = NULL;
        policies->list[i]->example_count = 0;
    }
    arena_free(policies->examples);
    policies->examples = NULL;
}

void policy_set_reset_counters(struct policy_set *policies)
{
    policies->gateway_fault = NULL;
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        struct policy_code *code = policy_set_at(policies, i)->code;
        struct rules *rules = &code->rules;
        code->fault = NULL;
        if (rules->count)
            memset(rules->hits, 0, rules->count * sizeof(*rules->hits));
    }
}
