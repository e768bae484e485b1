/*
 * One walk over the expression. What both dialects spell alike is copied; what
 * PCRE2 would read differently is spelled out; what only PCRE2 knows is
 * refused, so that a schema means the same here and in a browser.
 */
#include "schema/regex.h"

#include "schema/format_checks.h"

#include <stdint.h>

#define SPACES                                                                                               \
    "\\t\\n\\x{b}\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"    \
    "\\x{feff}"
#define NO_SPACES                                                                                            \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"      \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"
#define ANY_BUT_NEWLINE "[^\\n\\r\\x{2028}\\x{2029}]"

struct walk {
    struct str in;
    size_t at;
    struct buf *out;
    struct why *why;
    bool in_class;
    bool quantifiable; /* the last item may take a quantifier */
};

/* Long names of general categories, which ECMA-262 knows and PCRE2 does not. */
static const struct {
    const char *name, *code;
} categories[] = {
    /* clang-format off */
    {"Letter", "L"}, {"Cased_Letter", "L&"}, {"LC", "L&"}, {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"}, {"Titlecase_Letter", "Lt"}, {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"}, {"Mark", "M"}, {"Combining_Mark", "M"}, {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"}, {"Enclosing_Mark", "Me"}, {"Number", "N"}, {"Decimal_Number", "Nd"},
    {"digit", "Nd"}, {"Letter_Number", "Nl"}, {"Other_Number", "No"}, {"Punctuation", "P"}, {"punct", "P"},
    {"Connector_Punctuation", "Pc"}, {"Dash_Punctuation", "Pd"}, {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"}, {"Initial_Punctuation", "Pi"}, {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"}, {"Symbol", "S"}, {"Math_Symbol", "Sm"}, {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"}, {"Other_Symbol", "So"}, {"Separator", "Z"}, {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"}, {"Paragraph_Separator", "Zp"}, {"Other", "C"}, {"Control", "Cc"},
    {"cntrl", "Cc"}, {"Format", "Cf"}, {"Surrogate", "Cs"}, {"Private_Use", "Co"}, {"Unassigned", "Cn"},
    /* clang-format on */
};

static char peek(const struct walk *w, size_t ahead)
{
    return w->at + ahead < w->in.len ? w->in.at[w->at + ahead] : '\0';
}

static enum err refuse(struct walk *w, const char *what)
{
    return err_set(w->why, ERR_SCHEMA,
                   "expected a regular expression of ECMA-262, found %s at byte %zu of '" STR_FMT "'", what,
                   w->at, STR_ARG(str_cut(w->in, 200)));
}

static void put_char(struct walk *w, uint32_t c)
{
    buf_printf(w->out, "\\x{%x}", c);
}

/* `digits` hex digits from `ahead` on, or -1. */
static int32_t read_hex(const struct walk *w, size_t ahead, size_t digits)
{
    int32_t n = 0;
    for (size_t i = 0; i < digits; i++) {
        int h = hex_value(peek(w, ahead + i));
        if (h < 0)
            return -1;
        n = n * 16 + h;
    }
    return n;
}

static enum err unicode_escape(struct walk *w)
{
    bool braced = peek(w, 2) == '{'; /* \u{1F432} */
    int32_t c = braced ? 0 : read_hex(w, 2, 4);
    size_t used = 6;
    if (braced) {
        for (used = 3; hex_value(peek(w, used)) >= 0 && c <= 0x10ffff; used++)
            c = c * 16 + hex_value(peek(w, used));
        if (used == 3 || peek(w, used) != '}' || c > 0x10ffff)
            return refuse(w, "\\u{…} that is no code point");
        put_char(w, (uint32_t)c);
        w->at += used + 1;
        return OK;
    }
    if (c < 0)
        return refuse(w, "\\u without four hex digits");
    if (c >= 0xd800 && c < 0xdc00 && peek(w, 6) == '\\' && peek(w, 7) == 'u') {
        int32_t low = read_hex(w, 8, 4);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            used = 12;
        }
    }
    if (c >= 0xd800 && c < 0xe000)
        return refuse(w, "half a surrogate pair, which no JSON string holds,");
    put_char(w, (uint32_t)c);
    w->at += used;
    return OK;
}

