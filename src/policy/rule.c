/*
 * The evaluator. Rules apply in the order in which they are written, each to
 * the arguments as the earlier ones left them; all problems are reported
 * together.
 */
#include "policy/rule.h"
#include "base/arena.h"
#include "json/build.h"
#include "json/path.h"
#include "json/write.h"
#include "policy/policy_internal.h"
#include "policy/vocabulary.h"
#include "sandbox/bridge.h"

#include <lauxlib.h>

/* ---- conditions ------------------------------------------------------------ */

/* Most conditions are values, and in every call. */
static bool has_value(const struct rule_condition *c, const struct json *value)
{
    for (size_t i = 0; value && i < c->count; i++)
        if (json_equal(value, &c->values[i]))
            return true;
    return false;
}

/* A side is how the value compares with a bound: -1 below, 0 equal, 1 above. */
static bool is_within(const struct rule_condition *c, int low_side, int high_side)
{
    return (!c->low.value || low_side > 0 || (low_side == 0 && !c->low.open)) &&
           (!c->high.value || high_side < 0 || (high_side == 0 && !c->high.open));
}

bool condition_matches(const struct rule_condition *c, const struct json *value)
{
    const struct bound *low = &c->low, *high = &c->high;
    double t;
    switch (c->kind) {
    case COND_VALUES:
        return has_value(c, value);
    case COND_NONE_OF:
        return condition_is_given(value) && !has_value(c, value);
    case COND_NUMBERS:
        return json_is(value, JSON_NUMBER) &&
               is_within(c, low->value ? json_number_cmp(value, low->value) : 0,
                         high->value ? json_number_cmp(value, high->value) : 0);
    case COND_TIMES:
        return json_is(value, JSON_STRING) && word_time_parse(json_str(value), &t) &&
               is_within(c, (t > low->seconds) - (t < low->seconds),
                         (t > high->seconds) - (t < high->seconds));
    case COND_GIVEN:
        return condition_is_given(value);
    case COND_ABSENT:
        return !condition_is_given(value);
    case COND_PREDICATE:
        return false;
    }
    return false;
}

/* The predicate receives values of its own, which it may change without effect. */
static bool call_predicate(const struct rule_condition *c, const struct json *value,
                           struct condition_tests *tests)
{
    lua_State *L = tests->L;
    luaL_checkstack(L, 4, "rules nested too deep");
    lua_rawgeti(L, LUA_REGISTRYINDEX, tests->refs[c->test]);
    bridge_push(L, value);
    bridge_push(L, tests->args);
    if (c->takes_call)
        call_table_push(L);
    lua_call(L, c->takes_call ? 3 : 2, 1);
    bool holds = lua_toboolean(L, -1);
    if (lua_istable(L, -1) || lua_isuserdata(L, -1))
        luaL_error(L, "is(\"%s\") returned a table or null: expected true or false", c->words.at);
    lua_pop(L, 1);
    return holds;
}

static bool holds(const struct rule *rule, const struct json *args, struct condition_tests *tests)
{
    for (size_t i = 0; i < rule->condition_count; i++) {
        const struct rule_condition *c = &rule->conditions[i];
        const struct json *value = json_path_get(args, c->path);
        if (c->kind != COND_PREDICATE) {
            if (!condition_matches(c, value))
                return false;
            continue;
        }
        if (!tests || !condition_is_given(value))
            return false;
        tests->rule = rule;
        tests->args = args;
        if (!call_predicate(c, value, tests))
            return false;
    }
    return true;
}

/* ---- what follows from a rule ---------------------------------------------- */

static bool is_given(const struct json *args, struct str name)
{
    return condition_is_given(json_path_get(args, name));
}

