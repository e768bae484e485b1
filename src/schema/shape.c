/*
 * Writes shapes. Everything that applies to one value (the node, what it refers to, its allOf) is gathered
 * first; then each type of value is written with what restricts it. Depth, fields and bytes are bounded, so
 * recursive schemas end.
 */
#include "schema/shape.h"

#include "json/write.h"
#include "schema/explain.h"

#include <math.h>

#define IN_PLACE_MAX            8u                 /* references and allOf within each other */
#define SHAPE_EXACT_INTEGER_MAX 9007199254740991.0 /* 2^53 - 1 */
#define PARTS_MAX               8u   /* schemas that apply to one value and say something of the same kind */
#define ALTERNATIVES_MAX        256u /* of all unions within each other, of which only few need be shown */

/* What applies to one value. */
struct view {
    unsigned types, nodes; /* nodes: how many were gathered */
    const struct props *props[PARTS_MAX];
    size_t props_count;
    const struct op *items, *choices, *format, *pattern, *minimum, *maximum, *list_size, *branches;
    struct str format_name;
    const struct json *fallback; /* the default */
};

static void gather(struct view *view, const struct node *node, unsigned depth)
{
    if (depth == IN_PLACE_MAX || view->nodes == IN_PLACE_NODES_MAX)
        return;
    view->nodes++;
    view->types &= node->types;
    if (node->source->type == JSON_OBJECT) {
        const struct json *format = json_get_text(node->source, "format");
        if (json_is(format, JSON_STRING) && !view->format_name.len)
            view->format_name = json_str(format);
        if (!view->fallback)
            view->fallback = json_get_text(node->source, "default");
    }
    for (const struct op *op = node->ops, *end = op + node->op_count; op < end; op++)
        switch ((enum op_code)op->code) {
        case OP_CHOICES:
            view->choices = view->choices ? view->choices : op;
            break;
        case OP_MINIMUM:
            view->minimum = op;
            break;
        case OP_MAXIMUM:
            view->maximum = op;
            break;
        case OP_COUNT:
            if (op->applies & TYPE_BIT(JSON_ARRAY))
                view->list_size = op;
            break;
        case OP_FORMAT:
            view->format = op;
            break;
        case OP_PATTERN:
            view->pattern = op;
            break;
        case OP_PROPERTIES:
            if (view->props_count < PARTS_MAX)
                view->props[view->props_count++] = op->props;
            break;
        case OP_ITEMS:
            view->items = view->items ? view->items : op;
            break;
        case OP_REF:
            gather(view, op->node, depth + 1);
            break;
        case OP_ALL_OF:
            for (uint32_t i = 0; i < op->nodes.count; i++)
                gather(view, op->nodes.at[i], depth + 1);
            break;
        case OP_ANY_OF:
        case OP_ONE_OF:
            view->branches = view->branches ? view->branches : op;
            break;
        default:
            break;
        }
}

static struct view view_of(const struct node *node)
{
    struct view view = {.types = TYPES_ANY};
    gather(&view, node, 0);
    return view;
}

/* Branches that only say which fields go together are no shapes of their own. */
static bool is_union(const struct view *view)
{
    return view->branches && !view->props_count && !view->items && !view->choices;
}

/* ---- fields ---- */

struct fields {
    struct shape_parameter at[SHAPE_FIELDS_MAX];
    size_t count, more;
};

static bool has_field(const struct shape_parameter *list, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(list[i].name, name))
            return true;
    return false;
}

/* With the first schema of that name, and required if one of the view's parts requires it. */
static struct shape_parameter field_of(const struct view *view, struct str name)
{
    struct shape_parameter field = {.name = name};
    for (size_t i = 0; i < view->props_count; i++) {
        const struct prop *p = props_find(view->props[i], name);
        field.required |= p && p->required;
        field.node = p && !field.node ? p->node : field.node;
    }
    return field;
}

/* Required ones first. */
static void collect_fields(const struct view *view, struct fields *fields)
{
    for (int optional = 0; optional < 2; optional++)
        for (size_t i = 0; i < view->props_count; i++)
            for (uint32_t k = 0; k < view->props[i]->count; k++) {
                struct shape_parameter field = field_of(view, view->props[i]->list[k].key);
                if (field.required == optional || has_field(fields->at, fields->count, field.name))
                    continue;
                if (fields->count == SHAPE_FIELDS_MAX)
                    fields->more++;
                else
                    fields->at[fields->count++] = field;
            }
}

/* ---- the text ---- */

struct writer {
    struct buf *out;
    size_t from;   /* where the shape begins in `out` */
    unsigned read; /* alternatives that were described */
};

static bool is_long(const struct writer *w)
{
    return w->out->len - w->from > SHAPE_MAX_BYTES;
}

