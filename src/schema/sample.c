/*
 * Down the schema, building a value for it. Each attempt takes another branch of anyOf and oneOf, and
 * schema_validate decides. A string of a pattern takes the first alternative, the first character of a class,
 * as few repetitions as allowed; lookaround and back references are not tried.
 */
#include "schema/sample.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/path.h"
#include "schema/format.h"

#include <math.h>

/* ---- a string of a pattern ---- */

#define REPEAT_MAX 64u

struct scan {
    const char *at, *end;
    struct buf *out;
    bool hard;
};

static void alternatives(struct scan *s, unsigned depth);

/* A character that a class or an escape takes, of some usual ones; if none fits, `otherwise`. */
static char character_of(struct scan *s, const char *from, char otherwise)
{
    static const char tried[] = "aA0_-. x:/@,b1cZ\n\t";
    struct pattern *pattern;
    uint32_t steps = SCHEMA_MAX_STEPS;
    struct str alone = arena_printf(s->out->arena, "^%.*s$", (int)(s->at - from), from);
    s->hard |= pattern_compile(s->out->arena, alone, &pattern, NULL) != OK;
    for (size_t i = 0; tried[i] && !s->hard; i++)
        if (pattern_match(pattern, (struct str){&tried[i], 1}, &steps) == PATTERN_MATCH)
            return tried[i];
    return otherwise;
}

/* From behind its bracket. */
static char from_class(struct scan *s)
{
    const char *from = s->at - 1, *first = s->at + (s->at < s->end && *s->at == '^');
    s->at = first;
    while (s->at < s->end && (*s->at != ']' || s->at == first))
        s->at += *s->at == '\\' ? 2 : 1;
    if (s->at >= s->end) {
        s->hard = true;
        return 'a';
    }
    s->at++;
    bool plain = first == from + 1 && (unsigned char)*first < 0x80 && *first != '\\';
    char found = character_of(s, from, plain ? *first : '\0');
    s->hard |= !found;
    return found;
}

