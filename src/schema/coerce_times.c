/*
 * Date-times that lack their zone, in an instance that fits but for them. The
 * walk goes only into what the strict format rejects, so that a string that
 * some other alternative accepts stays as it is.
 */
#include "schema/explain.h"

#include "base/date.h"
#include "json/build.h"
#include "schema/coerce.h"
#include "schema/format.h"

struct times_walk {
    struct explain_ctx e; /* its pass, problems and arena */
    const struct time_zone *zone;
};

static const struct json *walk(struct times_walk *t, const struct node *node, const struct json *v,
                               const struct location *location);

static struct str with_offset(struct arena *arena, struct str text, int32_t offset)
{
    int32_t minutes = (offset < 0 ? -offset : offset) / 60;
    return offset ? arena_printf(arena, STR_FMT "%c%02d:%02d", STR_ARG(text), offset < 0 ? '-' : '+',
                                 minutes / 60, minutes % 60)
                  : arena_printf(arena, STR_FMT "Z", STR_ARG(text));
}

static const struct json *add_zone(struct times_walk *t, const struct json *v,
                                   const struct location *location)
{
    struct arena *arena = t->e.arena;
    struct str text = json_str(v);
    int32_t offsets[2] = {0, 0};
    struct problem problem = {
        .code = "format",
        .message = STR_LIT("has no time zone, so the tool decides which one is meant; to be exact, add Z for "
                           "UTC or an offset such as +02:00"),
        .warning = true};
    if (t->zone) {
        unsigned count = time_zone_offsets(t->zone, format_local_seconds(text), offsets);
        if (count == 1 && offsets[0] % 60 == 0)
            return json_keep(arena, json_string(with_offset(arena, text, offsets[0])));
        problem.warning = false;
        problem.message =
            count == 2
                ? arena_printf(
                      arena,
                      "the clocks of " STR_FMT " show this time twice: send '" STR_FMT "' or '" STR_FMT "'",
                      STR_ARG(time_zone_name(t->zone)), STR_ARG(with_offset(arena, text, offsets[0])),
                      STR_ARG(with_offset(arena, text, offsets[1])))
                : arena_printf(arena,
                               "the clocks of " STR_FMT
                               " %s: send another, or add Z for UTC or an offset such as +02:00",
                               STR_ARG(time_zone_name(t->zone)),
                               count ? "were not whole minutes from UTC then" : "never show this time");
    }
    message_add(&t->e, location, problem);
    return v;
}

struct op_walk {
    struct times_walk *t;
    const struct op *op; /* OP_PROPERTIES or OP_ITEMS */
    const struct location *location;
};

static const struct json *walk_child(void *walk_of_op, const struct json *v, uint32_t i, struct str *key)
{
    const struct op_walk *w = walk_of_op;
    const struct json *now = json_child(v, i);
    struct location at = {w->location, *key, i};
    struct props_cursor cursor = {0};
    const struct node *next;
    if (w->op->code == OP_ITEMS)
        return op_item_node(w->op, i) ? walk(w->t, op_item_node(w->op, i), now, &at) : now;
    at = location_of_member(w->location, *key);
    while ((next = props_next_node(&w->t->e.pass, w->op->props, *key, &cursor)))
        now = walk(w->t, next, now, &at);
    return now;
}

static const struct json *walk_op(struct times_walk *t, const struct op *op, const struct json *v,
                                  const struct location *location)
{
    const struct node *next = NULL;
    switch ((enum op_code)op->code) {
    case OP_PROPERTIES:
    case OP_ITEMS:
        return json_map(t->e.arena, v, walk_child, &(struct op_walk){t, op, location});
    case OP_REF:
        return walk(t, op->node, v, location);
    case OP_DYNAMIC_REF:
        return walk(t, op_dynamic_target(&t->e.pass, op), v, location);
    case OP_ALL_OF:
        for (uint32_t i = 0; i < op->nodes.count; i++)
            v = walk(t, op->nodes.at[i], v, location);
        return v;
    case OP_ANY_OF:
    case OP_ONE_OF: /* the alternative that applies */
        for (uint32_t i = 0; i < op->nodes.count; i++)
            if (node_accepts_local_times(&t->e.pass, op->nodes.at[i], v))
                return walk(t, op->nodes.at[i], v, location);
        return v;
    case OP_IF:
        next = node_accepts(&t->e.pass, op->branch.condition, v) ? op->branch.then : op->branch.otherwise;
        return next ? walk(t, next, v, location) : v;
    case OP_DEPENDENT_SCHEMAS:
        for (uint32_t i = 0; i < op->dependents.count; i++)
            if (json_get(v, op->dependents.at[i].key))
                v = walk(t, op->dependents.at[i].node, v, location);
        return v;
    default:
        return v;
    }
}

static const struct json *walk(struct times_walk *t, const struct node *node, const struct json *v,
                               const struct location *location)
{
    struct scope here;
    if (t->e.pass.too_complex || t->e.pass.frames >= SCHEMA_MAX_FRAMES || node_accepts(&t->e.pass, node, v))
        return v;
    if (v->type == JSON_STRING && format_is_local_date_time(json_str(v)))
        return add_zone(t, v, location);
    const struct scope *outer = pass_enter(&t->e.pass, node, &here);
    for (uint16_t i = 0; i < node->op_count; i++)
        if (node->ops[i].applies & type_bit_of(v))
            v = walk_op(t, &node->ops[i], v, location);
    pass_leave(&t->e.pass, outer);
    return v;
}

const struct json *schema_coerce_times(const struct schema *schema, const struct json *instance,
                                       const struct time_zone *zone, struct problems *problems,
                                       struct schema_work *work)
{
    struct times_walk t = {
        .e = {.pass = pass_begin(schema, work), .problems = problems, .arena = problems->arena},
        .zone = zone};
    const struct json *timed = walk(&t, schema->root, instance, NULL);
    struct schema_remarks ignored;
    if (schema_inspect(schema, timed, &ignored, work) == SCHEMA_VALID)
        return timed;
    t.zone = NULL; /* with the zone it breaks another rule: it stays, with the warning */
    t.e.pass = pass_begin(schema, work);
    walk(&t, schema->root, instance, NULL);
    return instance;
}
