/*
 * Which alternative of an anyOf or oneOf was meant? By type, by discriminator,
 * by closeness, in this order. The problems of that alternative are reported,
 * or one problem for all of them if they differ in one thing.
 */
#include "schema/explain.h"

#include "json/write.h"
#include "schema/shape.h"

#define BRANCHES_MAX    32u /* alternatives compared */
#define STEPS_TO_SELECT 40u /* and one for each alternative */
#define GUESSES_MAX     2u  /* nesting of alternatives that are tried */

struct branches {
    const struct node *at[BRANCHES_MAX];
    struct problems found[BRANCHES_MAX];
    uint32_t count;
};

static bool explain_values(struct explain_ctx *e, const struct branches *b, const struct nodes *nodes,
                           const struct json *v, const struct location *location)
{
    const struct choices *lists[BRANCHES_MAX];
    unsigned others = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct node *node = b->at[i];
        if (node->op_count != 1 || node->ops[0].code != OP_CHOICES)
            return false;
        lists[i] = &node->ops[0].choices;
    }
    for (uint32_t i = 0; i < nodes->count; i++)
        if (!(nodes->at[i]->types & type_bit_of(v)))
            others |= nodes->at[i]->types;
    message_choices(e, lists, b->count, others, v, location);
    return true;
}

/* A discriminator of every alternative; at NULL: there is none. */
static struct str common_discriminator(const struct branches *b)
{
    for (uint16_t i = 0; i < b->at[0]->discriminator_count; i++) {
        struct str key = b->at[0]->discriminators[i].key;
        uint32_t with = 0;
        while (with < b->count && discriminator_choices(b->at[with], key))
            with++;
        if (with == b->count)
            return key;
    }
    return STR_NONE;
}

/* ": a|b" of all alternatives. */
static struct str discriminator_values(struct arena *arena, const struct branches *b, struct str key)
{
    struct buf out = buf_in(arena);
    for (uint32_t i = 0; i < b->count && i < SHAPE_CHOICES_MAX; i++) {
        const struct choices *choices = discriminator_choices(b->at[i], key);
        for (uint32_t k = 0; k < choices->count && out.len < SHAPE_CHOICES_MAX_BYTES; k++) {
            buf_text(&out, out.len ? "|" : ": ");
            shape_put_value(&out, choices->at[k]);
        }
    }
    return buf_view(&out);
}

/* True if the discriminator itself is wrong, and reported; else only the alternatives it leaves remain. */
static bool explain_discriminator(struct explain_ctx *e, struct branches *b, const struct json *v,
                                  const struct location *location)
{
    struct str key = common_discriminator(b);
    if (!key.at || v->type != JSON_OBJECT)
        return false;
    const struct json *value = json_get(v, key);
    if (!value) {
        message_missing(e, key, NULL, STR_NONE, discriminator_values(e->arena, b, key), location);
        return true;
    }
    const struct choices *lists[BRANCHES_MAX];
    uint32_t count = b->count, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        lists[i] = discriminator_choices(b->at[i], key);
        if (choices_contain(&e->pass, lists[i], value))
            b->at[kept++] = b->at[i];
    }
    b->count = kept;
    if (kept)
        return false;
    struct location at = {location, key, 0};
    message_choices(e, lists, count, 0, value, &at);
    return true;
}

/* The only alternative whose discriminators the object has, or NULL. */
static const struct node *sole_match(struct explain_ctx *e, const struct branches *b, const struct json *v)
{
    const struct node *match = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->count; i++)
        if (v->type == JSON_OBJECT && b->at[i]->discriminator_count &&
            discriminators_match(&e->pass, b->at[i], v)) {
            match = b->at[i];
            count++;
        }
    return count == 1 ? match : NULL;
}

static void try_all(struct explain_ctx *e, struct branches *b, const struct json *v,
                    const struct location *location)
{
    struct problems *outer = e->problems;
    e->guesses++;
    for (uint32_t i = 0; i < b->count; i++) {
        problems_init(&b->found[i], e->arena);
        e->problems = &b->found[i];
        e->explain_node(e, b->at[i], v, location);
    }
    e->guesses--;
    e->problems = outer;
}

/* A wrong set of fields weighs more against an alternative than a wrong value in the right field. */
static size_t distance(const struct problems *found)
{
    size_t sum = 4 * found->more;
    for (size_t i = 0; i < found->count; i++) {
        const char *code = found->list[i].code;
        bool fields = strcmp(code, "missing") == 0 || strcmp(code, "unknown_field") == 0;
        bool kind = strcmp(code, "const") == 0 || strcmp(code, "type") == 0;
        sum += fields ? 4 : kind ? 3 : 2;
    }
    return found->count ? sum : SIZE_MAX;
}

