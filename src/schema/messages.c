/*
 * The sentences that a model reads about its arguments: one table for limits
 * and sizes, one function for each other kind of problem.
 */
#include "schema/explain.h"

#include "base/printable.h"
#include "base/suggest.h"
#include "json/write.h"
#include "schema/shape.h"

#include <strings.h>

#define ELLIPSIS         "…"
#define CHOICES_COMPARED 256u /* for a suggestion */
#define MESSAGE_STEPS    40u  /* to write a problem … */
#define SUGGEST_STEPS    8u   /* to compare two names */
#define BRANCH_STEPS     3u   /* to describe an alternative */
#define PROBLEM_STEPS    2u   /* … and to compare it with each one that was found */

/* Readable after a dot; any other name is quoted in brackets. */
static bool is_plain_name(struct str key)
{
    static const bool plain[256] = {
        ['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['_'] = true,
        ['-'] = true,         ['$'] = true,         ['@'] = true,         [0x80 ... 0xff] = true};
    for (size_t i = 0; i < key.len; i++)
        if (!plain[(unsigned char)key.at[i]])
            return false;
    return key.len > 0;
}

/* `of_schema`: the place in the schema, which all items of a list share, and all names that no schema
 * declares. */
static void put_path(struct buf *out, const struct location *location, bool of_schema)
{
    if (!location)
        return;
    put_path(out, location->up, of_schema); /* as deep as the instance, which the parser bounds */
    if (!location->key.at) {
        buf_byte(out, '[');
        if (!of_schema)
            buf_int(out, location->index);
        buf_byte(out, ']');
    } else if (of_schema && location->index == LOCATION_FREE) {
        buf_text(out, out->len ? ".*" : "*");
    } else if (is_plain_name(location->key)) {
        if (out->len)
            buf_byte(out, '.');
        buf_str(out, location->key);
    } else {
        buf_byte(out, '[');
        json_write_string(out, location->key);
        buf_byte(out, ']');
    }
}

struct str message_path(struct arena *arena, const struct location *location)
{
    struct buf path = buf_in(arena);
    put_path(&path, location, false);
    return buf_view(&path);
}

static struct str json_text(struct arena *arena, const struct json *v)
{
    struct buf out = buf_in(arena);
    if (v->raw_len)
        return (struct str){v->raw, v->raw_len};
    json_write(&out, v);
    return buf_view(&out);
}

/* The longest beginning whose literal fits, with "…" inside the quotes. */
static struct str quote_string(struct arena *arena, struct str s)
{
    size_t room = PROBLEM_GOT_MAX_BYTES - 2;
    struct buf out = buf_in(arena);
    if (s.len <= room) {
        json_write_string(&out, s);
        if (out.len <= PROBLEM_GOT_MAX_BYTES)
            return buf_view(&out);
    }
    for (size_t keep = room - strlen(ELLIPSIS); keep > 0; keep--) {
        struct buf cut = buf_in(arena);
        buf_str(&cut, str_cut(s, keep));
        buf_text(&cut, ELLIPSIS);
        out.len = 0;
        json_write_string(&out, buf_view(&cut));
        if (out.len <= PROBLEM_GOT_MAX_BYTES)
            break;
    }
    return buf_view(&out);
}

struct str message_quote(struct arena *arena, const struct json *v)
{
    bool as_sent = v->raw_len == v->len + 2 && v->raw_len <= PROBLEM_GOT_MAX_BYTES; /* without escapes */
    if (v->type == JSON_STRING)
        return as_sent ? (struct str){v->raw, v->raw_len} : quote_string(arena, json_str(v));
    if (v->type == JSON_ARRAY || v->type == JSON_OBJECT)
        return str_of(json_type_name(v->type));
    return arena_truncate(arena, json_text(arena, v), PROBLEM_GOT_MAX_BYTES);
}

struct str message_got(struct arena *arena, const struct json *v)
{
    if (v->type == JSON_STRING)
        return message_quote(arena, v);
    if (v->type == JSON_ARRAY || v->type == JSON_OBJECT) {
        if (v->len == 0)
            return v->type == JSON_ARRAY ? STR_LIT("[]") : STR_LIT("{}");
        if (v->raw_len == 0 || v->raw_len > PROBLEM_GOT_MAX_BYTES)
            return STR_NONE;
    }
    struct str text = json_text(arena, v);
    return text.len <= PROBLEM_GOT_MAX_BYTES ? text : STR_NONE;
}

void message_add(struct explain_ctx *e, const struct location *location, struct problem problem)
{
    bool in_list = false, has_place = false;
    /* names that an agent sent, and values of a schema, may be long: each problem writes them anew */
    size_t bytes = problem.message.len + problem.expected.len + problem.suggestion.len;
    for (const struct location *l = location; l; l = l->up) {
        in_list |= !l->key.at;
        has_place |= !l->key.at || l->index == LOCATION_FREE;
        bytes += l->key.len;
    }
    if (!pass_spend(&e->pass, MESSAGE_STEPS + PROBLEM_STEPS * e->problems->count + STEPS_OF_BYTES(bytes)))
        return;
    if (location && !location->up && location->key.at && is_plain_name(location->key))
        problem.path = location->key; /* most problems are in a field at the top */
    else
        problem.path = message_path(e->arena, location);
    if (has_place) {
        /* A name that is meant to be another one is a fact of its own: "limti" says nothing about "offset".
         */
        struct buf place = buf_in(e->arena);
        struct location last = *location;
        last.index = last.key.at && problem.suggestion.len ? 0 : last.index;
        put_path(&place, &last, true);
        problem.place = buf_view(&place);
    }
    if (!problem.description.len && e->node && location == e->location)
        problem.description = e->node->description;
    problem_clean(e->arena, &problem);
    problems_add_once(e->problems, &problem, in_list);
}

/* Names of the types in the table's order, "number" instead of "integer" if both are allowed. */
static size_t names_of(unsigned types, const char *out[TYPE_NAMES])
{
    size_t count = 0;
    for (size_t i = 0; i < TYPE_NAMES; i++)
        if ((types & type_names[i].types) == type_names[i].types) {
            out[count++] = type_names[i].name;
            types &= ~type_names[i].types;
        }
    return count;
}

void message_put_types(struct buf *out, unsigned types)
{
    const char *list[TYPE_NAMES];
    size_t count = names_of(types, list);
    bool one_list = (types & ~TYPE_BIT(JSON_NULL)) == TYPE_BIT(JSON_ARRAY);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_text(out, i + 1 == count ? " or " : ", ");
        buf_text(out, one_list && strcmp(list[i], "array") == 0 ? "list/array" : list[i]);
    }
}

