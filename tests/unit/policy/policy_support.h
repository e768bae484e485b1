/* Helpers for the tests of policy/: policies and values from strings, one arena per test. */
#ifndef TOOLGATE_TESTS_POLICY_SUPPORT_H
#define TOOLGATE_TESTS_POLICY_SUPPORT_H

#include "values.h"
#include "policy/policy.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"

static struct policy_set *loaded;
static struct policy_outcome said;
static struct policy_set_options options; /* the defaults, but for the deadline */

/* So long that a busy machine ends no hook by time: a test of the deadline sets its own. */
#define QUIET_DEADLINE_MS 20000u

static void set_up(void)
{
    arena = arena_new();
    options = (struct policy_set_options){.deadline_ms = QUIET_DEADLINE_MS};
}

static void tear_down(void)
{
    policy_set_free(loaded);
    loaded = NULL;
    arena_free(arena);
}

USUAL_FIXTURE(set_up, tear_down)

static inline const char *text_of(struct str s)
{
    return arena_dup(arena, s).at;
}

static inline const char *json_of(const struct json *value)
{
    return value ? written(value) : "(none)";
}

/* Returns the first error in this source, or NULL if it loads; then it is `loaded`. */
static inline const char *fault_of(const char *source)
{
    struct policy_load_errors faults = {.arena = arena};
    policy_set_free(loaded);
    loaded = NULL;
    if (policy_set_load_string(STR_LIT("p.lua"), str_of(source), &options, &loaded, &faults) == OK)
        return NULL;
    assert_null(loaded);
    return text_of(faults.list[0]);
}

static inline const struct policy *load(const char *source)
{
    const char *fault = fault_of(source);
    if (fault)
        fail_msg("%s", fault);
    return policy_set_count(loaded) ? policy_set_at(loaded, 0) : NULL;
}

/* Loads a policy with this body of a hook. */
static inline const struct policy *with_hook(const char *hook, const char *parameters, const char *body)
{
    return load(arena_printf(arena, "return tool \"t\" {\n  %s = function(%s)\n    %s\n  end,\n}", hook,
                             parameters, body)
                    .at);
}

static const struct policy_call a_call = {
    .tool = STR("t"), .session = STR("s1"), .goal = STR("what is on today?"), .turn = 3};

static inline enum policy_outcome_kind check(const struct policy *policy, const char *args)
{
    policy_check(policy, &a_call, value_of(args), arena, &said);
    return said.kind;
}

static inline enum policy_outcome_kind check_body(const char *body, const char *args)
{
    return check(with_hook("check", "args, call", body), args);
}

static inline enum policy_outcome_kind judge_body(const char *body, const char *result)
{
    policy_judge(with_hook("result", "result, call", body), &a_call, value_of("{\"asked\":1}"),
                 value_of(result), arena, &said);
    return said.kind;
}

static inline enum policy_outcome_kind run_body(const char *body, const char *args)
{
    policy_run(with_hook("run", "args, call", body), &a_call, value_of(args), arena, &said);
    return said.kind;
}

static inline enum policy_outcome_kind normalise(const struct policy *policy, const char *args)
{
    policy_normalise(policy, &a_call, value_of(args), arena, &said);
    return said.kind;
}

/* Returns the arguments after normalise, as JSON. */
static inline const char *normalised(const char *body, const char *args)
{
    if (normalise(with_hook("normalise", "args, call", body), args) == OUTCOME_POLICY_ERROR)
        return said.why.text;
    return json_of(said.args);
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("expected “%s” in “%s”", part, text);
}

/* Returns the value of a Lua expression as JSON. */
static inline const char *eval(const char *expression)
{
    if (run_body(arena_printf(arena, "return { v = %s }", expression).at, "{}") == OUTCOME_POLICY_ERROR)
        return said.why.text;
    return json_of(said.value);
}

#endif
