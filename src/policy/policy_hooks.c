/* Each hook is the same sequence: the rules of its stage, then the policy's function in the sandbox, then
 * its return value as an outcome. Without the function and without predicates no Lua runs. */
#include "policy/policy_hooks.h"
#include "base/arena.h"
#include "base/suggest.h"
#include "json/build.h"
#include "json/write.h"
#include "policy/policy_internal.h"
#include "sandbox/bridge.h"

#include <math.h>

/* ---- outcomes: each word with its kind of outcome and the hooks that may return it. Strings are copied into
 * the arena of the call. ---- */

#define IN(hook) (1u << (hook))

static const char *const hook_names[HOOK_COUNT] = {
    [HOOK_PREPARE] = "prepare", [HOOK_NORMALISE] = "normalise", [HOOK_CHECK] = "check",
    [HOOK_RUN] = "run",         [HOOK_RESULT] = "result",
};

static const struct {
    const char *word;
    enum policy_outcome_kind kind;
    unsigned hooks;
} outcomes[] = {
    {"repair", OUTCOME_REPAIR, IN(HOOK_NORMALISE) | IN(HOOK_CHECK) | IN(HOOK_RUN)},
    {"refuse", OUTCOME_REFUSE, IN(HOOK_CHECK) | IN(HOOK_RUN)},
    {"ask", OUTCOME_ASK, IN(HOOK_CHECK) | IN(HOOK_RUN) | IN(HOOK_RESULT)},
    {"retry", OUTCOME_RETRY, IN(HOOK_RUN) | IN(HOOK_RESULT)},
    {"value", OUTCOME_VALUE, IN(HOOK_RUN)},
    {"ok", OUTCOME_OK, IN(HOOK_RESULT)},
    {"partial", OUTCOME_PARTIAL, IN(HOOK_RESULT)},
    {"garbage", OUTCOME_GARBAGE, IN(HOOK_RESULT)},
    {"broken", OUTCOME_BROKEN, IN(HOOK_RESULT)},
    {"transient", OUTCOME_TRANSIENT, IN(HOOK_RUN) | IN(HOOK_RESULT)},
    {"failed", OUTCOME_FAILED, IN(HOOK_RUN) | IN(HOOK_RESULT)},
};

#define AFTER_MAX_S   1e9 /* of transient; thirty years */
#define OUTCOME_COUNT (sizeof(outcomes) / sizeof(outcomes[0]))

static void outcome_init(struct policy_outcome *outcome, struct arena *arena)
{
    char *why = outcome->why.text;
    memset(outcome, 0,
           offsetof(struct policy_outcome, why)); /* why.text is 2 KB: clearing its first byte is enough */
    why[0] = '\0';
    outcome->after_s = -1;
    outcome->cost = -1;
    problems_init(&outcome->problems, arena);
}

static struct str read_text(lua_State *L, int at, const char *name, struct arena *arena)
{
    struct str s = STR_NONE;
    lua_getfield(L, at, name);
    if (lua_isstring(L, -1)) {
        s.at = lua_tolstring(L, -1, &s.len);
        bridge_charge(L, name, s.len);
        s = arena_dup(arena, s);
    }
    lua_pop(L, 1);
    return s;
}

static const struct json *read_json(lua_State *L, int at, const char *name, struct arena *arena)
{
    const struct json *value = NULL;
    lua_getfield(L, at, name);
    if (!lua_isnil(L, -1))
        value = bridge_read(L, -1, name, NULL, arena);
    lua_pop(L, 1);
    return value;
}

static struct str json_text(const struct json *value, struct arena *arena)
{
    struct buf out = buf_in(arena);
    if (value)
        json_write(&out, value);
    return buf_view(&out);
}

