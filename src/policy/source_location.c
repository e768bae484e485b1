/* Tokens of Lua, and how fields, items and comments are found by them. */
#include "policy/source_location.h"

#include "base/arena.h"

#include <stdlib.h>

/* ---- tokens ---- */

#define LOOKAHEAD 5u

struct lexer {
    const char *begin;
    struct str rest;
    int line;
    struct arena *arena;
    struct comments *comments; /* where they are kept; NULL: nowhere */
};

static bool is_name_byte(char c)
{
    return ascii_is_alnum(c) || c == '_';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct str take(struct lexer *lex, size_t n)
{
    struct str taken = {lex->rest.at, n < lex->rest.len ? n : lex->rest.len};
    for (size_t i = 0; i < taken.len; i++)
        lex->line += taken.at[i] == '\n';
    lex->rest = str_from(lex->rest, taken.len);
    return taken;
}

/* Bytes of the [[…]] or [==[…]==] that begins here, or 0. */
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

/* Skips the comment that begins here. One that begins with --- and stands alone on its line is kept. */
static void take_comment(struct lexer *lex)
{
    struct str s = lex->rest;
    size_t n = long_bracket(str_from(s, 2));
    const char *newline = n ? NULL : memchr(s.at, '\n', s.len), *before = s.at;
    if (n)
        n += 2;
    else
        n = newline ? (size_t)(newline - s.at) : s.len;
    while (before > lex->begin && (before[-1] == ' ' || before[-1] == '\t'))
        before--;
    if (lex->comments && str_starts(s, "---") && (before == lex->begin || before[-1] == '\n')) {
        struct comments *c = lex->comments;
        struct str text = {s.at + 3, n - 3 - (n > 3 && s.at[n - 1] == '\r')};
        c->list = arena_grow(lex->arena, c->list, c->count, sizeof(*c->list));
        c->list[c->count++] = (struct token){TOKEN_STRING, text, lex->line};
    }
    take(lex, n);
}

static struct token next_token(struct lexer *lex)
{
    while (lex->rest.len && (is_space(lex->rest.at[0]) || str_starts(lex->rest, "--")))
        if (is_space(lex->rest.at[0]))
            take(lex, 1);
        else
            take_comment(lex);
    struct token t = {.line = lex->line};
    struct str s = lex->rest;
    size_t n = long_bracket(s);
    if (!s.len) {
        t.kind = TOKEN_END;
    } else if (n) {
        t.kind = TOKEN_STRING;
        t.text = take(lex, n);
    } else if (s.at[0] == '"' || s.at[0] == '\'') {
        t.kind = TOKEN_STRING;
        for (n = 1; n < s.len && s.at[n] != s.at[0] && s.at[n] != '\n';)
            n += s.at[n] == '\\' ? 2 : 1;
        t.text = take(lex, n + 1);
        t.text = t.text.len >= 2 ? (struct str){t.text.at + 1, t.text.len - 2} : STR_NONE;
    } else if (is_name_byte(s.at[0])) {
        t.kind = TOKEN_NAME;
        while (n < s.len && is_name_byte(s.at[n]))
            n++;
        t.text = take(lex, n);
    } else {
        t.kind = TOKEN_CHARACTER;
        t.text = take(lex, 1);
    }
    return t;
}

static const struct token *read_tokens(struct arena *arena, struct str source, struct comments *comments)
{
    struct lexer first = {source.at, source, 1, arena, NULL}, lex = first;
    size_t count = 0;
    while (next_token(&lex).kind != TOKEN_END)
        count++;
    struct token *t = ARENA_ARRAY(arena, struct token, 1 + count + LOOKAHEAD); /* TOKEN_END is 0 */
    lex = first;
    lex.comments = comments;
    for (size_t i = 1; i <= count + 1; i++) /* comments may follow the last token */
        t[i] = next_token(&lex);
    return t + 1;
}

const struct token *location_tokens(struct arena *arena, struct str source)
{
    return read_tokens(arena, source, NULL);
}

struct comments location_comments(struct arena *arena, struct str source)
{
    struct comments comments = {NULL, 0};
    read_tokens(arena, source, &comments);
    return comments;
}

bool token_is(struct token t, char c)
{
    return t.kind == TOKEN_CHARACTER && t.text.at[0] == c;
}

int token_depth(struct token t)
{
    return t.kind != TOKEN_CHARACTER     ? 0
           : strchr("{([", t.text.at[0]) ? 1
           : strchr("})]", t.text.at[0]) ? -1
                                         : 0;
}

/* ---- places ---- */

static bool is_name(struct token t, const char *name)
{
    return t.kind == TOKEN_NAME && str_is(t.text, name);
}

/* The index behind the `{` of tool "…" {, policy { or gateway {, and *name of a tool; 0: none exists. */
static size_t enter_declaration(const struct token *t, struct str *name)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++) {
        if (token_is((t + i)[-1], '.') || token_is((t + i)[-1], ':'))
            continue;
        struct token argument = t[i + 1 + token_is(t[i + 1], '(')];
        if (is_name(t[i], "tool") && argument.kind == TOKEN_STRING) {
            *name = argument.text;
            while (!token_is(t[i], '{') && t[i].kind != TOKEN_END)
                i++;
            return t[i].kind == TOKEN_END ? 0 : i + 1;
        }
        if ((is_name(t[i], "gateway") || is_name(t[i], "policy")) && token_is(t[i + 1], '{'))
            return i + 2;
    }
    return 0;
}