/* \x41 and \cJ */
static enum err char_escape(struct walk *w)
{
    bool control = peek(w, 1) == 'c';
    int32_t c = control ? (peek(w, 2) | 32) - 'a' + 1 : read_hex(w, 2, 2);
    if (control && !ascii_is_letter(peek(w, 2)))
        return refuse(w, "\\c without a letter");
    if (c < 0)
        return refuse(w, "\\x without two hex digits");
    put_char(w, (uint32_t)c);
    w->at += control ? 3 : 4;
    return OK;
}

/* \p{Letter}, \p{gc=Lu}, \p{Script=Greek}, \p{Alphabetic} */
static enum err property_escape(struct walk *w)
{
    struct str rest = str_from(w->in, w->at + 3);
    const char *end = rest.len ? memchr(rest.at, '}', rest.len) : NULL;
    if (peek(w, 2) != '{' || !end)
        return refuse(w, "\\p without {…}");
    struct str name = {rest.at, (size_t)(end - rest.at)};
    w->at += 3 + name.len + 1;
    buf_printf(w->out, "\\%c{", w->in.at[w->at - name.len - 3]);
    static const char *const prefixes[] = {"General_Category=", "gc="};
    for (size_t i = 0; i < 2; i++)
        if (str_starts(name, prefixes[i]))
            name = str_from(name, strlen(prefixes[i]));
    for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++)
        if (str_is(name, categories[i].name))
            name = str_of(categories[i].code);
    buf_str(w->out, name);
    buf_byte(w->out, '}');
    return OK;
}

static enum err back_reference(struct walk *w)
{
    size_t n = 1;
    while (peek(w, n) >= '0' && peek(w, n) <= '9')
        n++;
    if (w->in.at[w->at + 1] == '0') {
        if (n > 2)
            return refuse(w, "an octal escape");
        put_char(w, 0);
    } else if (w->in_class) {
        return refuse(w, "a back reference in a class");
    } else {
        buf_printf(w->out, "\\g{%.*s}", (int)(n - 1), w->in.at + w->at + 1);
    }
    w->at += n;
    return OK;
}

/* Writes the two characters of an escape as they are, or as `text`. */
static enum err put_escape(struct walk *w, const char *text)
{
    if (text)
        buf_text(w->out, text);
    else
        buf_add(w->out, w->in.at + w->at, 2);
    w->at += 2;
    return OK;
}

static enum err escape(struct walk *w)
{
    char c = peek(w, 1);
    w->quantifiable = true;
    if (w->at + 1 >= w->in.len)
        return refuse(w, "a backslash at the end");
    switch (c) {
    case 's':
        return put_escape(w, w->in_class ? SPACES : "[" SPACES "]");
    case 'S':
        return put_escape(w, w->in_class ? NO_SPACES : "[" NO_SPACES "]");
    case 'v':
        return put_escape(w, "\\x{b}");
    case 'b':
    case 'B':
        if (w->in_class)
            return c == 'B' ? refuse(w, "\\B in a class") : put_escape(w, "\\x{8}");
        w->quantifiable = false;
        return put_escape(w, NULL);
    case 'k':
        return w->in_class || peek(w, 2) != '<' ? refuse(w, "\\k without <name>") : put_escape(w, NULL);
    case 'c':
    case 'x':
        return char_escape(w);
    case 'u':
        return unicode_escape(w);
    case 'p':
    case 'P':
        return property_escape(w);
    }
    if (ascii_is_digit(c))
        return back_reference(w);
    if (ascii_is_letter(c) && !strchr("dDwWfnrt", c))
        return refuse(w, "an escape that is none");
    if ((unsigned char)c < 0x80)
        return put_escape(w, NULL);
    w->at++; /* the character itself follows, several bytes long */
    return OK;
}

