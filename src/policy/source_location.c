/* Finds fields, items and comments in the source of a policy by its tokens. */
#include "policy/source_location.h"

#include "base/arena.h"

#define LOOKAHEAD 5u

const struct token *location_tokens(struct arena *arena, struct str source)
{
    struct lexer lex = lexer_init(source);
    size_t count = 0;
    while (lexer_next(&lex).kind != TOKEN_END)
        count++;
    struct token *t = ARENA_ARRAY(arena, struct token, 1 + count + LOOKAHEAD); /* TOKEN_END is 0 */
    lex = lexer_init(source);
    for (size_t i = 1; i <= count; i++)
        t[i] = lexer_next(&lex);
    return t + 1;
}

static bool is_name(struct token t, const char *name)
{
    return t.kind == TOKEN_NAME && str_is(t.text, name);
}

/* The index behind the `{` of tool "…" {, policy { or gateway {, and *name if it is a tool; 0: there is none.
 */
static size_t enter_declaration(const struct token *t, struct str *name)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++) {
        if (lexer_token_is(t[i - 1], '.') || lexer_token_is(t[i - 1], ':'))
            continue;
        struct token argument = t[i + 1 + lexer_token_is(t[i + 1], '(')];
        if (is_name(t[i], "tool") && argument.kind == TOKEN_STRING) {
            *name = argument.text;
            while (!lexer_token_is(t[i], '{') && t[i].kind != TOKEN_END)
                i++;
            return t[i].kind == TOKEN_END ? 0 : i + 1;
        }
        if ((is_name(t[i], "gateway") || is_name(t[i], "policy")) && lexer_token_is(t[i + 1], '{'))
            return i + 2;
    }
    return 0;
}

/* From inside a table: the index of the value of `name =` of this table; 0 if the table has none. */
static size_t find_field(const struct token *t, size_t i, struct str name)
{
    for (int depth = 1; t[i].kind != TOKEN_END; i++) {
        bool in_key = depth == 2 && lexer_token_is(t[i - 1], '[') && t[i].kind == TOKEN_STRING;
        depth += lexer_token_depth(t[i]);
        if (depth <= 0)
            return 0;
        if (!((depth == 1 && t[i].kind == TOKEN_NAME) || in_key) || !str_eq(t[i].text, name))
            continue;
        size_t sign = i + 1 + (in_key && lexer_token_is(t[i + 1], ']'));
        if (lexer_token_is(t[sign], '=') && !lexer_token_is(t[sign + 1], '='))
            return sign + 1;
    }
    return 0;
}

/* The line of the name of the field with this value. */
static int line_of(const struct token *t, size_t value)
{
    return t[value - (lexer_token_is(t[value - 2], ']') ? 3 : 2)].line;
}

int location_of_tool(const struct token *t)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++)
        if (is_name(t[i], "tool") && (t[i + 1].kind == TOKEN_STRING || lexer_token_is(t[i + 1], '(')))
            return t[i].line;
    return 1;
}

int location_of_field(const struct token *t, const char *parent, struct str name)
{
    struct str tool;
    size_t at = enter_declaration(t, &tool);
    int line = 0;
    for (struct str rest = str_of(parent ? parent : ""); at && rest.len;) {
        const char *dot = memchr(rest.at, '.', rest.len);
        size_t len = dot ? (size_t)(dot - rest.at) : rest.len;
        at = find_field(t, at, (struct str){rest.at, len});
        line = at ? line_of(t, at) : line;
        at = at && lexer_token_is(t[at], '{') ? at + 1 : 0;
        rest = str_from(rest, len + 1);
    }
    size_t inner = at ? find_field(t, at, name) : 0;
    return inner ? line_of(t, inner) : line;
}

struct str location_field_name(const struct token *t, size_t *i)
{
    struct str name = t[*i].kind == TOKEN_NAME ? t[*i].text : STR_NONE;
    size_t sign = *i + 1;
    if (lexer_token_is(t[*i], '[') && t[*i + 1].kind == TOKEN_STRING && lexer_token_is(t[*i + 2], ']')) {
        name = t[*i + 1].text;
        sign = *i + 3;
    }
    if (!name.len || !lexer_token_is(t[sign], '=') || lexer_token_is(t[sign + 1], '='))
        return STR_NONE;
    *i = sign + 1;
    return name;
}

/* From inside a table: sorts the names into the order of its fields; false if its fields are others. */
static bool match_fields(const struct token *t, size_t i, struct str *names, size_t count)
{
    size_t found = 0;
    bool at_item = true;
    for (int depth = 1; depth > 0 && t[i].kind != TOKEN_END;) {
        struct str name = depth == 1 && at_item ? location_field_name(t, &i) : STR_NONE;
        if (name.len) {
            size_t at = found;
            while (at < count && !str_eq(names[at], name))
                at++;
            if (at == count)
                return false;
            struct str moved = names[found];
            names[found++] = names[at];
            names[at] = moved;
            at_item = false;
            continue;
        }
        depth += lexer_token_depth(t[i]);
        at_item = depth == 1 && (lexer_token_is(t[i], ',') || lexer_token_is(t[i], ';'));
        i++;
    }
    return found == count;
}

bool location_sort_fields(struct str source, int line, struct str *names, size_t count)
{
    struct arena *arena = arena_new();
    const struct token *t = location_tokens(arena, source);
    bool found = false;
    for (int pass = 0; pass < 2 && !found; pass++) /* from that line on, then before it */
        for (size_t i = 0; t[i].kind != TOKEN_END && !found; i++)
            found = lexer_token_is(t[i], '{') && (t[i].line >= line) == (pass == 0) &&
                    match_fields(t, i + 1, names, count);
    arena_free(arena);
    return found;
}

