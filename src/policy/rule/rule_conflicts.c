/* Each function looks for one kind of trouble, in a rule or in a pair of them. */
#include "policy/rule/rule_conflicts.h"
#include "base/arena.h"
#include "base/buf.h"
#include "json/write.h"
#include "policy/rule/rule_sets.h"
#include "base/suggest.h"

#include <stdarg.h>

struct looking {
    const struct rules *rules;
    const struct rule_findings *f;
    const struct rule_schema *schema;
};

static void tell(const struct looking *l, bool wrong, const struct rule *rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void tell(const struct looking *l, bool wrong, const struct rule *rule, const char *format, ...)
{
    va_list args;
    if (!wrong && l->f->only_wrong)
        return;
    va_start(args, format);
    l->f->found(l->f->owner, wrong, rule->line, arena_vprintf(l->schema->arena, format, args));
    va_end(args);
}

/* ---- parts of rules and sentences -------------------------------------------------------- */

static size_t place_of(const struct looking *l, const struct rule *rule)
{
    return (size_t)(rule - l->rules->list);
}

/* "o" covers "o.x" too. */
static bool covers(struct str outer, struct str name)
{
    return str_eq(outer, name) ||
           (name.len > outer.len && name.at[outer.len] == '.' && memcmp(name.at, outer.at, outer.len) == 0);
}

static bool is_named(const struct rule_names *names, struct str name)
{
    for (size_t i = 0; i < names->count; i++)
        if (str_eq(names->list[i], name))
            return true;
    return false;
}

static bool drops(const struct rule *rule, struct str name)
{
    for (size_t i = 0; i < rule->drops.count; i++)
        if (covers(rule->drops.list[i], name))
            return true;
    return false;
}

static const struct json *default_of(const struct rule *rule, struct str name)
{
    return rule->defaults ? json_get(rule->defaults, name) : NULL;
}

static bool any_rule_defaults(const struct looking *l, struct str name)
{
    for (size_t i = 0; i < l->rules->count; i++)
        if (default_of(&l->rules->list[i], name))
            return true;
    return false;
}

static bool any_rule_drops(const struct looking *l, struct str name)
{
    for (size_t i = 0; i < l->rules->count; i++)
        if (drops(&l->rules->list[i], name))
            return true;
    return false;
}

static const struct rule_condition *condition_on(const struct rule *rule, struct str name)
{
    for (size_t i = 0; i < rule->condition_count; i++)
        if (covers(name, rule->conditions[i].path))
            return &rule->conditions[i];
    return NULL;
}

/* "the rule on line 4 (when action is …)" */
static const char *other(const struct looking *l, const struct rule *rule)
{
    struct str when = rule->when.len ? str_cut(rule->when, 80) : STR_LIT("always");
    return arena_printf(l->schema->arena, "the rule on line %d (" STR_FMT "%s)", rule->line, STR_ARG(when),
                        when.len < rule->when.len ? "…" : "")
        .at;
}

static const char *json_text(const struct looking *l, const struct json *value)
{
    struct buf out = buf_in(l->schema->arena);
    json_write(&out, value);
    return arena_dup(l->schema->arena, str_cut(buf_view(&out), 60)).at;
}

static const char *meant(const struct looking *l, struct str closest)
{
    return closest.len ? arena_printf(l->schema->arena, " (did you mean '" STR_FMT "'?)", STR_ARG(closest)).at
                       : "";
}

/* Where a earlier than b changes what b's condition looks at, b need not hold where both conditions do. */
static bool takes_away(const struct rule *earlier, const struct rule *later)
{
    for (size_t i = 0; i < later->condition_count; i++) {
        const struct rule_condition *c = &later->conditions[i];
        if (c->kind == COND_ABSENT ? default_of(earlier, c->path) != NULL : drops(earlier, c->path))
            return true;
    }
    return false;
}

static enum certainty meet(const struct looking *l, const struct rule *a, const struct rule *b)
{
    const struct rule *both[] = {a, b};
    const struct rule *first = a < b ? a : b, *second = a < b ? b : a;
    if (a == b)
        return SURELY;
    enum certainty certainty = rules_meet(l->schema, both, 2, STR_NONE);
    return certainty == SURELY && takes_away(first, second) ? PERHAPS : certainty;
}

/* ---- a rule and the schema ------------------------------------------------------------------- */

static void look_at_name(const struct looking *l, const struct rule *rule, struct str name)
{
    struct str closest;
    enum rule_naming naming = rule_schema_naming(l->schema, name, &closest);
    if (naming == NAMING_CLOSED)
        tell(l, true, rule, "the schema lets no '" STR_FMT "' in%s: name it there, or correct the rule",
             STR_ARG(name), meant(l, closest));
    else if (naming == NAMING_STRANGE)
        tell(l, false, rule,
             "'" STR_FMT "' is not in the schema%s: name it there, so that the model knows of it",
             STR_ARG(name), meant(l, closest));
}

static void look_at_list(const struct looking *l, const struct rule *rule, const struct rule_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        look_at_name(l, rule, names->list[i]);
}

static void look_at_names(const struct looking *l, const struct rule *rule)
{
    for (size_t i = 0; i < rule->condition_count; i++)
        look_at_name(l, rule, rule->conditions[i].path);
    look_at_list(l, rule, &rule->needs);
    look_at_list(l, rule, &rule->drops);
    for (size_t i = 0; i < rule->one_of_count; i++)
        look_at_list(l, rule, &rule->one_of[i]);
    for (size_t i = 0; i < rule->exclusive_count; i++)
        look_at_list(l, rule, &rule->exclusive[i]);
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++)
        look_at_name(l, rule, rule->defaults->members[i].key);
}

