/*
 * Which alternative of an anyOf or oneOf was meant? By its type, by its
 * discriminator, by closeness, in this order; what is value is about that one
 * alone, or about all of them together where they differ in one thing.
 */
#include "schema/explain.h"

#include "json/write.h"

#define BRANCHES_MAX 32u /* alternatives weighed; more are rare and only cost words */
#define GUESSES_MAX  2u  /* alternatives within alternatives that are tried out in full */

struct branches {
    const struct node *at[BRANCHES_MAX];
    struct problems found[BRANCHES_MAX];
    uint32_t count;
};

static void gather_by_type(struct branches *b, const struct nodes *nodes, const struct json *v)
{
    b->count = 0;
    for (uint32_t i = 0; i < nodes->count && b->count < BRANCHES_MAX; i++)
        if (nodes->at[i]->types & type_bit_of(v))
            b->at[b->count++] = nodes->at[i];
}

/* ---- alternatives that are lists of values ---- */

static bool explain_values(struct explain_ctx *e, const struct branches *b, const struct nodes *nodes,
                           const struct json *v, const struct location *path)
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
    message_choices(e, lists, b->count, others, v, path);
    return true;
}

/* ---- discriminators ---- */

static const struct choices *discriminator_choices(const struct node *node, struct str key)
{
    for (uint16_t i = 0; i < node->discriminator_count; i++)
        if (str_eq(node->discriminators[i].key, key))
            return node->discriminators[i].choices;
    return NULL;
}

/* A key that every alternative discriminators itself apart by; at NULL: there is none. */
static struct str common_tell(const struct branches *b)
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

static void keep_told(struct branches *b, struct str key, const struct json *value)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->count; i++)
        if (choices_contain(discriminator_choices(b->at[i], key), value))
            b->at[kept++] = b->at[i];
    b->count = kept;
}

/* True where the discriminator itself is what is wrong; else only the told alternatives are left. */
static bool explain_tell(struct explain_ctx *e, struct branches *b, const struct json *v,
                         const struct location *path)
{
    struct str key = common_tell(b);
    if (!key.at || v->type != JSON_OBJECT)
        return false;
    const struct json *value = json_get(v, key);
    const struct choices *lists[BRANCHES_MAX];
    for (uint32_t i = 0; i < b->count; i++)
        lists[i] = discriminator_choices(b->at[i], key);
    if (!value) {
        message_missing(e, key, NULL, STR_NONE, STR_NONE, path);
        return true;
    }
    size_t count = b->count;
    keep_told(b, key, value);
    if (b->count)
        return false;
    struct location at = {path, key, 0};
    message_choices(e, lists, count, 0, value, &at);
    return true;
}

/* The one alternative whose discriminators, or required fields, the object has. */
static const struct node *sole_told(const struct branches *b, const struct json *v)
{
    const struct node *told = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->count; i++)
        if (v->type == JSON_OBJECT && b->at[i]->discriminator_count && discriminators_match(b->at[i], v)) {
            told = b->at[i];
            count++;
        }
    return count == 1 ? told : NULL;
}

/* ---- closeness ---- */

static void try_out(struct explain_ctx *e, struct branches *b, const struct json *v,
                    const struct location *path)
{
    struct problems *kept = e->problems;
    e->guesses++;
    for (uint32_t i = 0; i < b->count; i++) {
        problems_init(&b->found[i], e->arena);
        e->problems = &b->found[i];
        explain_node(e, b->at[i], v, path);
    }
    e->guesses--;
    e->problems = kept;
}

/* The wrong set of fields speaks louder against an alternative than a wrong value in the right field. */
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

static uint32_t closest(const struct branches *b)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < b->count; i++)
        if (distance(&b->found[i]) < distance(&b->found[best]))
            best = i;
    return best;
}

static void adopt(struct explain_ctx *e, const struct problems *found)
{
    for (size_t i = 0; i < found->count; i++)
        problems_add(e->problems, found->list[i]);
    e->problems->more += found->more;
}

/* ---- alternatives that ask for different fields ---- */

static const struct props *props_of(const struct node *node)
{
    for (uint16_t i = 0; i < node->op_count; i++)
        if (node->ops[i].code == OP_PROPERTIES)
            return node->ops[i].props;
    return NULL;
}

/* Nothing is wrong but that none of the required fields is there. */
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

/* "'contact_id', 'contact_query' or 'group_query'" */
static void put_all_required(struct buf *out, const struct branches *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        buf_text(out, i == 0 ? "" : i + 1 == b->count ? " or " : ", ");
        put_required(out, b->at[i]);
    }
}

static bool explain_fields(struct explain_ctx *e, const struct branches *b, const struct op *op,
                           const struct location *path)
{
    for (uint32_t i = 0; i < b->count; i++)
        if (!lacks_all(b->at[i], &b->found[i]))
            return false;
    struct buf out = buf_in(e->arena);
    buf_text(&out, op->code == OP_ONE_OF ? "exactly one is required: " : "at least one is required: ");
    put_all_required(&out, b);
    message_add(e, path, (struct problem){.code = "missing", .message = buf_view(&out)});
    return true;
}

/* ---- oneOf that fits twice ---- */

static void put_branch_name(struct buf *out, const struct op *op, uint32_t at, const struct json *v)
{
    struct str title = json_str(json_get_text(op->nodes.at[at]->source, "title"));
    const struct props *props = props_of(op->nodes.at[at]);
    if (title.len)
        buf_printf(out, "'" STR_FMT "'", STR_ARG(title));
    else if (v->type == JSON_OBJECT && props && props->required)
        put_required(out, op->nodes.at[at]);
    else
        buf_printf(out, "alternative %u", at + 1);
}

/* True where more than one alternative accepts v, and that was value. */
static bool explain_too_many(struct explain_ctx *e, const struct op *op, const struct json *v,
                             const struct location *path)
{
    struct buf out = buf_in(e->arena);
    uint32_t fit = 0;
    buf_text(&out, "must fit exactly one alternative, but fits ");
    for (uint32_t i = 0; i < op->nodes.count && op->code == OP_ONE_OF; i++)
        if (node_accepts(&e->pass, op->nodes.at[i], v, NULL)) {
            buf_text(&out, fit++ ? " and " : "");
            put_branch_name(&out, op, i, v);
        }
    if (fit < 2)
        return false;
    buf_text(&out, " — keep one");
    message_add(e, path, (struct problem){.code = "oneOf", .message = buf_view(&out)});
    return true;
}

void anyof_explain(struct explain_ctx *e, const struct op *op, const struct json *v,
                   const struct location *path)
{
    struct branches *b = ARENA_NEW(e->arena, struct branches);
    if (explain_too_many(e, op, v, path))
        return;
    gather_by_type(b, &op->nodes, v);
    if (!b->count) {
        unsigned types = 0;
        for (uint32_t i = 0; i < op->nodes.count; i++)
            types |= op->nodes.at[i]->types;
        say_type(e, types, v, path);
        return;
    }
    if (explain_values(e, b, &op->nodes, v, path) || explain_tell(e, b, v, path))
        return;
    const struct node *told = sole_told(b, v);
    if (told || b->count == 1 || e->guesses == GUESSES_MAX) {
        explain_node(e, told ? told : b->at[0], v, path);
        return;
    }
    try_out(e, b, v, path);
    if (!explain_fields(e, b, op, path))
        adopt(e, &b->found[closest(b)]);
}
