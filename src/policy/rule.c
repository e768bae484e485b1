/* The evaluator. Rules apply in the order in which they are written, each to the arguments as the earlier
 * ones left them; all problems are reported together. */
#include "base/arena.h"
#include "json/build.h"
#include "json/path.h"
#include "json/write.h"
#include "policy/declare.h"
#include "sandbox/bridge.h"

#include <stdlib.h>

/* ---- conditions ------------------------------------------------------------ */

/* null is what some models send for "nothing". */
static bool condition_is_given(const struct json *value)
{
    return value && value->type != JSON_NULL;
}

/* Most conditions are values, and in every call. */
static bool has_value(const struct rule_condition *c, const struct json *value)
{
    for (size_t i = 0; value && i < c->count; i++)
        if (json_equal(value, &c->values[i]))
            return true;
    return false;
}

/* A side is how the value compares with a bound: -1 below, 0 equal, 1 above. */
static bool is_within(const struct range *range, int low_side, int high_side)
{
    const struct bound *low = &range->low, *high = &range->high;
    return (!low->value || low_side > 0 || (low_side == 0 && !low->open)) &&
           (!high->value || high_side < 0 || (high_side == 0 && !high->open));
}

static const struct range everything; /* of the conditions that have none */

bool condition_matches(const struct rule_condition *c, const struct json *value)
{
    const struct range *range = c->range ? c->range : &everything;
    const struct bound *low = &range->low, *high = &range->high;
    double t;
    switch (c->kind) {
    case COND_VALUES:
        return has_value(c, value);
    case COND_NONE_OF:
        return condition_is_given(value) && !has_value(c, value);
    case COND_NUMBERS:
        return json_is(value, JSON_NUMBER) &&
               is_within(range, low->value ? json_number_cmp(value, low->value) : 0,
                         high->value ? json_number_cmp(value, high->value) : 0);
    case COND_TIMES:
        return json_is(value, JSON_STRING) && word_time_parse(json_str(value), &t) &&
               is_within(range, (t > low->seconds) - (t < low->seconds),
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
        lua_State *L = tests->L;
        luaL_checkstack(L, 4, "rules nested too deep");
        lua_rawgeti(L, LUA_REGISTRYINDEX, tests->refs[c->predicate->test]);
        bridge_push(L, value); /* values of its own, which the predicate may change without effect */
        bridge_push(L, args);
        if (c->predicate->takes_call)
            call_table_push(L);
        lua_call(L, c->predicate->takes_call ? 3 : 2, 1);
        bool is_true = lua_toboolean(L, -1);
        if (lua_istable(L, -1) || lua_isuserdata(L, -1))
            luaL_error(L, "is(\"%s\") returned a table or null: expected true or false",
                       c->predicate->words.at);
        lua_pop(L, 1);
        if (!is_true)
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
    for (uint32_t i = 0; i < rule_items(rule->drops); i++)
        if (json_path_get(args, rule_name(rule->drops, i)))
            args = json_keep(arena, json_path_without(arena, args, rule_name(rule->drops, i)));
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++) {
        const struct json_member *member = &rule->defaults->members[i];
        if (!json_path_get(args, member->key))
            args = json_keep(arena, json_path_with(arena, args, member->key, member->value));
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
        if (!rules->list[i].refusal || !holds(&rules->list[i], args, tests))
            continue;
        rules->hits[i]++;
        return &rules->list[i];
    }
    return NULL;
}

/* ---- in words ---------------------------------------------------------------- */

void condition_describe(struct buf *out, const struct rule_condition *c)
{
    static const char *const one[] = {[COND_VALUES] = "", [COND_NONE_OF] = "given and not "};
    static const char *const many[] = {[COND_VALUES] = "one of ", [COND_NONE_OF] = "given and none of "};
    const struct range *range = c->range ? c->range : &everything;
    const struct bound *low = &range->low, *high = &range->high;
    bool times = c->kind == COND_TIMES;
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
        if (low->value) {
            buf_text(out, low->open ? (times ? "after " : "above ") : (times ? "at or after " : "at least "));
            json_write(out, low->value);
        }
        if (low->value && high->value)
            buf_text(out, " and ");
        if (high->value) {
            buf_text(out,
                     high->open ? (times ? "before " : "below ") : (times ? "at or before " : "at most "));
            json_write(out, high->value);
        }
        break;
    case COND_GIVEN:
    case COND_ABSENT:
        buf_text(out, c->kind == COND_GIVEN ? "given" : "left out");
        break;
    case COND_PREDICATE:
        buf_str(out, c->predicate->words);
    }
}

