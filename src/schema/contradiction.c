/* One walk over the places where JSON Schema has subschemas; each object schema on it is rewritten by a
 * function, and what holds it is copied only if something in it changed. */
#include "schema/contradiction.h"

#include "json/build.h"
#include "json/path.h"
#include "schema/compile.h"
#include "schema/explain.h"

#define DESCRIPTION_READ_MAX_BYTES 1000u /* of a description; what it says of optional stands at its ends */
#define REFS_FOLLOWED_MAX          8u
#define REQUIRED_FEW               32u /* of more names it is kept which were there already */

struct softening {
    struct arena *arena;
    const struct json *root;
    struct problems *found; /* NULL: `rewrite` reports nothing */
    struct json (*rewrite)(struct softening *s, struct json schema, const struct location *at);
    bool into_choices; /* also below oneOf, not, if */
};

/* ---- the walk -------------------------------------------------------------- */

static void put_pointer(struct buf *out, const struct location *at)
{
    if (!at) {
        buf_byte(out, '#');
        return;
    }
    put_pointer(out, at->up); /* as deep as SCHEMA_MAX_NESTING */
    if (at->key.at)
        json_pointer_put(out, at->key);
    else
        buf_printf(out, "/%u", at->index);
}

/* Of the members or items that json_map goes through. */
struct place {
    struct softening *s;
    const struct location *at;
    unsigned depth;
};

static const struct json *walk(struct softening *s, const struct json *schema, const struct location *at,
                               unsigned depth);

static const struct json *walk_held(void *place, const struct json *held, uint32_t i, struct str *key)
{
    const struct place *p = place;
    struct location here = {p->at, *key, i};
    return walk(p->s, json_child(held, i), &here, p->depth);
}

/* The value of a keyword; a list of schemas, too, where one is expected, as in draft-07's items. */
static const struct json *walk_keyword(void *place, const struct json *schema, uint32_t i, struct str *key)
{
    /* There, less strict is not always more lenient. */
    static const char *const strict[] = {"not",         "if", "contains", "propertyNames", "unevaluatedItems",
                                         "dependencies"};
    const struct place *p = place;
    const struct json *held = json_child(schema, i);
    const struct keyword *k = keyword_find(NULL, *key);
    if (!k || k->holds == HOLDS_NONE || STR_IS_ONE_OF(*key, strict) ||
        (str_is(*key, "oneOf") && !p->s->into_choices))
        return held;
    struct location here = {p->at, *key, 0};
    struct place below = {p->s, &here, p->depth + 1};
    if (held->type == JSON_ARRAY || (k->holds == HOLDS_MAP && held->type == JSON_OBJECT))
        return json_map(p->s->arena, held, walk_held, &below);
    bool is_schema = k->holds == HOLDS_ONE || k->holds == HOLDS_ONE_OR_LIST;
    return is_schema ? walk(p->s, held, &here, p->depth + 1) : held;
}

/* What is below comes first, so that a rewritten object is not walked again. Nothing is allocated for a
 * schema that stays as it is, as nearly every one does. */
static const struct json *walk(struct softening *s, const struct json *schema, const struct location *at,
                               unsigned depth)
{
    struct place here = {s, at, depth};
    if (schema->type != JSON_OBJECT || depth == SCHEMA_MAX_NESTING)
        return schema;
    schema = json_map(s->arena, schema, walk_keyword, &here);
    struct json out = s->rewrite(s, *schema, at);
    return out.members == schema->members ? schema : json_keep(s->arena, out);
}

/* ---- what a description says ------------------------------------------------ */

static bool is_word_byte(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || (unsigned char)c >= 0x80;
}

/* Where `words` stand in a text of lower case, not as part of longer words; the text's length: nowhere. */
static size_t find_words(struct str text, const char *words)
{
    size_t n = strlen(words);
    for (size_t i = 0; i + n <= text.len; i++) {
        bool begins = i == 0 || !is_word_byte(text.at[i - 1]) || !is_word_byte(words[0]);
        bool ends = i + n == text.len || !is_word_byte(text.at[i + n]) || !is_word_byte(words[n - 1]);
        if (begins && ends && memcmp(text.at + i, words, n) == 0)
            return i;
    }
    return text.len;
}

/* Whether the words stand there, without "is not", "isn't", "never" or "no longer" just before. */
static bool states(struct str text, const char *words)
{
    static const char *const denials[] = {"not", "n't", "non-", "never", "no longer"};
    size_t at = find_words(text, words);
    struct str before = str_trim((struct str){text.at, at});
    for (size_t i = 0; i < sizeof(denials) / sizeof(*denials); i++) {
        size_t n = strlen(denials[i]);
        if (before.len >= n && memcmp(before.at + before.len - n, denials[i], n) == 0)
            return false;
    }
    return at < text.len;
}

