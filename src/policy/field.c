/* Rows are found and values are stored here; declare.c and key_table.c report what does not fit. */
#include "policy/field.h"

#include "base/arena.h"
#include "base/date.h"
#include "base/suggest.h"
#include "policy/declare.h"

#include <math.h>
#include <stdlib.h>

const struct field *field_next(const struct field_table *table, size_t *at)
{
    for (size_t rows = table->count + (table->also ? table->also->count : 0); *at < rows;) {
        size_t i = (*at)++;
        const struct field *field =
            i < table->count ? &table->fields[i] : &table->also->fields[i - table->count];
        if (field->in_defaults || !table->defaults_only)
            return field;
    }
    return NULL;
}

const struct field *field_find(const struct field_table *table, struct str name, struct str *meant)
{
    struct str names[FIELDS_MAX];
    const struct field *field;
    size_t count = 0;
    for (size_t at = 0; (field = field_next(table, &at));) {
        if (str_is(name, field->name))
            return field;
        if (count < FIELDS_MAX)
            names[count++] = str_of(field->name);
    }
    *meant = suggest_closest(name, names, count);
    return NULL;
}

const char *field_hint(struct arena *arena, struct str meant)
{
    return meant.len ? arena_printf(arena, " (did you mean '" STR_FMT "'?)", STR_ARG(meant)).at : "";
}

size_t field_choices(const struct field *field, struct str out[CHOICES_MAX])
{
    size_t count = 0;
    for (struct str rest = str_of(field->choices); rest.len && count < CHOICES_MAX;)
        out[count++] = str_split(&rest, ' ');
    return count;
}

void field_quote_choices(struct buf *out, const struct field *field, const char *between)
{
    struct str choices[CHOICES_MAX];
    for (size_t i = 0, count = field_choices(field, choices); i < count; i++)
        buf_printf(out, "%s\"" STR_FMT "\"", i ? between : "", STR_ARG(choices[i]));
}

/* The word `duration` has no milliseconds, as policies compute in seconds. */
static bool read_duration(const struct json *value, double *ms)
{
    struct str text = json_str(value);
    char number[24] = {0}, *end;
    double seconds;
    if (json_double(value, &seconds) || word_duration_parse(text, &seconds)) {
        *ms = seconds * 1000;
        return true;
    }
    if (text.len < 3 || text.len > sizeof(number) || memcmp(text.at + text.len - 2, "ms", 2) != 0 ||
        text.at[0] < '0' || text.at[0] > '9')
        return false;
    memcpy(number, text.at, text.len - 2);
    *ms = strtod(number, &end);
    return !*end;
}

static const struct json *store_number(const struct field *field, const struct json *value, void *into)
{
    int64_t whole = 0, most = field->kind == FIELD_COUNT ? FIELD_COUNT_MAX : field->most;
    bool lifted = field->or_false && value->type == JSON_BOOL && !value->truth;
    double n = 0;
    if (field->kind == FIELD_COST) {
        if (!lifted &&
            (!json_double(value, &n) || n < (double)field->least / POLICY_COST_UNIT || n > POLICY_COST_MAX))
            return value;
        *(uint64_t *)into = (uint64_t)llround(n * POLICY_COST_UNIT);
    } else if (field->kind == FIELD_DURATION) {
        if (!read_duration(value, &n) || n < (double)field->least || n > (double)field->most)
            return value;
        *(uint32_t *)into = (uint32_t)(n + 0.5);
    } else if (!lifted && (!json_int(value, &whole) || whole < field->least || whole > most)) {
        return value;
    } else if (field->kind == FIELD_SIZE) {
        *(size_t *)into = (size_t)whole;
    } else if (field->kind == FIELD_MIB) {
        *(uint64_t *)into = (uint64_t)whole << 20;
    } else {
        *(uint32_t *)into = (uint32_t)whole;
    }
    return NULL;
}

const struct json *field_store(const struct field *field, const struct json *value, struct arena *arena,
                               void *into)
{
    struct str choices[CHOICES_MAX];
    int64_t seconds;
    switch (field->kind) {
    case FIELD_BOOL:
        if (value->type != JSON_BOOL)
            return value;
        *(bool *)into = value->truth;
        return NULL;
    case FIELD_DATE:
        if (!date_read(json_str(value), &seconds))
            return value;
        /* fallthrough */
    case FIELD_STRING:
        if (value->type != JSON_STRING)
            return value;
        *(struct str *)into = arena_dup(arena, json_str(value));
        return NULL;
    case FIELD_STRINGS:
        if (value->type != JSON_ARRAY)
            return value;
        struct str *list = ARENA_ARRAY(arena, struct str, value->len + 1);
        for (uint32_t i = 0; i < value->len; i++) {
            if (value->items[i].type != JSON_STRING)
                return &value->items[i];
            list[i] = arena_dup(arena, json_str(&value->items[i]));
        }
        *(struct strings *)into = (struct strings){list, value->len};
        return NULL;
    case FIELD_CHOICE:
        for (size_t i = 0, count = field_choices(field, choices); i < count; i++)
            if (value->type == JSON_STRING && str_eq(choices[i], json_str(value))) {
                *(int *)into = (int)i + field->first;
                return NULL;
            }
        return field->most ? store_number(field, value, into) : value;
    default:
        return store_number(field, value, into);
    }
}

/* ---- the reference ---- */

static const struct field_table *const tables[] = {
    &declare_tool_table,         &declare_policy_table,     &declare_retry_table,
    &declare_again_table,        &declare_loop_table,       &declare_poll_table,
    &policy_limits_table,        &declare_rate_table,       &declare_exec_table,
    &declare_exec_sandbox_table, &declare_exec_group_table, &declare_http_table,
    &declare_compact_table,      &declare_coerce_table,     &declare_example_table,
    &declare_example_call_table, &declare_gateway_table,
};

const struct field_table *const *field_tables(size_t *count)
{
    *count = sizeof(tables) / sizeof(tables[0]);
    return tables;
}

/* The type and the form of a value, if the row does not give them. */
static const struct {
    const char *type, *form;
} kinds[] = {
    [FIELD_STRING] = {"string", "\"…\""}, [FIELD_BOOL] = {"boolean", "true"},
    [FIELD_COUNT] = {"integer", "3"},     [FIELD_STRINGS] = {"string|string[]", "{ \"…\", \"…\" }"},
    [FIELD_ANY] = {"any", "…"},
};

static const char *quoted_choices(struct arena *arena, const struct field *field, const char *between)
{
    struct buf out = buf_in(arena);
    field_quote_choices(&out, field, between);
    return arena_dup(arena, buf_view(&out)).at;
}

const char *field_form(struct arena *arena, const struct field *field)
{
    if (!field->form && field->kind == FIELD_CHOICE)
        return quoted_choices(arena, field, ", ");
    return field->form ? field->form : kinds[field->kind].form;
}

const char *field_type(struct arena *arena, const struct field *field)
{
    if (!field->type && field->kind == FIELD_CHOICE)
        return quoted_choices(arena, field, "|");
    return field->type ? field->type : kinds[field->kind].type;
}