void message_put_types_json(struct json_out *out, unsigned types)
{
    const char *list[TYPE_NAMES];
    size_t count = names_of(types, list);
    if (count == 0 || types == TYPES_ANY)
        return;
    json_key(out, "type");
    if (count > 1)
        json_open(out, '[');
    for (size_t i = 0; i < count; i++)
        json_put_text(out, list[i]);
    if (count > 1)
        json_close(out, ']');
}

/* An optional member of the object that is explained, where that cannot hide what is required elsewhere. */
static bool is_optional(const struct explain_ctx *e, const struct location *location)
{
    struct in_place_nodes all __attribute__((uninitialized)); /* 1.5 KB; `count` says how much is written */
    bool declared = false;
    if (!e->object || !location || !location->key.at || location->up != e->object->location)
        return false;
    in_place_collect(&all, e->object->node, NULL, NULL);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct prop *p = all.props[i] ? props_find(all.props[i], location->key) : NULL;
        if (p && p->required)
            return false;
        declared |= p != NULL;
    }
    return declared;
}

/* What comes between what is expected and the value. */
static const char *got_words(bool may_be_left_out)
{
    return may_be_left_out ? " (or leave it out), got " : ", got ";
}

/* Null and what is empty stand for no value. */
static bool is_nothing(const struct json *v)
{
    return v->type == JSON_NULL || (v->type != JSON_BOOL && v->type != JSON_NUMBER && v->len == 0);
}

/* A text with commas where a list of texts is wanted: as a list, or only its form where the parts are long.
 */
static void put_list_form(struct buf *out, const struct json *v)
{
    struct str rest = json_str(v);
    bool shown = rest.len <= PROBLEM_GOT_MAX_BYTES;
    if (v->type != JSON_STRING || !memchr(rest.at, ',', rest.len))
        return;
    buf_text(out, "; write a list: [");
    if (!shown)
        buf_text(out, "\"…\", \"…\"");
    for (bool first = true; shown && rest.len; first = false) {
        buf_text(out, first ? "" : ", ");
        json_write_string(out, str_trim(str_split(&rest, ',')));
    }
    buf_byte(out, ']');
}