/* The minimum of a quantifier "{2,5}", "+", "*" or "?". */
static unsigned repetitions(struct scan *s)
{
    unsigned least = 1;
    if (s->at >= s->end)
        return 1;
    if (*s->at == '*' || *s->at == '?') {
        s->at++;
        least = 0;
    } else if (*s->at == '+') {
        s->at++;
    } else if (*s->at == '{' && s->at + 1 < s->end && s->at[1] >= '0' && s->at[1] <= '9') {
        least = 0;
        for (s->at++; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
            least = least > REPEAT_MAX ? least : least * 10 + (unsigned)(*s->at - '0');
        while (s->at < s->end && *s->at != '}')
            s->at++;
        s->at += s->at < s->end;
    }
    if (s->at < s->end && *s->at == '?')
        s->at++; /* lazy */
    if (least > REPEAT_MAX)
        s->hard = true;
    return least > REPEAT_MAX ? 1 : least;
}

static void atom(struct scan *s, unsigned depth)
{
    char c = *s->at++;
    if (c == '^' || c == '$')
        return;
    if (c == '(') {
        if (s->at + 1 < s->end && s->at[0] == '?') {
            s->hard |= s->at[1] != ':' && s->at[1] != '<';
            s->hard |= s->at[1] == '<' && s->at + 2 < s->end && (s->at[2] == '=' || s->at[2] == '!');
            if (s->at[1] == ':')
                s->at += 2;
            else
                while (s->at < s->end && *s->at++ != '>')
                    continue;
        }
        alternatives(s, depth + 1);
        s->hard |= s->at >= s->end || *s->at != ')';
        s->at += s->at < s->end;
    } else if (c == '[') {
        buf_byte(s->out, from_class(s));
    } else if (c == '\\' && s->at < s->end) {
        char kind = *s->at++;
        s->hard |= strchr("123456789kpPuxcBb", kind) != NULL;
        buf_byte(s->out, s->hard ? kind : character_of(s, s->at - 2, kind));
    } else {
        buf_byte(s->out, c == '.' ? 'a' : c);
    }
}

static void sequence(struct scan *s, unsigned depth)
{
    while (s->at < s->end && *s->at != '|' && *s->at != ')' && !s->hard) {
        size_t before = s->out->len;
        atom(s, depth);
        size_t made = s->out->len - before;
        unsigned times = repetitions(s);
        s->hard |= before + made * times > SAMPLE_TEXT_MAX_BYTES;
        if (times == 0 || s->hard)
            s->out->len = before;
        for (unsigned i = 1; i < times && !s->hard; i++) {
            buf_reserve(s->out, made);
            buf_add(s->out, s->out->at + before, made);
        }
    }
}

/* Keeps the first; the others are read to skip them. */
static void alternatives(struct scan *s, unsigned depth)
{
    s->hard |= depth > SAMPLE_DEPTH_MAX;
    sequence(s, depth);
    while (s->at < s->end && *s->at == '|' && !s->hard) {
        size_t kept = s->out->len;
        s->at++;
        sequence(s, depth);
        s->out->len = kept;
    }
}

struct str sample_pattern(struct arena *arena, struct str pattern)
{
    struct buf text = buf_in(arena);
    struct scan s = {pattern.at, pattern.at + pattern.len, &text, pattern.len > SAMPLE_TEXT_MAX_BYTES};
    buf_reserve(&text, 1);
    alternatives(&s, 0);
    return s.hard || s.at < s.end ? STR_NONE : buf_view(&text);
}

/* ---- a value of a schema ---- */

#define ATTEMPTS    6u
#define MEMBERS_MAX 256u
#define ITEMS_MAX   64u
#define STEPS_MAX   200000u /* members of schemas that an attempt reads or copies */

struct sampler {
    struct arena *arena;
    const struct json *root;
    enum sample_extent extent;
    unsigned branch;      /* index in anyOf and oneOf */
    bool ignore_proposed; /* `default` and `examples` are not used */
    unsigned nodes;
    size_t steps;
};

/* In the instance: the name that a string is made from, and the index among several items. */
struct position {
    struct str name;
    unsigned nth, depth;
};

static struct json sample_value(struct sampler *m, const struct json *schema, struct position position);

/* False: the attempt has read all that it may. A reference makes a large schema part of many others. */
static bool spend(struct sampler *m, size_t members)
{
    m->steps += members;
    return m->steps <= STEPS_MAX;
}

/* The keywords of both. Objects such as `properties` are merged, `required` is joined; otherwise b wins. */
static struct json merged(struct sampler *m, const struct json *a, const struct json *b)
{
    if (!spend(m, (size_t)a->len + b->len))
        return *a;
    struct json_member *members = ARENA_ARRAY(m->arena, struct json_member, (size_t)a->len + b->len);
    size_t count = a->len;
    memcpy(members, a->len ? a->members : members, count * sizeof(*members));
    for (uint32_t i = 0; i < b->len && m->nodes < SAMPLE_MAX_NODES; i++, m->nodes++) {
        struct str key = b->members[i].key;
        const struct json *old = json_get(a, key), *new = &b->members[i].value;
        struct json both = *new;
        bool lists = json_is(old, JSON_ARRAY) && json_is(new, JSON_ARRAY) && str_is(key, "required");
        if (lists && spend(m, (size_t)old->len + new->len)) {
            struct json *names = ARENA_ARRAY(m->arena, struct json, old->len + new->len);
            for (uint32_t k = 0; k < old->len + new->len; k++)
                names[k] = k < old->len ? old->items[k] : new->items[k - old->len];
            both = json_array(names, old->len + new->len);
        } else if (json_is(old, JSON_OBJECT) && json_is(new, JSON_OBJECT))
            both = merged(m, old, new);
        members[count++] = json_member(key, both); /* in the place of the old one */
    }
    return json_object(m->arena, members, count);
}

/* The schema merged with the target of $ref, allOf, and one branch of anyOf and oneOf. */
static struct json flattened(struct sampler *m, struct json schema, unsigned depth)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    const struct json *ref = json_get_text(&schema, "$ref");
    if (depth > SAMPLE_DEPTH_MAX || schema.type != JSON_OBJECT || ++m->nodes > SAMPLE_MAX_NODES ||
        !spend(m, schema.len))
        return schema;
    if (json_is(ref, JSON_STRING)) {
        const struct json *target = json_pointer_find(m->arena, m->root, json_str(ref));
        struct json rest = json_without(m->arena, &schema, STR_LIT("$ref"));
        return json_is(target, JSON_OBJECT) ? flattened(m, merged(m, target, &rest), depth + 1) : rest;
    }
    for (size_t i = 0; i < 3; i++) {
        const struct json *list = json_get_text(&schema, lists[i]);
        if (!json_is(list, JSON_ARRAY) || !list->len)
            continue;
        struct json rest = json_without(m->arena, &schema, str_of(lists[i]));
        for (uint32_t k = 0; k < list->len; k++) {
            struct json part = flattened(m, list->items[k], depth + 1);
            if (part.type == JSON_OBJECT && (i == 0 || k == m->branch % list->len))
                rest = merged(m, &rest, &part);
        }
        return flattened(m, rest, depth + 1);
    }
    return schema;
}