/* Fills rule->when and rule->words, copied out of a growing buffer, as there may be thousands of rules. */
static void rule_describe(struct arena_pool *pool, struct rule *rule)
{
    struct buf out = {0};
    for (size_t i = 0; i < rule->condition_count; i++) {
        buf_text(&out, i ? " and " : "when ");
        condition_describe(&out, &rule->conditions[i]);
    }
    size_t when = out.len;
    if (when)
        buf_text(&out, ": ");
    size_t demands = out.len; /* each of which ends with "; " */
    if (rule->needs) {
        add_names(&out, rule->needs);
        buf_text(&out, rule->needs->len > 1 ? " are required; " : " is required; ");
    }
    for (uint32_t i = 0; i < rule_items(rule->one_of); i++) {
        buf_text(&out, "at least one of ");
        add_names(&out, &rule->one_of->items[i]);
        buf_text(&out, " is required; ");
    }
    for (uint32_t i = 0; i < rule_items(rule->exclusive); i++) {
        buf_text(&out, "at most one of ");
        add_names(&out, &rule->exclusive->items[i]);
        buf_text(&out, " may be given; ");
    }
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++) {
        buf_printf(&out, "'" STR_FMT "' is ", STR_ARG(rule->defaults->members[i].key));
        json_write(&out, &rule->defaults->members[i].value);
        buf_text(&out, " when left out; ");
    }
    if (rule->drops) {
        add_names(&out, rule->drops);
        buf_text(&out, rule->drops->len > 1 ? " are dropped; " : " is dropped; ");
    }
    if (rule->refusal)
        buf_printf(&out, "refused: " STR_FMT "; ", STR_ARG(rule->refusal->message));
    if (out.len > demands)
        out.len -= strlen("; ");
    rule->words = arena_pool_dup(pool, buf_view(&out));
    rule->when = (struct str){rule->words.at, when};
    buf_clear(&out);
}

/* ---- reading: from the tables that lua/policy/declare.lua and conditions.lua make, inside a protected call
 * ---- */

#define RULES_MAX 1000u /* per policy */

static struct str read_string(struct declaration *d, int at, const char *name)
{
    table_push_field(d->L, at, name);
    struct str s = arena_pool_dup(d->set->pool, sandbox_string(d->L, -1));
    lua_pop(d->L, 1);
    return s;
}

/* A list, or with `type` JSON_OBJECT an object; NULL if it is empty or anything else. */
static const struct json *read_json(struct declaration *d, int at, const char *name, const char *what,
                                    enum json_type type, const struct json *schema)
{
    struct bridge_hints hints = {.schema = schema};
    int top = lua_gettop(d->L);
    const struct json *value = NULL;
    table_push_field(d->L, at, name);
    lua_pushnil(d->L);
    if (lua_istable(d->L, -2) && lua_next(d->L, -2)) { /* most are empty */
        lua_pop(d->L, 2);
        value = bridge_read_copy(d->L, -1, what, &hints, d->set->pool);
    }
    lua_settop(d->L, top);
    return json_is(value, type) && value->len ? value : NULL;
}

/* The same for lists of names. */
static const struct json *read_lists(struct declaration *d, int at, const char *name)
{
    const struct json *lists = read_json(d, at, name, "rules", JSON_ARRAY, NULL);
    for (uint32_t i = 0; i < rule_items(lists); i++)
        if (lists->items[i].type != JSON_ARRAY)
            return NULL;
    return lists;
}

static int by_text(const void *a, const void *b)
{
    struct json left = *(const struct json *)a, right = *(const struct json *)b;
    return str_cmp((struct str){left.text, left.len}, (struct str){right.text, right.len});
}

