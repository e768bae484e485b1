/*
 * Regular expressions of ECMA-262, which schemas mean, on PCRE2: a translation between the dialects; a fast
 * path for simple expressions; matching with counted work. Everything of an expression lives in its arena. No
 * JIT: a hardened service may not map executable memory.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "schema/format.h"

#include "base/arena.h"
#include "base/buf.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdlib.h>

/*
 * ---- the fast path ----
 *
 * As most patterns in schemas are: anchored at the start, a sequence of ASCII characters and classes with
 * counts, such as ^[a-z][a-z0-9_]{0,62}. A part is a set of ASCII bytes and a count. Matching takes as many
 * bytes as it can, which is right if what follows begins with none of them: no other division of the subject
 * could match, so nothing needs backtracking. It takes a fifth of the time of PCRE2. The translation below
 * finds the parts on its way.
 */

#define PARTS_MAX 24u

struct set {
    uint64_t bits[2]; /* of ASCII */
};

struct part {
    struct set set;
    uint32_t min, max; /* max UINT32_MAX: no limit */
};

struct fast_regex {
    bool simple; /* so far, the parts say all of it */
    bool to_end; /* with $ */
    uint32_t count;
    struct part parts[PARTS_MAX];
};

/* Another part, of one character as long as no count follows. */
static void add_part(struct fast_regex *fast)
{
    fast->simple &= fast->count < PARTS_MAX;
    if (fast->simple)
        fast->parts[fast->count++] = (struct part){.min = 1, .max = 1};
}

/* Characters of the last part, none of which is beyond ASCII. */
static void add_range(struct fast_regex *fast, char from, char to)
{
    fast->simple &= ((unsigned char)from | (unsigned char)to) < 128 && from <= to;
    for (int b = (unsigned char)from; b <= (unsigned char)to && fast->simple; b++)
        fast->parts[fast->count - 1].set.bits[b / 64] |= (uint64_t)1 << (b % 64);
}

/* \d, \w or an escaped punctuation mark. */
static void add_escape(struct fast_regex *fast, char c)
{
    if (c == 'd' || c == 'w')
        add_range(fast, '0', '9');
    else if (c > 0 && ispunct((unsigned char)c))
        add_range(fast, c, c);
    else
        fast->simple = false;
    if (c == 'w') {
        add_range(fast, 'A', 'Z');
        add_range(fast, 'a', 'z');
        add_range(fast, '_', '_');
    }
}

/* ---- from ECMA-262 to PCRE2 ---- */

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
    struct fast_regex *fast;
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

/* `digits` hex digits from `ahead` on, or -1. */
static int32_t read_hex(const struct walk *w, size_t ahead, size_t digits)
{
    int32_t n = 0;
    for (size_t i = 0; i < digits; i++) {
        int h = ascii_hex_value(peek(w, ahead + i));
        if (h < 0)
            return -1;
        n = n * 16 + h;
    }
    return n;
}

/* Writes the character that the `used` bytes of an escape name. */
static enum err put_char(struct walk *w, int32_t c, size_t used)
{
    buf_printf(w->out, "\\x{%x}", (uint32_t)c);
    w->at += used;
    return OK;
}

