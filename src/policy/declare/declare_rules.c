/* rules = { … }: read with the schema at hand, and looked through for conflicts once all fields are read. */
#include "base/arena.h"
#include "sandbox/diagnostics.h"
#include "policy/declare/declare_internal.h"
#include "policy/rule/rule_conflicts.h"

void declare_rules(struct declaration *d, const struct field *field, int at)
{
    struct rules *rules = &d->policy->code->rules;
    (void)field;
    rules_read(d->L, at, d->policy->schema, d->set->arena, rules);
    struct str *words = ARENA_ARRAY(d->set->arena, struct str, rules->count + 1);
    for (size_t i = 0; i < rules->count; i++) {
        words[i] = rules->list[i].words;
        d->policy->hooks[HOOK_CHECK] |= rules->list[i].refuses; /* a rule that refuses speaks in that stage */
    }
    d->policy->rule_words = words;
    d->policy->rule_count = rules->count;
}

struct checking {
    lua_State *L;
    struct complaints complaints;
};

static void complain(void *owner, bool wrong, int line, struct str sentence)
{
    struct checking *c = owner;
    if (wrong)
        diagnostics_add(&c->complaints, line, "rules: " STR_FMT, STR_ARG(sentence));
}

static bool is_late(void *owner)
{
    return sandbox_deadline_passed(sandbox_of(((struct checking *)owner)->L));
}

void declare_check_rules(struct declaration *d)
{
    struct checking c = {d->L, {.arena = d->set->arena, .file = d->file.at}};
    struct arena *scratch = arena_new(); /* nothing below raises an error */
    struct rule_findings findings = {.schema = rule_facts_schema(d->policy, scratch),
                                     .normalises = d->policy->hooks[HOOK_NORMALISE],
                                     .only_wrong = true,
                                     .owner = &c,
                                     .found = complain,
                                     .is_late = is_late};
    rules_find_conflicts(&d->policy->code->rules, &findings);
    arena_free(scratch);
    if (is_late(&c))
        sandbox_raise_deadline(d->L);
    diagnostics_raise(d->L, &c.complaints);
}
