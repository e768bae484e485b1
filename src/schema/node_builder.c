/*
 * What every keyword needs while one node is compiled: new ops, the nodes of
 * its subschemas, errors and warnings with the keyword's place.
 */
#include "schema/compile.h"

#include "json/write.h"

struct str builder_pointer(const struct node_builder *b)
{
    return arena_printf(b->c->arena, STR_FMT "/%s", STR_ARG(subschema_pointer(b->c->arena, b->subschema)),
                        b->keyword);
}

enum err builder_refuse(struct node_builder *b, const char *expected, const struct json *found)
{
    struct buf text = buf_in(b->c->arena);
    json_write(&text, found);
    return err_set(b->c->why, ERR_SCHEMA, "expected %s at " STR_FMT ", found " STR_FMT, expected,
                   STR_ARG(builder_pointer(b)), STR_ARG(str_cut(buf_view(&text), 100)));
}

void builder_warn(struct node_builder *b, const char *format, ...)
{
    struct problems *warnings = b->c->warnings;
    if (!warnings)
        return;
    va_list args;
    va_start(args, format);
    struct str message = arena_vprintf(warnings->arena, format, args);
    va_end(args);
    problems_add(warnings, (struct problem){.path = arena_dup(warnings->arena, builder_pointer(b)),
                                            .code = "schema",
                                            .message = message,
                                            .warning = true});
}

void builder_ignore(struct node_builder *b, const char *text)
{
    builder_warn(b, "%s; the keyword is ignored", text);
    if (b->c->faults) {
        err_set(b->c->why, ERR_SCHEMA, "%s", text);
        compile_fault(b->c, b->source, b->keyword, builder_pointer(b), ERR_SCHEMA);
    }
}

enum err builder_pattern(struct node_builder *b, struct str expression, struct pattern **out)
{
    enum err err = pattern_compile(b->c->arena, expression, out, b->c->why);
    if (err)
        return err;
    b->c->pattern_bytes += pattern_code_bytes(*out);
    if (b->c->pattern_bytes > SCHEMA_MAX_PATTERN_BYTES)
        return err_set(
            b->c->why, ERR_LIMIT,
            "expected patterns of at most %u bytes once compiled, found more; use fewer or smaller "
            "repeats such as {1,1000}",
            SCHEMA_MAX_PATTERN_BYTES);
    return OK;
}

struct op *builder_add_op(struct node_builder *b, enum op_code code, unsigned applies)
{
    struct op *op = &b->ops[b->op_count++];
    *op = (struct op){.code = (uint8_t)code, .applies = (uint8_t)applies, .keyword = b->keyword};
    return op;
}

struct op *builder_op(struct node_builder *b, enum op_code code, unsigned applies)
{
    for (size_t i = 0; i < b->op_count; i++)
        if (b->ops[i].code == code && b->ops[i].applies == applies)
            return &b->ops[i];
    struct op *op = builder_add_op(b, code, applies);
    if (code == OP_COUNT)
        op->count.max = UINT64_MAX;
    return op;
}

enum err builder_node(struct node_builder *b, const struct json *source, const struct node **out)
{
    struct subschema *subschema = subschema_find(b->c, source);
    enum err err = subschema ? OK : subschema_index(b->c, source, b->subschema->resource, &subschema);
    if (!err)
        *out = subschema_node(b->c, subschema);
    return err;
}

enum err builder_nodes(struct node_builder *b, const struct json *list, struct nodes *out)
{
    if (list->type != JSON_ARRAY)
        return builder_refuse(b, "an array of schemas", list);
    const struct node **nodes = ARENA_ARRAY(b->c->arena, const struct node *, list->len);
    enum err err = OK;
    for (uint32_t i = 0; i < list->len && !err; i++)
        err = builder_node(b, &list->items[i], &nodes[i]);
    *out = (struct nodes){.at = nodes, .count = list->len};
    return err;
}
