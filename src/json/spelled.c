/*
 * One pass over the text rewrites it as strict JSON, which json_parse then
 * reads: so its limits, and what it says of UTF-8, surrogates and duplicate
 * keys, hold here, too. The pass knows its place: where the text ends too early,
 * the open brackets and their keys say where it was cut off.
 */
#include "json/spelled.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"
#include "json/string.h"

#define FENCE             "```"
#define FENCE_BYTES       3u
#define LANGUAGE_MAX      16u /* bytes of the word after a fence */
#define ESCAPED_TIMES_MAX 2u  /* how often a text may have been escaped */

enum want {
    WANT_VALUE,
    WANT_ITEM, /* or the end of the array */
    WANT_KEY,  /* or the end of the object */
    WANT_COLON,
    WANT_COMMA, /* or the end of the container */
    WANT_FENCE,
    WANT_END
};

enum scan {
    SCAN_ON, /* go on with the next token */
    SCAN_DONE,
    SCAN_BAD,
    SCAN_CUT,
    SCAN_ESCAPED /* a backslash where a token should be, before any string */
};

struct level {
    bool object;
    uint32_t index; /* of the item in an array */
    struct str key; /* the raw key in an object; empty: between members */
};

struct scanner {
    struct str text;
    size_t at;
    struct buf out; /* the same as strict JSON */
    enum want want;
    unsigned depth;
    bool comma; /* one that was read and is written before what follows, if anything does */
    bool fenced;
    bool strings;   /* there was one */
    bool in_string; /* at the end of the text */
    bool in_value;  /* at the end of the text: inside a string, number or word that is a value */
    bool python;    /* single quotes, True, False or None */
    bool slash;     /* "\/", which JSON and Python read differently */
    struct level levels[JSON_MAX_DEPTH]; /* last: filled in when they open */
};

static size_t rest(const struct scanner *s)
{
    return s->text.len - s->at;
}

static void skip_space(struct scanner *s)
{
    s->at = str_span(s->text, s->at, " \t\r\n");
}

/* ---- where it was cut off ---- */

/* The path through the open containers. The innermost array has an unfinished item only if its value has
 * begun; an object has one from its key on. */
static void describe_cut(const struct scanner *s, struct arena *arena, struct json_cut *cut)
{
    struct buf path = buf_in(arena);
    for (unsigned i = 0; i < s->depth; i++) {
        const struct level *level = &s->levels[i];
        bool innermost = i + 1 == s->depth;
        if (!level->object && (!innermost || s->in_value)) {
            buf_printf(&path, "[%u]", level->index);
        } else if (level->key.len) {
            buf_text(&path, path.len ? "." : "");
            buf_str(&path, str_cut(level->key, JSON_CUT_PATH_BYTES));
        }
    }
    *cut = (struct json_cut){.chars = str_characters(s->text),
                             .path = str_cut_front(buf_view(&path), JSON_CUT_PATH_BYTES),
                             .open = s->depth,
                             .in_string = s->in_string};
}

/* ---- tokens ---- */

static void put_comma(struct scanner *s)
{
    if (s->comma)
        buf_byte(&s->out, ',');
    s->comma = false;
}

static enum scan value_ended(struct scanner *s)
{
    if (s->depth)
        s->levels[s->depth - 1].key = STR_NONE;
    s->want = s->depth ? WANT_COMMA : s->fenced ? WANT_FENCE : WANT_END;
    return SCAN_ON;
}

static bool are_hex(const char *p, size_t count)
{
    size_t i = 0;
    while (i < count && ascii_is_hex(p[i]))
        i++;
    return i == count;
}

/* Copies `count` bytes of an escape with digits; `prefix` takes the place of the first two. */
static enum scan scan_hex(struct scanner *s, const char *prefix, size_t count)
{
    if (rest(s) < count)
        return are_hex(s->text.at + s->at + 2, rest(s) - 2) ? SCAN_CUT : SCAN_BAD;
    if (!are_hex(s->text.at + s->at + 2, count - 2))
        return SCAN_BAD;
    buf_text(&s->out, prefix);
    buf_add(&s->out, s->text.at + s->at + 2, count - 2);
    s->at += count;
    return SCAN_ON;
}

/* Between single quotes Python's escapes hold as far as JSON has the character; "\/" would be two readings.
 */
