/* A finding must be certain: a rule against the schema, a rule against itself, and two rules when the
 * condition of one includes all conditions of the other, so that both hold for the same call. Whether two
 * different conditions can meet is not deduced here; examples show it. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/suggest.h"
#include "json/path.h"
#include "json/write.h"
#include "policy/declare.h"
#include "schema/contradiction.h"

#include <stdarg.h>

#define REFERENCES_MAX 8 /* followed in a row */

struct search {
    const struct rules *rules;
    const struct json *schema; /* NULL: nothing is known of the arguments */
    bool unknown_dropped;      /* the policy takes no argument that an open schema does not name */
    struct arena *arena;
    policy_conflict *report;
    void *owner;
};

__attribute__((format(printf, 4, 5))) static void report(const struct search *s, bool certain,
                                                         const struct rule *rule, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    s->report(s->owner, certain, rule->line, arena_vprintf(s->arena, format, args));
    va_end(args);
}

static const char *json_text(const struct search *s, const struct json *value)
{
    struct buf out = buf_in(s->arena);
    json_write(&out, value);
    return arena_dup(s->arena, str_cut(buf_view(&out), 60)).at;
}

/* ---- the schema -------------------------------------------------------------------- */

/* Follows "#/$defs/Action"; NULL for every other reference. */
static const struct json *resolve(const struct search *s, const struct json *schema)
{
    const struct json *reference;
    for (int i = 0; i < REFERENCES_MAX && (reference = json_get_text(schema, "$ref")); i++) {
        struct str to = json_str(reference);
        if (!str_starts(to, "#/") || memchr(to.at, '%', to.len))
            return NULL;
        schema = json_pointer_find(s->arena, s->schema, to);
    }
    return json_is(schema, JSON_OBJECT) && !json_get_text(schema, "$ref") ? schema : NULL;
}

/* The object that holds the last name of the path, which is written to *name. A property whose own name has a
 * dot wins over a path. If an inner name is unknown, *name is that name. */
static const struct json *holder_of(const struct search *s, struct str path, struct str *name)
{
    const struct json *object = resolve(s, s->schema);
    const char *dot;
    *name = path;
    while (object && !json_get(json_get_text(object, "properties"), *name) && name->len &&
           (dot = memchr(name->at, '.', name->len))) {
        struct str step = {name->at, (size_t)(dot - name->at)};
        const struct json *inner = json_get(json_get_text(object, "properties"), step);
        if (!inner) {
            *name = step;
            break;
        }
        object = resolve(s, inner);
        *name = str_from(*name, step.len + 1);
    }
    return object;
}

static const struct json *schema_at(const struct search *s, struct str path)
{
    struct str name;
    const struct json *object = holder_of(s, path, &name);
    return resolve(s, json_get(json_get_text(object, "properties"), name));
}

/* False only if type, enum or const refuse the value. */
static bool schema_allows(const struct json *schema, const struct json *value)
{
    const struct json *choices = json_get_text(schema, "enum"), *only = json_get_text(schema, "const");
    if (value->type == JSON_NULL && json_is_true(json_get_text(schema, "nullable")))
        return true;
    bool chosen = !json_is(choices, JSON_ARRAY);
    for (uint32_t i = 0; !chosen && i < choices->len; i++)
        chosen = json_equal(&choices->items[i], value);
    return schema_type_allows(schema, value) && chosen && (!only || json_equal(only, value));
}

/* A call without this argument never reaches the rules. */
static bool schema_requires(const struct search *s, struct str path)
{
    static const struct json null = {.type = JSON_NULL};
    const struct json *root = resolve(s, s->schema);
    return json_array_has(json_get_text(root, "required"), path) && !schema_allows(schema_at(s, path), &null);
}

/* ---- a rule and the schema ---------------------------------------------------------- */

