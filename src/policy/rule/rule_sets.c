/*
 * A value that fits is looked for among the few that can decide: the values
 * that conditions and schema name, and for ranges one between the bounds and
 * as many more as conditions may exclude.
 */
#include "policy/rule/rule_sets.h"
#include "json/build.h"

#include <math.h>

static const struct json null_value = {.type = JSON_NULL};

/* ---- one argument ---------------------------------------------------------------------- */

struct meeting {
    const struct rule_schema *schema;
    const struct rule_condition *const *list;
    size_t count;
};

static bool takes(const struct rule_condition *c, const struct json *value)
{
    return c->kind == COND_IS ? condition_is_given(value) : condition_takes(c, value);
}

static bool all_take(const struct meeting *m, const struct json *value)
{
    for (size_t i = 0; i < m->count; i++)
        if (!takes(m->list[i], value))
            return false;
    return true;
}

static bool fits(const struct meeting *m, const struct json *value)
{
    return all_take(m, value) && rule_schema_allows(m->schema, m->list[0]->path, value);
}

static const struct rule_condition *first_of(const struct meeting *m, enum condition_kind kind)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->list[i]->kind == kind)
            return m->list[i];
    return NULL;
}

static enum certainty any_fits(const struct meeting *m, const struct json *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fits(m, &values[i]))
            return SURELY;
    return SURELY_NOT;
}

static enum certainty meet_absent(const struct meeting *m)
{
    bool left_out = all_take(m, NULL) && !rule_schema_requires(m->schema, m->list[0]->path);
    return left_out || fits(m, &null_value) ? SURELY : SURELY_NOT;
}

static double number_of(const struct bound *bound, enum condition_kind kind)
{
    double n = 0;
    if (kind == COND_TIMES)
        return bound->seconds;
    json_double(bound->value, &n);
    return n;
}

/* The narrower of the two; `side`: 1 for low ends, -1 for high ones. */
static void narrow(struct bound *end, const struct bound *by, enum condition_kind kind, int side)
{
    if (!by->value)
        return;
    double a = end->value ? number_of(end, kind) * side : -INFINITY, b = number_of(by, kind) * side;
    if (b > a || (b == a && by->open))
        *end = *by;
}

static struct rule_condition common_range(const struct meeting *m, enum condition_kind kind)
{
    struct rule_condition range = {.kind = kind};
    for (size_t i = 0; i < m->count; i++) {
        if (m->list[i]->kind != kind)
            continue;
        narrow(&range.low, &m->list[i]->low, kind, 1);
        narrow(&range.high, &m->list[i]->high, kind, -1);
    }
    return range;
}

static enum certainty meet_times(const struct meeting *m)
{
    struct rule_condition range = common_range(m, COND_TIMES);
    const struct json *sample = range.low.value ? range.low.value : range.high.value;
    if (!rule_schema_allows(m->schema, m->list[0]->path, sample))
        return SURELY_NOT;
    if (!range.low.value || !range.high.value || range.low.seconds < range.high.seconds)
        return SURELY;
    bool touch = range.low.seconds == range.high.seconds && !range.low.open && !range.high.open;
    return touch ? SURELY : SURELY_NOT;
}

static bool number_fits(const struct meeting *m, double n)
{
    struct json value = json_number(m->schema->arena, n);
    return value.type == JSON_NUMBER && fits(m, &value);
}

/* So many numbers can be excluded one by one. */
static size_t excluded(const struct meeting *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++)
        count += m->list[i]->kind == COND_NONE_OF ? m->list[i]->count : 0;
    return count;
}

static enum certainty meet_numbers(const struct meeting *m)
{
    struct rule_condition range = common_range(m, COND_NUMBERS);
    struct bound low, high;
    bool whole;
    rule_schema_bounds(m->schema, m->list[0]->path, &low, &high, &whole);
    narrow(&range.low, &low, COND_NUMBERS, 1);
    narrow(&range.high, &high, COND_NUMBERS, -1);
    double from = range.low.value ? number_of(&range.low, COND_NUMBERS) : -INFINITY;
    double to = range.high.value ? number_of(&range.high, COND_NUMBERS) : INFINITY;
    double start = isfinite(from) ? from : isfinite(to) ? to : 0, way = isfinite(from) ? 1 : -1;
    size_t tries = excluded(m) + 2; /* an open end is one more */
    double step = whole || !isfinite(from) || !isfinite(to) ? 1 : (to - from) / (double)(tries + 1);
    if (whole)
        start = way > 0 ? ceil(start) : floor(start);
    if (from > to)
        return SURELY_NOT;
    if (isinf(start) || isinf(step))
        return PERHAPS; /* beyond what a double holds */
    for (size_t i = 0; i <= tries; i++)
        if (number_fits(m, start + way * step * (double)i))
            return SURELY;
    return rule_schema_is_plain(m->schema, m->list[0]->path) ? SURELY_NOT : PERHAPS;
}

enum certainty conditions_meet(const struct rule_schema *s, const struct rule_condition *const *list,
                               size_t count)
{
    struct meeting m = {s, list, count};
    if (!count)
        return SURELY;
    const struct rule_condition *values = first_of(&m, COND_VALUES);
    const struct json *choices = rule_schema_choices(s, list[0]->path);
    bool numbers = first_of(&m, COND_NUMBERS), times = first_of(&m, COND_TIMES);
    if (first_of(&m, COND_ABSENT))
        return meet_absent(&m);
    if (values)
        return any_fits(&m, values->values, values->count);
    if (choices)
        return any_fits(&m, choices->items, choices->len);
    if (numbers || times)
        return numbers && times ? SURELY_NOT : numbers ? meet_numbers(&m) : meet_times(&m);
    return SURELY;
}

