/* `when action is "by_ids": 'ids' is required; 'limit' is dropped` */
#include "policy/rule/rule_describe.h"
#include "base/arena.h"
#include "json/write.h"

static void add_names(struct buf *out, const struct rule_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        buf_printf(out, "%s'" STR_FMT "'", i ? ", " : "", STR_ARG(names->list[i]));
}

/* Each demand is a clause; clauses are joined by semicolons. */
static void next_clause(struct buf *out, size_t from)
{
    if (out->len > from)
        buf_text(out, "; ");
}

static void add_clauses(struct buf *out, const struct rule *rule, size_t from)
{
    if (rule->needs.count) {
        next_clause(out, from);
        add_names(out, &rule->needs);
        buf_text(out, rule->needs.count > 1 ? " are required" : " is required");
    }
    for (size_t i = 0; i < rule->one_of_count; i++) {
        next_clause(out, from);
        buf_text(out, "at least one of ");
        add_names(out, &rule->one_of[i]);
        buf_text(out, " is required");
    }
    for (size_t i = 0; i < rule->exclusive_count; i++) {
        next_clause(out, from);
        buf_text(out, "at most one of ");
        add_names(out, &rule->exclusive[i]);
        buf_text(out, " may be given");
    }
    for (uint32_t i = 0; rule->defaults && i < rule->defaults->len; i++) {
        next_clause(out, from);
        buf_printf(out, "'" STR_FMT "' is ", STR_ARG(rule->defaults->members[i].key));
        json_write(out, &rule->defaults->members[i].value);
        buf_text(out, " when left out");
    }
    if (rule->drops.count) {
        next_clause(out, from);
        add_names(out, &rule->drops);
        buf_text(out, rule->drops.count > 1 ? " are dropped" : " is dropped");
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

/* " when action is …"; nothing for a rule that always holds. */
static void add_condition(struct buf *out, const struct rule *rule)
{
    if (rule->when.len)
        buf_printf(out, " " STR_FMT, STR_ARG(rule->when));
}

struct str rule_describe_missing(struct arena *arena, const struct rule *rule)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "is missing");
    add_condition(&out, rule);
    buf_text(&out, " — provide a value");
    return buf_view(&out);
}

struct str rule_describe_none_of(struct arena *arena, const struct rule *rule, const struct rule_names *names)
{
    struct buf out = buf_in(arena);
    buf_text(&out, "at least one of ");
    add_names(&out, names);
    buf_text(&out, " is required");
    add_condition(&out, rule);
    buf_text(&out, " — provide one");
    return buf_view(&out);
}

struct str rule_describe_exclusive(struct arena *arena, const struct rule *rule, struct str first)
{
    struct buf out = buf_in(arena);
    buf_printf(&out, "can't be given together with '" STR_FMT "'", STR_ARG(first));
    add_condition(&out, rule);
    buf_text(&out, " — remove one of the two");
    return buf_view(&out);
}