static const struct props *props_of(const struct node *node)
{
    for (uint16_t i = 0; i < node->op_count; i++)
        if (node->ops[i].code == OP_PROPERTIES)
            return node->ops[i].props;
    return NULL;
}

/* Its only problem is that all its required fields are missing. */
static bool lacks_all(const struct node *node, const struct problems *found)
{
    const struct props *props = props_of(node);
    if (!props || !props->required || found->more || found->count != props->required)
        return false;
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->list[i].code, "missing") != 0)
            return false;
    return true;
}

static void put_required(struct buf *out, const struct node *node)
{
    const struct props *props = props_of(node);
    const char *before = "";
    for (uint32_t i = 0; props && i < props->count; i++)
        if (props->list[i].required) {
            buf_printf(out, "%s'" STR_FMT "'", before, STR_ARG(props->list[i].key));
            before = " with ";
        }
}

static bool explain_fields(struct explain_ctx *e, const struct branches *b, const struct op *op,
                           const struct location *location)
{
    for (uint32_t i = 0; i < b->count; i++)
        if (!lacks_all(b->at[i], &b->found[i]))
            return false;
    struct buf out = buf_in(e->arena);
    buf_text(&out, op->code == OP_ONE_OF ? "exactly one is required: " : "at least one is required: ");
    for (uint32_t i = 0; i < b->count; i++) { /* "'contact_id', 'contact_query' or 'group_query'" */
        buf_text(&out, i == 0 ? "" : i + 1 == b->count ? " or " : ", ");
        put_required(&out, b->at[i]);
    }
    message_add(e, location, (struct problem){.code = "missing", .message = buf_view(&out)});
    return true;
}

/* True if more than one alternative accepts v, and that is reported. */
static bool explain_too_many(struct explain_ctx *e, const struct op *op, const struct json *v,
                             const struct location *location)
{
    struct buf out = buf_in(e->arena);
    uint32_t fit = 0;
    buf_text(&out, "must fit exactly one alternative, but fits ");
    for (uint32_t i = 0; i < op->nodes.count && op->code == OP_ONE_OF; i++)
        if (node_accepts(&e->pass, op->nodes.at[i], v, NULL)) {
            buf_text(&out, fit++ ? " and " : "");
            struct str title = json_str(json_get_text(op->nodes.at[i]->source, "title"));
            const struct props *props = props_of(op->nodes.at[i]);
            if (title.len)
                buf_printf(&out, "'" STR_FMT "'", STR_ARG(title));
            else if (v->type == JSON_OBJECT && props && props->required)
                put_required(&out, op->nodes.at[i]);
            else
                buf_printf(&out, "alternative %u", i + 1);
        }
    if (fit < 2)
        return false;
    buf_text(&out, " — keep one");
    message_add(e, location, (struct problem){.code = "oneOf", .message = buf_view(&out)});
    return true;
}

void anyof_explain(struct explain_ctx *e, const struct op *op, const struct json *v,
                   const struct location *location)
{
    struct branches *b = ARENA_NEW(e->arena, struct branches);
    if (!pass_spend(&e->pass, STEPS_TO_SELECT + op->nodes.count))
        return;
    if (explain_too_many(e, op, v, location))
        return;
    for (uint32_t i = 0; i < op->nodes.count && b->count < BRANCHES_MAX; i++)
        if (op->nodes.at[i]->types & type_bit_of(v))
            b->at[b->count++] = op->nodes.at[i];
    if (!b->count) {
        message_type(e, NULL, &op->nodes, v, location);
        return;
    }
    if (explain_values(e, b, &op->nodes, v, location) || explain_discriminator(e, b, v, location))
        return;
    const struct node *match = sole_match(e, b, v);
    if (match || b->count == 1 || e->guesses == GUESSES_MAX) {
        e->explain_node(e, match ? match : b->at[0], v, location);
        return;
    }
    try_all(e, b, v, location);
    if (!explain_fields(e, b, op, location)) {
        const struct problems *found = &b->found[0];
        for (uint32_t i = 1; i < b->count; i++)
            if (distance(&b->found[i]) < distance(found))
                found = &b->found[i];
        for (size_t i = 0; i < found->count; i++)
            problems_add(e->problems, found->list[i]);
        e->problems->more += found->more;
    }
}