void message_type(struct explain_ctx *e, const struct node *node, const struct nodes *branches,
                  const struct json *v, const struct location *location)
{
    struct buf out = buf_in(e->arena), expected = buf_in(e->arena);
    struct json_out json = json_out(&expected);
    unsigned types = branches ? 0 : node->types;
    if (branches && !pass_spend(&e->pass, branches->count * BRANCH_STEPS))
        return;
    for (uint32_t i = 0; branches && i < branches->count; i++)
        types |= branches->at[i]->types;
    bool list = (types & ~TYPE_BIT(JSON_NULL)) == TYPE_BIT(JSON_ARRAY);
    if (!types) {
        message_nothing_fits(e, node, v, location);
        return;
    }
    buf_text(&out, "expected ");
    if (branches) {
        shape_put_branches(&out, branches);
        json_open(&json, '{');
        message_put_types_json(&json, types);
        json_close(&json, '}');
    } else {
        shape_put(&out, node);
    }
    buf_text(&out, got_words(is_nothing(v) && is_optional(e, location)));
    /* "number 42", "list", "null": without its type, "42" in a list of fields may be read as a string. */
    buf_text(&out, v->type != JSON_ARRAY ? json_type_name(v->type) : v->len ? "list" : "empty list");
    if (v->type != JSON_NULL && v->type < JSON_ARRAY) {
        buf_byte(&out, ' ');
        buf_str(&out, message_quote(e->arena, v));
    }
    if (list)
        put_list_form(&out, v);
    message_add(e, location,
                (struct problem){.code = list ? "list" : "type",
                                 .message = buf_view(&out),
                                 .expected = buf_view(&expected),
                                 .shape = branches ? NULL : node,
                                 .got = message_got(e->arena, v)});
}

void message_nothing_fits(struct explain_ctx *e, const struct node *node, const struct json *v,
                          const struct location *location)
{
    bool forbidden = node && node->source->type == JSON_BOOL;
    message_add(e, location,
                (struct problem){.code = "not_allowed",
                                 .message = forbidden
                                                ? STR_LIT("not allowed here — remove it")
                                                : STR_LIT("no value can fit, its schema contradicts itself "
                                                          "— leave it out"),
                                 .got = message_got(e->arena, v)});
}

void message_missing(struct explain_ctx *e, struct str name, const struct node *node, struct str with,
                     struct str more, const struct location *location)
{
    struct buf out = buf_in(e->arena);
    buf_text(&out, "is missing");
    if (with.len) {
        buf_text(&out, " (needed with '");
        buf_str(&out, with);
        buf_text(&out, "')");
    }
    buf_text(&out, node ? ": " : "");
    shape_put(&out, node);
    if (location && node &&
        node->description.len) { /* the list of parameters describes only those at the top */
        buf_text(&out, ", described as ");
        json_write_string(&out, node->description);
    }
    buf_str(&out, more);
    struct location at = {location, name.at ? name : STR_LIT(""), 0};
    message_add(e, &at,
                (struct problem){.code = "missing",
                                 .message = buf_view(&out),
                                 .shape = node,
                                 .description = node ? node->description : STR_NONE});
}

/* The choices of one property, of all branches. */
struct choice_list {
    const struct json **at;
    size_t count;
};
/* Words are bare, as a person would list them; a string that could be read as more than one word, as another
 * type or as a sentence of ours is quoted. */