bool location_is_item(const struct token *t, size_t i)
{
    return t[i].kind != TOKEN_END && token_depth(t[i]) >= 0;
}

size_t location_next_item(const struct token *t, size_t i)
{
    for (int depth = 0; t[i].kind != TOKEN_END; i++) {
        if (depth == 0 && (token_is(t[i], ',') || token_is(t[i], ';')))
            return i + 1;
        if (depth + token_depth(t[i]) < 0)
            break;
        depth += token_depth(t[i]);
    }
    return i;
}

struct str location_field_name(const struct token *t, size_t *i)
{
    struct str name = t[*i].kind == TOKEN_NAME ? t[*i].text : STR_NONE;
    size_t sign = *i + 1;
    if (token_is(t[*i], '[') && t[*i + 1].kind == TOKEN_STRING && token_is(t[*i + 2], ']')) {
        name = t[*i + 1].text;
        sign = *i + 3;
    }
    if (!name.len || !token_is(t[sign], '=') || token_is(t[sign + 1], '='))
        return STR_NONE;
    *i = sign + 1;
    return name;
}

/* From inside a table: the index of the value of `name =` of this table; 0 if the table has none. */
static size_t find_field(const struct token *t, size_t i, struct str name)
{
    for (; location_is_item(t, i); i = location_next_item(t, i)) {
        struct str own = location_field_name(t, &i);
        if (own.len && str_eq(own, name))
            return i;
    }
    return 0;
}

/* The line of the name of the field with this value. */
static int line_of(const struct token *t, size_t value)
{
    return t[value - (token_is(t[value - 2], ']') ? 3 : 2)].line;
}

int location_of_tool(const struct token *t)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++)
        if (is_name(t[i], "tool") && (t[i + 1].kind == TOKEN_STRING || token_is(t[i + 1], '(')))
            return t[i].line;
    return 1;
}

int location_of_field(const struct token *t, const char *parent, struct str name)
{
    struct str tool;
    size_t at = enter_declaration(t, &tool);
    int line = 0;
    for (struct str rest = str_of(parent ? parent : ""); at && rest.len;) {
        at = find_field(t, at, str_split(&rest, '.'));
        line = at ? line_of(t, at) : line;
        at = at && token_is(t[at], '{') ? at + 1 : 0;
    }
    size_t inner = at ? find_field(t, at, name) : 0;
    return inner ? line_of(t, inner) : line;
}

/* From inside a table: sorts the names into the order of its fields; false if its fields are others. */
static bool match_fields(const struct token *t, size_t i, struct str *names, size_t count)
{
    size_t found = 0;
    for (; location_is_item(t, i); i = location_next_item(t, i)) {
        struct str name = location_field_name(t, &i);
        size_t at = found;
        if (!name.len)
            continue;
        while (at < count && !str_eq(names[at], name))
            at++;
        if (at == count)
            return false;
        struct str moved = names[found];
        names[found++] = names[at];
        names[at] = moved;
    }
    return found == count;
}

bool location_sort_fields(const struct token *t, int line, struct str *names, size_t count)
{
    bool found = false;
    for (int pass = 0; pass < 2 && !found; pass++) /* from that line on, then before it */
        for (size_t i = 0; t[i].kind != TOKEN_END && !found; i++)
            found = token_is(t[i], '{') && (t[i].line >= line) == (pass == 0) &&
                    match_fields(t, i + 1, names, count);
    return found;
}

const int *location_of_items(struct arena *arena, const struct token *t, const char *field, size_t count)
{
    struct str tool;
    int *lines = ARENA_ARRAY(arena, int, count);
    size_t i = enter_declaration(t, &tool), value = i ? find_field(t, i, str_of(field)) : 0, found = 0;
    bool is_list = value && token_is(t[value], '{');
    for (i = value + 1; is_list && found < count && location_is_item(t, i); i = location_next_item(t, i))
        lines[found++] = t[i].line;
    for (; value && found < count; found++)
        lines[found] = line_of(t, value);
    return lines;
}

bool location_has_access(const struct token *t, const char *name)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++)
        if (((t[i].kind == TOKEN_NAME && token_is((t + i)[-1], '.')) ||
             (t[i].kind == TOKEN_STRING && token_is((t + i)[-1], '['))) &&
            str_is(t[i].text, name))
            return true;
    return false;
}