static enum scan scan_escape(struct scanner *s, char quote)
{
    if (rest(s) < 2)
        return SCAN_CUT;
    char c = s->text.at[s->at + 1];
    if (c == 'u')
        return scan_hex(s, "\\u", 6);
    if (c == 'x' && quote == '\'')
        return scan_hex(s, "\\u00", 4);
    if (c == '\'' && quote == '\'')
        buf_byte(&s->out, c);
    else if (c && strchr("\"\\nrtbf/", c))
        buf_add(&s->out, s->text.at + s->at, 2);
    else
        return SCAN_BAD;
    s->slash |= c == '/';
    s->at += 2;
    return SCAN_ON;
}

/* What strict JSON wants escaped. */
static const char *const escapes[256] = {['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t", ['"'] = "\\\""};
/* The string at `at`. *inside: its raw bytes between the quotes. */
static enum scan scan_string(struct scanner *s, struct str *inside)
{
    char quote = s->text.at[s->at++];
    size_t start = s->at;
    put_comma(s);
    buf_byte(&s->out, '"');
    s->strings = true;
    s->python |= quote == '\'';
    while (s->at < s->text.len) {
        const char *from = s->text.at + s->at, *end = s->text.at + s->text.len, *to = from;
        while (to < end && *to != quote && *to != '\\' && *to != '"' && (unsigned char)*to >= ' ')
            to++;
        buf_add(&s->out, from, (size_t)(to - from));
        s->at += (size_t)(to - from);
        if (to == end)
            break;
        if (*to == quote) {
            *inside = (struct str){s->text.at + start, s->at++ - start};
            buf_byte(&s->out, '"');
            return SCAN_ON;
        }
        if (*to == '\\') {
            enum scan escape = scan_escape(s, quote);
            s->in_string = escape == SCAN_CUT;
            if (escape != SCAN_ON)
                return escape;
            continue;
        }
        if (!escapes[(unsigned char)*to])
            return SCAN_BAD;
        buf_text(&s->out, escapes[(unsigned char)*to]);
        s->at++;
    }
    *inside = (struct str){s->text.at + start, s->text.len - start};
    s->in_string = true;
    return SCAN_CUT;
}

/* \"…\" behind a string whose quotes stand plain: the quotes of a part of the text were escaped once more.
 * Inside, only text without quotes and backslashes has one reading. */
static enum scan scan_escaped_string(struct scanner *s, struct str *inside)
{
    size_t start = s->at + 2, at = start;
    if (rest(s) < 2 || s->text.at[s->at + 1] != '"')
        return SCAN_BAD;
    while (at < s->text.len && !memchr("\"\\", s->text.at[at], 2) && (unsigned char)s->text.at[at] >= ' ')
        at++;
    *inside = (struct str){s->text.at + start, at - start};
    if (at + 1 >= s->text.len)
        return SCAN_CUT;
    if (s->text.at[at] != '\\' || s->text.at[at + 1] != '"')
        return SCAN_BAD;
    put_comma(s);
    buf_byte(&s->out, '"');
    buf_str(&s->out, *inside);
    buf_byte(&s->out, '"');
    s->at = at + 2;
    return SCAN_ON;
}

/* A number is copied as it is; json_parse checks it. */
static enum scan scan_number(struct scanner *s)
{
    size_t start = s->at;
    while (rest(s) && (ascii_is_digit(s->text.at[s->at]) || memchr("+-.eE", s->text.at[s->at], 5)))
        s->at++;
    put_comma(s);
    buf_add(&s->out, s->text.at + start, s->at - start);
    return !rest(s) && s->depth ? SCAN_CUT : SCAN_ON;
}

static enum scan scan_word(struct scanner *s)
{
    static const struct {
        struct str word, json;
        bool python;
    } words[] = {
        {STR("true"), STR("true"), false},  {STR("false"), STR("false"), false},
        {STR("null"), STR("null"), false},  {STR("True"), STR("true"), true},
        {STR("False"), STR("false"), true}, {STR("None"), STR("null"), true},
    };
    struct str word = {s->text.at + s->at, 0};
    for (; rest(s) && ascii_is_letter(s->text.at[s->at]); s->at++)
        word.len++;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!rest(s) && s->depth && word.len && word.len <= words[i].word.len &&
            memcmp(word.at, words[i].word.at, word.len) == 0)
            return SCAN_CUT;
        if (!str_eq(word, words[i].word))
            continue;
        put_comma(s);
        buf_str(&s->out, words[i].json);
        s->python |= words[i].python;
        return SCAN_ON;
    }
    return SCAN_BAD;
}

