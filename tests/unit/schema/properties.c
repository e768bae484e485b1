/*
 * Properties of random schemas and values: the two passes agree, a valid value
 * is never coerced and its names stay, coercion is idempotent, and a value
 * changed in a way that has one reading is restored. SCHEMA_ROUNDS=N tries
 * more.
 */
#include "schema/schema_support.h"
#include "random.h"

#include "json/build.h"
#include "schema/coerce.h"

#define ROUNDS_DEFAULT 20000u
#define DEPTH_MAX      4u

static unsigned long bent_pairs;

static const char *pick(const char *const *list, uint32_t count)
{
    return list[below(count)];
}

#define PICK(...)                                                                                            \
    pick((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- random schemas, and values that fit them ----
 *
 * Both are generated together: each kind of schema has a fitting value. `bent` is the same value as a model
 * might write it, if it can be coerced back. */

struct pair {
    struct buf schema, value, bent;
};

static void put(struct pair *p, const char *schema, const char *value, const char *bent)
{
    buf_text(&p->schema, schema);
    buf_text(&p->value, value);
    buf_text(&p->bent, bent);
}

static void scalar(struct pair *p)
{
    static const char *const kinds[][3] = {
        {"{\"type\":\"integer\"}", "12", "\"12\""},
        {"{\"type\":\"integer\",\"minimum\":-5}", "9007199254740993", "\" 9007199254740993 \""},
        {"{\"type\":\"number\"}", "-1.50", "\"-1.50\""},
        {"{\"type\":[\"number\",\"null\"]}", "7", "\"7\""},
        {"{\"type\":\"boolean\"}", "true", "\"True\""},
        {"{\"type\":\"string\"}", "\"5\"", "\"5\""}, /* a string stays a string */
        {"{\"type\":[\"string\",\"integer\"]}", "\"5\"", "\"5\""},
        {"{\"enum\":[\"placed\",\"shipped\"]}", "\"shipped\"", "\" Shipped\""},
        {"{\"const\":\"NA\"}", "\"NA\"", "\"na \""},
        {"{\"type\":\"string\",\"format\":\"date\"}", "\"2026-05-03\"", "\"2026-05-03\""},
        {"{\"type\":\"null\"}", "null", "null"},
        {"true", "{\"x\":1.0}", "{\"x\":1.0}"},
    };
    size_t at = below(sizeof(kinds) / sizeof(kinds[0]));
    put(p, kinds[at][0], kinds[at][1], kinds[at][2]);
}

static void any(struct pair *p, unsigned depth);

static bool in_list; /* the value is an item: [1,2] for a list of lists would have two readings */

static void list(struct pair *p, unsigned depth)
{
    uint32_t count = 1 + below(3);
    bool wrapped = false, item = in_list;
    put(p, "{\"type\":\"array\",\"items\":", "[", "");
    struct pair one = {buf_in(arena), buf_in(arena), buf_in(arena)};
    in_list = true;
    any(&one, depth + 1);
    in_list = item;
    struct str value = buf_view(&one.value), bent = buf_view(&one.bent);
    /* a single value that is no list, no string that begins one, and not null, can only mean a list of
     * one */
    wrapped =
        !item && count == 1 && value.at[0] != '[' && value.at[0] != 'n' && value.at[0] != '"' && below(2);
    buf_text(&p->bent, wrapped ? "" : "[");
    for (uint32_t i = 0; i < count; i++) {
        put(p, "", i ? "," : "", i ? "," : "");
        buf_str(&p->value, value);
        buf_str(&p->bent, wrapped ? value : bent);
    }
    buf_str(&p->schema, buf_view(&one.schema));
    put(p, "}", "]", wrapped ? "" : "]");
}

/* A string that holds JSON where an object fits. */
static void quote_bent(struct pair *p, size_t from)
{
    struct str inner = arena_dup(arena, (struct str){p->bent.at + from, p->bent.len - from});
    p->bent.len = from;
    json_write_string(&p->bent, inner);
}

static void object(struct pair *p, unsigned depth)
{
    uint32_t count = 1 + below(4);
    size_t from = p->bent.len;
    bool item = in_list;
    in_list = false;
    put(p, "{\"type\":\"object\",\"properties\":{", "{", "{");
    for (uint32_t i = 0; i < count; i++) {
        const char *comma = i ? "," : "";
        struct str key = arena_printf(arena, "%s\"field_%u\":", comma, i);
        struct str sent = arena_printf(arena, "%s\"%s%u%s\":", comma,
                                       PICK("field_", "field_", "Field", "field-"), i, PICK("", "", "s"));
        put(p, key.at, key.at, sent.at);
        any(p, depth + 1);
    }
    put(p, "},\"required\":[\"field_0\"]", "}", "}");
    buf_text(&p->schema, PICK("", ",\"additionalProperties\":false"));
    buf_text(&p->schema, "}");
    in_list = item;
    if (below(4) == 0)
        quote_bent(p, from);
}

static void any(struct pair *p, unsigned depth)
{
    uint32_t kind = depth < DEPTH_MAX ? below(6) : 0;
    if (kind < 3)
        scalar(p);
    else if (kind == 3)
        list(p, depth);
    else
        object(p, depth);
}

static struct pair random_pair(void)
{
    struct pair p = {buf_in(arena), buf_in(arena), buf_in(arena)};
    object(&p, 0);
    return p;
}

/* ---- arbitrary values ---- */

static void noise(struct buf *out, unsigned depth)
{
    uint32_t kind = depth < DEPTH_MAX ? below(9) : below(7), count = below(4);
    if (kind < 7) {
        buf_text(out,
                 PICK("null", "true", "12", "-1.5e2", "\"12\"", "\"shipped\"", "\"[1\"", "\"{}\"", "\"\""));
        return;
    }
    buf_text(out, kind == 7 ? "[" : "{");
    for (uint32_t i = 0; i < count; i++) {
        buf_text(out, i ? "," : "");
        if (kind == 8)
            buf_printf(out, "\"%s%u\":", PICK("field_", "Field", "x"), i);
        noise(out, depth + 1);
    }
    buf_text(out, kind == 7 ? "]" : "}");
}

/* ---- the properties ---- */

static struct schema *compiled(struct str text)
{
    struct schema *schema;
    struct why why;
    if (schema_compile(arena, value_of_str(text), NULL, &schema, NULL, &why) != OK)
        fail_msg("%s: " STR_FMT, why.text, STR_ARG(text));
    return schema;
}

static size_t errors_in(const struct schema *schema, const struct json *v)
{
    struct problems problems;
    problems_init(&problems, arena);
    enum schema_validity said = schema_explain(schema, v, &problems, NULL);
    size_t errors = problems.errors + problems.more;
    assert_int_equal(said, schema_validate(schema, v)); /* the two passes agree */
    assert_int_equal(said == SCHEMA_VALID, errors == 0);
    return errors;
}

static const struct json *coerced(const struct schema *schema, const struct json *v)
{
    const struct json *once = schema_coerce(schema, v, &coerce_options_all, arena, NULL);
    assert_string_equal(written(schema_coerce(schema, once, &coerce_options_all, arena, NULL)),
                        written(once));
    return once;
}

/* With the names that an open object takes and its tool would not. */
static const struct json *completed(const struct schema *schema, const struct json *v)
{
    if (schema_validate(schema, v) != SCHEMA_VALID)
        return v;
    const struct json *once = schema_coerce_names(schema, v, &coerce_options_all, arena, NULL);
    assert_int_equal(schema_validate(schema, once), SCHEMA_VALID);
    assert_ptr_equal(schema_coerce_names(schema, once, &coerce_options_all, arena, NULL), once);
    return once;
}

static void try_pair(void)
{
    struct coerce_options no_floats = coerce_options_all;
    struct pair p = random_pair();
    struct schema *schema = compiled(buf_view(&p.schema));
    const struct json *value = value_of_str(buf_view(&p.value)), *bent = value_of_str(buf_view(&p.bent));
    no_floats.floats = false;
    bent_pairs += !str_eq(buf_view(&p.value), buf_view(&p.bent));
    if (errors_in(schema, value))
        fail_msg("does not fit: " STR_FMT " " STR_FMT, STR_ARG(buf_view(&p.value)),
                 STR_ARG(buf_view(&p.schema)));
    assert_ptr_equal(schema_coerce(schema, value, &no_floats, arena, NULL), value);
    assert_ptr_equal(schema_coerce_names(schema, value, &no_floats, arena, NULL), value);
    const struct json *back = completed(schema, coerced(schema, bent));
    if (!json_equal(back, value))
        fail_msg("bent " STR_FMT " came back as %s: " STR_FMT, STR_ARG(buf_view(&p.bent)), written(back),
                 STR_ARG(buf_view(&p.schema)));
    struct buf other = buf_in(arena);
    noise(&other, 0);
    const struct json *stray = value_of_str(buf_view(&other));
    size_t before = errors_in(schema, stray);
    errors_in(schema, completed(schema, coerced(schema, stray)));
    if (before == 0)
        assert_ptr_equal(schema_coerce(schema, stray, &no_floats, arena, NULL), stray);
}

TEST(on_random_schemas_and_values)
{
    const char *told = getenv("SCHEMA_ROUNDS");
    unsigned long rounds = told ? strtoul(told, NULL, 10) : ROUNDS_DEFAULT;
    struct arena *outer = arena;
    random_state = 0x2545F4914F6CDD1Dull;
    for (unsigned long i = 0; i < rounds; i++) {
        arena = arena_new();
        try_pair();
        arena_free(arena);
    }
    arena = outer;
    assert_true(bent_pairs > rounds / 2); /* enough coercions were tried */
}