/* `suggest` is a value for this path, or an object of arguments to change. */
static void read_problem(lua_State *L, int at, struct arena *arena, struct policy_outcome *outcome)
{
    struct str code = read_text(L, at, "code", arena);
    const struct json *suggest = read_json(L, at, "suggest", arena);
    struct problem problem = {.path = read_text(L, at, "path", arena),
                              .code = code.len ? code.at : "invalid",
                              .message = read_text(L, at, "message", arena),
                              .expected = json_text(read_json(L, at, "expected", arena), arena),
                              .got = json_text(read_json(L, at, "got", arena), arena)};
    if (suggest && suggest->type != JSON_OBJECT)
        problem.suggestion = json_text(suggest, arena);
    else if (suggest && !outcome->suggest)
        outcome->suggest = suggest;
    problems_add(&outcome->problems, problem);
}

static void read_fields(lua_State *L, int at, struct arena *arena, struct policy_outcome *outcome)
{
    outcome->code = read_text(L, at, "code", arena);
    outcome->detail = read_text(L, at, "detail", arena);
    outcome->hint = read_text(L, at, "hint", arena);
    outcome->coverage = read_text(L, at, "coverage", arena);
    outcome->choices = read_json(L, at, "choices", arena);
    outcome->facts = read_json(L, at, "facts", arena);
    outcome->follow_up = read_json(L, at, "follow_up", arena);
    outcome->next_args = read_json(L, at, "next_args", arena);
    outcome->content = read_json(L, at, "content", arena);
    outcome->metadata = read_json(L, at, "metadata", arena);
    lua_getfield(L, at, "after_s");
    if (lua_isnumber(L, -1) && lua_tonumber(L, -1) >= 0) /* neither 0/0 nor 1/0 is a time */
        outcome->after_s = (int64_t)(fmin(lua_tonumber(L, -1), AFTER_MAX_S) + 0.999);
    lua_pop(L, 1);
    lua_getfield(L, at, "cost");
    if (lua_isnumber(L, -1))
        outcome->cost = lua_tonumber(L, -1);
    lua_pop(L, 1);
    if (outcome->kind == OUTCOME_VALUE) {
        outcome->value = read_json(L, at, "value", arena);
        if (!outcome->value && !outcome->content)
            outcome->value = json_keep(arena, json_null());
    }
}

