/*
 * Strings that spell a number, a boolean, null, JSON or a value of an enum; and
 * numbers and booleans where only a string, or only a boolean, fits.
 */
#include "schema/coercer.h"

#include "json/spelled.h"

bool coerce_is_blank(struct str text)
{
    return text.len == 0 || str_is(text, "None") || str_is(text, "null");
}

bool coerce_looks_like_json(struct str text)
{
    return text.len > 0 && (text.at[0] == '{' || text.at[0] == '[' || str_starts(text, "```"));
}

/* The number that a text spells; "1e99" is no whole number that anybody writes. */
static const struct json *read_number(struct coercer *c, const struct node *node, struct str text)
{
    struct json parsed;
    struct json_error error;
    int64_t n;
    unsigned types = node->types & TYPES_NUMBER;
    if (!types || json_parse(c->arena, text, NULL, &parsed, &error) != OK || !(types & type_bit_of(&parsed)))
        return NULL;
    if (types == TYPE_INTEGER && coerce_is_spelled_float(&parsed) && !json_int(&parsed, &n))
        return NULL;
    return coerce_respell(c, node, json_keep(c->arena, parsed));
}

/* The strings of the enums and consts that may apply. */
struct spelled_choice {
    const struct json *exact, *folded; /* equal but for outer space, or for that and case */
    bool exact_ambiguous, folded_ambiguous;
};

static void compare_choice(struct spelled_choice *found, const struct json *choice, struct str word)
{
    if (!json_is(choice, JSON_STRING) || !same_word(str_trim(json_str(choice)), word))
        return;
    found->folded_ambiguous |= found->folded && !json_equal(found->folded, choice);
    found->folded = choice;
    if (str_eq(str_trim(json_str(choice)), word)) {
        found->exact_ambiguous |= found->exact && !json_equal(found->exact, choice);
        found->exact = choice;
    }
}

/* The one string among the choices that differs in outer space alone, or else in case too. `cased`: the case
 * that was sent means something. */
static const struct json *read_choice(struct coercer *c, const struct node *node, struct str word, bool cased)
{
    struct spelled_choice found = {.exact = NULL};
    struct in_place_nodes all;
    in_place_collect(&all, node, NULL, NULL);
    for (uint32_t i = 0; i < all.count; i++)
        for (uint16_t k = 0; k < all.nodes[i]->op_count && all.nodes[i]->ops[k].code == OP_CHOICES; k++) {
            const struct choices *choices = &all.nodes[i]->ops[k].choices;
            if (!pass_spend(&c->pass, choices->count))
                return NULL;
            for (uint32_t n = 0; n < choices->count; n++)
                compare_choice(&found, choices->at[n], word);
        }
    bool exact = cased && found.exact;
    const struct json *one = exact ? found.exact : found.folded;
    bool ambiguous = exact ? found.exact_ambiguous : found.folded_ambiguous;
    return one && !ambiguous && coerce_accepts(c, node, one) ? one : NULL;
}

/* "yes" and "1" mean true only where nothing but a boolean fits: beside a number, "1" is the number. */
static const struct json *read_boolean(struct coercer *c, const struct node *node, struct str word)
{
    static const struct {
        struct str word;
        bool truth, plain; /* plain: JSON's own word */
    } words[] = {{STR("true"), true, true}, {STR("false"), false, true}, {STR("yes"), true, false},
                 {STR("no"), false, false}, {STR("1"), true, false},     {STR("0"), false, false}};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words) && (node->types & BOOLEAN); i++)
        if (same_word(word, words[i].word)) {
            bool may = words[i].plain ? c->options->strings : c->options->words && takes_only(node, BOOLEAN);
            return may ? json_keep(c->arena, json_bool(words[i].truth)) : NULL;
        }
    return NULL;
}

static const struct json *read_null(struct coercer *c, const struct node *node, struct str word)
{
    bool spelled = str_is(word, "null") || str_is(word, "None");
    return c->options->words && spelled && (node->types & NULL_TYPE) ? json_keep(c->arena, json_null())
                                                                     : NULL;
}

/* An object or a list that the text spells, however oddly; one that was cut off spells nothing. */
static const struct json *read_spelled(struct coercer *c, struct str text)
{
    struct json read;
    if (!c->options->json || !coerce_looks_like_json(text) ||
        json_read_spelled(c->arena, text, &read, NULL) != JSON_SPELLED)
        return NULL;
    return read.type == JSON_OBJECT || read.type == JSON_ARRAY ? json_keep(c->arena, read) : NULL;
}

/* An object, a list, or the one object where a list of objects is wanted. */
static const struct json *read_container(struct coercer *c, const struct node *node, struct str text)
{
    const struct json *read = read_spelled(c, text);
    if (!read || (node->types & type_bit_of(read)))
        return read ? coerce_value(c, node, read) : NULL; /* its problems are reported inside it */
    const struct json *list = read->type == JSON_OBJECT ? coerce_wrap(c, node, read) : read;
    return list != read ? list : NULL;
}

static const struct json *coerce_string(struct coercer *c, const struct node *node, const struct json *v)
{
    struct str text = str_trim(json_str(v));
    const struct json *read = NULL;
    if (node->types & STRING) {
        read = c->options->enums ? read_choice(c, node, text, true) : NULL;
        return read ? read : v;
    }
    read = read_container(c, node, text);
    if (read)
        return read;
    read = read_boolean(c, node, text);
    if (!read)
        read = read_null(c, node, text);
    if (!read && c->options->strings)
        read = read_number(c, node, text);
    return read && coerce_accepts(c, node, read) ? read : coerce_wrap(c, node, v);
}

/* A number keeps its digits as they were sent: 1.10 is "1.10". */
static const struct json *coerce_number(struct coercer *c, const struct node *node, const struct json *v)
{
    struct str digits = {v->text, v->len};
    const struct json *read = NULL;
    if (c->options->strings && takes_only(node, STRING))
        read = json_keep(c->arena, json_string(digits));
    else if (v->integral && takes_only(node, BOOLEAN))
        read = read_boolean(c, node, digits);
    return read && coerce_accepts(c, node, read) ? read : coerce_wrap(c, node, v);
}

static const struct json *coerce_boolean(struct coercer *c, const struct node *node, const struct json *v)
{
    const struct json *read = NULL;
    if (c->options->words && takes_only(node, STRING))
        read = read_choice(c, node, v->truth ? STR_LIT("true") : STR_LIT("false"), false);
    return read ? read : coerce_wrap(c, node, v);
}

const struct json *coerce_scalar(struct coercer *c, const struct node *node, const struct json *v)
{
    switch ((enum json_type)v->type) {
    case JSON_STRING:
        return coerce_string(c, node, v);
    case JSON_NUMBER:
        return coerce_number(c, node, v);
    case JSON_BOOL:
        return coerce_boolean(c, node, v);
    default:
        return v;
    }
}
