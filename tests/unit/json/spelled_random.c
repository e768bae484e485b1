/*
 * Properties of oddly spelled JSON on random values: each spelling reads to the value, no beginning of it is
 * read as an object or list, and a byte that was damaged never changes more than itself.
 */
#include "arena_case.h"
#include "random.h"

#include "json/build.h"
#include "json/spelled.h"

#define VALUES        400u
#define MUTATIONS     60u
#define MEMBERS_MAX   4u
#define STRING_PIECES 7u

/* ---- random values ---- */

static struct str random_string(void)
{
    static const char *const pieces[] = {"a",
                                         "key",
                                         " ",
                                         "'",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\t",
                                         "\r",
                                         "/",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "```",
                                         "\xc3\xa9",
                                         "\xf0\x9f\x98\x80",
                                         "True",
                                         "None",
                                         "0",
                                         "\x01",
                                         "n",
                                         "u0041",
                                         "x41"};
    struct buf out = buf_in(arena);
    for (uint32_t n = below(STRING_PIECES); n > 0; n--)
        buf_text(&out, pieces[below(sizeof(pieces) / sizeof(pieces[0]))]);
    return buf_view(&out);
}

static struct json random_value(unsigned depth)
{
    static const char *const numbers[] = {"0", "-1", "12", "1.10", "-2.5e-3", "1E9", "123456789012345678901"};
    struct json items[MEMBERS_MAX], object = json_object(arena, NULL, 0);
    uint32_t count = below(MEMBERS_MAX + 1);
    switch (below(depth ? 7 : 5)) {
    case 0:
        return json_bool(below(2));
    case 1:
        return json_null();
    case 2:
        return json_literal(str_of(numbers[below(sizeof(numbers) / sizeof(numbers[0]))]));
    case 3:
    case 4:
        return json_string(random_string());
    case 5:
        for (uint32_t i = 0; i < count; i++)
            items[i] = random_value(depth - 1);
        struct json *kept = ARENA_ARRAY(arena, struct json, count + 1);
        memcpy(kept, items, count * sizeof(*items));
        return json_array(kept, count);
    default:
        for (uint32_t i = 0; i < count; i++)
            object = json_with(arena, &object, random_string(), random_value(depth - 1));
        return object;
    }
}

static struct json random_object(void)
{
    struct json object = json_object(arena, NULL, 0);
    for (uint32_t i = 1 + below(MEMBERS_MAX); i > 0; i--)
        object = json_with(arena, &object, random_string(), random_value(3));
    return object;
}

/* ---- odd spellings ---- */

struct speller {
    struct buf out;
    bool python, commas, raw;
};

static void spell_string(struct speller *s, struct str text)
{
    char quote = s->python && (memchr(text.at ? text.at : "", '"', text.len) || below(4)) ? '\'' : '"';
    buf_byte(&s->out, quote);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == quote || c == '\\')
            buf_byte(&s->out, '\\');
        if (c == '\n' && !s->raw)
            buf_text(&s->out, "\\n");
        else if (c == '\t' && !s->raw)
            buf_text(&s->out, "\\t");
        else if (c == '\r' && !s->raw)
            buf_text(&s->out, "\\r");
        else if ((unsigned char)c < ' ' && c != '\n' && c != '\t' && c != '\r')
            buf_printf(&s->out, quote == '\'' ? "\\x%02x" : "\\u%04x", (unsigned)c);
        else
            buf_byte(&s->out, c);
    }
    buf_byte(&s->out, quote);
}

static void spell_space(struct speller *s)
{
    static const char *const spaces[] = {"", "", " ", "\n", "\t ", "\r\n"};
    buf_text(&s->out, spaces[below(6)]);
}

static void spell(struct speller *s, const struct json *v)
{
    bool object = v->type == JSON_OBJECT;
    if (v->type == JSON_STRING) {
        spell_string(s, json_str(v));
    } else if (v->type == JSON_NUMBER) {
        buf_add(&s->out, v->text, v->len);
    } else if (v->type == JSON_BOOL || v->type == JSON_NULL) {
        const char *json = v->type == JSON_NULL ? "null" : v->truth ? "true" : "false";
        const char *python = v->type == JSON_NULL ? "None" : v->truth ? "True" : "False";
        buf_text(&s->out, s->python ? python : json);
    } else {
        buf_byte(&s->out, object ? '{' : '[');
        for (uint32_t i = 0; i < v->len; i++) {
            spell_space(s);
            if (object) {
                spell_string(s, v->members[i].key);
                spell_space(s);
                buf_byte(&s->out, ':');
                spell_space(s);
            }
            spell(s, object ? &v->members[i].value : &v->items[i]);
            if (i + 1 < v->len || (s->commas && below(2)))
                buf_byte(&s->out, ',');
        }
        spell_space(s);
        buf_byte(&s->out, object ? '}' : ']');
    }
}

static struct str spelled(const struct json *v, bool python, bool commas, bool raw)
{
    struct speller s = {.out = buf_in(arena), .python = python, .commas = commas, .raw = raw};
    spell(&s, v);
    return buf_view(&s.out);
}

static struct str fenced(struct str text)
{
    static const char *const heads[] = {"```json\n", "```\n", "\n```python\r\n", "```"};
    struct str parts[] = {str_of(heads[below(4)]), text, STR_LIT("\n```"),
                          below(2) ? STR_LIT("\n") : STR_NONE};
    return arena_join(arena, parts, 4);
}