static void outcome_read(lua_State *L, int at, enum policy_hook hook, struct arena *arena,
                         struct policy_outcome *outcome)
{
    size_t i = 0;
    lua_getfield(L, at, "kind");
    const char *word = lua_tostring(L, -1);
    while (i < OUTCOME_COUNT && (!word || strcmp(outcomes[i].word, word) != 0))
        i++;
    if (i == OUTCOME_COUNT || !(outcomes[i].hooks & IN(hook))) {
        struct buf allowed = {0};
        for (i = 0; i < OUTCOME_COUNT; i++) {
            const char *name = outcomes[i].kind == OUTCOME_VALUE                        ? "tool_return"
                               : outcomes[i].kind == OUTCOME_ASK && hook == HOOK_RESULT ? "need_user"
                                                                                        : outcomes[i].word;
            if (outcomes[i].hooks & IN(hook))
                buf_printf(&allowed, ", %s", name);
        }
        lua_pushlstring(L, allowed.at ? allowed.at : "", allowed.len);
        buf_clear(&allowed);
        luaL_error(L, "%s returned %s: expected nothing%s", hook_names[hook],
                   word ? word : "an unknown table", lua_tostring(L, -1));
    }
    lua_pop(L, 1);
    outcome->kind = outcomes[i].kind;
    read_fields(L, at, arena, outcome);
    if (outcome->kind != OUTCOME_REPAIR)
        return;
    lua_getfield(L, at, "problems");
    int list = lua_gettop(L);
    proxy_unwrap(L, list);
    size_t count = lua_objlen(L, list);
    for (size_t n = 1; n <= count; n++) {
        sandbox_check_deadline(L);
        lua_rawgeti(L, list, (int)n);
        read_problem(L, lua_gettop(L), arena, outcome);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* ---- the table `call`: a new one for each hook, so that nothing written to it survives. A field is made
 * when it is first read. ---- */

#define CALL_LOG_MAX_BYTES 4096u /* of one message */

/* progress(done, total, message); a total below 0: unknown. */
static int progress(lua_State *L)
{
    const struct policy_call *call = sandbox_context(L)->call;
    double done = luaL_checknumber(L, 1), total = luaL_optnumber(L, 2, -1);
    struct str message = STR_NONE;
    if (!lua_isnoneornil(L, 3))
        message.at = luaL_checklstring(L, 3, &message.len);
    if (call && call->progress && isfinite(done))
        call->progress(call->owner, done, total, message);
    return 0;
}

/* log(level, text); a long text is cut. */
static int log_message(lua_State *L)
{
    static const char *const levels[] = {"debug",    "info",  "notice",    "warning", "error",
                                         "critical", "alert", "emergency", NULL};
    const struct policy_call *call = sandbox_context(L)->call;
    struct str level = str_of(levels[luaL_checkoption(L, 1, NULL, levels)]), text;
    text.at = luaL_checklstring(L, 2, &text.len);
    if (call && call->log)
        call->log(call->owner, level, str_cut(text, CALL_LOG_MAX_BYTES));
    return 0;
}

/* lua/policy/reference.lua documents them. */
#define AT(member) offsetof(struct policy_call, member)
static const struct call_field {
    const char *name;
    enum { TEXT, NUMBER, TABLE, JSON, ARGS, PEER, PROGRESS, LOG } form;
    size_t offset; /* of the first four */
} fields[] = {
    {"tool", TEXT, AT(tool)},
    {"session", TEXT, AT(session)},
    {"goal", TEXT, AT(goal)},
    {"step", TEXT, AT(step)},
    {"user", TEXT, AT(user)},
    {"uid", NUMBER, AT(uid)},
    {"turn", NUMBER, AT(turn)},
    {"attempt", NUMBER, AT(attempt)},
    {"no_progress", NUMBER, AT(no_progress)},
    {"history", TABLE, AT(history)},
    {"facts", TABLE, AT(facts)},
    {"context", JSON, AT(context)},
    {"args", ARGS, 0},
    {"peer", PEER, 0},
    {"progress", PROGRESS, 0},
    {"log", LOG, 0},
};
#define FIELD_TOTAL (sizeof(fields) / sizeof(fields[0]))

const struct call_field *call_table_find(struct str name, struct str *meant)
{
    struct str names[FIELD_TOTAL];
    for (size_t i = 0; i < FIELD_TOTAL; i++) {
        names[i] = str_of(fields[i].name);
        if (str_eq(name, names[i]))
            return &fields[i];
    }
    *meant = suggest_closest(name, names, FIELD_TOTAL);
    return NULL;
}

/* __index */
static int read_field(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(L);
    struct str name = sandbox_string(L, 2), meant;
    if (!now->call || !name.at)
        return 0;
    const struct call_field *field = call_table_find(name, &meant);
    if (!field)
        return luaL_error(L,
                          meant.len ? "there is no call.%s (did you mean call.%s?)" : "there is no call.%s",
                          name.at, meant.at);
    const struct policy_call *call = now->call;
    const void *at = (const char *)call + field->offset;
    const struct json *value = field->form == ARGS ? now->args : NULL;
    switch (field->form) {
    case TEXT:
        sandbox_push_string(L, *(const struct str *)at);
        break;
    case NUMBER:
        lua_pushnumber(L, *(const uint32_t *)at);
        break;
    case TABLE:
    case JSON:
        value = *(const struct json *const *)at;
        /* fallthrough */
    case ARGS:
        if (!value && field->form == TABLE)
            lua_newtable(L);
        else
            bridge_push(L, value);
        break;
    case PEER:
        lua_createtable(L, 0, 2);
        sandbox_push_string(L, call->user);
        lua_setfield(L, -2, "user");
        lua_pushnumber(L, call->uid);
        lua_setfield(L, -2, "uid");
        break;
    case PROGRESS:
        lua_pushcfunction(L, progress);
        break;
    case LOG:
        lua_pushcfunction(L, log_message);
    }
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

void call_table_open(lua_State *L)
{
    sandbox_push_mark(L, MARK_CALL);
    lua_pushcfunction(L, read_field);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void call_table_push(lua_State *L)
{
    lua_newtable(L);
    sandbox_set_mark(L, MARK_CALL);
}

/* ---- running a hook ---- */

/* One run of a hook, inside the protected call. */
struct hook_run {
    const struct policy *policy;
    enum policy_hook hook;
    const struct json *subject; /* the function's first argument; its table is at index 1 */
    struct arena *arena;
    struct policy_outcome *outcome;
    void (*read)(lua_State *L, struct hook_run *r); /* reads the return value, at index 2 */
};

/* Allocated at the first failure, as few policies ever fail. The counters are not part of what is const. */
static void add_failure(const struct policy *policy, const struct why *why)
{
    struct policy_failures **failures = &((struct policy *)policy)->failures;
    if (!*failures)
        *failures = ARENA_NEW(policy->set->arena, struct policy_failures);
    (*failures)->count++;
    (*failures)->last = *why;
}

static void fail(const struct policy *policy, struct policy_outcome *outcome)
{
    struct why why = outcome->why;
    struct arena *arena = outcome->problems.arena;
    add_failure(policy, &why);
    outcome_init(outcome, arena);
    outcome->why = why;
    outcome->kind = OUTCOME_POLICY_ERROR;
}

static void call_hook(lua_State *L, void *context)
{
    struct hook_run *r = context;
    bridge_push_pinned(L, r->subject);
    lua_rawgeti(L, LUA_REGISTRYINDEX, r->policy->code->hooks[r->hook]);
    lua_pushvalue(L, 1);
    call_table_push(L);
    lua_call(L, 2, 1);
    proxy_unwrap(L, 2);
    r->read(L, r);
}

static void count_time(const struct sandbox_context *context, enum err err)
{
    struct policy_time *time = context->call ? context->call->time : NULL;
    if (!time)
        return;
    time->ran++;
    time->late += err == ERR_TIMEOUT && !context->shares_time;
}

/* Runs nothing if there is no such function; a quarantined policy fails. */
static void run_hook(const struct policy *policy, enum policy_hook hook, const struct policy_call *call,
                     const struct json *subject, const struct json *args,
                     void (*read)(lua_State *L, struct hook_run *r), struct policy_outcome *outcome)
{
    struct policy_set *set = policy->set;
    if (policy->quarantined) {
        struct str stalled = policy->code->stalled;
        err_set(&outcome->why, ERR_POLICY,
                STR_FMT ": is quarantined, as " STR_FMT
                        " stalled or crashed the process: a changed file is tried again",
                STR_ARG(policy->file), STR_ARG(str_eq(policy->file, stalled) ? STR_LIT("it") : stalled));
        fail(policy, outcome);
        return;
    }
    if (policy->code->hooks[hook] == HOOK_NONE)
        return;
    struct arena *arena = outcome->problems.arena;
    uint32_t budget_ms = set->options.deadline_ms;
    bool shares_time = call && call->most_ms && call->most_ms < budget_ms;
    struct str raised = STR_NONE;
    struct hook_run r = {policy, hook, subject, arena, outcome, read};
    struct sandbox_context context = {.call = call,
                                      .arena = arena,
                                      .keeps_origins = true,
                                      .shares_time = shares_time,
                                      .file = policy->file.at,
                                      .source_hash = policy->source_hash,
                                      .hook = policy == set->gateway ? "prepare_tools" : hook_names[hook],
                                      .hook_line = policy->hook_lines[hook],
                                      .raised = hook == HOOK_RUN ? &raised : NULL,
                                      .args = args};
    enum err err = sandbox_run(set->sandbox, shares_time ? call->most_ms : budget_ms, &context, call_hook, &r,
                               &outcome->why);
    count_time(&context, err);
    if (raised.len) { /* the tool's own error, not one of its policy */
        outcome->kind = OUTCOME_FAILED;
        outcome->detail = raised;
    } else if (err) {
        fail(policy, outcome);
    }
}

static void raise_returned(lua_State *L, const struct hook_run *r, const char *expected)
{
    diagnostics_push_value(L, 2);
    luaL_error(L, "%s returned %s: expected %s", hook_names[r->hook], lua_tostring(L, -1), expected);
}

/* Reads what repair, ok, … made; false for any other value. */
static bool read_outcome(lua_State *L, struct hook_run *r)
{
    bool is_outcome = sandbox_mark(L, 2) == MARK_OUTCOME;
    if (is_outcome)
        outcome_read(L, 2, r->hook, r->arena, r->outcome);
    return is_outcome;
}

static void read_verdict(lua_State *L, struct hook_run *r)
{
    if (!lua_isnil(L, 2) && !read_outcome(L, r))
        raise_returned(L, r, "nothing, or what repair, refuse, ask, ok, partial, … return");
}

/* The arguments, changed in place or returned; or repair{…}. */
static void read_arguments(lua_State *L, struct hook_run *r)
{
    struct bridge_hints hints = {.original = r->subject, .schema = r->policy->schema};
    if (read_outcome(L, r))
        return;
    if (!lua_isnil(L, 2) && !lua_istable(L, 2))
        raise_returned(L, r, "the arguments");
    const struct json *args = bridge_read(L, lua_isnil(L, 2) ? 1 : 2, "arguments", &hints, r->arena);
    if (args->type != JSON_OBJECT)
        luaL_error(L, "normalise returned a list: expected the arguments by their names");
    r->outcome->args = args;
}

static void read_value(lua_State *L, struct hook_run *r)
{
    struct bridge_hints hints = {.schema = r->policy->output_schema};
    if (read_outcome(L, r))
        return;
    r->outcome->kind = OUTCOME_VALUE;
    r->outcome->value = bridge_read(L, 2, "result", &hints, r->arena);
}

/* Of prepare, or the list of prepare_tools: definitions move if some are left out, so each is identified by
 * its table, not by its position. */
static void read_definition(lua_State *L, struct hook_run *r)
{
    struct bridge_hints hints = {.original = r->subject};
    bool list = r->subject->type == JSON_ARRAY;
    r->outcome->value = NULL;
    if (lua_isnil(L, 2))
        return;
    if (!list && (!lua_istable(L, 2) || sandbox_mark(L, 2) == MARK_OUTCOME))
        raise_returned(L, r, "the definition, or nil to hide the tool");
    r->outcome->value = bridge_read(L, 2, list ? "definitions" : "definition", &hints, r->arena);
    if (list && r->outcome->value->type != JSON_ARRAY)
        luaL_error(L, "prepare_tools returned no list: expected the definitions to show, or nil to hide all");
}

/* One evaluation of all rules. With predicates it runs in the sandbox, within one deadline. */
struct rules_run {
    const struct rules *rules;
    const struct json *args;
    struct problems *problems; /* NULL: find a refusal; else apply the rules */
    struct condition_tests tests;
    const struct rule *refusal;
};

static void evaluate(struct rules_run *r, struct condition_tests *tests)
{
    if (r->problems)
        r->args = rule_apply_all(r->rules, r->args, r->problems->arena, r->problems, tests);
    else
        r->refusal = rule_find_refusal(r->rules, r->args, tests);
}

static void evaluate_in_sandbox(lua_State *L, void *context)
{
    struct rules_run *r = context;
    r->tests = (struct condition_tests){.L = L, .refs = r->rules->tests};
    evaluate(r, &r->tests);
}

/* A predicate that throws makes the outcome a policy error, with the line of its rule. */
static void run_rules(const struct policy *policy, const struct policy_call *call, struct rules_run *r,
                      struct policy_outcome *outcome)
{
    struct policy_set *set = policy->set;
    r->rules = &policy->code->rules;
    if (!r->rules->test_count) {
        evaluate(r, NULL);
        return;
    }
    struct sandbox_context context = {.call = call,
                                      .arena = outcome->problems.arena,
                                      .file = policy->file.at,
                                      .source_hash = policy->source_hash};
    enum err err =
        sandbox_run(set->sandbox, set->options.deadline_ms, &context, evaluate_in_sandbox, r, &outcome->why);
    count_time(&context, err);
    if (!err)
        return;
    const struct rule *rule = r->tests.rule;
    struct why cause = outcome->why;
    if (rule)
        err_set(&outcome->why, ERR_POLICY, "%.1500s (in the rule on line %d, " STR_FMT ")", cause.text,
                rule->line, STR_ARG(str_cut(rule->when, 300)));
    fail(policy, outcome);
}

void policy_normalise(const struct policy *policy, const struct policy_call *call, const struct json *args,
                      struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    struct rules_run rules = {.args = args, .problems = &outcome->problems};
    run_rules(policy, call, &rules, outcome);
    if (outcome->kind == OUTCOME_POLICY_ERROR)
        return;
    outcome->args = rules.args;
    if (outcome->problems.errors || outcome->problems.more)
        outcome->kind = OUTCOME_REPAIR;
    else
        run_hook(policy, HOOK_NORMALISE, call, rules.args, NULL, read_arguments, outcome);
}

void policy_rules_explain(const struct policy *policy, const struct json *args, struct problems *problems)
{
    struct rules uncounted = policy->code->rules;
    uncounted.hits = ARENA_ARRAY(problems->arena, uint64_t, uncounted.count);
    rule_apply_all(&uncounted, args, problems->arena, problems, NULL);
}

bool policy_names_argument(const struct policy *policy, struct str path)
{
    struct str argument = str_first_name(path);
    for (size_t i = 0; i < policy->id_count; i++)
        if (str_eq(str_first_name(policy->ids[i].path), argument))
            return true;
    return rule_any_names(&policy->code->rules, argument);
}

/* A list of names, or a list of such lists. */
static void see_names(const struct json *names, int line, policy_argument *see, void *owner)
{
    for (uint32_t i = 0; i < rule_items(names); i++)
        if (names->items[i].type == JSON_ARRAY)
            see_names(&names->items[i], line, see, owner);
        else
            see(owner, "rules", line, rule_name(names, i));
}

void policy_each_argument(const struct policy *policy, policy_argument *see, void *owner)
{
    const struct rules *rules = &policy->code->rules;
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->list[i];
        for (size_t k = 0; k < rule->condition_count; k++)
            see(owner, "rules", rule->line, rule->conditions[k].path);
        see_names(rule->needs, rule->line, see, owner);
        see_names(rule->one_of, rule->line, see, owner);
        see_names(rule->exclusive, rule->line, see, owner);
    }
    for (size_t i = 0; i < policy->id_count; i++)
        see(owner, "ids", 0, policy->ids[i].path);
    for (size_t i = 0; i < policy->volatile_count; i++)
        see(owner, "loop.volatile", 0, policy->volatiles[i]);
    /* A policy of all tools cannot know their arguments, and one of several that normalises may add some. */
    bool is_sure = policy->guard_count != 1 || !str_is(policy->guards[0], "*");
    for (size_t i = 0; i < policy->set->overlay_count; i++)
        is_sure &= !policy->set->overlays[i]->hooks[HOOK_NORMALISE];
    for (size_t i = 0; i < policy->check_read_count && is_sure; i++) {
        const struct argument_read *read = &policy->check_reads[i];
        if (!rule_any_names(rules, read->name)) /* which is told above, or sets it */
            see(owner, "check", read->line, read->name);
    }
}

void policy_check(const struct policy *policy, const struct policy_call *call, const struct json *args,
                  struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    struct rules_run rules = {.args = args};
    run_rules(policy, call, &rules, outcome);
    if (outcome->kind == OUTCOME_POLICY_ERROR)
        return;
    if (rules.refusal) {
        outcome->kind = OUTCOME_REFUSE;
        outcome->code = rules.refusal->refusal->code;
        outcome->detail = rules.refusal->refusal->message;
        outcome->hint = rules.refusal->refusal->hint;
    } else {
        run_hook(policy, HOOK_CHECK, call, args, NULL, read_verdict, outcome);
    }
}

void policy_run(const struct policy *policy, const struct policy_call *call, const struct json *args,
                struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    run_hook(policy, HOOK_RUN, call, args, NULL, read_value, outcome);
}

void policy_judge(const struct policy *policy, const struct policy_call *call, const struct json *args,
                  const struct json *result, struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    run_hook(policy, HOOK_RESULT, call, result, args, read_verdict, outcome);
}

void policy_prepare(const struct policy *policy, const struct policy_call *call,
                    const struct json *definition, struct arena *arena, struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    outcome->value = definition;
    run_hook(policy, HOOK_PREPARE, call, definition, NULL, read_definition, outcome);
}

void policy_prepare_late(const struct policy *policy, uint32_t most_ms, struct arena *arena,
                         struct policy_outcome *outcome)
{
    outcome_init(outcome, arena);
    err_set(&outcome->why, ERR_POLICY,
            STR_FMT ":%d: prepare was not run: the hooks of one list of tools have %u ms together",
            STR_ARG(policy->file), policy->hook_lines[HOOK_PREPARE], most_ms);
    fail(policy, outcome);
}

struct str policy_report_schema_violation(const struct policy *policy, const struct json *args,
                                          policy_schema_accepts *accepts, void *owner, struct str problem,
                                          struct arena *arena)
{
    struct rules first = policy->code->rules; /* applied once more, each time one more of them */
    const struct rule *rule = NULL;
    size_t all = first.count;
    first.hits = ARENA_ARRAY(arena, uint64_t, all); /* the policy's own hits stay as they are */
    for (size_t n = 1; n <= all && !rule; n++) {
        struct problems problems;
        problems_init(&problems, arena);
        first.count = n;
        const struct json *changed = rule_apply_all(&first, args, arena, &problems, NULL);
        if (changed != args && !accepts(owner, changed))
            rule = &first.list[n - 1];
    }
    int line = rule ? rule->line : policy->hook_lines[HOOK_NORMALISE];
    struct str part = rule ? arena_printf(arena, ":%d: the rule '" STR_FMT "'", line, STR_ARG(rule->words))
                      : policy->hooks[HOOK_NORMALISE] ? arena_printf(arena, ":%d: normalise", line)
                                                      : STR_LIT(": a rule");
    struct why why;
    err_set(&why, ERR_POLICY, STR_FMT STR_FMT " changed the arguments against the schema: " STR_FMT,
            STR_ARG(policy->file), STR_ARG(part), STR_ARG(problem));
    add_failure(policy, &why);
    return arena_dup(arena, str_of(why.text));
}

struct str policy_rule_words(const struct policy *policy, size_t rule)
{
    return policy->code->rules.list[rule].words;
}

int policy_rule_line(const struct policy *policy, size_t rule)
{
    return policy->code->rules.list[rule].line;
}

bool policy_rule_lacks_hint(const struct policy *policy, size_t rule)
{
    const struct rule *r = &policy->code->rules.list[rule];
    return r->refusal && !r->refusal->hint.len;
}

void policy_set_free_examples(struct policy_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        set->list[i]->examples = NULL;
        set->list[i]->example_count = 0;
    }
    arena_free(set->examples);
    set->examples = NULL;
}

void policy_set_reset_counters(struct policy_set *set)
{
    set->gateway->failures = NULL;
    for (size_t i = 0; i < set->count; i++) {
        struct rules *rules = &set->list[i]->code->rules;
        set->list[i]->failures = NULL;
        if (rules->count)
            memset(rules->hits, 0, rules->count * sizeof(*rules->hits));
    }
}