static void put_node(struct writer *w, const struct node *node, unsigned depth);

void shape_put_value(struct buf *out, const struct json *v)
{
    struct str s = json_str(v);
    bool bare = v->type == JSON_STRING && s.len && !ascii_is_digit(s.at[0]);
    for (size_t i = 0; i < s.len && bare; i++)
        bare = ascii_is_letter(s.at[i]) || ascii_is_digit(s.at[i]) || strchr("_-./:", s.at[i]);
    if (bare)
        buf_str(out, s);
    else
        json_write(out, v);
}

static void put_choices(struct writer *w, const struct choices *choices)
{
    size_t from = w->out->len;
    uint32_t i = 0;
    if (choices->count == 1)
        buf_text(w->out, "always ");
    for (; i < choices->count && i < SHAPE_CHOICES_MAX && w->out->len - from < SHAPE_CHOICES_MAX_BYTES; i++) {
        buf_text(w->out, i ? "|" : "");
        shape_put_value(w->out, choices->at[i]);
    }
    if (i < choices->count)
        buf_printf(w->out, "|… (%u more)", choices->count - i);
}

static void put_object(struct writer *w, const struct view *view, unsigned depth)
{
    struct fields fields = {.count = 0};
    const struct node *values = NULL; /* a schema for additional properties makes an object a map */
    for (size_t i = view->props_count; i-- > 0;) {
        const struct node *rest = view->props[i]->rest;
        values = node_is_map_values(rest) ? rest : values;
    }
    if (depth < SHAPE_DEPTH_MAX && !is_long(w))
        collect_fields(view, &fields);
    if (!fields.count && values && depth < SHAPE_DEPTH_MAX && !is_long(w)) {
        buf_text(w->out, "{any name: ");
        put_node(w, values, depth + 1);
        buf_byte(w->out, '}');
        return;
    }
    if (!fields.count) {
        buf_text(w->out, "object");
        return;
    }
    for (size_t i = 0; i < fields.count; i++) {
        buf_text(w->out, i ? ", " : "{");
        buf_str(w->out, fields.at[i].name);
        buf_text(w->out, ": ");
        if (fields.at[i].node)
            put_node(w, fields.at[i].node, depth + 1);
        else
            buf_text(w->out, "any value");
        buf_text(w->out, fields.at[i].required ? " (required)" : "");
    }
    if (fields.more)
        buf_printf(w->out, ", and %zu more", fields.more);
    buf_byte(w->out, '}');
}

/* "list of (integer or null)": without brackets the null would be read as an alternative to the list. */
static void put_list(struct writer *w, const struct view *view, unsigned depth)
{
    const struct op *items = depth < SHAPE_DEPTH_MAX && !is_long(w) ? view->items : NULL;
    bool is_tuple = items && items->items.prefix.count;
    if (is_tuple) {
        for (uint32_t i = 0; i < items->items.prefix.count && i < SHAPE_FIELDS_MAX; i++) {
            buf_text(w->out, i ? ", " : "[");
            put_node(w, items->items.prefix.at[i], depth + 1);
        }
        buf_byte(w->out, ']');
        return;
    }
    buf_text(w->out, "list");
    if (items && items->items.rest) {
        struct view item = view_of(items->items.rest);
        bool several = is_union(&item) || (!item.choices && (item.types & (item.types - 1)) &&
                                           item.types != TYPES_NUMBER && item.types != TYPES_ANY);
        buf_text(w->out, several ? " of (" : " of ");
        put_node(w, items->items.rest, depth + 1);
        buf_text(w->out, several ? ")" : "");
    }
    unsigned long long min = view->list_size ? view->list_size->count.min : 0;
    unsigned long long max = view->list_size ? view->list_size->count.max : UINT64_MAX;
    if (min && min == max)
        buf_printf(w->out, " (exactly %llu)", min);
    else if (min && max != UINT64_MAX)
        buf_printf(w->out, " (%llu to %llu)", min, max);
    else if (min)
        buf_printf(w->out, " (at least %llu)", min);
    else if (view->list_size)
        buf_printf(w->out, max ? " (at most %llu)" : " (exactly %llu)", max);
}

static void put_string(struct writer *w, const struct view *view)
{
    const struct format *format = view->format ? view->format->format : format_find(view->format_name);
    if (format) {
        buf_text(w->out, format->title);
        buf_text(w->out, " (e.g. '");
        buf_text(w->out, format->example);
        buf_text(w->out, "')");
        return;
    }
    buf_text(w->out, "string");
    if (view->format_name.len && view->format_name.len <= SHAPE_VALUE_MAX_BYTES) {
        buf_text(w->out, " (");
        buf_str(w->out, view->format_name);
        buf_byte(w->out, ')');
    } else if (view->pattern && view->pattern->value->raw_len <= SHAPE_VALUE_MAX_BYTES) {
        buf_text(w->out, " matching ");
        json_write(w->out, view->pattern->value);
    }
}