static void put_choice(struct buf *out, struct arena *arena, const struct json *v)
{
    static const char *const literals[] = {"true", "false", "null", "none"};
    static const bool quoted[256] = {[','] = true, [':'] = true, [';'] = true,  ['!'] = true,
                                     ['?'] = true, ['"'] = true, ['\''] = true, ['\n'] = true};
    struct str s = json_str(v);
    bool bare = s.len > 0 && s.len <= PROBLEM_GOT_MAX_BYTES && s.at[0] != ' ' && s.at[s.len - 1] != ' ' &&
                s.at[0] != '-' && !ascii_is_digit(s.at[0]);
    for (size_t i = 0; bare && i < s.len; i++)
        bare = !quoted[(unsigned char)s.at[i]] && !(s.at[i] == ' ' && s.at[i - 1] == '.');
    bare = bare && printable_is_plain(s);
    for (size_t i = 0; bare && (s.len == 4 || s.len == 5) && i < sizeof(literals) / sizeof(*literals); i++)
        bare = !(s.len == strlen(literals[i]) && strncasecmp(s.at, literals[i], s.len) == 0);
    bool container = v->type == JSON_ARRAY || v->type == JSON_OBJECT;
    buf_str(out, bare ? s : container ? json_text(arena, v) : message_quote(arena, v));
}

/* The string closest to v, or to v as a string: "True" for true. */
static struct str closest_choice(struct arena *arena, const struct choice_list *all, const struct json *v)
{
    size_t count = 0;
    bool container = v->type == JSON_ARRAY || v->type == JSON_OBJECT;
    if (container || v->type == JSON_NULL)
        return STR_NONE;
    struct str *words =
        arena_alloc(arena, (all->count < CHOICES_COMPARED ? all->count : CHOICES_COMPARED) * sizeof(*words));
    for (size_t i = 0; i < all->count && count < CHOICES_COMPARED; i++)
        if (all->at[i]->type == JSON_STRING)
            words[count++] = json_str(all->at[i]);
    return suggest_closest(v->type == JSON_STRING ? json_str(v) : json_text(arena, v), words, count);
}

static struct str choices_json(struct arena *arena, const struct choice_list *all, bool constant)
{
    struct buf out = buf_in(arena);
    struct json_out json = json_out(&out);
    json_open(&json, '{');
    if (constant) {
        json_field(&json, "const", all->at[0]);
    } else {
        json_field_open(&json, "enum", '[');
        for (size_t i = 0; i < all->count && i < PROBLEM_CHOICES_MAX; i++)
            json_put(&json, all->at[i]);
        json_close(&json, ']');
    }
    json_close(&json, '}');
    return buf_view(&out);
}

/* Of a long list only the values most like v; without any, the first ones. */
static void put_choices(struct buf *out, struct arena *arena, const struct choice_list *all,
                        const struct json *v)
{
    size_t best[SUGGEST_MAX], shown = all->count, found = 0;
    if (all->count > PROBLEM_CHOICES_MAX) {
        struct str *words = arena_alloc(arena, CHOICES_COMPARED * sizeof(*words));
        size_t count = 0;
        for (; count < all->count && count < CHOICES_COMPARED; count++)
            words[count] = json_str(all->at[count]);
        if (v->type == JSON_STRING)
            found = suggest_ranked(json_str(v), words, count, best);
        shown = found ? found : SUGGEST_MAX;
        buf_printf(out, "expected one of %zu values, such as ", all->count);
    } else {
        buf_text(out, "expected one of ");
    }
    for (size_t i = 0; i < shown; i++) {
        buf_text(out, i ? ", " : "");
        put_choice(out, arena, all->at[found ? best[i] : i]);
    }
}

#define LONGER_MIN_BYTES 2u
#define LONGER_SHOWN     4u

/* " (did you mean 'en_US' or 'en_GB'?)" of the choices that go on where v ends. False: none does, or too many
 * do. */
static bool put_longer_choices(struct buf *out, const struct choice_list *all, const struct json *v)
{
    struct str said = json_str(v), shown[LONGER_SHOWN];
    size_t count = 0;
    for (size_t i = 0; said.len >= LONGER_MIN_BYTES && i < all->count; i++) {
        struct str choice = json_str(all->at[i]);
        bool goes_on = choice.len > said.len && strncasecmp(choice.at, said.at, said.len) == 0 &&
                       memchr("_-. /:", choice.at[said.len], 6);
        if (goes_on && count++ < LONGER_SHOWN)
            shown[count - 1] = choice;
    }
    if (!count || count > LONGER_SHOWN)
        return false;
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s'" STR_FMT "'",
                   i == 0           ? " (did you mean "
                   : i + 1 == count ? " or "
                                    : ", ",
                   STR_ARG(shown[i]));
    buf_text(out, "?)");
    return true;
}