static void check_name(const struct search *s, const struct rule *rule, struct str path)
{
    static const char *const keywords[] = {
        "$dynamicRef",       "$recursiveRef",    "allOf",       "anyOf", "oneOf", "if", "then", "else", "not",
        "patternProperties", "dependentSchemas", "dependencies"};
    struct str name;
    const struct json *object = holder_of(s, path, &name), *properties = json_get_text(object, "properties"),
                      *others = json_get_text(object, "additionalProperties");
    if (!json_is(properties, JSON_OBJECT) || json_get(properties, name))
        return;
    const char *meant = field_hint(s->arena, declare_closest_property(properties, name));
    bool closed = json_is(others, JSON_BOOL) && !others->truth && !json_get_text(object, "patternProperties");
    bool elsewhere = json_is(others, JSON_OBJECT); /* another keyword of the object may name further ones */
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
        elsewhere |= json_get_text(object, keywords[i]) != NULL;
    if (!closed && (elsewhere || !properties->len))
        return;
    bool dropped = s->unknown_dropped && object == resolve(s, s->schema);
    if (closed || dropped)
        report(s, true, rule, "the schema does not allow '" STR_FMT "'%s: add it there, or correct the rule",
               STR_ARG(path), meant);
    else
        report(s, false, rule, "'" STR_FMT "' is not in the schema%s: add it there for the model to know it",
               STR_ARG(path), meant);
}

/* A list of names, or a list of such lists. */
static void check_names(const struct search *s, const struct rule *rule, const struct json *names)
{
    for (uint32_t i = 0; i < rule_items(names); i++)
        if (names->items[i].type == JSON_ARRAY)
            check_names(s, rule, &names->items[i]);
        else
            check_name(s, rule, rule_name(names, i));
}

static void check_values(const struct search *s, const struct rule *rule, const struct rule_condition *c,
                         const struct json *schema)
{
    const struct json *choices = json_get_text(schema, "enum");
    struct str names[64];
    size_t count = 0;
    for (uint32_t i = 0; json_is(choices, JSON_ARRAY) && i < choices->len && count < 64; i++)
        if (json_is(&choices->items[i], JSON_STRING))
            names[count++] = json_str(&choices->items[i]);
    for (size_t i = 0; i < c->count; i++) {
        struct str text = json_str(&c->values[i]);
        if (schema_allows(schema, &c->values[i]))
            continue;
        if (c->values[i].type == JSON_NULL)
            report(s, true, rule, "the schema does not allow null for '" STR_FMT "': write absent",
                   STR_ARG(c->path));
        else
            report(s, true, rule, "the schema does not allow %s for '" STR_FMT "'%s",
                   json_text(s, &c->values[i]), STR_ARG(c->path),
                   json_is(&c->values[i], JSON_STRING)
                       ? field_hint(s->arena, suggest_closest(text, names, count))
                       : "");
    }
}

/* No value of the enum meets it, its bounds are of another type, or what must be left out is required. */
static bool never_holds(const struct search *s, const struct rule_condition *c, const struct json *schema)
{
    const struct json *choices = json_get_text(schema, "enum"), *type = json_get_text(schema, "type");
    const struct range *range = c->range;
    const struct json *bound = !range ? NULL : range->low.value ? range->low.value : range->high.value;
    if (c->kind == COND_ABSENT)
        return schema_requires(s, c->path);
    if (bound && json_is(type, JSON_STRING) && !str_is(json_str(type), "integer"))
        return !schema_type_allows(schema, bound);
    if (bound && json_is(type, JSON_STRING))
        return bound->type != JSON_NUMBER;
    if (c->kind == COND_PREDICATE || !json_is(choices, JSON_ARRAY))
        return false;
    for (uint32_t i = 0; i < choices->len; i++)
        if (condition_matches(c, &choices->items[i]))
            return false;
    return true;
}