bool description_says_optional(struct str description)
{
    static const char *const against[] = {
        "required", "mandatory", "must be",           "error",     "fail", "fails", "rejected",
        "rejects",  "must not",  "cannot be omitted", "invalid if"};
    static const char *const for_it[] = {"(optional)", "(optional",      "[optional]",     "defaults to",
                                         "if omitted", "may be omitted", "can be omitted", "is optional"};
    char lower[DESCRIPTION_READ_MAX_BYTES];
    struct str text = str_trim(str_cut(description, sizeof(lower)));
    for (size_t i = 0; i < text.len; i++)
        lower[i] = ascii_lower(text.at[i]);
    text.at = lower;
    for (size_t i = 0; i < sizeof(against) / sizeof(*against); i++)
        if (find_words(text, against[i]) < text.len)
            return false;
    if (text.len && find_words(text, "optional") == 0)
        return true;
    for (size_t i = 0; i < sizeof(for_it) / sizeof(*for_it); i++)
        if (states(text, for_it[i]))
            return true;
    return false;
}

/* ---- contradictions ---------------------------------------------------------- */

static void report(struct softening *s, const struct location *at, const char *code, struct str message)
{
    struct buf path = buf_in(s->arena);
    if (problems_skip(s->found)) /* a name on the way may be long */
        return;
    put_pointer(&path, at);
    problems_add(s->found, (struct problem){
                               .path = buf_view(&path), .code = code, .message = message, .warning = true});
}

/* By `type` and `nullable`; the compiler has its own message for a name that is no type. */
static unsigned allowed_types(const struct json *schema)
{
    const struct json *types = json_get_text(schema, "type");
    unsigned allowed = json_is_true(json_get_text(schema, "nullable")) ? TYPE_BIT(JSON_NULL) : 0;
    if (!json_is(types, JSON_ARRAY))
        return types ? allowed | type_by_name(json_str(types), NULL) : TYPES_ANY;
    for (uint32_t i = 0; i < types->len; i++)
        allowed |= type_by_name(json_str(&types->items[i]), NULL);
    return allowed;
}

bool schema_type_allows(const struct json *schema, const struct json *value)
{
    return allowed_types(schema) & type_bit_of(value);
}

/* Where some values of the enum fit its type, the enum is what its author looked at. Where none does, either
 * may be meant, and what fits one of them is let through. */
static struct json soften_enum(struct softening *s, struct json schema, const struct location *at)
{
    const struct json *types = json_get_text(&schema, "type"), *values = json_get_text(&schema, "enum");
    uint32_t fit = 0;
    if (!types || !json_is(values, JSON_ARRAY) || !values->len)
        return schema;
    for (uint32_t i = 0; i < values->len; i++)
        fit += schema_type_allows(&schema, &values->items[i]);
    if (fit == values->len)
        return schema;
    report(s, at, "enum_outside_type",
           fit ? STR_LIT("its type excludes values of its enum: the enum decides")
               : STR_LIT("its type excludes every value of its enum: a value of either is accepted"));
    struct json out = json_without(s->arena, &schema, STR_LIT("type"));
    if (fit)
        return out;
    struct json_member type = json_member(STR_LIT("type"), *types),
                       one = json_member(STR_LIT("enum"), *values);
    struct json *either = ARENA_ARRAY(s->arena, struct json, 2);
    either[0] = json_object(s->arena, &one, 1);
    either[1] = json_object(s->arena, &type, 1);
    out = json_without(s->arena, &out, STR_LIT("enum"));
    return json_with(s->arena, &out, json_get_text(&out, "anyOf") ? STR_LIT("allOf") : STR_LIT("anyOf"),
                     json_array(either, 2));
}