/* A class escape, after which a hyphen makes no range. */
static bool is_set_escape(const struct walk *w, size_t ahead)
{
    char c = peek(w, ahead + 1);
    return peek(w, ahead) == '\\' && c && strchr("dDwWsSpP", c);
}

static enum err class_whole(struct walk *w)
{
    buf_byte(w->out, '[');
    w->at++;
    if (peek(w, 0) == '^') {
        buf_byte(w->out, '^');
        w->at++;
    }
    bool after_set = false;
    enum err err = OK;
    w->in_class = true;
    while (!err && w->at < w->in.len && w->in.at[w->at] != ']') {
        char c = w->in.at[w->at];
        if (c == '\\') {
            after_set = is_set_escape(w, 0);
            err = escape(w);
            continue;
        }
        bool literal = c == '[' || (c == '-' && (after_set || is_set_escape(w, 1)));
        buf_text(w->out, literal ? "\\" : "");
        buf_byte(w->out, c);
        w->at++;
        after_set = false;
    }
    w->in_class = false;
    if (err)
        return err;
    if (w->at == w->in.len)
        return refuse(w, "a class without its ]");
    buf_byte(w->out, ']');
    w->at++;
    w->quantifiable = true;
    return OK;
}

static enum err group(struct walk *w)
{
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<"};
    struct str rest = str_from(w->in, w->at);
    size_t n = 1;
    if (str_starts(rest, "(*"))
        return refuse(w, "a quantifier on nothing, (*");
    if (str_starts(rest, "(?")) {
        n = 0;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !n; i++)
            n = str_starts(rest, kinds[i]) ? strlen(kinds[i]) : 0;
        if (!n)
            return refuse(w, "a group that only other dialects know");
    }
    buf_add(w->out, rest.at, n);
    w->at += n;
    w->quantifiable = false;
    return OK;
}

/* Length of {2}, {2,} or {2,3} here; 0 if the brace is a character. */
static size_t counted(const struct walk *w)
{
    size_t n = 1, digits = 0;
    for (; peek(w, n) >= '0' && peek(w, n) <= '9'; n++)
        digits++;
    if (!digits)
        return 0;
    if (peek(w, n) == ',')
        for (n++; peek(w, n) >= '0' && peek(w, n) <= '9';)
            n++;
    return peek(w, n) == '}' ? n + 1 : 0;
}

static enum err quantifier(struct walk *w)
{
    size_t n = peek(w, 0) == '{' ? counted(w) : 1;
    if (!n) {
        buf_text(w->out, "\\{");
        w->at++;
        w->quantifiable = true;
        return OK;
    }
    if (!w->quantifiable)
        return refuse(w, "a quantifier on nothing");
    n += peek(w, n) == '?';
    buf_add(w->out, w->in.at + w->at, n);
    w->at += n;
    w->quantifiable = false;
    return OK;
}

static enum err step(struct walk *w)
{
    char c = peek(w, 0);
    switch (c) {
    case '\\':
        return escape(w);
    case '[':
        return class_whole(w);
    case '(':
        return group(w);
    case '*':
    case '+':
    case '?':
    case '{':
        return quantifier(w);
    case '.':
        buf_text(w->out, ANY_BUT_NEWLINE);
        break;
    default:
        buf_byte(w->out, c);
    }
    w->at++;
    w->quantifiable = !(c == '^' || c == '$' || c == '|');
    return OK;
}

enum err regex_ecma_to_pcre(struct str expression, struct buf *out, struct why *why)
{
    struct walk w = {.in = expression, .out = out, .why = why};
    enum err err = OK;
    while (!err && w.at < w.in.len)
        err = step(&w);
    return err;
}