/* Drops arguments, then adds defaults; returns `args` itself if nothing changes. */
static const struct json *change(const struct rule *rule, const struct json *args, struct arena *arena)
{
    struct json *changed = NULL;
    for (uint32_t i = 0; i < rule_items(rule->drops); i++) {
        if (!json_path_get(args, rule_name(rule->drops, i)))
            continue;
        changed = ARENA_NEW(arena, struct json);
        *changed = json_path_without(arena, args, rule_name(rule->drops, i));
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

/* "'a', 'b'" */
static void add_names(struct buf *out, const struct json *names)
{
    for (uint32_t i = 0; i < names->len; i++)
        buf_printf(out, "%s'" STR_FMT "'", i ? ", " : "", STR_ARG(rule_name(names, i)));
}

/* The message is `what`, when the rule holds, and what to do. */
static void add(struct problems *problems, const struct rule *rule, struct str path, const char *code,
                struct str what, const char *remedy)
{
    struct str message = arena_printf(problems->arena, STR_FMT "%s" STR_FMT " — %s", STR_ARG(what),
                                      rule->when.len ? " " : "", STR_ARG(rule->when), remedy);
    problems_add(problems, (struct problem){.path = path, .code = code, .message = message});
}

static bool report_missing(const struct rule *rule, const struct json *args, struct problems *problems)
{
    bool found = false;
    for (uint32_t i = 0; i < rule_items(rule->needs); i++) {
        struct str name = rule_name(rule->needs, i);
        bool known = is_given(args, name);
        for (size_t k = 0; k < problems->count && !known; k++)
            known = str_eq(problems->list[k].path, name) && str_is(str_of(problems->list[k].code), "missing");
        if (known)
            continue;
        add(problems, rule, name, "missing", STR_LIT("is missing"), "provide a value");
        found = true;
    }
    for (uint32_t i = 0; i < rule_items(rule->one_of); i++) {
        const struct json *names = &rule->one_of->items[i];
        bool given = false;
        for (uint32_t n = 0; n < names->len; n++)
            given |= is_given(args, rule_name(names, n));
        if (given)
            continue;
        struct buf what = buf_in(problems->arena);
        buf_text(&what, "at least one of ");
        add_names(&what, names);
        buf_text(&what, " is required");
        add(problems, rule, STR_NONE, "missing", buf_view(&what), "provide one");
        found = true;
    }
    return found;
}

static bool report_exclusive(const struct rule *rule, const struct json *args, struct problems *problems)
{
    bool found = false;
    for (uint32_t i = 0; i < rule_items(rule->exclusive); i++) {
        const struct json *names = &rule->exclusive->items[i];
        struct str first = STR_NONE;
        for (uint32_t n = 0; n < names->len; n++) {
            struct str name = rule_name(names, n);
            if (!is_given(args, name))
                continue;
            if (first.len) {
                struct str what = arena_printf(problems->arena, "can't be given together with '" STR_FMT "'",
                                               STR_ARG(first));
                add(problems, rule, name, "exclusive", what, "remove one of the two");
                found = true;
            } else {
                first = name;
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

/* ---- in words ---------------------------------------------------------------- */

static void describe_range(struct buf *out, const struct rule_condition *c)
{
    bool times = c->kind == COND_TIMES;
    if (c->low.value) {
        buf_text(out, c->low.open ? (times ? "after " : "above ") : (times ? "at or after " : "at least "));
        json_write(out, c->low.value);
    }
    if (c->low.value && c->high.value)
        buf_text(out, " and ");
    if (c->high.value) {
        buf_text(out, c->high.open ? (times ? "before " : "below ") : (times ? "at or before " : "at most "));
        json_write(out, c->high.value);
    }
}

void condition_describe(struct buf *out, const struct rule_condition *c)
{
    static const char *const one[] = {[COND_VALUES] = "", [COND_NONE_OF] = "given and not "};
    static const char *const many[] = {[COND_VALUES] = "one of ", [COND_NONE_OF] = "given and none of "};
    buf_str(out, c->path);
    buf_text(out, " is ");
    switch (c->kind) {
    case COND_VALUES:
    case COND_NONE_OF:
        buf_text(out, c->count > 1 ? many[c->kind] : one[c->kind]);
        for (size_t i = 0; i < c->count; i++) {
            buf_text(out, i ? ", " : "");
            json_write(out, &c->values[i]);
        }
        break;
    case COND_NUMBERS:
    case COND_TIMES:
        describe_range(out, c);
        break;
    case COND_GIVEN:
    case COND_ABSENT:
        buf_text(out, c->kind == COND_GIVEN ? "given" : "left out");
        break;
    case COND_PREDICATE:
        buf_str(out, c->words);
    }
}

/* Each demand is a clause; clauses are joined by semicolons. */
static void next_clause(struct buf *out, size_t from)
{
    if (out->len > from)
        buf_text(out, "; ");
}

static void add_clauses(struct buf *out, const struct rule *rule, size_t from)
{
    if (rule->needs) {
        next_clause(out, from);
        add_names(out, rule->needs);
        buf_text(out, rule->needs->len > 1 ? " are required" : " is required");
    }
    for (uint32_t i = 0; i < rule_items(rule->one_of); i++) {
        next_clause(out, from);
        buf_text(out, "at least one of ");
        add_names(out, &rule->one_of->items[i]);
        buf_text(out, " is required");
    }
    for (uint32_t i = 0; i < rule_items(rule->exclusive); i++) {
        next_clause(out, from);
        buf_text(out, "at most one of ");
        add_names(out, &rule->exclusive->items[i]);
        buf_text(out, " may be given");
    }
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++) {
        next_clause(out, from);
        buf_printf(out, "'" STR_FMT "' is ", STR_ARG(rule->defaults->members[i].key));
        json_write(out, &rule->defaults->members[i].value);
        buf_text(out, " when left out");
    }
    if (rule->drops) {
        next_clause(out, from);
        add_names(out, rule->drops);
        buf_text(out, rule->drops->len > 1 ? " are dropped" : " is dropped");
    }
    if (rule->refuses) {
        next_clause(out, from);
        buf_printf(out, "refused: " STR_FMT, STR_ARG(rule->message));
    }
}

/* Copied out of a growing buffer, as there may be thousands of rules. */
void rule_describe(struct arena *arena, struct rule *rule)
{
    struct buf out = {0};
    for (size_t i = 0; i < rule->condition_count; i++) {
        buf_text(&out, i ? " and " : "when ");
        condition_describe(&out, &rule->conditions[i]);
    }
    size_t when = out.len;
    if (when)
        buf_text(&out, ": ");
    add_clauses(&out, rule, out.len);
    rule->words = arena_dup(arena, buf_view(&out));
    rule->when = (struct str){rule->words.at, when};
    buf_clear(&out);
}