/* ---- one condition within another --------------------------------------------------------- */

static bool end_within(const struct bound *narrow_end, const struct bound *wide, enum condition_kind kind,
                       int side)
{
    if (!wide->value || !narrow_end->value)
        return !wide->value;
    double a = number_of(narrow_end, kind) * side, b = number_of(wide, kind) * side;
    return isfinite(a) && (a > b || (a == b && (narrow_end->open || !wide->open)));
}

static bool takes_none(const struct rule_condition *c, const struct json *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (condition_takes(c, &values[i]))
            return false;
    return true;
}

static bool values_within(const struct rule_condition *narrow_one, const struct rule_condition *wide)
{
    for (size_t i = 0; i < narrow_one->count; i++)
        if (!condition_takes(wide, &narrow_one->values[i]))
            return false;
    return true;
}

static bool lies_within(const struct rule_condition *a, const struct rule_condition *b)
{
    if (b->kind == COND_IS)
        return a->kind == COND_IS && a->which == b->which;
    if (a->kind == COND_VALUES)
        return values_within(a, b);
    if (b->kind == COND_GIVEN)
        return a->kind != COND_ABSENT;
    if (b->kind == COND_NONE_OF)
        return (a->kind == COND_NUMBERS || a->kind == COND_TIMES || a->kind == COND_NONE_OF) &&
               takes_none(a, b->values, b->count);
    return a->kind == b->kind &&
           (a->kind == COND_NUMBERS || a->kind == COND_TIMES || a->kind == COND_ABSENT) &&
           end_within(&a->low, &b->low, a->kind, 1) && end_within(&a->high, &b->high, a->kind, -1);
}

bool rule_lies_within(const struct rule_schema *s, const struct rule *narrow_one, const struct rule *wide)
{
    for (size_t i = 0; i < wide->condition_count; i++) {
        const struct rule_condition *b = &wide->conditions[i];
        bool within = b->kind == COND_GIVEN && rule_schema_requires(s, b->path);
        for (size_t k = 0; k < narrow_one->condition_count && !within; k++)
            within =
                str_eq(narrow_one->conditions[k].path, b->path) && lies_within(&narrow_one->conditions[k], b);
        if (!within)
            return false;
    }
    return true;
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* All conditions on that path, of all the rules. */
static size_t conditions_on(const struct rule *const *list, size_t count, struct str path,
                            const struct rule_condition **out)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < list[i]->condition_count && n < SETS_MAX; k++)
            if (str_eq(list[i]->conditions[k].path, path))
                out[n++] = &list[i]->conditions[k];
    return n;
}

/* Two different predicates, or one beside something else, may or may not go together. */
static bool has_stray_test(const struct rule_condition *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; list[i]->kind == COND_IS && k < count; k++)
            if (list[k]->kind != COND_GIVEN &&
                !(list[k]->kind == COND_IS && list[k]->which == list[i]->which))
                return true;
    return false;
}

static bool is_within_path(struct str inner, struct str outer)
{
    return inner.len > outer.len && inner.at[outer.len] == '.' && memcmp(inner.at, outer.at, outer.len) == 0;
}

/* "a" and "a.b" are no two arguments: what one is says something of the other. */
static bool has_nested_paths(const struct rule *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t a = 0; a < list[i]->condition_count; a++)
            for (size_t k = 0; k < count; k++)
                for (size_t b = 0; b < list[k]->condition_count; b++)
                    if (is_within_path(list[i]->conditions[a].path, list[k]->conditions[b].path))
                        return true;
    return false;
}

/* The rule that holds nowhere but where all others do, so that it need only hold itself. */
static bool has_innermost(const struct rule_schema *s, const struct rule *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t within = 0;
        for (size_t k = 0; k < count; k++)
            within += list[i] == list[k] || rule_lies_within(s, list[i], list[k]);
        if (within == count)
            return true;
    }
    return false;
}

static bool has_tests(const struct rule *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i]->condition_count && list[i]->conditions[list[i]->condition_count - 1].kind == COND_IS)
            return true;
    return false;
}

/* Argument by argument. */
static enum certainty arguments_meet(const struct rule_schema *s, const struct rule *const *list,
                                     size_t count, struct str given)
{
    const struct rule_condition *on[SETS_MAX + 1], there = {.path = given, .kind = COND_GIVEN};
    enum certainty all = SURELY;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < list[i]->condition_count; k++) {
            struct str path = list[i]->conditions[k].path;
            size_t n = conditions_on(list, count, path, on);
            if (given.len && str_eq(given, path))
                on[n++] = &there;
            enum certainty one = conditions_meet(s, on, n);
            if (one == SURELY && has_stray_test(on, n))
                one = PERHAPS;
            all = one < all ? one : all;
        }
    return all;
}

enum certainty rules_meet(const struct rule_schema *s, const struct rule *const *list, size_t count,
                          struct str given)
{
    enum certainty all = arguments_meet(s, list, count, given);
    if (all == SURELY_NOT || has_innermost(s, list, count))
        return all;
    if (has_tests(list, count) || has_nested_paths(list, count) || rule_schema_is_conditional(s))
        return PERHAPS;
    return all;
}