static bool is_declared(const struct token *t, size_t i)
{
    return is_name((t + i)[-1], "local") || is_name((t + i)[-1], "function");
}

bool location_is_call(const struct token *t, size_t i, const char *word)
{
    return is_name(t[i], word) && !is_declared(t, i) && !token_is((t + i)[-1], '.') &&
           !token_is((t + i)[-1], ':');
}

bool location_redefines(const struct token *t, const char *word)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++) {
        if (!is_name(t[i], word))
            continue;
        bool assigned = token_is(t[i + 1], '=') && !token_is(t[i + 2], '=');
        bool field = token_is((t + i)[-1], '{') || token_is((t + i)[-1], ',') || token_is((t + i)[-1], ';') ||
                     token_is((t + i)[-1], '.');
        if (is_declared(t, i) || (assigned && !field))
            return true;
    }
    return false;
}

/* ---- fields that a table has twice ---- */

#define NESTING_MAX 256u /* more than Lua takes */

/* A field of a table, which is known by the index of its '{'. */
struct named_field {
    size_t table;
    struct str name;
    size_t at;
};

static int by_table_and_name(const void *a, const void *b)
{
    const struct named_field *left = a, *right = b;
    int order = left->table != right->table ? (left->table > right->table) - (left->table < right->table)
                                            : str_cmp(left->name, right->name);
    return order ? order : (left->at > right->at) - (left->at < right->at);
}

/* 1 and -1 also for the blocks of statements: what stands in a function in a table is no field of it. */
static int nesting(struct token t)
{
    static const char *const opening[] = {"function", "if", "do", "repeat"};
    if (t.kind != TOKEN_NAME)
        return token_depth(t);
    return STR_IS_ONE_OF(t.text, opening) ? 1 : str_is(t.text, "end") || str_is(t.text, "until") ? -1 : 0;
}

size_t location_repeated_fields(struct arena *arena, const struct token *t, struct repeated_field **out)
{
    size_t open[NESTING_MAX], depth = 0, count = 0, found = 0;
    struct named_field *fields = NULL;
    for (size_t i = 0; t[i].kind != TOKEN_END && depth < NESTING_MAX; i++) {
        const struct token *before = &t[i] - 1;
        bool begins = depth && token_is(t[open[depth - 1]], '{') &&
                      (token_is(*before, '{') || token_is(*before, ',') || token_is(*before, ';'));
        size_t value = i;
        struct str name = begins ? location_field_name(t, &value) : STR_NONE;
        if (name.len) {
            fields = arena_grow(arena, fields, count, sizeof(*fields));
            fields[count++] = (struct named_field){open[depth - 1], name, i};
        }
        int step = nesting(t[i]);
        if (step > 0)
            open[depth++] = i;
        else if (depth)
            depth += (size_t)step;
    }
    if (count)
        qsort(fields, count, sizeof(*fields), by_table_and_name);
    *out = NULL;
    for (size_t i = 1, first = 0; i < count; i++) {
        if (fields[i].table != fields[first].table || !str_eq(fields[i].name, fields[first].name)) {
            first = i;
            continue;
        }
        *out = arena_grow(arena, *out, found, sizeof(**out));
        (*out)[found++] =
            (struct repeated_field){fields[i].name, t[fields[i].at].line, t[fields[first].at].line};
    }
    return found;
}

struct str location_tool_name(const struct token *t)
{
    struct str name = STR_NONE;
    enter_declaration(t, &name);
    return name;
}

bool location_returns_declaration(const struct token *t)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++) {
        struct token argument = t[i + 2 + token_is(t[i + 2], '(')];
        if (is_name(t[i], "return") &&
            ((is_name(t[i + 1], "tool") && argument.kind == TOKEN_STRING) ||
             ((is_name(t[i + 1], "policy") || is_name(t[i + 1], "gateway")) && token_is(argument, '{'))))
            return true;
    }
    return false;
}

bool location_guards(const struct token *t, struct str *list, size_t most, size_t *count)
{
    struct str tool;
    size_t i = enter_declaration(t, &tool);
    if (!i || !is_name(t[i - 2], "policy"))
        return false;
    i = find_field(t, i, STR_LIT("tools"));
    bool one = i && t[i].kind == TOKEN_STRING, plain = i != 0;
    for (*count = 0; plain && !token_is(t[i], '}'); i++) { /* strings and nothing else, or it is computed */
        if (t[i].kind == TOKEN_STRING && *count < most)
            list[(*count)++] = t[i].text;
        else
            plain = token_is(t[i], '{') || token_is(t[i], ',') || token_is(t[i], ';');
        if (one)
            break;
    }
    if (!plain || !*count) {
        list[0] = STR_LIT("*");
        *count = 1;
    }
    return true;
}