static enum err unicode_escape(struct walk *w)
{
    bool braced = peek(w, 2) == '{'; /* \u{1F432} */
    int32_t c = braced ? 0 : read_hex(w, 2, 4);
    size_t used = 6;
    if (braced) {
        for (used = 3; ascii_hex_value(peek(w, used)) >= 0 && c <= 0x10ffff; used++)
            c = c * 16 + ascii_hex_value(peek(w, used));
        if (used == 3 || peek(w, used) != '}' || c > 0x10ffff)
            return refuse(w, "\\u{…} that is no code point");
        return put_char(w, c, used + 1);
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
    return put_char(w, c, used);
}

/* \x41 and \cJ */
static enum err char_escape(struct walk *w)
{
    int32_t c = read_hex(w, 2, 2);
    if (peek(w, 1) == 'c')
        return ascii_is_letter(peek(w, 2)) ? put_char(w, (peek(w, 2) | 32) - 'a' + 1, 3)
                                           : refuse(w, "\\c without a letter");
    return c < 0 ? refuse(w, "\\x without two hex digits") : put_char(w, c, 4);
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
    while (ascii_is_digit(peek(w, n)))
        n++;
    if (w->in.at[w->at + 1] == '0')
        return n > 2 ? refuse(w, "an octal escape") : put_char(w, 0, n);
    if (w->in_class)
        return refuse(w, "a back reference in a class");
    buf_printf(w->out, "\\g{%.*s}", (int)(n - 1), w->in.at + w->at + 1);
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
    if (!w->in_class)
        add_part(w->fast);
    add_escape(w->fast, c);
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
    bool negated = peek(w, 1) == '^', after_set = false;
    buf_text(w->out, negated ? "[^" : "[");
    w->at += 1 + negated;
    enum err err = OK;
    size_t first = w->at, covered = first; /* up to where a range is in the set already */
    add_part(w->fast);
    w->fast->simple &= !negated && peek(w, 0) != ']';
    w->in_class = true;
    while (!err && w->at < w->in.len && w->in.at[w->at] != ']') {
        char c = w->in.at[w->at];
        if (c == '\\') {
            after_set = is_set_escape(w, 0);
            err = escape(w);
            w->fast->simple &= peek(w, 0) != '-' || peek(w, 1) == ']'; /* no range begins with an escape */
            continue;
        }
        if (w->at >= covered && peek(w, 1) == '-' && peek(w, 2) != ']' && c != '-') {
            char to = peek(w, 2);
            w->fast->simple &= to != c && !strchr("\\[^-", to);
            add_range(w->fast, c, to);
            covered = w->at + 3;
        } else if (w->at >= covered) {
            w->fast->simple &= c != '-' || w->at == first || peek(w, 1) == ']';
            add_range(w->fast, c, c);
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
    w->quantifiable = w->fast->simple = false;
    return OK;
}

/* Length of {2}, {2,} or {2,3} here; 0 if the brace is a character. */
static size_t counted(const struct walk *w)
{
    size_t n = 1, digits = 0;
    for (; ascii_is_digit(peek(w, n)); n++)
        digits++;
    if (!digits)
        return 0;
    if (peek(w, n) == ',')
        for (n++; ascii_is_digit(peek(w, n));)
            n++;
    return peek(w, n) == '}' ? n + 1 : 0;
}

static enum err quantifier(struct walk *w)
{
    char c = peek(w, 0);
    size_t n = c == '{' ? counted(w) : 1;
    if (!n) {
        w->fast->simple = false;
        buf_text(w->out, "\\{");
        w->at++;
        w->quantifiable = true;
        return OK;
    }
    if (!w->quantifiable)
        return refuse(w, "a quantifier on nothing");
    bool lazy = peek(w, n) == '?';
    w->fast->simple &= !lazy;
    if (w->fast->simple) {
        struct part *part = &w->fast->parts[w->fast->count - 1];
        char *end;
        part->min = c == '+';
        part->max = c == '?' ? 1 : UINT32_MAX;
        if (c == '{') { /* {2}, {2,} or {2,3} */
            part->min = part->max = (uint32_t)strtoul(w->in.at + w->at + 1, &end, 10);
            if (*end == ',')
                part->max = end[1] == '}' ? UINT32_MAX : (uint32_t)strtoul(end + 1, NULL, 10);
        }
    }
    n += lazy;
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
        w->fast->simple = false;
        buf_text(w->out, ANY_BUT_NEWLINE);
        break;
    case '^':
    case '$':
    case '|':
        w->fast->simple &= c == '^' ? w->at == 0 : c == '$' && w->at + 1 == w->in.len;
        w->fast->to_end |= c == '$';
        buf_byte(w->out, c);
        break;
    default:
        add_part(w->fast);
        add_range(w->fast, c, c);
        buf_byte(w->out, c);
    }
    w->at++;
    w->quantifiable = !(c == '^' || c == '$' || c == '|');
    return OK;
}

/* Appends the expression for PCRE2 (with UTF, without UCP) that matches what `expression` matches in
 * ECMA-262. ERR_SCHEMA with the reason if that is not valid; escaped punctuation is accepted, as it is
 * common. */
static enum err ecma_to_pcre(struct str expression, struct buf *out, struct fast_regex *fast, struct why *why)
{
    struct walk w = {.in = expression, .out = out, .fast = fast, .why = why};
    enum err err = OK;
    *fast = (struct fast_regex){.simple = str_starts(expression, "^")};
    while (!err && w.at < w.in.len)
        err = step(&w);
    return err;
}

/* ---- the fast path: matching ---- */

/* What may follow a part without a fixed count begins with none of its bytes. */
static bool leaves_no_choice(const struct fast_regex *regex)
{
    for (uint32_t i = 0; i < regex->count; i++) {
        const struct part *part = &regex->parts[i], *after = part;
        while (part->min != part->max && ++after < regex->parts + regex->count) {
            if ((part->set.bits[0] & after->set.bits[0]) || (part->set.bits[1] & after->set.bits[1]))
                return false;
            if (after->min)
                break;
        }
    }
    return true;
}

static bool fast_matches(const struct fast_regex *regex, struct str subject)
{
    const char *p = subject.at, *end = p + subject.len;
    for (const struct part *part = regex->parts, *stop = part + regex->count; part < stop; part++) {
        size_t left = (size_t)(end - p), taken = 0, most = left < part->max ? left : part->max;
        for (; taken < most; taken++) {
            unsigned char b = (unsigned char)p[taken];
            if (b >= 128 || !(part->set.bits[b / 64] >> (b % 64) & 1))
                break;
        }
        if (taken < part->min)
            return false;
        p += taken;
    }
    return p == end || !regex->to_end;
}

/* ---- compilation and matching ---- */

#define OPTIONS                                                                                              \
    (PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |                \
     PCRE2_NEVER_BACKSLASH_C)
#define TOO_LARGE 120 /* what pcre2_compile reports of code that is */
#define UNCOUNTED_MATCH_LIMIT                                                                                \
    100u /* for each start offset, where the items of an expression are not counted */
#define UNCOUNTED_STEPS 500u
#define HEAP_MAX_KIB    1024u
#define NESTING_MAX     100u /* parentheses */

struct pattern {
    const struct fast_regex *fast; /* NULL: use PCRE2 */
    pcre2_code *code;
    pcre2_match_context *context;
    pcre2_match_data *data; /* scratch; one thread matches at a time */
    bool counted;           /* each item that is tried is reported to count_item */
};

static void *allocate(size_t size, void *arena)
{
    return arena_alloc(arena, size);
}

static void release(void *memory, void *arena)
{
    (void)memory, (void)arena; /* freed with the arena */
}

/* NULL: PCRE2 cannot compile it, for the reason *code near *at. */
static pcre2_code *compile_code(struct str expression, uint32_t options, pcre2_general_context *memory,
                                int *code, PCRE2_SIZE *at)
{
    PCRE2_SPTR text = (PCRE2_SPTR)(expression.len ? expression.at : "");
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, NESTING_MAX);
    return pcre2_compile(text, expression.len, OPTIONS | options, code, at, context);
}

enum err pattern_compile(struct arena *arena, struct str expression, struct pattern **out, struct why *why)
{
    *out = NULL;
    if (expression.len > PATTERN_MAX_BYTES)
        return err_set(why, ERR_LIMIT, "expected a regular expression of at most %u bytes, found %zu",
                       PATTERN_MAX_BYTES, expression.len);
    struct buf translated = buf_in(arena);
    struct fast_regex fast;
    enum err err = ecma_to_pcre(expression, &translated, &fast, why);
    if (err)
        return err;
    struct pattern *p = ARENA_NEW(arena, struct pattern);
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, arena);
    PCRE2_SIZE at;
    int code;
    char reason[160];
    /* With a callout before each item, unless the code is too large for them. */
    p->code = compile_code(buf_view(&translated), PCRE2_AUTO_CALLOUT, memory, &code, &at);
    p->counted = p->code || code != TOO_LARGE;
    if (!p->counted)
        p->code = compile_code(buf_view(&translated), 0, memory, &code, &at);
    if (!p->code) {
        if (pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof(reason)) < 0)
            strcpy(reason, "it is not understood");
        return err_set(why, ERR_SCHEMA,
                       "expected a regular expression, found '" STR_FMT "': %s (near byte %zu)",
                       STR_ARG(str_cut(expression, 200)), reason, at);
    }
    p->context = pcre2_match_context_create(memory);
    pcre2_set_heap_limit(p->context, HEAP_MAX_KIB);
    if (!p->counted)
        pcre2_set_match_limit(p->context, UNCOUNTED_MATCH_LIMIT);
    p->data = pcre2_match_data_create(1, memory);
    if (fast.simple && leaves_no_choice(&fast)) {
        size_t size = offsetof(struct fast_regex, parts) + fast.count * sizeof(struct part);
        p->fast = memcpy(arena_alloc(arena, size), &fast, size);
    }
    *out = p;
    return OK;
}