void message_choices(struct explain_ctx *e, const struct choices *const *lists, size_t count,
                     unsigned other_types, const struct json *v, const struct location *location)
{
    uint64_t compared = 0;
    for (size_t i = 0; i < count; i++)
        compared += lists[i]->count;
    if (!pass_spend(&e->pass,
                    compared + (compared < CHOICES_COMPARED ? compared : CHOICES_COMPARED) * SUGGEST_STEPS))
        return;
    struct choice_list all = {arena_alloc(e->arena, compared * sizeof(*all.at)), 0};
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < lists[i]->count; k++)
            all.at[all.count++] = lists[i]->at[k];
    struct buf out = buf_in(e->arena), more = buf_in(e->arena), suggestion = buf_in(e->arena);
    bool constant = all.count == 1 && lists[0]->constant && !other_types;
    struct str close = closest_choice(e->arena, &all, v);
    if (constant) {
        buf_text(&out, "must be ");
        buf_str(&out, json_text(e->arena, all.at[0]));
    } else {
        put_choices(&out, e->arena, &all, v);
    }
    if (other_types) {
        buf_text(&out, " or ");
        message_put_types(&out, other_types);
    }
    /* A value that names a member beside it says what that is: without it, the member is no clearer. */
    bool unlike = !close.len && !constant, longer = unlike && put_longer_choices(&more, &all, v);
    buf_text(&out, got_words(unlike && !longer && is_optional(e, location) &&
                             !json_get(e->object->v, json_str(v))));
    buf_str(&out, message_quote(e->arena, v));
    buf_str(&out, buf_view(&more));
    if (close.len)
        json_write_string(&suggestion, close);
    if (close.len && !constant) {
        bool string = v->type == JSON_STRING;
        buf_text(&out, string ? " (did you mean '" : " (did you mean the string ");
        buf_str(&out, string ? close : buf_view(&suggestion));
        buf_text(&out, string ? "'?)" : "?)");
    }
    message_add(e, location,
                (struct problem){.code = constant ? "const" : "enum",
                                 .message = buf_view(&out),
                                 .expected = choices_json(e->arena, &all, constant),
                                 .got = message_got(e->arena, v),
                                 .suggestion = buf_view(&suggestion)});
}

/* "must be at least 5, got 3" */
static struct problem limit_problem(struct explain_ctx *e, const char *code, const char *sentence,
                                    const struct op *op, const struct json *v)
{
    struct str limit = json_text(e->arena, op->value), got = message_quote(e->arena, v);
    struct str shown = op->value->type == JSON_STRING ? json_str(op->value) : limit;
    if (memchr(shown.at, ' ', shown.len)) /* it may be a sentence */
        shown = limit;
    return (struct problem){
        .code = code,
        .message = ARENA_JOIN(e->arena, str_of(sentence), STR_LIT(" "), shown, STR_LIT(", got "), got),
        .expected = ARENA_JOIN(e->arena, STR_LIT("{\""), str_of(code), STR_LIT("\":"), limit, STR_LIT("}")),
        .got = message_got(e->arena, v)};
}

static struct problem count_problem(struct explain_ctx *e, const struct op *op, const struct json *v)
{
    static const struct {
        const char *minimum, *maximum, *counted;
    } kinds[] = {[JSON_STRING] = {"minLength", "maxLength", "character"},
                 [JSON_ARRAY] = {"minItems", "maxItems", "item"},
                 [JSON_OBJECT] = {"minProperties", "maxProperties", "field"}};
    unsigned long long size = op_count_size(v);
    bool few = size < op->count.min;
    unsigned long long limit = few ? op->count.min : op->count.max;
    const char *code = few ? kinds[v->type].minimum : kinds[v->type].maximum;
    return (struct problem){.code = code,
                            .message = arena_printf(e->arena, "must have at %s %llu %s%s, got %llu",
                                                    few ? "least" : "most", limit, kinds[v->type].counted,
                                                    limit == 1 ? "" : "s", size),
                            .expected = arena_printf(e->arena, "{\"%s\":%llu}", code, limit),
                            .got = message_got(e->arena, v)};
}