/* A comma before the bracket is left out. */
static enum scan scan_close(struct scanner *s, char bracket)
{
    if (bracket != (s->levels[s->depth - 1].object ? '}' : ']'))
        return SCAN_BAD;
    s->comma = false;
    buf_byte(&s->out, bracket);
    s->depth--;
    s->at++;
    return value_ended(s);
}

static enum scan scan_value(struct scanner *s, char c)
{
    struct str inside;
    if (c == '{' || c == '[') {
        if (s->depth == JSON_MAX_DEPTH)
            return SCAN_BAD;
        put_comma(s);
        buf_byte(&s->out, c);
        s->levels[s->depth++] = (struct level){.object = c == '{'};
        s->want = c == '{' ? WANT_KEY : WANT_ITEM;
        s->at++;
        return SCAN_ON;
    }
    enum scan scalar = c == '"' || c == '\''           ? scan_string(s, &inside)
                       : c == '\\'                     ? scan_escaped_string(s, &inside)
                       : c == '-' || ascii_is_digit(c) ? scan_number(s)
                                                       : scan_word(s);
    s->in_value = scalar == SCAN_CUT;
    return scalar == SCAN_ON ? value_ended(s) : scalar;
}

static enum scan scan_key(struct scanner *s, char c)
{
    if (c == '}')
        return scan_close(s, c);
    struct str *name = &s->levels[s->depth - 1].key;
    enum scan key = c == '"' || c == '\'' ? scan_string(s, name)
                    : c == '\\'           ? scan_escaped_string(s, name)
                                          : SCAN_BAD;
    if (key == SCAN_CUT)
        s->levels[s->depth - 1].key = STR_NONE; /* it may be the beginning of another name */
    s->want = WANT_COLON;
    return key;
}

static enum scan scan_token(struct scanner *s)
{
    skip_space(s);
    if (!rest(s))
        return s->want == WANT_END ? SCAN_DONE : SCAN_CUT;
    struct level *level = &s->levels[s->depth ? s->depth - 1 : 0]; /* the innermost, if there is one */
    size_t fence = rest(s) < FENCE_BYTES ? rest(s) : FENCE_BYTES;
    char c = s->text.at[s->at];
    if (c == '\\' && !s->strings)
        return SCAN_ESCAPED;
    switch (s->want) {
    case WANT_ITEM:
        return c == ']' ? scan_close(s, c) : scan_value(s, c);
    case WANT_VALUE:
        return scan_value(s, c);
    case WANT_KEY:
        return scan_key(s, c);
    case WANT_COLON:
        if (c != ':')
            return SCAN_BAD;
        buf_byte(&s->out, c);
        s->want = WANT_VALUE;
        s->at++;
        return SCAN_ON;
    case WANT_COMMA:
        if (c != ',')
            return scan_close(s, c);
        s->comma = true;
        s->want = level->object ? WANT_KEY : WANT_ITEM;
        level->index++;
        s->at++;
        return SCAN_ON;
    case WANT_FENCE:
        if (memcmp(s->text.at + s->at, FENCE, fence) != 0)
            return SCAN_BAD;
        s->at += fence;
        s->want = WANT_END;
        return fence < FENCE_BYTES ? SCAN_CUT : SCAN_ON;
    case WANT_END:
        break;
    }
    return SCAN_BAD;
}

static enum scan scan_text(struct scanner *s)
{
    enum scan scan = SCAN_ON;
    skip_space(s);
    /* ```json, at the beginning; the language may be any word, or missing. */
    s->fenced = rest(s) >= FENCE_BYTES && memcmp(s->text.at + s->at, FENCE, FENCE_BYTES) == 0;
    s->at += s->fenced ? FENCE_BYTES : 0;
    for (size_t i = 0; s->fenced && i < LANGUAGE_MAX && rest(s) && ascii_is_letter(s->text.at[s->at]); i++)
        s->at++;
    if (!rest(s))
        return SCAN_BAD;
    while (scan == SCAN_ON)
        scan = scan_token(s);
    if (scan == SCAN_DONE && s->python && s->slash)
        return SCAN_BAD;
    return scan;
}