static bool number_of(const struct json *schema, const char *key, double *out)
{
    return json_double(json_get_text(schema, key), out);
}

static struct json sample_number(struct sampler *m, const struct json *schema, bool whole, unsigned nth)
{
    double low = -INFINITY, high = INFINITY, over, under, step = whole ? 1 : 0, n;
    number_of(schema, "minimum", &low);
    number_of(schema, "maximum", &high);
    double least = whole ? 1 : 0.5;
    if (number_of(schema, "exclusiveMinimum", &over) && over + least > low)
        low = over + least;
    if (json_is_true(json_get_text(schema, "exclusiveMinimum")))
        low += least;
    if (number_of(schema, "exclusiveMaximum", &under) && under - least < high)
        high = under - least;
    if (json_is_true(json_get_text(schema, "exclusiveMaximum")))
        high -= least;
    number_of(schema, "multipleOf", &step);
    n = low > 1 ? low : high < 1 ? high : 1;
    if (step > 0)
        n = n == high && n != low ? floor(n / step) * step : ceil(n / step) * step;
    n += nth * (step > 0 ? step : 1);
    if (whole || n == floor(n))
        return fabs(n) < 9e15 ? json_integer(m->arena, (int64_t)n) : json_number(m->arena, n);
    return json_number(m->arena, n);
}

static struct str padded(struct sampler *m, const struct json *schema, struct str text, unsigned nth)
{
    double least = 0, most = SAMPLE_TEXT_MAX_BYTES;
    struct buf out = buf_in(m->arena);
    number_of(schema, "minLength", &least);
    number_of(schema, "maxLength", &most);
    buf_str(&out, text);
    if (nth)
        buf_printf(&out, " %u", nth + 1);
    while ((double)out.len < least && out.len < SAMPLE_TEXT_MAX_BYTES * 8)
        buf_byte(&out, 'x');
    return most < (double)out.len && most >= 0 ? str_cut(buf_view(&out), (size_t)most) : buf_view(&out);
}

static struct json sample_text(struct sampler *m, const struct json *schema, struct position position)
{
    struct str pattern = json_str(json_get_text(schema, "pattern"));
    const struct format *format = format_find(json_str(json_get_text(schema, "format")));
    if (pattern.len) {
        struct str text = sample_pattern(m->arena, pattern);
        return json_string(text.len ? padded(m, schema, text, 0) : text);
    }
    if (format)
        return json_string(str_of(format->example));
    return json_string(padded(m, schema, position.name.len ? position.name : STR_LIT("text"), position.nth));
}

static struct json sample_array(struct sampler *m, const struct json *schema, struct position position)
{
    const struct json *first = json_get_text(schema, "prefixItems"), *items = json_get_text(schema, "items");
    double least = 0, most = ITEMS_MAX;
    if (json_is(items, JSON_ARRAY)) {
        first = items; /* drafts before 2020-12 */
        items = json_get_text(schema, "additionalItems");
    }
    number_of(schema, "minItems", &least);
    number_of(schema, "maxItems", &most);
    if (json_is_false(items) && !first)
        most = 0;
    unsigned count = (unsigned)fmax(0, fmin(fmin(fmax(least, first ? first->len : 1), most), ITEMS_MAX));
    struct json *list = ARENA_ARRAY(m->arena, struct json, count + 1);
    bool deep = position.depth >= SAMPLE_DEPTH_MAX && least <= 0;
    for (unsigned i = 0; i < count && !deep; i++) {
        const struct json *of = first && i < first->len ? &first->items[i] : items;
        list[i] = sample_value(m, of, (struct position){position.name, i, position.depth + 1});
    }
    return json_array(list, deep ? 0 : count);
}

struct members {
    struct json_member list[MEMBERS_MAX];
    size_t count;
};

static void add_member(struct sampler *m, struct members *members, struct str name, const struct json *schema,
                       struct position position)
{
    for (size_t i = 0; i < members->count; i++)
        if (str_eq(members->list[i].key, name))
            return;
    if (members->count < MEMBERS_MAX)
        members->list[members->count++] =
            json_member(name, sample_value(m, schema, (struct position){name, 0, position.depth + 1}));
}