static struct problem contains_problem(struct explain_ctx *e, const struct op *op, const struct json *v)
{
    unsigned long long found = op_contains_count(&e->pass, op, v, NULL);
    bool few = found < op->contains.min;
    unsigned long long limit = few ? op->contains.min : op->contains.max;
    struct buf kind = buf_in(e->arena);
    if (op->contains.node->types != TYPES_ANY)
        message_put_types(&kind, op->contains.node->types);
    return (struct problem){.code = few ? "contains" : "maxContains",
                            .message = arena_printf(e->arena,
                                                    "must contain at %s %llu item%s of the kind the schema "
                                                    "describes%s" STR_FMT "%s, found %llu",
                                                    few ? "least" : "most", limit, limit == 1 ? "" : "s",
                                                    kind.len ? " (" : "", STR_ARG(buf_view(&kind)),
                                                    kind.len ? ")" : "", found)};
}

/* Why a text is no URI, as far as its beginning or one character says so; empty: they do not. */
static struct str uri_fault(struct arena *arena, struct str text)
{
    struct str scheme = uri_parts(text).scheme; /* with the colon */
    if (text.len && (!scheme.len || !uri_is_scheme(str_cut(scheme, scheme.len - 1))))
        return STR_LIT(", which has no scheme");
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c && strchr(" <>\"{}|\\^`", c))
            return arena_printf(arena, ", whose '%c' a URI writes as %%%02X", c, c);
    }
    return STR_NONE;
}

static const struct str no_zone = STR(" without its time zone: add Z for UTC, or an offset such as +02:00");

void message_op(struct explain_ctx *e, const struct op *op, const struct json *v,
                const struct location *location)
{
    static const struct {
        const char *code, *sentence;
    } bounds[] = {{"minimum", "must be at least"},
                  {"exclusiveMinimum", "must be more than"},
                  {"maximum", "must be at most"},
                  {"exclusiveMaximum", "must be less than"}};
    const struct choices *choices = &op->choices;
    bool local = false;
    struct str got = message_quote(e->arena, v), lacks = STR_NONE;
    size_t first = 0, second = 0, bound;
    struct problem problem;
    switch ((enum op_code)op->code) {
    case OP_CHOICES:
        message_choices(e, &choices, 1, TYPES_ANY & ~op->applies, v, location);
        return;
    case OP_MINIMUM:
    case OP_MAXIMUM:
        bound = (op->code == OP_MAXIMUM ? 2 : 0) + op->bound.exclusive;
        problem = limit_problem(e, bounds[bound].code, bounds[bound].sentence, op, v);
        break;
    case OP_MULTIPLE:
        problem = limit_problem(e, "multipleOf", "must be a multiple of", op, v);
        break;
    case OP_PATTERN: /* hard to read, so the schema's description goes with it */
        problem = limit_problem(e, "pattern", "must match the pattern", op, v);
        if (e->node && e->node->description.len)
            problem.message = ARENA_JOIN(e->arena, problem.message, STR_LIT(" (the schema says: "),
                                         e->node->description, STR_LIT(")"));
        break;
    case OP_FORMAT:
        local = op->format->check_local && op->format->check_local(json_str(v));
        if (local)
            lacks = no_zone;
        else if (strcmp(op->format->name, "uri") == 0)
            lacks = uri_fault(e->arena, json_str(v));
        problem = (struct problem){
            .code = "format",
            .message = ARENA_JOIN(e->arena, STR_LIT("expected "), str_of(op->format->title),
                                  STR_LIT(" (e.g. '"), str_of(op->format->example), STR_LIT("')"),
                                  str_of(got_words(is_nothing(v) && is_optional(e, location))), got, lacks),
            .expected = ARENA_JOIN(e->arena, STR_LIT("{\"type\":\"string\",\"format\":"),
                                   json_text(e->arena, op->value), STR_LIT("}")),
            .got = got};
        break;
    case OP_COUNT:
        problem = count_problem(e, op, v);
        break;
    case OP_CONTAINS:
        problem = contains_problem(e, op, v);
        break;
    default: /* OP_UNIQUE */
        unique_items_find_pair(&e->pass, v, &first, &second);
        got = message_quote(e->arena, &v->items[second]);
        problem = (struct problem){
            .code = "uniqueItems",
            .message = arena_printf(
                e->arena, "items must differ from each other, but [%zu] and [%zu] are both " STR_FMT, first,
                second, STR_ARG(got))};
    }
    message_add(e, location, problem);
}