/* Some generators bound every integer by what a double holds exactly: that says nothing to a model. */
static bool is_of_interest(const struct op *bound)
{
    double value;
    return bound && json_double(bound->value, &value) && fabs(value) < SHAPE_EXACT_INTEGER_MAX;
}

static void put_number(struct writer *w, const struct view *view)
{
    buf_text(w->out, (view->types & TYPE_BIT(JSON_NUMBER)) ? "number" : "integer");
    if (is_of_interest(view->minimum)) {
        buf_text(w->out, view->minimum->bound.exclusive ? " above " : " from ");
        json_write(w->out, view->minimum->value);
    }
    if (is_of_interest(view->maximum)) {
        bool both = is_of_interest(view->minimum);
        buf_text(w->out, view->maximum->bound.exclusive ? " below " : both ? " to " : " up to ");
        json_write(w->out, view->maximum->value);
    }
}

static void put_or(struct writer *w, size_t from)
{
    if (w->out->len > from)
        buf_text(w->out, " or ");
}

static void put_types(struct writer *w, const struct view *view, unsigned depth)
{
    size_t from = w->out->len;
    unsigned types = view->types;
    if (view->choices) {
        put_choices(w, &view->choices->choices);
        types &= ~(unsigned)view->choices->applies;
    } else if (types == TYPES_ANY && !view->props_count && !view->items) {
        buf_text(w->out, "any value");
        return;
    } else if (types == TYPES_ANY) { /* keywords for one type, and no `type`: that one is meant */
        types = view->props_count ? TYPE_BIT(JSON_OBJECT) : TYPE_BIT(JSON_ARRAY);
    }
    static const unsigned order[] = {TYPE_BIT(JSON_STRING), TYPES_NUMBER,          TYPE_BIT(JSON_BOOL),
                                     TYPE_BIT(JSON_ARRAY),  TYPE_BIT(JSON_OBJECT), TYPE_BIT(JSON_NULL)};
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        if (!(types & order[i]))
            continue;
        put_or(w, from);
        if (order[i] == TYPE_BIT(JSON_STRING))
            put_string(w, view);
        else if (order[i] == TYPES_NUMBER)
            put_number(w, view);
        else if (order[i] == TYPE_BIT(JSON_ARRAY))
            put_list(w, view, depth);
        else if (order[i] == TYPE_BIT(JSON_OBJECT))
            put_object(w, view, depth);
        else
            buf_text(w->out, order[i] == TYPE_BIT(JSON_BOOL) ? "boolean" : "null");
    }
    if (w->out->len == from)
        buf_text(w->out, "no value");
}

#define OR " or "

/* Whether it is all of what stands between two "or"s: "integer" is none of "list of integer". */
static bool has_alternative(struct str text, struct str one)
{
    size_t n = strlen(OR);
    for (size_t at = 0; at + one.len <= text.len; at++) {
        struct str rest = str_from(text, at + one.len);
        bool begins = at == 0 || (at >= n && memcmp(text.at + at - n, OR, n) == 0);
        if (begins && (!rest.len || str_starts(rest, OR)) && str_eq((struct str){text.at + at, one.len}, one))
            return true;
    }
    return false;
}

/* Null last, and each shape once. */
static void put_branches(struct writer *w, const struct nodes *nodes, unsigned types, unsigned depth)
{
    size_t from = w->out->len, shown = 0, read = 0;
    bool null = false;
    for (uint32_t i = 0; i < nodes->count && shown < SHAPE_BRANCHES_MAX && read < SHAPE_BRANCHES_READ &&
                         w->read < ALTERNATIVES_MAX && !is_long(w);
         i++) {
        unsigned of_branch = nodes->at[i]->types & types;
        if (of_branch == TYPE_BIT(JSON_NULL) || !of_branch) {
            null |= of_branch != 0;
            continue;
        }
        read++;
        w->read++;
        size_t before = w->out->len;
        put_or(w, from);
        size_t or_bytes = w->out->len - before;
        w->from += or_bytes; /* the "or" counts only if the alternative stays */
        put_node(w, nodes->at[i], depth);
        w->from -= or_bytes;
        struct str so_far = {w->out->at + from, before - from},
                   one = str_from(buf_view(w->out), before + or_bytes);
        if (has_alternative(so_far, one))
            w->out->len = before;
        else
            shown++;
    }
    if (shown == SHAPE_BRANCHES_MAX || read == SHAPE_BRANCHES_READ || w->read >= ALTERNATIVES_MAX ||
        is_long(w))
        buf_text(w->out, " or …");
    if (null) {
        put_or(w, from);
        buf_text(w->out, "null");
    }
}