/* What a text may have been meant to be, among the values that the schema names. */
static struct str closest_choice(const struct looking *l, struct str path, const struct json *value)
{
    struct str names[64];
    size_t count = 0;
    const struct json *choices = rule_schema_choices(l->schema, path);
    if (!json_is(value, JSON_STRING))
        return STR_NONE;
    for (uint32_t i = 0; choices && i < choices->len && count < 64; i++)
        if (json_is(&choices->items[i], JSON_STRING))
            names[count++] = json_str(&choices->items[i]);
    return suggest_closest(json_str(value), names, count);
}

static void look_at_values(const struct looking *l, const struct rule *rule, const struct rule_condition *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct json *value = &c->values[i];
        if (rule_schema_allows(l->schema, c->path, value))
            continue;
        if (value->type == JSON_NULL)
            tell(l, true, rule,
                 "'" STR_FMT "' is never null by the schema: where it may be left out, write absent",
                 STR_ARG(c->path));
        else
            tell(l, true, rule, "'" STR_FMT "' is never %s by the schema%s", STR_ARG(c->path),
                 json_text(l, value), meant(l, closest_choice(l, c->path, value)));
    }
}

static void look_at_condition(const struct looking *l, const struct rule *rule,
                              const struct rule_condition *c)
{
    struct buf words = buf_in(l->schema->arena);
    if (c->kind == COND_VALUES || c->kind == COND_NONE_OF)
        look_at_values(l, rule, c);
    if (c->kind == COND_GIVEN && rule_schema_requires(l->schema, c->path))
        tell(l, false, rule,
             "'" STR_FMT "' is always given, as the schema requires it: leave the condition out",
             STR_ARG(c->path));
    if (c->kind == COND_VALUES || conditions_meet(l->schema, &c, 1) != SURELY_NOT)
        return;
    condition_words(&words, c);
    tell(l, true, rule, "never holds, as the schema leaves no call in which " STR_FMT,
         STR_ARG(buf_view(&words)));
}