/* The value on top of the stack: one, or any of a list, or of the keys of a set{…}, which are sorted. */
static void read_values(struct declaration *d, struct rule_condition *out)
{
    lua_State *L = d->L;
    int at = lua_gettop(L);
    struct arena *scratch = sandbox_context(L)->arena;
    bool is_table = lua_istable(L, at), is_set = sandbox_mark(L, at) == MARK_SET;
    size_t listed = is_table ? lua_objlen(L, at) : 1;
    struct json *values = NULL;
    size_t count = 0;
    for (lua_pushnil(L); is_set ? lua_next(L, at) : count < listed; lua_settop(L, at + 1)) {
        if (is_set)
            lua_pushvalue(L, at + 1); /* of the key, which lua_tolstring would change in place */
        else if (is_table)
            lua_rawgeti(L, at, (int)count + 1);
        else
            lua_pushvalue(L, at);
        values = arena_grow(scratch, values, count, sizeof(*values));
        values[count++] = *bridge_read(L, -1, "rules: when", NULL, scratch);
    }
    lua_settop(L, at);
    if (!count)
        luaL_error(L, "rules: when: '%s': expected a value or a list of values, got an empty table",
                   out->path.at);
    if (is_table && !is_set && table_has_other_key(L, at, count)) {
        diagnostics_push_value(L, -1);
        luaL_error(L, "rules: when: '%s': expected a value or a list of values, got one with the key %s",
                   out->path.at, lua_tostring(L, -1));
    }
    if (is_set && json_is(&values[0], JSON_STRING))
        qsort(values, count, sizeof(*values), by_text);
    struct json list = json_array(values, count);
    out->values = json_pool_copy(d->set->pool, &list)->items;
    out->count = count;
}

static void read_bound(struct declaration *d, const char *name, const char *open, struct bound *out)
{
    table_push_field(d->L, -1, name);
    if (!lua_isnil(d->L, -1))
        out->value = bridge_read_copy(d->L, -1, "rules: when", NULL, d->set->pool);
    if (json_is(out->value, JSON_STRING))
        word_time_parse(json_str(out->value), &out->seconds);
    lua_pop(d->L, 1);
    table_push_field(d->L, -1, open);
    out->open = lua_toboolean(d->L, -1);
    lua_pop(d->L, 1);
}

static void read_condition(struct declaration *d, struct rule_condition *out)
{
    static const char *const kinds[] = {
        [COND_NONE_OF] = "none_of", [COND_NUMBERS] = "numbers", [COND_TIMES] = "times",
        [COND_GIVEN] = "given",     [COND_ABSENT] = "absent",   [COND_PREDICATE] = "is"};
    proxy_unwrap(d->L, -1);
    if (!lua_istable(d->L, -1) || sandbox_mark(d->L, -1) != MARK_CONDITION) {
        read_values(d, out);
        return;
    }
    struct str kind = read_string(d, -1, "kind"); /* as lua/policy/conditions.lua names them */
    for (out->kind = COND_NONE_OF; out->kind <= COND_PREDICATE && !str_is(kind, kinds[out->kind]);)
        out->kind++;
    if (out->kind > COND_PREDICATE)
        luaL_error(d->L, "rules: when: '%s': the condition was changed after it was made", out->path.at);
    if (out->kind == COND_NONE_OF) {
        table_push_field(d->L, -1, "values");
        read_values(d, out);
        lua_pop(d->L, 1);
    } else if (out->kind == COND_NUMBERS || out->kind == COND_TIMES) {
        struct range *range = ARENA_NEW(d->set->arena, struct range);
        read_bound(d, "low", "low_open", &range->low);
        read_bound(d, "high", "high_open", &range->high);
        out->range = range;
    } else if (out->kind == COND_PREDICATE) {
        struct rules *rules = &d->policy->code->rules;
        struct predicate *predicate = ARENA_NEW(d->set->arena, struct predicate);
        out->predicate = predicate;
        predicate->words = read_string(d, -1, "words");
        table_push_field(d->L, -1, "test");
        struct arena *scratch = arena_new();
        predicate->which = lua_topointer(d->L, -1);
        predicate->takes_call = bytecode_read(d->L, -1, scratch)->parameters > 2;
        arena_free(scratch);
        predicate->test = rules->test_count; /* among the predicates of all rules */
        rules->tests = arena_grow(d->set->arena, rules->tests, rules->test_count, sizeof(*rules->tests));
        rules->tests[rules->test_count++] = luaL_ref(d->L, LUA_REGISTRYINDEX);
    }
}

/* Predicates last, as they cost most. */
static int by_cost_and_path(const void *a, const void *b)
{
    const struct rule_condition *left = a, *right = b;
    bool left_is = left->kind == COND_PREDICATE, right_is = right->kind == COND_PREDICATE;
    return left_is != right_is ? left_is - right_is : str_cmp(left->path, right->path);
}