static void check_against_schema(const struct search *s, const struct rule *rule)
{
    for (size_t i = 0; i < rule->condition_count; i++) {
        const struct rule_condition *c = &rule->conditions[i];
        const struct json *schema = schema_at(s, c->path);
        check_name(s, rule, c->path);
        check_values(s, rule, c, schema);
        if (c->kind != COND_VALUES && never_holds(s, c, schema)) {
            struct buf words = buf_in(s->arena);
            condition_describe(&words, c);
            report(s, true, rule, "never holds: the schema allows no call in which " STR_FMT,
                   STR_ARG(buf_view(&words)));
        }
    }
    check_names(s, rule, rule->needs);
    check_names(s, rule, rule->drops);
    check_names(s, rule, rule->one_of);
    check_names(s, rule, rule->exclusive);
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++) {
        const struct json_member *member = &rule->defaults->members[i];
        check_name(s, rule, member->key);
        if (!schema_allows(schema_at(s, member->key), &member->value))
            report(s, true, rule, "the schema does not allow the default %s for '" STR_FMT "'",
                   json_text(s, &member->value), STR_ARG(member->key));
    }
}

/* ---- what a rule does to an argument ------------------------------------------------- */

/* "o" covers "o.x" too. */
static bool covers(struct str outer, struct str name)
{
    return str_eq(outer, name) ||
           (str_starts(str_from(name, outer.len), ".") && str_eq(str_cut(name, outer.len), outer));
}

static bool drops(const struct rule *rule, struct str name)
{
    for (uint32_t i = 0; i < rule_items(rule->drops); i++)
        if (covers(rule_name(rule->drops, i), name))
            return true;
    return false;
}

static const struct json *default_of(const struct rule *rule, struct str name)
{
    return rule->defaults ? json_get(rule->defaults, name) : NULL;
}

static bool gives(const struct rule *rule, struct str name)
{
    return default_of(rule, name) != NULL;
}

/* It drops or gives the argument, what holds it, or something in it. */
static bool changes(const struct rule *rule, struct str name)
{
    for (uint32_t n = 0; n < rule_items(rule->drops); n++)
        if (covers(rule_name(rule->drops, n), name) || covers(name, rule_name(rule->drops, n)))
            return true;
    for (uint32_t n = 0; rule->defaults && n < rule->defaults->len; n++)
        if (covers(rule->defaults->members[n].key, name) || covers(name, rule->defaults->members[n].key))
            return true;
    return false;
}

static bool any_rule(const struct search *s, bool (*does)(const struct rule *rule, struct str name),
                     struct str name)
{
    for (size_t i = 0; i < s->rules->count; i++)
        if (does(&s->rules->list[i], name))
            return true;
    return false;
}

/* ---- two rules that hold together ---------------------------------------------------- */

static bool is_same_bound(const struct bound *a, const struct bound *b)
{
    return a->open == b->open && !a->value == !b->value && (!a->value || json_equal(a->value, b->value));
}

static bool is_same_condition(const struct rule_condition *a, const struct rule_condition *b)
{
    bool same = a->kind == b->kind && str_eq(a->path, b->path) && a->count == b->count;
    if (same && a->range)
        same =
            is_same_bound(&a->range->low, &b->range->low) && is_same_bound(&a->range->high, &b->range->high);
    if (same && a->predicate)
        same = a->predicate->which == b->predicate->which;
    for (size_t i = 0; same && i < a->count; i++)
        same = json_equal(&a->values[i], &b->values[i]);
    return same;
}

/* Whenever `narrow` holds, `wide` holds: it has all conditions of `wide`, and no rule changes an argument
 * that they read, so that what holds for one still holds for the other. */
static bool implies(const struct search *s, const struct rule *narrow, const struct rule *wide)
{
    for (size_t i = 0; i < wide->condition_count; i++) {
        bool found = false;
        for (size_t n = 0; !found && n < narrow->condition_count; n++)
            found = is_same_condition(&narrow->conditions[n], &wide->conditions[i]);
        if (!found)
            return false;
    }
    for (size_t i = 0; narrow != wide && i < narrow->condition_count; i++)
        if (any_rule(s, changes, narrow->conditions[i].path))
            return false;
    return true;
}