bool pattern_is_regex(struct str expression)
{
    struct arena *scratch = arena_new();
    struct buf translated = buf_in(scratch);
    struct fast_regex unused;
    PCRE2_SIZE at;
    int code;
    bool ok =
        expression.len <= PATTERN_MAX_BYTES && ecma_to_pcre(expression, &translated, &unused, NULL) == OK;
    if (ok) {
        pcre2_general_context *memory = pcre2_general_context_create(allocate, release, scratch);
        ok = compile_code(buf_view(&translated), 0, memory, &code, &at) ||
             code == PCRE2_ERROR_LOOKBEHIND_NOT_FIXED_LENGTH;
    }
    arena_free(scratch);
    return ok;
}

struct count {
    uint32_t left; /* steps */
    PCRE2_SIZE last;
};

/* An item is a step, and so is what the item before it went through. */
static int count_item(pcre2_callout_block *block, void *data)
{
    struct count *count = data;
    PCRE2_SIZE here = block->current_position;
    PCRE2_SIZE moved = here > count->last ? here - count->last : count->last - here;
    uint32_t steps = 1 + (uint32_t)moved / 32;
    count->last = here;
    if (steps > count->left)
        return PCRE2_ERROR_CALLOUT;
    count->left -= steps;
    return 0;
}