static void read_conditions(struct declaration *d, int at, struct rule *out)
{
    lua_State *L = d->L;
    size_t count = 0, n = 0;
    table_push_field(L, at, "condition");
    int when = lua_gettop(L);
    for (lua_pushnil(L); lua_istable(L, when) && lua_next(L, when); lua_pop(L, 1))
        count++;
    lua_settop(L, when);
    struct rule_condition *list = ARENA_ARRAY(d->set->arena, struct rule_condition, count);
    for (lua_pushnil(L); lua_istable(L, when) && lua_next(L, when); lua_pop(L, 1)) {
        list[n].path = arena_pool_dup(d->set->pool, sandbox_string(L, -2));
        read_condition(d, &list[n++]);
    }
    lua_settop(L, when - 1);
    qsort(list, n, sizeof(*list), by_cost_and_path);
    out->conditions = list;
    out->condition_count = n;
}

static void read_rule(struct declaration *d, int at, struct rule *out)
{
    lua_State *L = d->L;
    table_push_field(L, at, "line");
    out->line = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    read_conditions(d, at, out);
    out->needs = read_json(d, at, "required", "rules", JSON_ARRAY, NULL);
    out->drops = read_json(d, at, "dropped", "rules", JSON_ARRAY, NULL);
    out->defaults = read_json(d, at, "values", "rules: defaults", JSON_OBJECT, d->policy->schema);
    out->one_of = read_lists(d, at, "one_of");
    out->exclusive = read_lists(d, at, "at_most_one");
    table_push_field(L, at, "refusal");
    if (lua_istable(L, -1)) {
        struct refusal *refusal = ARENA_NEW(d->set->arena, struct refusal);
        refusal->code = read_string(d, -1, "code");
        refusal->message = read_string(d, -1, "message");
        refusal->hint = read_string(d, -1, "hint");
        out->refusal = refusal;
    }
    lua_pop(L, 1);
    rule_describe(d->set->pool, out);
    if (!out->words.len || (out->when.len && out->words.len == out->when.len + 2))
        luaL_error(
            L, "rules: the rule on line %d demands nothing: add needs, drops, defaults, exclusive or refuses",
            out->line);
}

void declare_rules(struct declaration *d, const struct field *field, int at)
{
    lua_State *L = d->L;
    struct rules *rules = &d->policy->code->rules;
    size_t count = lua_istable(L, at) ? lua_objlen(L, at) : 0;
    (void)field;
    if (!lua_istable(L, at) || count > RULES_MAX || sandbox_mark(L, at) == MARK_RULE)
        luaL_error(L, "rules: expected a list of at most %d rules, got %s", (int)RULES_MAX,
                   lua_istable(L, at) ? "one rule (put it in { })" : luaL_typename(L, at));
    if (table_has_other_key(L, at, count)) {
        diagnostics_push_value(L, -1); /* a rule under a name of its own would never hold */
        luaL_error(L, "rules: expected a list of rules, got one with the key %s", lua_tostring(L, -1));
    }
    rules->list = ARENA_ARRAY(d->set->arena, struct rule, count);
    rules->hits = ARENA_ARRAY(d->set->arena, uint64_t, count);
    for (rules->count = 0; rules->count < count; rules->count++) {
        struct rule *rule = &rules->list[rules->count];
        table_push_item(L, at, rules->count + 1);
        if (sandbox_mark(L, -1) != MARK_RULE)
            luaL_error(L, "rules: item %d: expected a rule (when { … } : needs \"…\"), got a %s",
                       (int)rules->count + 1, luaL_typename(L, -1));
        read_rule(d, lua_gettop(L), rule);
        lua_pop(L, 1);
        d->policy->hooks[HOOK_CHECK] |= rule->refusal != NULL; /* refusals are part of that stage */
    }
    d->policy->rule_hits = rules->hits;
    d->policy->rule_count = rules->count;
}

/* ---- which arguments they are about ---- */

static bool lists_have(const struct json *lists, struct str argument)
{
    for (uint32_t i = 0; i < rule_items(lists); i++)
        if (json_array_has(&lists->items[i], argument))
            return true;
    return false;
}

bool rule_any_names(const struct rules *rules, struct str argument)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->list[i];
        for (size_t k = 0; k < rule->condition_count; k++)
            if (str_eq(str_first_name(rule->conditions[k].path), argument))
                return true;
        if (json_array_has(rule->needs, argument) || json_array_has(rule->drops, argument) ||
            lists_have(rule->one_of, argument) || lists_have(rule->exclusive, argument) ||
            (rule->defaults && json_get(rule->defaults, argument)))
            return true;
    }
    return false;
}