/* "the rule on line 4 (when action is …)" */
static const char *other(const struct search *s, const struct rule *rule, const struct rule *than)
{
    struct str when = rule->when.len ? str_cut(rule->when, 80) : STR_LIT("always");
    if (rule == than)
        return "it";
    return arena_printf(s->arena, "the rule on line %d (" STR_FMT "%s)", rule->line, STR_ARG(when),
                        when.len < rule->when.len ? "…" : "")
        .at;
}

/* a needs what b drops, or two arguments of which b allows one. */
static void check_needed(const struct search *s, const struct rule *a, const struct rule *b)
{
    for (uint32_t i = 0; i < rule_items(a->needs); i++) {
        struct str name = rule_name(a->needs, i);
        if (drops(b, name) && !any_rule(s, gives, name) && (implies(s, a, b) || implies(s, b, a)))
            report(s, true, a, "needs '" STR_FMT "', which %s drops: remove one of the two", STR_ARG(name),
                   other(s, b, a));
    }
    for (uint32_t g = 0; a->needs && g < rule_items(b->exclusive); g++) {
        const struct json *group = &b->exclusive->items[g];
        struct str first = STR_NONE;
        for (uint32_t n = 0; n < group->len; n++) {
            struct str name = rule_name(group, n);
            if (!json_array_has(a->needs, name))
                continue;
            if (first.len && (implies(s, a, b) || implies(s, b, a)))
                report(s, true, a,
                       "needs '" STR_FMT "' and '" STR_FMT "', but %s allows only one: remove one",
                       STR_ARG(first), STR_ARG(name), other(s, b, a));
            first = name;
        }
    }
}

/* b gives a default that a, whenever b holds, drops or has given before. */
static void check_defaults(const struct search *s, const struct rule *a, const struct rule *b)
{
    for (uint32_t i = 0; b->defaults && i < b->defaults->len; i++) {
        struct str name = b->defaults->members[i].key;
        const struct json *first = default_of(a, name);
        if (a >= b && drops(a, name) && implies(s, b, a))
            report(s, true, b, "gives '" STR_FMT "' a default, but %s drops it: remove one of the two",
                   STR_ARG(name), other(s, a, b));
        else if (a < b && first && !json_equal(first, &b->defaults->members[i].value) &&
                 !any_rule(s, drops, name) && implies(s, b, a))
            report(s, true, b,
                   "its default for '" STR_FMT
                   "' is never used, as %s gives %s first: put the rule with more conditions first",
                   STR_ARG(name), other(s, a, b), json_text(s, first));
    }
}

static void check_required(const struct search *s, const struct rule *rule)
{
    for (uint32_t i = 0; i < rule_items(rule->needs); i++)
        if (schema_requires(s, rule_name(rule->needs, i)))
            report(s, false, rule, "needs '" STR_FMT "', which the schema requires already: leave it out",
                   STR_ARG(rule_name(rule->needs, i)));
    for (uint32_t i = 0; i < rule_items(rule->drops); i++)
        if (schema_requires(s, rule_name(rule->drops, i)) && !any_rule(s, gives, rule_name(rule->drops, i)))
            report(s, true, rule, "drops '" STR_FMT "', which the schema requires: make it optional there",
                   STR_ARG(rule_name(rule->drops, i)));
}

void policy_rule_conflicts(const struct policy *policy, const struct json *schema, struct arena *arena,
                           policy_conflict *callback, void *owner)
{
    const struct rules *rules = &policy->code->rules;
    struct search s = {.rules = rules,
                       .schema = schema             ? schema
                                 : policy->validate ? policy->schema
                                                    : NULL,
                       .unknown_dropped = policy->unknown_given && policy->unknown != UNKNOWN_PASS,
                       .arena = arena,
                       .report = callback,
                       .owner = owner};
    for (size_t i = 0; i < rules->count && !sandbox_deadline_passed(policy->set->sandbox); i++) {
        const struct rule *rule = &rules->list[i];
        check_against_schema(&s, rule);
        check_required(&s, rule);
        for (size_t k = 0; k < rules->count; k++) {
            check_needed(&s, rule, &rules->list[k]);
            check_defaults(&s, &rules->list[k], rule);
        }
    }
}