const int *location_of_items(struct arena *arena, const struct token *t, const char *field, size_t count)
{
    struct str tool;
    int *lines = ARENA_ARRAY(arena, int, count);
    size_t i = enter_declaration(t, &tool), value = i ? find_field(t, i, str_of(field)) : 0, found = 0;
    bool at_item = true;
    for (i = 0; value && i < count; i++)
        lines[i] = line_of(t, value);
    if (!value || !lexer_token_is(t[value], '{'))
        return lines;
    int depth = 1;
    for (i = value + 1; depth > 0 && found < count && t[i].kind != TOKEN_END; i++) {
        if (depth == 1 && at_item && !lexer_token_is(t[i], '}'))
            lines[found++] = t[i].line;
        depth += lexer_token_depth(t[i]);
        at_item = depth == 1 && (lexer_token_is(t[i], ',') || lexer_token_is(t[i], ';'));
    }
    return lines;
}

bool location_has_access(const struct token *t, const char *name)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++)
        if (((t[i].kind == TOKEN_NAME && lexer_token_is(t[i - 1], '.')) ||
             (t[i].kind == TOKEN_STRING && lexer_token_is(t[i - 1], '['))) &&
            str_is(t[i].text, name))
            return true;
    return false;
}

static bool is_declared(const struct token *t, size_t i)
{
    return is_name(t[i - 1], "local") || is_name(t[i - 1], "function");
}

bool location_is_call(const struct token *t, size_t i, const char *word)
{
    return is_name(t[i], word) && !is_declared(t, i) && !lexer_token_is(t[i - 1], '.') &&
           !lexer_token_is(t[i - 1], ':');
}

bool location_redefines(const struct token *t, const char *word)
{
    for (size_t i = 0; t[i].kind != TOKEN_END; i++) {
        if (!is_name(t[i], word))
            continue;
        bool assigned = lexer_token_is(t[i + 1], '=') && !lexer_token_is(t[i + 2], '=');
        bool field = lexer_token_is(t[i - 1], '{') || lexer_token_is(t[i - 1], ',') ||
                     lexer_token_is(t[i - 1], ';') || lexer_token_is(t[i - 1], '.');
        if (is_declared(t, i) || (assigned && !field))
            return true;
    }
    return false;
}

struct str location_tool_name(const struct token *t)
{
    struct str name = STR_NONE;
    enter_declaration(t, &name);
    return name;
}

bool location_guards(const struct token *t, struct str *list, size_t most, size_t *count)
{
    size_t i = 0;
    while (t[i].kind != TOKEN_END && !(is_name(t[i], "policy") && lexer_token_is(t[i + 1], '{')))
        i++;
    if (t[i].kind == TOKEN_END)
        return false;
    i = find_field(t, i + 2, STR_LIT("tools"));
    bool one = i && t[i].kind == TOKEN_STRING, plain = i != 0;
    for (*count = 0; plain && !lexer_token_is(t[i], '}');
         i++) { /* strings and nothing else, or it is computed */
        if (t[i].kind == TOKEN_STRING && *count < most)
            list[(*count)++] = t[i].text;
        else
            plain = lexer_token_is(t[i], '{') || lexer_token_is(t[i], ',') || lexer_token_is(t[i], ';');
        if (one)
            break;
    }
    if (!plain || !*count) {
        list[0] = STR_LIT("*");
        *count = 1;
    }
    return true;
}

void location_parameters(const struct token *t, int line, struct str *first, struct str *second)
{
    size_t i = 0;
    *first = *second = STR_NONE;
    while (t[i].kind != TOKEN_END && !(t[i].line >= line && is_name(t[i], "function")))
        i++;
    while (t[i].kind != TOKEN_END && !lexer_token_is(t[i], '('))
        i++;
    if (t[i].kind == TOKEN_END || t[i + 1].kind != TOKEN_NAME)
        return;
    *first = t[i + 1].text;
    if (lexer_token_is(t[i + 2], ',') && t[i + 3].kind == TOKEN_NAME)
        *second = t[i + 3].text;
}

bool doc_comments_next(struct doc_comments *comments, struct str *text, int *line)
{
    struct lexer lex = {comments->rest, comments->line};
    bool found = false, end = false;
    while (!found && !end) {
        struct str s = lex.rest;
        if (s.len && strchr(" \t\r\n\f\v", s.at[0])) {
            lexer_take(&lex, 1);
            continue;
        }
        const char *before = s.at;
        while (before > comments->source.at && (before[-1] == ' ' || before[-1] == '\t'))
            before--;
        found = str_starts(s, "---") && (before == comments->source.at || before[-1] == '\n');
        if (found) {
            struct str rest = str_from(s, 3);
            const char *newline = rest.len ? memchr(rest.at, '\n', rest.len) : NULL;
            size_t len = newline ? (size_t)(newline - rest.at) : rest.len;
            *text = (struct str){rest.at, len && rest.at[len - 1] == '\r' ? len - 1 : len};
            *line = lex.line;
        }
        if (str_starts(s, "--"))
            lexer_skip_comment(&lex);
        else
            end = lexer_next(&lex).kind == TOKEN_END;
    }
    *comments = (struct doc_comments){comments->source, lex.rest, lex.line};
    return found;
}