static void look_at_demands(const struct looking *l, const struct rule *rule)
{
    for (size_t i = 0; i < rule->needs.count; i++)
        if (rule_schema_requires(l->schema, rule->needs.list[i]))
            tell(l, false, rule, "needs '" STR_FMT "', which the schema requires already: leave it out",
                 STR_ARG(rule->needs.list[i]));
    for (size_t i = 0; i < rule->drops.count; i++)
        if (rule_schema_requires(l->schema, rule->drops.list[i]) &&
            !any_rule_defaults(l, rule->drops.list[i]))
            tell(l, true, rule,
                 "drops '" STR_FMT "', which the schema requires: make it optional there, or keep it",
                 STR_ARG(rule->drops.list[i]));
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++) {
        const struct json_member *member = &rule->defaults->members[i];
        if (!rule_schema_allows(l->schema, member->key, &member->value))
            tell(l, true, rule, "gives '" STR_FMT "' the value %s, which the schema does not allow",
                 STR_ARG(member->key), json_text(l, &member->value));
        else if (rule_schema_requires(l->schema, member->key) && !any_rule_drops(l, member->key))
            tell(l, false, rule,
                 "its default for '" STR_FMT "' is never used, as the schema requires that: leave it out",
                 STR_ARG(member->key));
    }
}

static void look_alone(const struct looking *l, const struct rule *rule)
{
    look_at_names(l, rule);
    for (size_t i = 0; i < rule->condition_count; i++)
        look_at_condition(l, rule, &rule->conditions[i]);
    look_at_demands(l, rule);
}

/* ---- what one rule needs and another drops ------------------------------------------------------ */

#define APART "let their conditions exclude each other, or take one of the two out"

static void look_at_needed(const struct looking *l, const struct rule *a, const struct rule *b)
{
    for (size_t i = 0; i < a->needs.count; i++) {
        struct str name = a->needs.list[i];
        if (!drops(b, name) || any_rule_defaults(l, name))
            continue;
        enum certainty both = meet(l, a, b);
        if (a == b)
            tell(l, true, a, "needs '" STR_FMT "' and drops it: take one of the two out", STR_ARG(name));
        else if (both == SURELY)
            tell(l, true, a, "needs '" STR_FMT "', which %s drops, and both can hold: " APART, STR_ARG(name),
                 other(l, b));
        else if (both == PERHAPS)
            tell(l, false, a, "needs '" STR_FMT "', which %s drops: make sure that not both can hold",
                 STR_ARG(name), other(l, b));
    }
}

static void look_at_one_of(const struct looking *l, const struct rule *a, const struct rule *b)
{
    for (size_t i = 0; i < a->one_of_count; i++) {
        size_t gone = 0;
        for (size_t n = 0; n < a->one_of[i].count; n++)
            gone += drops(b, a->one_of[i].list[n]) && !any_rule_defaults(l, a->one_of[i].list[n]);
        if (gone == a->one_of[i].count && meet(l, a, b) == SURELY)
            tell(l, true, a, "needs one of '" STR_FMT "' and others, all of which %s drops: " APART,
                 STR_ARG(a->one_of[i].list[0]), a == b ? "it" : other(l, b));
    }
}

/* ---- what excludes each other --------------------------------------------------------------------- */

/* a needs x, c needs y, and b lets only one of them be. */
static void look_at_both_needed(const struct looking *l, const struct rule *a, const struct rule *c,
                                const struct rule *b, struct str x, struct str y)
{
    const struct rule *all[] = {a, c, b};
    if (takes_away(a, b) || takes_away(c, b) || rules_meet(l->schema, all, 3, STR_NONE) != SURELY)
        return;
    if (a == c)
        tell(l, true, a, "needs '" STR_FMT "' and '" STR_FMT "', of which %s allows one: " APART, STR_ARG(x),
             STR_ARG(y), a == b ? "it" : other(l, b));
    else
        tell(l, true, a,
             "needs '" STR_FMT "' while the rule on line %d needs '" STR_FMT
             "', of which %s allows one: " APART,
             STR_ARG(x), c->line, STR_ARG(y), other(l, b));
}

static void look_at_needs_of(const struct looking *l, const struct rule *b, struct str x, struct str y)
{
    for (size_t i = 0; i < l->rules->count; i++)
        for (size_t k = 0; is_named(&l->rules->list[i].needs, x) && k < l->rules->count; k++)
            if (is_named(&l->rules->list[k].needs, y))
                look_at_both_needed(l, &l->rules->list[i], &l->rules->list[k], b, x, y);
}