enum pattern_result pattern_match(const struct pattern *pattern, struct str subject, uint32_t *steps)
{
    struct count count = {.left = *steps};
    if (!subject.len) /* may be NULL */
        subject.at = "";
    if (subject.len > PATTERN_SUBJECT_MAX_BYTES)
        return PATTERN_TOO_COMPLEX;
    if (pattern->fast)
        return fast_matches(pattern->fast, subject) ? PATTERN_MATCH : PATTERN_NO_MATCH;
    if (pattern->counted) {
        pcre2_set_callout(pattern->context, count_item, &count);
    } else { /* a few tries at each place, each of which may go through all that follows */
        uint64_t uncounted = UNCOUNTED_STEPS + (uint64_t)subject.len * subject.len / 64;
        if (uncounted > count.left)
            return PATTERN_TOO_COMPLEX;
        count.left -= (uint32_t)uncounted;
    }
    int n = pcre2_match(pattern->code, (PCRE2_SPTR)subject.at, subject.len, 0, 0, pattern->data,
                        pattern->context);
    *steps = count.left;
    if (n >= 0)
        return PATTERN_MATCH;
    return n == PCRE2_ERROR_NOMATCH ? PATTERN_NO_MATCH : PATTERN_TOO_COMPLEX;
}

size_t pattern_code_bytes(const struct pattern *pattern)
{
    size_t bytes = 0;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &bytes);
    return bytes;
}
