/*
 * The evaluator. Rules apply in the order in which they are written, each to
 * the arguments as the earlier ones left them; all problems are reported
 * together.
 */
#include "policy/rule/rule.h"
#include "base/arena.h"
#include "json/build.h"
#include "json/path.h"
#include "policy/rule/rule_describe.h"

static bool holds(const struct rule *rule, const struct json *args, struct condition_tests *tests)
{
    for (size_t i = 0; i < rule->condition_count; i++) {
        const struct rule_condition *c = &rule->conditions[i];
        const struct json *value = json_path_get(args, c->path);
        if (c->kind == COND_VALUES) { /* most conditions */
            if (!condition_has_value(c, value))
                return false;
            continue;
        }
        if (tests) {
            tests->rule = rule;
            tests->args = args;
        }
        if (!condition_holds(c, value, tests))
            return false;
    }
    return true;
}

static bool is_given(const struct json *args, struct str name)
{
    return condition_is_given(json_path_get(args, name));
}

/* Drops arguments, then adds defaults; returns `args` itself if nothing changes. */
static const struct json *change(const struct rule *rule, const struct json *args, struct arena *arena)
{
    struct json *changed = NULL;
    for (size_t i = 0; i < rule->drops.count; i++) {
        if (!json_path_get(args, rule->drops.list[i]))
            continue;
        changed = ARENA_NEW(arena, struct json);
        *changed = json_path_without(arena, args, rule->drops.list[i]);
        args = changed;
    }
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++) {
        const struct json_member *member = &rule->defaults->members[i];
        if (json_path_get(args, member->key))
            continue;
        changed = ARENA_NEW(arena, struct json);
        *changed = json_path_with(arena, args, member->key, member->value);
        args = changed;
    }
    return args;
}

static void add(struct problems *problems, struct str path, const char *code, struct str message)
{
    problems_add(problems, (struct problem){.path = path, .code = code, .message = message});
}

static bool is_reported(const struct problems *problems, struct str path)
{
    for (size_t i = 0; i < problems->count; i++)
        if (str_eq(problems->list[i].path, path) && str_is(str_of(problems->list[i].code), "missing"))
            return true;
    return false;
}

static bool report_missing(const struct rule *rule, const struct json *args, struct problems *problems)
{
    bool found = false;
    for (size_t i = 0; i < rule->needs.count; i++) {
        struct str name = rule->needs.list[i];
        if (is_given(args, name) || is_reported(problems, name))
            continue;
        add(problems, name, "missing", rule_describe_missing(problems->arena, rule));
        found = true;
    }
    for (size_t i = 0; i < rule->one_of_count; i++) {
        const struct rule_names *names = &rule->one_of[i];
        size_t given = 0;
        for (size_t n = 0; n < names->count; n++)
            given += is_given(args, names->list[n]);
        if (given == 0) {
            add(problems, STR_NONE, "missing", rule_describe_none_of(problems->arena, rule, names));
            found = true;
        }
    }
    return found;
}

static bool report_exclusive(const struct rule *rule, const struct json *args, struct problems *problems)
{
    bool found = false;
    for (size_t i = 0; i < rule->exclusive_count; i++) {
        const struct rule_names *names = &rule->exclusive[i];
        struct str first = STR_NONE;
        for (size_t n = 0; n < names->count; n++) {
            if (!is_given(args, names->list[n]))
                continue;
            if (first.len) {
                add(problems, names->list[n], "exclusive",
                    rule_describe_exclusive(problems->arena, rule, first));
                found = true;
            } else {
                first = names->list[n];
            }
        }
    }
    return found;
}

const struct json *rule_apply_all(const struct rules *rules, const struct json *args, struct arena *arena,
                                  struct problems *problems, struct condition_tests *tests)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->list[i];
        if (!holds(rule, args, tests))
            continue;
        const struct json *before = args;
        args = change(rule, args, arena);
        bool reported = report_missing(rule, args, problems);
        reported |= report_exclusive(rule, args, problems);
        rules->hits[i] += reported || args != before;
    }
    return args;
}

const struct rule *rule_find_refusal(const struct rules *rules, const struct json *args,
                                     struct condition_tests *tests)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (!rules->list[i].refuses || !holds(&rules->list[i], args, tests))
            continue;
        rules->hits[i]++;
        return &rules->list[i];
    }
    return NULL;
}

void rule_explain_all(const struct rules *rules, const struct json *args, struct problems *problems)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (!holds(&rules->list[i], args, NULL))
            continue;
        args = change(&rules->list[i], args, problems->arena);
        report_missing(&rules->list[i], args, problems);
        report_exclusive(&rules->list[i], args, problems);
    }
}
