/* See rule_facts.h. */
#include "policy/rule/rule_facts.h"
#include "base/arena.h"
#include "policy/policy_internal.h"
#include "policy/rule/rule_conflicts.h"

/* ---- what rules mention ----------------------------------------------------------------- */

struct mentions {
    struct rule_mention *list; /* NULL while they are counted */
    size_t count;
};

static void mention(struct mentions *m, struct str name, const char *as)
{
    if (m->list)
        m->list[m->count] = (struct rule_mention){name, as};
    m->count++;
}

static void mention_list(struct mentions *m, const struct rule_names *names, size_t lists, const char *as)
{
    for (size_t i = 0; i < lists; i++)
        for (size_t n = 0; n < names[i].count; n++)
            mention(m, names[i].list[n], as);
}

static void mention_all(struct mentions *m, const struct rule *rule)
{
    for (size_t i = 0; i < rule->condition_count; i++)
        mention(m, rule->conditions[i].path, "when");
    mention_list(m, &rule->needs, 1, "needs");
    mention_list(m, rule->one_of, rule->one_of_count, "needs_one_of");
    mention_list(m, rule->exclusive, rule->exclusive_count, "exclusive");
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++)
        mention(m, rule->defaults->members[i].key, "defaults");
    mention_list(m, &rule->drops, 1, "drops");
}

static bool has_predicate(const struct rule *rule)
{
    return rule->condition_count && rule->conditions[rule->condition_count - 1].kind == COND_IS;
}

static struct rule_fact fact_of(const struct rule *rule, struct arena *arena)
{
    struct mentions counted = {0}, kept = {0};
    mention_all(&counted, rule);
    kept.list = ARENA_ARRAY(arena, struct rule_mention, counted.count + 1);
    mention_all(&kept, rule);
    return (struct rule_fact){rule->line,          rule->words, rule->refuses,
                              has_predicate(rule), kept.list,   kept.count};
}

/* ---- what is strange about them -------------------------------------------------------------- */

struct rule_schema rule_facts_schema(const struct policy *policy, struct arena *arena)
{
    return (struct rule_schema){.arena = arena,
                                .root = policy->validate ? policy->schema : NULL,
                                .keeps_strangers_out =
                                    policy->unknown_given && policy->unknown != UNKNOWN_PASS};
}

struct suspecting {
    struct arena *arena;
    struct rule_suspicion *list;
    size_t count, room;
};

static void suspect(void *owner, bool wrong, int line, struct str sentence)
{
    struct suspecting *s = owner;
    (void)wrong; /* a policy with what is wrong has not been loaded */
    if (s->count == s->room) {
        struct rule_suspicion *wider = ARENA_ARRAY(s->arena, struct rule_suspicion, s->room * 2 + 8);
        if (s->count)
            memcpy(wider, s->list, s->count * sizeof(*wider));
        s->list = wider;
        s->room = s->room * 2 + 8;
    }
    s->list[s->count++] = (struct rule_suspicion){line, sentence};
}

static bool has_time(void *owner)
{
    (void)owner;
    return false;
}

void policy_rule_facts(const struct policy *policy, struct arena *arena, struct rule_facts *out)
{
    const struct rules *rules = &policy->code->rules;
    struct suspecting s = {.arena = arena};
    struct rule_findings findings = {.schema = rule_facts_schema(policy, arena),
                                     .normalises = policy->hooks[HOOK_NORMALISE],
                                     .owner = &s,
                                     .found = suspect,
                                     .is_late = has_time};
    struct rule_fact *facts = ARENA_ARRAY(arena, struct rule_fact, rules->count + 1);
    for (size_t i = 0; i < rules->count; i++)
        facts[i] = fact_of(&rules->list[i], arena);
    rules_find_conflicts(rules, &findings);
    *out = (struct rule_facts){facts, rules->count, s.list, s.count};
}
