/* Which part of a policy made good arguments bad: its rules are applied once more, each time one more of
 * them. */
#include "base/arena.h"
#include "policy/policy_internal.h"
#include "policy/rule/rule.h"

static struct str at_line(const struct policy *policy, int line, struct str what, struct arena *arena)
{
    return arena_printf(arena, STR_FMT ":%d: " STR_FMT, STR_ARG(policy->file), line, STR_ARG(what));
}

static const struct rule *bad_rule(const struct policy *policy, const struct json *args,
                                   policy_schema_accepts *accepts, void *owner, struct arena *arena)
{
    struct rules first = policy->code->rules;
    size_t all = first.count;
    first.hits = ARENA_ARRAY(arena, uint64_t, all + 1); /* this is nobody's traffic */
    memset(first.hits, 0, (all + 1) * sizeof(*first.hits));
    for (size_t n = 1; n <= all; n++) {
        struct problems problems;
        problems_init(&problems, arena);
        first.count = n;
        const struct json *changed = rule_apply_all(&first, args, arena, &problems, NULL);
        if (changed != args && !accepts(owner, changed))
            return &first.list[n - 1];
    }
    return NULL;
}

static struct str culprit(const struct policy *policy, const struct json *args,
                          policy_schema_accepts *accepts, void *owner, struct arena *arena)
{
    const struct rule *rule = bad_rule(policy, args, accepts, owner, arena);
    if (rule)
        return at_line(policy, rule->line,
                       arena_printf(arena, "the rule '" STR_FMT "'", STR_ARG(rule->words)), arena);
    if (policy->hooks[HOOK_NORMALISE])
        return at_line(policy, policy->code->hooks[HOOK_NORMALISE].line, STR_LIT("normalise"), arena);
    return arena_printf(arena, STR_FMT ": a rule", STR_ARG(policy->file));
}

struct str policy_report_schema_violation(const struct policy *policy, const struct json *args,
                                          policy_schema_accepts *accepts, void *owner, struct str complaint,
                                          struct arena *arena)
{
    struct str who = culprit(policy, args, accepts, owner, arena);
    struct why why;
    err_set(&why, ERR_POLICY, STR_FMT " changed the arguments against the schema: " STR_FMT, STR_ARG(who),
            STR_ARG(complaint));
    policy_add_failure(policy->set, policy, &why);
    return arena_dup(arena, str_of(why.text));
}