/* a gives x where it is left out, and b then finds it beside y. */
static void look_at_given_beside(const struct looking *l, const struct rule *a, const struct rule *b,
                                 struct str x, struct str y)
{
    const struct rule *both[] = {a, b};
    const struct rule_condition *on_x = condition_on(a, x);
    if (a > b || !default_of(a, x) || (on_x && on_x->kind != COND_ABSENT) || any_rule_drops(l, x) ||
        any_rule_drops(l, y) || takes_away(a, b) || rules_meet(l->schema, both, 2, y) != SURELY)
        return;
    tell(l, true, a,
         "its default for '" STR_FMT "' makes every call with '" STR_FMT
         "' wrong, as %s allows one of them: give it only when { %.*s = absent }",
         STR_ARG(x), STR_ARG(y), a == b ? "it" : other(l, b), STR_ARG(y));
}

static void look_at_exclusive(const struct looking *l, const struct rule *b)
{
    for (size_t g = 0; g < b->exclusive_count; g++) {
        const struct rule_names *names = &b->exclusive[g];
        for (size_t x = 0; x < names->count; x++)
            for (size_t y = 0; y < names->count; y++) {
                if (x < y && rule_schema_requires(l->schema, names->list[x]) &&
                    rule_schema_requires(l->schema, names->list[y]))
                    tell(l, true, b,
                         "allows one of '" STR_FMT "' and '" STR_FMT "', and the schema requires both",
                         STR_ARG(names->list[x]), STR_ARG(names->list[y]));
                if (x < y)
                    look_at_needs_of(l, b, names->list[x], names->list[y]);
                for (size_t a = 0; x != y && a < l->rules->count; a++)
                    look_at_given_beside(l, &l->rules->list[a], b, names->list[x], names->list[y]);
            }
    }
}

/* ---- defaults ---------------------------------------------------------------------------------------- */

/* b gives what a drops. */
static void look_at_dropped_default(const struct looking *l, const struct rule *b, const struct rule *a,
                                    struct str name)
{
    if (a == b)
        tell(l, true, b, "drops '" STR_FMT "' and gives it a default: to set it in any case, write normalise",
             STR_ARG(name));
    else if (a < b && meet(l, a, b) == SURELY)
        tell(l, true, b, "gives '" STR_FMT "' back, which %s drops, and both can hold: " APART, STR_ARG(name),
             other(l, a));
    else if (a > b && rule_lies_within(l->schema, b, a) && !takes_away(b, a))
        tell(l, true, b, "its default for '" STR_FMT "' never stays, as %s drops that: " APART, STR_ARG(name),
             other(l, a));
}

/* a comes first and gives it, too. */
static void look_at_second_default(const struct looking *l, const struct rule *a, const struct rule *b,
                                   const struct json_member *member)
{
    const struct json *first = default_of(a, member->key);
    if (!first || a >= b || any_rule_drops(l, member->key) || takes_away(a, b) ||
        !rule_lies_within(l->schema, b, a))
        return;
    bool same = json_equal(first, &member->value);
    tell(l, !same, b, "its default for '" STR_FMT "' is never used, as %s gives %s first: %s",
         STR_ARG(member->key), other(l, a), same ? "the same" : json_text(l, first),
         same ? "one of the two is enough" : "put the narrower rule first");
}

static void look_at_defaults(const struct looking *l, const struct rule *a, const struct rule *b)
{
    for (uint32_t i = 0; b->defaults && i < b->defaults->len; i++) {
        if (drops(a, b->defaults->members[i].key))
            look_at_dropped_default(l, b, a, b->defaults->members[i].key);
        look_at_second_default(l, a, b, &b->defaults->members[i]);
    }
    for (size_t i = 0; i < b->needs.count; i++)
        if (a <= b && default_of(a, b->needs.list[i]) && rule_lies_within(l->schema, b, a))
            tell(l, false, b, "needs '" STR_FMT "', which is never missing, as %s gives it a value",
                 STR_ARG(b->needs.list[i]), a == b ? "it" : other(l, a));
}

/* ---- what never matters -------------------------------------------------------------------------------- */

static bool given_between(const struct looking *l, const struct rule *a, const struct rule *b,
                          struct str name)
{
    for (size_t i = place_of(l, a); i < place_of(l, b); i++)
        if (default_of(&l->rules->list[i], name))
            return true;
    return false;
}

