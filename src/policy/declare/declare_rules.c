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

static void add_conflict(void *owner, bool certain, int line, struct str sentence)
{
    if (certain)
        diagnostics_add(owner, line, "rules: " STR_FMT, STR_ARG(sentence));
}

void declare_check_rules(struct declaration *d)
{
    struct diagnostics conflicts = {.arena = d->set->arena, .file = d->file.at};
    struct arena *scratch = arena_new(); /* the search raises no Lua error, so this is always freed */
    rule_conflicts_find(d->policy, NULL, scratch, add_conflict, &conflicts);
    arena_free(scratch);
    if (sandbox_deadline_passed(d->set->sandbox))
        sandbox_raise_deadline(d->L);
    diagnostics_raise(d->L, &conflicts);
}