/* ---- escaped once more ---- */

/* Decodes the text as the inside of a string. False: it is not one. *cut: it ends inside an escape, which is
 * left out. */
static bool unescape(struct arena *arena, struct str text, struct str *out, bool *cut)
{
    size_t at = 0;
    *cut = false;
    while (at < text.len) {
        size_t len = 1, left = text.len - at;
        if (text.at[at] == '"')
            return false;
        if (text.at[at] == '\\')
            len = left > 1 && text.at[at + 1] == 'u' ? 6 : 2;
        if (len == 2 && left > 1 && (!text.at[at + 1] || !strchr("\"\\/bfnrt", text.at[at + 1])))
            return false;
        if (len == 6 && !are_hex(text.at + at + 2, (len < left ? len : left) - 2))
            return false;
        *cut = len > left;
        if (*cut)
            break;
        at += len;
    }
    bool lone = false;
    char *bytes = arena_alloc(arena, text.len + 1);
    *out = (struct str){bytes, json_string_decode(bytes, (struct str){text.at, at}, &lone)};
    return !lone;
}

/* The other way to read it: only the quotes were escaped. */
static struct str unescape_quotes(struct arena *arena, struct str text)
{
    char *bytes = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t at = 0; at < text.len; at++) {
        bool escape = text.at[at] == '\\' && at + 1 < text.len;
        if (escape && text.at[at + 1] != '"')
            bytes[len++] = text.at[at];
        bytes[len++] = text.at[escape ? ++at : at];
    }
    return (struct str){bytes, len};
}

static enum json_spelling read_text(struct arena *arena, struct str text, unsigned times, struct json *out,
                                    struct json_cut *cut);

/* "\\n" is a line break if everything was escaped, and a backslash if only the quotes were: then there are
 * two readings. */
static enum json_spelling read_escaped(struct arena *arena, struct str text, unsigned times, struct json *out,
                                       struct json_cut *cut)
{
    struct json other;
    struct json_cut unused;
    struct str inner;
    bool ends_in_escape;
    if (!times || !unescape(arena, text, &inner, &ends_in_escape))
        return JSON_NOT_JSON;
    enum json_spelling spelling = read_text(arena, inner, times - 1, out, cut);
    if (spelling == JSON_SPELLED && ends_in_escape) { /* of white space behind it */
        *cut = (struct json_cut){.open = 0};
        spelling = JSON_CUT_OFF;
    }
    if (spelling == JSON_CUT_OFF)
        cut->chars = str_characters(text);
    if (spelling != JSON_SPELLED)
        return spelling;
    bool also = read_text(arena, unescape_quotes(arena, text), 0, &other, &unused) == JSON_SPELLED;
    return also && !json_equal(out, &other) ? JSON_NOT_JSON : JSON_SPELLED;
}

/* ---- one text ---- */

/* `times`: how often it may have been escaped. */
static enum json_spelling read_text(struct arena *arena, struct str text, unsigned times, struct json *out,
                                    struct json_cut *cut)
{
    struct scanner s;
    memset(&s, 0, offsetof(struct scanner, levels));
    s.text = text;
    s.out = buf_in(arena);
    switch (scan_text(&s)) {
    case SCAN_DONE:
        return json_parse(arena, buf_view(&s.out), NULL, out, NULL) == OK ? JSON_SPELLED : JSON_NOT_JSON;
    case SCAN_CUT:
        describe_cut(&s, arena, cut);
        return JSON_CUT_OFF;
    case SCAN_ESCAPED:
        return read_escaped(arena, text, times, out, cut);
    case SCAN_ON:
    case SCAN_BAD:
        break;
    }
    return JSON_NOT_JSON;
}

enum json_spelling json_read_spelled(struct arena *arena, struct str text, struct json *out,
                                     struct json_cut *cut)
{
    struct json_cut unused;
    if (text.len > JSON_SPELLED_MAX_BYTES)
        return JSON_NOT_JSON;
    return read_text(arena, text, ESCAPED_TIMES_MAX, out, cut ? cut : &unused);
}