/* Required names, declared or not. */
static void add_required(struct sampler *m, struct members *members, const struct json *schema,
                         const struct json *names, struct position position)
{
    const struct json *properties = json_get_text(schema, "properties");
    if (!json_is(names, JSON_ARRAY) || !spend(m, names->len * (1 + members->count / 16)))
        return;
    for (uint32_t i = 0; i < names->len && members->count < MEMBERS_MAX; i++) {
        struct str name = json_str(&names->items[i]);
        const struct json *declared = json_get(properties, name);
        add_member(m, members, name, declared ? declared : json_get_text(schema, "additionalProperties"),
                   position);
    }
}

static struct json sample_object(struct sampler *m, const struct json *schema, struct position position)
{
    const struct json *properties = json_get_text(schema, "properties");
    const struct json *dependent = json_get_text(schema, "dependentRequired");
    const struct json *required = json_get_text(schema, "required");
    struct members *members = ARENA_NEW(m->arena, struct members);
    bool all = m->extent == SAMPLE_ALL && position.depth < SAMPLE_DEPTH_MAX / 2;
    double least = 0;
    number_of(schema, "minProperties", &least);
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++) {
        struct str name = properties->members[i].key;
        const struct json *value = &properties->members[i].value;
        if (members->count == MEMBERS_MAX || !spend(m, 1 + json_child_count(required) / 16))
            break;
        if ((all && !json_is_false(value)) || (double)members->count < least ||
            json_array_has(required, name))
            add_member(m, members, name, value, position);
    }
    add_required(m, members, schema, required, position);
    for (size_t i = 0; i < members->count; i++)
        add_required(m, members, schema, json_get(dependent, members->list[i].key), position);
    return json_object(m->arena, members->list, members->count);
}

static struct str sample_type(const struct json *schema)
{
    static const char *const implied[][2] = {
        {"properties", "object"}, {"required", "object"},   {"additionalProperties", "object"},
        {"items", "array"},       {"prefixItems", "array"}, {"minItems", "array"},
        {"minimum", "number"},    {"maximum", "number"},    {"multipleOf", "number"},
    };
    const struct json *type = json_get_text(schema, "type");
    for (uint32_t i = 0; json_is(type, JSON_ARRAY) && i < type->len; i++)
        if (!str_is(json_str(&type->items[i]), "null") || type->len == 1)
            return json_str(&type->items[i]);
    if (json_is(type, JSON_STRING))
        return json_str(type);
    for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); i++)
        if (json_get_text(schema, implied[i][0]))
            return str_of(implied[i][1]);
    return STR_LIT("string");
}

/* The value that the schema names itself: the n-th, as items may have to differ. */
static const struct json *proposed(const struct sampler *m, const struct json *schema, unsigned nth)
{
    const struct json *constant = json_get_text(schema, "const"), *choices = json_get_text(schema, "enum");
    const struct json *usual = json_get_text(schema, "default"),
                      *examples = json_get_text(schema, "examples");
    if (constant)
        return constant;
    if (json_is(choices, JSON_ARRAY) && choices->len) {
        bool use_default = usual && usual->type != JSON_NULL && !nth && !m->ignore_proposed;
        return use_default ? usual : &choices->items[nth % choices->len];
    }
    if (m->ignore_proposed || nth)
        return NULL;
    if (json_is(examples, JSON_ARRAY) && examples->len)
        return &examples->items[0];
    return usual && usual->type != JSON_NULL ? usual : NULL;
}

static struct json sample_value(struct sampler *m, const struct json *schema, struct position position)
{
    static const struct json anything = {.type = JSON_OBJECT};
    if (!json_is(schema, JSON_OBJECT))
        schema = &anything;
    if (++m->nodes > SAMPLE_MAX_NODES)
        return json_null();
    struct json whole = flattened(m, *schema, 0);
    const struct json *given = proposed(m, &whole, position.nth);
    if (given)
        return *given;
    struct str type = sample_type(&whole);
    if (str_is(type, "object"))
        return sample_object(m, &whole, position);
    if (str_is(type, "array"))
        return sample_array(m, &whole, position);
    if (str_is(type, "integer") || str_is(type, "number"))
        return sample_number(m, &whole, str_is(type, "integer"), position.nth);
    if (str_is(type, "boolean"))
        return json_bool(position.nth % 2 == 0);
    return str_is(type, "null") ? json_null() : sample_text(m, &whole, position);
}

bool schema_sample(struct arena *arena, const struct schema *schema, enum sample_extent extent,
                   struct json *out)
{
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct sampler m = {.arena = arena,
                            .root = schema_source(schema),
                            .extent = extent,
                            .branch = attempt / 2,
                            .ignore_proposed = attempt % 2};
        *out = sample_value(&m, m.root, (struct position){.depth = 0});
        if (schema_validate(schema, out) == SCHEMA_VALID)
            return true;
    }
    return false;
}