/* Lower and upper bounds that leave no room. */
static struct json soften_bounds(struct softening *s, struct json schema, const struct location *at)
{
    static const struct {
        const char *least, *most;
    } pairs[] = {{"minimum", "maximum"},
                 {"minLength", "maxLength"},
                 {"minItems", "maxItems"},
                 {"minProperties", "maxProperties"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        const struct json *least = json_get_text(&schema, pairs[i].least);
        const struct json *most = json_get_text(&schema, pairs[i].most);
        if (!json_is(least, JSON_NUMBER) || !json_is(most, JSON_NUMBER) || json_number_cmp(least, most) <= 0)
            continue;
        report(s, at, "bounds_cross",
               arena_printf(s->arena, "its %s is above its %s: neither is applied", pairs[i].least,
                            pairs[i].most));
        schema = json_without(s->arena, &schema, str_of(pairs[i].least));
        schema = json_without(s->arena, &schema, str_of(pairs[i].most));
    }
    return schema;
}

/* Why a required property need not be there; empty: it must. */
static const char *excuse_for(const struct json *object, const struct json *property, const char **code)
{
    const struct json *values = json_get_text(property, "enum"), *not = json_get_text(property, "not");
    bool fits_nothing = json_is_false(property) || (json_is(values, JSON_ARRAY) && !values->len) ||
                        json_is_true(not ) || (json_is(not, JSON_OBJECT) && !not ->len);
    if (!property)
        fits_nothing = json_is_false(json_get_text(object, "additionalProperties")) &&
                       !json_get_text(object, "patternProperties");
    if (fits_nothing) {
        *code = "required_fits_nothing";
        return "no value fits it";
    }
    if (json_get_text(property, "default")) {
        *code = "required_has_default";
        return "it has a default";
    }
    if (description_says_optional(json_str(json_get_text(property, "description")))) {
        *code = "required_is_optional";
        return "its description says that it is optional";
    }
    return "";
}

static struct json soften_required(struct softening *s, struct json schema, const struct location *at)
{
    const struct json *required = json_get_text(&schema, "required");
    const struct json *properties = json_get_text(&schema, "properties");
    if (!json_is(required, JSON_ARRAY) || !json_is(properties, JSON_OBJECT))
        return schema;
    struct json *kept = NULL;
    uint32_t count = 0;
    /* A name that is there again costs a look-up only, as its description may be long. */
    struct map *seen = required->len > REQUIRED_FEW ? map_new_for(s->arena, required->len) : NULL;
    for (uint32_t i = 0; i < required->len; i++) {
        struct str name = json_str(&required->items[i]);
        const char *code = NULL, *known = seen ? map_get(seen, name) : NULL;
        const char *excuse = known ? known : excuse_for(&schema, json_get(properties, name), &code);
        if (seen && !known)
            map_add(seen, name, (void *)excuse);
        if (!*excuse) {
            if (kept)
                kept[count] = required->items[i];
            count++;
            continue;
        }
        if (!kept) {
            kept = ARENA_ARRAY(s->arena, struct json, required->len);
            memcpy(kept, required->items, count * sizeof(*kept));
        }
        if (!known)
            report(s, at, code,
                   arena_printf(s->arena, "'" STR_FMT "' is required, and %s: a call without it is let run",
                                STR_ARG(name), excuse));
    }
    if (!kept)
        return schema;
    return count ? json_with(s->arena, &schema, STR_LIT("required"), json_array(kept, count))
                 : json_without(s->arena, &schema, STR_LIT("required"));
}

static struct json soften_node(struct softening *s, struct json schema, const struct location *at)
{
    return soften_required(s, soften_bounds(s, soften_enum(s, schema, at), at), at);
}

const struct json *schema_soften(struct arena *arena, const struct json *schema, struct problems *found)
{
    struct softening s = {.arena = arena, .root = schema, .found = found, .rewrite = soften_node};
    return walk(&s, schema, NULL, 0);
}

/* ---- open branches ------------------------------------------------------------ */

/* {"type": "object"}, and nothing that says more of it. */
static bool is_open_object(const struct json *schema)
{
    static const char *const words[] = {"type", "title", "description", "additionalProperties", "default"};
    const struct json *more = json_get_text(schema, "additionalProperties");
    if (!str_is(json_str(json_get_text(schema, "type")), "object"))
        return false;
    for (uint32_t i = 0; i < schema->len; i++)
        if (!STR_IS_ONE_OF(schema->members[i].key, words))
            return false;
    return !more || json_is_true(more) || (json_is(more, JSON_OBJECT) && !more->len);
}

static struct json drop_open(struct softening *s, struct json schema, const struct location *at)
{
    static const char *const keywords[] = {"anyOf", "oneOf"};
    (void)at;
    for (size_t k = 0; k < 2; k++) {
        const struct json *branches = json_get_text(&schema, keywords[k]);
        uint32_t open = 0, models = 0, count = 0;
        for (uint32_t i = 0; json_is(branches, JSON_ARRAY) && i < branches->len; i++) {
            const struct json *model = &branches->items[i]; /* or what its "#/…" reference leads to */
            for (unsigned n = 0; n < REFS_FOLLOWED_MAX; n++) {
                struct str reference = json_str(json_get_text(model, "$ref"));
                if (!str_starts(reference, "#/"))
                    break;
                model = json_pointer_find(s->arena, s->root, reference);
            }
            const struct json *properties = json_get_text(model, "properties");
            models += json_is(properties, JSON_OBJECT) && properties->len > 0;
            open += is_open_object(&branches->items[i]);
        }
        if (!models || !open)
            continue;
        struct json *kept = ARENA_ARRAY(s->arena, struct json, branches->len);
        for (uint32_t i = 0; i < branches->len; i++)
            if (!is_open_object(&branches->items[i]))
                kept[count++] = branches->items[i];
        schema = json_with(s->arena, &schema, str_of(keywords[k]), json_array(kept, count));
    }
    return schema;
}

const struct json *schema_drop_open_branches(struct arena *arena, const struct json *schema)
{
    struct softening s = {.arena = arena, .root = schema, .rewrite = drop_open, .into_choices = true};
    return walk(&s, schema, NULL, 0);
}
