/* Tokens: names, texts, and single characters; comments and white space are skipped, lines counted. */
#include "policy/locate.h"

#include <limits.h>

enum kind { END, NAME, TEXT, SIGN };

struct token {
    enum kind kind;
    struct str text;
    int line;
};

struct lexer {
    struct str rest;
    int line;
};

static bool is_name(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

static struct str take(struct lexer *lex, size_t n)
{
    struct str taken = {lex->rest.at, n < lex->rest.len ? n : lex->rest.len};
    for (size_t i = 0; i < taken.len; i++)
        lex->line += taken.at[i] == '\n';
    lex->rest = str_from(lex->rest, taken.len);
    return taken;
}

/* Bytes of a [[…]] or [==[…]==] that begins here, 0 where none does. */
static size_t long_bracket(struct str s)
{
    size_t level = 0, i;
    if (!s.len || s.at[0] != '[')
        return 0;
    while (1 + level < s.len && s.at[1 + level] == '=')
        level++;
    if (1 + level >= s.len || s.at[1 + level] != '[')
        return 0;
    for (i = level + 2; i + level + 1 < s.len; i++) {
        size_t n = 0;
        while (s.at[i] == ']' && n < level && s.at[i + 1 + n] == '=')
            n++;
        if (s.at[i] == ']' && n == level && s.at[i + 1 + level] == ']')
            return i + level + 2;
    }
    return s.len;
}

/* The lexer is at its --. */
static void skip_comment(struct lexer *lex)
{
    struct str s = lex->rest;
    size_t n = long_bracket(str_from(s, 2));
    if (n)
        n += 2;
    else
        while (n < s.len && s.at[n] != '\n')
            n++;
    take(lex, n);
}

static void skip(struct lexer *lex)
{
    for (;;) {
        if (lex->rest.len && strchr(" \t\r\n\f\v", lex->rest.at[0]))
            take(lex, 1);
        else if (str_starts(lex->rest, "--"))
            skip_comment(lex);
        else
            return;
    }
}

static size_t quoted(struct str s)
{
    size_t i = 1;
    while (i < s.len && s.at[i] != s.at[0] && s.at[i] != '\n')
        i += s.at[i] == '\\' ? 2 : 1;
    return i + 1;
}

static struct token next(struct lexer *lex)
{
    skip(lex);
    struct token t = {.line = lex->line};
    struct str s = lex->rest;
    size_t n = long_bracket(s);
    if (!s.len) {
        t.kind = END;
    } else if (n) {
        t.kind = TEXT;
        t.text = take(lex, n);
    } else if (s.at[0] == '"' || s.at[0] == '\'') {
        t.kind = TEXT;
        t.text = take(lex, quoted(s));
        t.text = t.text.len >= 2 ? (struct str){t.text.at + 1, t.text.len - 2} : STR_NONE;
    } else if (is_name(s.at[0])) {
        t.kind = NAME;
        while (n < s.len && is_name(s.at[n]))
            n++;
        t.text = take(lex, n);
    } else {
        t.kind = SIGN;
        t.text = take(lex, 1);
    }
    return t;
}

static struct lexer start(struct str source)
{
    return (struct lexer){source, 1};
}

static bool is_sign(struct token t, char c)
{
    return t.kind == SIGN && t.text.at[0] == c;
}

static int depth_of(struct token t)
{
    return t.kind != SIGN ? 0 : strchr("{([", t.text.at[0]) ? 1 : strchr("})]", t.text.at[0]) ? -1 : 0;
}

/* Moves behind the `{` of tool "…" { or gateway {; gives the tool's name if asked. */
static bool enter_declaration(struct lexer *lex, struct str *name)
{
    struct token before = {END, STR_NONE, 0}, t = next(lex);
    for (; t.kind != END; before = t, t = next(lex)) {
        if (t.kind != NAME || is_sign(before, '.') || is_sign(before, ':'))
            continue;
        struct lexer ahead = *lex;
        struct token one = next(&ahead), two = next(&ahead);
        bool parenthesis = is_sign(one, '(');
        if (str_is(t.text, "tool") && (parenthesis ? two : one).kind == TEXT) {
            if (name)
                *name = (parenthesis ? two : one).text;
            while (!is_sign(t = next(lex), '{') && t.kind != END)
                continue;
            return t.kind != END;
        }
        if (str_is(t.text, "gateway") && is_sign(one, '{')) {
            next(lex);
            return true;
        }
    }
    return false;
}

/* Inside a table: moves behind `name =` of this table, and tells its line; 0 at the table's end. */
static int find_field(struct lexer *lex, struct str name)
{
    struct token before = {END, STR_NONE, 0}, t = next(lex);
    for (int depth = 1; t.kind != END; before = t, t = next(lex)) {
        bool in_key = depth == 2 && is_sign(before, '[') && t.kind == TEXT;
        depth += depth_of(t);
        if (depth <= 0)
            return 0;
        if (!((depth == 1 && t.kind == NAME) || in_key) || !str_eq(t.text, name))
            continue;
        struct lexer ahead = *lex;
        struct token one = next(&ahead);
        if (in_key && is_sign(one, ']'))
            one = next(&ahead);
        struct lexer after = ahead;
        if (!is_sign(one, '=') || is_sign(next(&after), '='))
            continue;
        *lex = ahead;
        return t.line;
    }
    return 0;
}

int locate_field(struct str source, const char *parent, struct str name)
{
    struct lexer lex = start(source);
    if (!enter_declaration(&lex, NULL))
        return 0;
    if (!parent)
        return find_field(&lex, name);
    int line = find_field(&lex, str_of(parent));
    if (!line || !is_sign(next(&lex), '{'))
        return line;
    int inner = find_field(&lex, name);
    return inner ? inner : line;
}

/* ---- the order of fields -------------------------------------------------------------- */

static size_t index_of(const struct str *names, size_t count, struct str name)
{
    size_t i = 0;
    while (i < count && !str_eq(names[i], name))
        i++;
    return i;
}

/* The name of a field that begins at this token, `name =` or `["name"] =`; the lexer is moved behind it. */
static struct str field_name(struct lexer *lex, struct token t)
{
    struct lexer ahead = *lex;
    struct str name = t.kind == NAME ? t.text : STR_NONE;
    if (is_sign(t, '[')) {
        struct token key = next(&ahead);
        if (key.kind == TEXT && is_sign(next(&ahead), ']'))
            name = key.text;
    }
    struct lexer behind = ahead;
    if (!name.len || !is_sign(next(&behind), '='))
        return STR_NONE;
    *lex = behind;
    return is_sign(next(&behind), '=') ? STR_NONE : name;
}

/* Inside a table: swaps the names into the order of its fields; false where it has others, or not all. */
static bool match_fields(struct lexer lex, struct str *names, size_t count)
{
    size_t found = 0;
    bool fresh = true;
    struct token t = next(&lex);
    for (int depth = 1; t.kind != END; t = next(&lex)) {
        struct str name = depth == 1 && fresh ? field_name(&lex, t) : STR_NONE;
        if (name.len) {
            size_t at = index_of(names, count, name);
            if (at == count || at < found)
                return false;
            struct str moved = names[found];
            names[found++] = names[at];
            names[at] = moved;
            fresh = false;
            continue;
        }
        depth += depth_of(t);
        fresh = depth == 1 && (is_sign(t, ',') || is_sign(t, ';'));
        if (depth <= 0)
            break;
    }
    return found == count;
}

static bool find_order(struct str source, int from, int to, struct str *names, size_t count)
{
    struct lexer lex = start(source);
    for (struct token t = next(&lex); t.kind != END && t.line < to; t = next(&lex))
        if (is_sign(t, '{') && t.line >= from && match_fields(lex, names, count))
            return true;
    return false;
}

bool locate_order(struct str source, int line, struct str *names, size_t count)
{
    return find_order(source, line, INT_MAX, names, count) || find_order(source, 0, line, names, count);
}

int locate_item(struct str source, const char *field, size_t n)
{
    struct lexer lex = start(source);
    int line = enter_declaration(&lex, NULL) ? find_field(&lex, str_of(field)) : 0;
    if (!line || !is_sign(next(&lex), '{'))
        return line;
    bool fresh = true;
    struct token t = next(&lex);
    for (int depth = 1; t.kind != END; t = next(&lex)) {
        if (depth == 1 && fresh && !is_sign(t, '}') && n-- == 0)
            return t.line;
        depth += depth_of(t);
        fresh = depth == 1 && (is_sign(t, ',') || is_sign(t, ';'));
        if (depth <= 0)
            break;
    }
    return line;
}

bool locate_mentions(struct str source, const char *name)
{
    struct lexer lex = start(source);
    struct token before = {END, STR_NONE, 0}, t = next(&lex);
    for (; t.kind != END; before = t, t = next(&lex))
        if ((t.kind == NAME && is_sign(before, '.') && str_is(t.text, name)) ||
            (t.kind == TEXT && is_sign(before, '[') && str_is(t.text, name)))
            return true;
    return false;
}

struct str locate_tool(struct str source)
{
    struct lexer lex = start(source);
    struct str name = STR_NONE;
    enter_declaration(&lex, &name);
    return name;
}

/* ---- remarks and functions ------------------------------------------------------------------- */

struct remarks remarks_of(struct str source)
{
    return (struct remarks){source, source, 1};
}

/* Nothing but white space stands before it on its line. */
static bool is_alone(const struct remarks *remarks, const char *at)
{
    while (at > remarks->source.at && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at == remarks->source.at || at[-1] == '\n';
}

static struct str line_of(struct str s)
{
    const char *end = s.len ? memchr(s.at, '\n', s.len) : NULL;
    size_t len = end ? (size_t)(end - s.at) : s.len;
    return (struct str){s.at, len && s.at[len - 1] == '\r' ? len - 1 : len};
}

bool remarks_next(struct remarks *remarks, struct str *text, int *line)
{
    struct lexer lex = {remarks->rest, remarks->line};
    bool found = false, end = false;
    while (!found && !end) {
        struct str s = lex.rest;
        if (s.len && strchr(" \t\r\n\f\v", s.at[0])) {
            take(&lex, 1);
            continue;
        }
        found = str_starts(s, "---") && is_alone(remarks, s.at);
        if (found) {
            *text = line_of(str_from(s, 3));
            *line = lex.line;
        }
        if (str_starts(s, "--"))
            skip_comment(&lex);
        else
            end = next(&lex).kind == END;
    }
    *remarks = (struct remarks){remarks->source, lex.rest, lex.line};
    return found;
}

void locate_parameters(struct str source, int line, struct str *first, struct str *second)
{
    struct lexer lex = start(source);
    struct token t = next(&lex);
    *first = *second = STR_NONE;
    while (t.kind != END && !(t.line >= line && t.kind == NAME && str_is(t.text, "function")))
        t = next(&lex);
    while (t.kind != END && !is_sign(t, '('))
        t = next(&lex);
    struct token one = next(&lex), comma = next(&lex), two = next(&lex);
    if (one.kind == NAME)
        *first = one.text;
    if (one.kind == NAME && is_sign(comma, ',') && two.kind == NAME)
        *second = two.text;
}