static void put_node(struct writer *w, const struct node *node, unsigned depth)
{
    struct view view = view_of(node);
    if (is_union(&view))
        put_branches(w, &view.branches->nodes, view.types, depth);
    else
        put_types(w, &view, depth);
    if (view.fallback && view.fallback->type != JSON_NULL && view.fallback->raw_len &&
        view.fallback->raw_len <= SHAPE_VALUE_MAX_BYTES) {
        buf_text(w->out, " (default ");
        json_write(w->out, view.fallback);
        buf_byte(w->out, ')');
    }
}

void shape_put(struct buf *out, const struct node *node)
{
    struct writer w = {out, out->len, 0};
    if (node)
        put_node(&w, node, 0);
}

void shape_put_branches(struct buf *out, const struct nodes *branches)
{
    struct writer w = {out, out->len, 0};
    put_branches(&w, branches, TYPES_ANY, 0);
}

/* ---- the JSON Schema ---- */

/* None if the list is long. */
static void put_schema_choices(struct json_out *out, const struct choices *choices)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < choices->count && i <= SHAPE_CHOICES_MAX; i++)
        bytes += choices->at[i]->raw_len;
    if (choices->count > SHAPE_CHOICES_MAX || bytes > SHAPE_CHOICES_MAX_BYTES)
        return;
    if (choices->count == 1) {
        json_field(out, "const", choices->at[0]);
        return;
    }
    json_field_open(out, "enum", '[');
    for (uint32_t i = 0; i < choices->count; i++)
        json_put(out, choices->at[i]);
    json_close(out, ']');
}

/* `from`: where the whole schema begins in the buffer. */
static bool is_full(const struct json_out *out, size_t from, unsigned depth)
{
    return depth >= SHAPE_DEPTH_MAX || out->buf->len - from > SHAPE_MAX_BYTES;
}

static void put_schema(struct json_out *out, size_t from, const struct node *node, unsigned depth)
{
    struct view view = view_of(node);
    struct fields fields = {.count = 0};
    json_open(out, '{');
    message_put_types_json(out, view.types);
    if (view.choices)
        put_schema_choices(out, &view.choices->choices);
    if (view.format_name.len && view.format_name.len <= SHAPE_VALUE_MAX_BYTES)
        json_field_str(out, "format", view.format_name);
    if (view.props_count && !is_full(out, from, depth))
        collect_fields(&view, &fields);
    if (fields.count)
        json_field_open(out, "properties", '{');
    for (size_t i = 0; i < fields.count; i++) {
        json_key_str(out, fields.at[i].name);
        if (fields.at[i].node)
            put_schema(out, from, fields.at[i].node, depth + 1);
        else
            json_put_raw(out, STR_LIT("{}"));
    }
    if (fields.count)
        json_close(out, '}');
    if (fields.count && fields.at[0].required) { /* required ones are first */
        json_field_open(out, "required", '[');
        for (size_t i = 0; i < fields.count && fields.at[i].required; i++)
            json_put_str(out, fields.at[i].name);
        json_close(out, ']');
    }
    if (view.items && view.items->items.rest && !view.items->items.prefix.count &&
        !is_full(out, from, depth)) {
        json_key(out, "items");
        put_schema(out, from, view.items->items.rest, depth + 1);
    }
    const struct nodes *branches = is_union(&view) ? &view.branches->nodes : NULL;
    if (branches && branches->count <= SHAPE_BRANCHES_MAX && !is_full(out, from, depth)) {
        json_field_open(out, "anyOf", '[');
        for (uint32_t i = 0; i < branches->count; i++)
            put_schema(out, from, branches->at[i], depth + 1);
        json_close(out, ']');
    }
    json_close(out, '}');
}

void shape_put_json(struct json_out *out, const struct node *node)
{
    put_schema(out, out->buf->len, node, 0);
}

/* ---- parameters ---- */

size_t shape_parameters(const struct schema *schema, struct shape_parameter *out, size_t max)
{
    struct view view = view_of(schema->root);
    size_t count = 0;
    for (size_t i = 0; i < view.props_count; i++)
        for (uint32_t k = 0; k < view.props[i]->count && count < max; k++) {
            const struct prop *p = &view.props[i]->list[k];
            if (i > 0 && has_field(out, count, p->key))
                continue;
            out[count] = field_of(&view, p->key);
            out[count].node = p->node;
            out[count++].description = p->node ? p->node->description : STR_NONE;
        }
    return count;
}