/* The text as the inside of a JSON string. */
static struct str escaped(struct str text)
{
    struct buf out = buf_in(arena);
    json_write_string(&out, text);
    return (struct str){out.at + 1, out.len - 2};
}

/* ---- properties ---- */

static void must_read(struct str text, const struct json *wanted)
{
    struct json read;
    if (json_read_spelled(arena, text, &read, NULL) != JSON_SPELLED)
        fail_msg("not read: " STR_FMT, STR_ARG(text));
    if (!json_equal(&read, wanted))
        fail_msg(STR_FMT " was read as %s", STR_ARG(text), written(&read));
}

static void no_beginning_is_read(struct str text)
{
    for (size_t len = 0; len < text.len; len++) {
        struct str beginning = str_trim((struct str){text.at, len});
        struct json read;
        if (str_eq(beginning, str_trim(text)))
            continue;
        if (json_read_spelled(arena, beginning, &read, NULL) == JSON_SPELLED)
            fail_msg(STR_FMT " was read as %s", STR_ARG(beginning), written(&read));
    }
}

TEST(each_spelling_reads_to_the_value)
{
    for (uint32_t i = 0; i < VALUES; i++) {
        struct json value = random_object();
        struct str texts[9];
        size_t count = 0;
        for (unsigned odd = 0; odd < 8; odd++)
            texts[count++] = spelled(&value, odd & 1, odd & 2, odd & 4);
        texts[count++] = fenced(spelled(&value, false, true, false));
        for (size_t k = 0; k < count; k++)
            must_read(texts[k], &value);
        no_beginning_is_read(texts[below((uint32_t)count)]);
    }
}

TEST(text_escaped_once_more_is_read_as_the_value_or_not_at_all)
{
    unsigned read_count = 0;
    for (uint32_t i = 0; i < VALUES; i++) {
        struct json value = random_object(), read;
        struct str inner = spelled(&value, false, false, false), text = escaped(inner);
        bool plain = !memchr(inner.at, '\\', inner.len);
        enum json_spelling spelling = json_read_spelled(arena, text, &read, NULL);
        assert_int_not_equal(spelling, JSON_CUT_OFF);
        if (plain && spelling != JSON_SPELLED)
            fail_msg("not read: " STR_FMT, STR_ARG(text));
        if (spelling == JSON_SPELLED && !json_equal(&read, &value))
            fail_msg(STR_FMT " was read as %s", STR_ARG(text), written(&read));
        read_count += spelling == JSON_SPELLED;
        no_beginning_is_read(text);
    }
    assert_true(read_count > VALUES / 8);
}

/* Of how many values a value consists, names included. */
static size_t parts(const struct json *v)
{
    size_t count = 1;
    for (uint32_t i = 0; (v->type == JSON_OBJECT || v->type == JSON_ARRAY) && i < v->len; i++)
        count += v->type == JSON_OBJECT ? 1 + parts(&v->members[i].value) : parts(&v->items[i]);
    return count;
}

static bool is_in(const struct json *v, const struct json *leaf)
{
    if (v->type != JSON_OBJECT && v->type != JSON_ARRAY)
        return json_equal(v, leaf);
    for (uint32_t i = 0; i < v->len; i++)
        if (is_in(v->type == JSON_OBJECT ? &v->members[i].value : &v->items[i], leaf))
            return true;
    return false;
}

/* Leaves of `v` that `original` does not have. */
static size_t strange_leaves(const struct json *original, const struct json *v)
{
    size_t count = 0;
    if (v->type != JSON_OBJECT && v->type != JSON_ARRAY)
        return !is_in(original, v);
    for (uint32_t i = 0; i < v->len; i++)
        count += strange_leaves(original, v->type == JSON_OBJECT ? &v->members[i].value : &v->items[i]);
    return count;
}

/* One byte replaced, removed or inserted. */
static struct str mutated(struct str text)
{
    static const char bytes[] = "{}[],:\"'\\ \n`aTN01.-";
    size_t at = below((uint32_t)text.len);
    struct str head = {text.at, at}, tail = str_from(text, at), byte = {&bytes[below(sizeof(bytes) - 1)], 1};
    unsigned how = below(3);
    struct str all[] = {head, how == 1 ? STR_NONE : byte, how == 2 ? tail : str_from(tail, 1)};
    return arena_join(arena, all, 3);
}

/* What strict JSON would take is no question of spelling. Otherwise the damage stays where it is: at most one
 * leaf is another, and at most one value came or went. */
TEST(a_damaged_byte_changes_nothing_else)
{
    unsigned read_count = 0;
    for (uint32_t i = 0; i < VALUES; i++) {
        struct json value = random_object();
        struct str text = spelled(&value, false, false, false);
        for (uint32_t k = 0; k < MUTATIONS; k++) {
            struct str damaged = mutated(text);
            struct json read;
            struct json_error error;
            if (json_parse(arena, damaged, NULL, &read, &error) == OK ||
                json_read_spelled(arena, damaged, &read, NULL) != JSON_SPELLED)
                continue;
            size_t before = parts(&value), after = parts(&read);
            read_count++;
            if (strange_leaves(&value, &read) > 1 || before > after + 1 || after > before)
                fail_msg(STR_FMT " became " STR_FMT " and was read as %s", STR_ARG(text), STR_ARG(damaged),
                         written(&read));
        }
    }
    assert_true(read_count > 0);
}

static void start(void)
{
    random_state = 0x9E3779B97F4A7C15u;
    open_arena();
}

FIXTURE(start, close_arena)