/* a comes first and changes what b's condition looks at. */
static void look_at_lost_condition(const struct looking *l, const struct rule *a, const struct rule *b)
{
    for (size_t i = 0; a < b && i < b->condition_count; i++) {
        const struct rule_condition *c = &b->conditions[i];
        bool dropped = c->kind != COND_ABSENT && drops(a, c->path) && !given_between(l, a, b, c->path);
        bool filled = c->kind == COND_ABSENT && default_of(a, c->path) && !any_rule_drops(l, c->path);
        if ((dropped || filled) && rule_lies_within(l->schema, b, a))
            tell(l, true, b, "never holds, as %s %s '" STR_FMT "' before: put this one first", other(l, a),
                 dropped ? "drops" : "gives a value to", STR_ARG(c->path));
    }
}

static bool demands_something(const struct rule *rule)
{
    return rule->needs.count || rule->drops.count || rule->defaults || rule->one_of_count ||
           rule->exclusive_count;
}

/* b changes an argument that decides whether a refuses. */
static bool changes_condition(const struct rule *b, const struct rule *a)
{
    for (size_t i = 0; i < b->drops.count; i++)
        if (condition_on(a, b->drops.list[i]))
            return true;
    for (uint32_t i = 0; b->defaults && i < b->defaults->len; i++)
        if (condition_on(a, b->defaults->members[i].key))
            return true;
    return false;
}

/* a refuses all that b holds for. Refusals come after all other rules. */
static void look_at_refusal(const struct looking *l, const struct rule *a, const struct rule *b)
{
    if (!a->refuses || (a == b && !demands_something(a)) || (a != b && b->refuses && a > b) ||
        !rule_lies_within(l->schema, b, a))
        return;
    bool speaks = a != b && b->refuses; /* both refuse the same final arguments */
    bool wrong = a->condition_count && (speaks || !l->f->normalises) && (speaks || !changes_condition(b, a));
    if (a == b)
        tell(l, wrong, a,
             "refuses whatever it holds for, so that all else it says is never of use: leave that out");
    else if (speaks)
        tell(l, wrong, b, "never refuses, as %s refuses all of it first: put the narrower rule first",
             other(l, a));
    else if (wrong || !changes_condition(b, a))
        tell(l, wrong, b, "is never of use, as %s refuses all that it holds for", other(l, a));
}

static void look_at_repetition(const struct looking *l, const struct rule *a, const struct rule *b)
{
    if (a == b || !rule_lies_within(l->schema, b, a) || (a > b && rule_lies_within(l->schema, a, b)))
        return;
    for (size_t i = 0; i < b->needs.count; i++)
        if (is_named(&a->needs, b->needs.list[i]))
            tell(l, false, b, "needs '" STR_FMT "', and so does %s: once is enough",
                 STR_ARG(b->needs.list[i]), other(l, a));
    for (size_t i = 0; i < b->drops.count; i++)
        if (is_named(&a->drops, b->drops.list[i]))
            tell(l, false, b, "drops '" STR_FMT "', and so does %s: once is enough",
                 STR_ARG(b->drops.list[i]), other(l, a));
}

/* ---- all -------------------------------------------------------------------------------------------------
 */

static void look_at_pair(const struct looking *l, const struct rule *a, const struct rule *b)
{
    look_at_needed(l, a, b);
    look_at_one_of(l, a, b);
    look_at_defaults(l, a, b);
    look_at_lost_condition(l, a, b);
    look_at_refusal(l, a, b);
    if (!l->f->only_wrong)
        look_at_repetition(l, a, b);
}

void rules_find_conflicts(const struct rules *rules, const struct rule_findings *findings)
{
    struct looking l = {rules, findings, &findings->schema};
    for (size_t i = 0; i < rules->count && !findings->is_late(findings->owner); i++) {
        look_alone(&l, &rules->list[i]);
        look_at_exclusive(&l, &rules->list[i]);
        for (size_t k = 0; k < rules->count; k++)
            look_at_pair(&l, &rules->list[i], &rules->list[k]);
    }
}
