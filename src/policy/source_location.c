/* Finds fields, items and comments in the source of a policy by its tokens. */
#include "policy/source_location.h"

#include "sandbox/lexer.h"

/* Moves behind the `{` of tool "…" {, policy { or gateway {, and sets *name if it is a tool and name is not
 * NULL. */
static bool enter_declaration(struct lexer *lex, struct str *name)
{
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(lex);
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(lex)) {
        if (t.kind != TOKEN_NAME || lexer_token_is(before, '.') || lexer_token_is(before, ':'))
            continue;
        struct lexer ahead = *lex;
        struct token one = lexer_next(&ahead), two = lexer_next(&ahead);
        bool parenthesis = lexer_token_is(one, '(');
        if (str_is(t.text, "tool") && (parenthesis ? two : one).kind == TOKEN_STRING) {
            if (name)
                *name = (parenthesis ? two : one).text;
            while (!lexer_token_is(t = lexer_next(lex), '{') && t.kind != TOKEN_END)
                continue;
            return t.kind != TOKEN_END;
        }
        if ((str_is(t.text, "gateway") || str_is(t.text, "policy")) && lexer_token_is(one, '{')) {
            lexer_next(lex);
            return true;
        }
    }
    return false;
}

/* Inside a table: moves behind `name =` of this table and returns its line; 0 if the table has none. */
static int find_field(struct lexer *lex, struct str name)
{
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(lex);
    for (int depth = 1; t.kind != TOKEN_END; before = t, t = lexer_next(lex)) {
        bool in_key = depth == 2 && lexer_token_is(before, '[') && t.kind == TOKEN_STRING;
        depth += lexer_token_depth(t);
        if (depth <= 0)
            return 0;
        if (!((depth == 1 && t.kind == TOKEN_NAME) || in_key) || !str_eq(t.text, name))
            continue;
        struct lexer ahead = *lex;
        struct token one = lexer_next(&ahead);
        if (in_key && lexer_token_is(one, ']'))
            one = lexer_next(&ahead);
        struct lexer after = ahead;
        if (!lexer_token_is(one, '=') || lexer_token_is(lexer_next(&after), '='))
            continue;
        *lex = ahead;
        return t.line;
    }
    return 0;
}

int location_of_field(struct str source, const char *parent, struct str name)
{
    struct lexer lex = lexer_init(source);
    if (!enter_declaration(&lex, NULL))
        return 0;
    if (!parent)
        return find_field(&lex, name);
    int line = 0;
    for (struct str rest = str_of(parent); rest.len;) {
        const char *dot = memchr(rest.at, '.', rest.len);
        size_t len = dot ? (size_t)(dot - rest.at) : rest.len;
        int found = find_field(&lex, (struct str){rest.at, len});
        line = found ? found : line;
        if (!found || !lexer_token_is(lexer_next(&lex), '{'))
            return line;
        rest = str_from(rest, len + 1);
    }
    int inner = find_field(&lex, name);
    return inner ? inner : line;
}

struct str location_field_name(struct lexer *lex, struct token t)
{
    struct lexer ahead = *lex;
    struct str name = t.kind == TOKEN_NAME ? t.text : STR_NONE;
    if (lexer_token_is(t, '[')) {
        struct token key = lexer_next(&ahead);
        if (key.kind == TOKEN_STRING && lexer_token_is(lexer_next(&ahead), ']'))
            name = key.text;
    }
    struct lexer behind = ahead;
    if (!name.len || !lexer_token_is(lexer_next(&behind), '='))
        return STR_NONE;
    *lex = behind;
    return lexer_token_is(lexer_next(&behind), '=') ? STR_NONE : name;
}

/* Inside a table: sorts the names into the order of its fields; false if its fields are others. */
static bool match_fields(struct lexer lex, struct str *names, size_t count)
{
    size_t found = 0;
    bool at_item = true;
    struct token t = lexer_next(&lex);
    for (int depth = 1; t.kind != TOKEN_END; t = lexer_next(&lex)) {
        struct str name = depth == 1 && at_item ? location_field_name(&lex, t) : STR_NONE;
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
        depth += lexer_token_depth(t);
        at_item = depth == 1 && (lexer_token_is(t, ',') || lexer_token_is(t, ';'));
        if (depth <= 0)
            break;
    }
    return found == count;
}

bool location_sort_fields(struct str source, int line, struct str *names, size_t count)
{
    for (int pass = 0; pass < 2; pass++) { /* from that line on, then before it */
        struct lexer lex = lexer_init(source);
        for (struct token t = lexer_next(&lex); t.kind != TOKEN_END; t = lexer_next(&lex))
            if (lexer_token_is(t, '{') && (t.line >= line) == (pass == 0) && match_fields(lex, names, count))
                return true;
    }
    return false;
}

struct location_items location_items_begin(struct str source, const char *field)
{
    struct location_items items = {.lex = lexer_init(source), .depth = 1, .at_item = true};
    items.line = enter_declaration(&items.lex, NULL) ? find_field(&items.lex, str_of(field)) : 0;
    items.ended = !items.line || !lexer_token_is(lexer_next(&items.lex), '{');
    return items;
}

int location_items_next(struct location_items *items)
{
    while (!items->ended) {
        struct token t = lexer_next(&items->lex);
        bool begins = items->depth == 1 && items->at_item && !lexer_token_is(t, '}');
        items->depth += lexer_token_depth(t);
        items->at_item = items->depth == 1 && (lexer_token_is(t, ',') || lexer_token_is(t, ';'));
        items->ended = items->depth <= 0 || t.kind == TOKEN_END;
        if (begins && t.kind != TOKEN_END)
            return t.line;
    }
    return items->line;
}

int location_of_item(struct str source, const char *field, size_t n)
{
    struct location_items items = location_items_begin(source, field);
    int line = items.line;
    for (size_t i = 0; i <= n && !items.ended; i++)
        line = location_items_next(&items);
    return line;
}

bool location_has_access(struct str source, const char *name)
{
    struct lexer lex = lexer_init(source);
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(&lex);
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(&lex))
        if ((t.kind == TOKEN_NAME && lexer_token_is(before, '.') && str_is(t.text, name)) ||
            (t.kind == TOKEN_STRING && lexer_token_is(before, '[') && str_is(t.text, name)))
            return true;
    return false;
}

bool location_is_call(struct token before, struct token t, const char *word)
{
    bool declares =
        before.kind == TOKEN_NAME && (str_is(before.text, "local") || str_is(before.text, "function"));
    return t.kind == TOKEN_NAME && str_is(t.text, word) && !declares && !lexer_token_is(before, '.') &&
           !lexer_token_is(before, ':');
}

bool location_redefines(struct str source, const char *word)
{
    struct lexer lex = lexer_init(source);
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(&lex);
    if (!memmem(source.at, source.len, word, strlen(word)))
        return false;
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(&lex)) {
        if (t.kind != TOKEN_NAME || !str_is(t.text, word))
            continue;
        struct lexer ahead = lex, behind;
        struct token one = lexer_next(&ahead);
        behind = ahead;
        bool assigned = lexer_token_is(one, '=') && !lexer_token_is(lexer_next(&behind), '=');
        bool local =
            before.kind == TOKEN_NAME && (str_is(before.text, "local") || str_is(before.text, "function"));
        bool field = lexer_token_is(before, '{') || lexer_token_is(before, ',') ||
                     lexer_token_is(before, ';') || lexer_token_is(before, '.');
        if (local || (assigned && !field))
            return true;
    }
    return false;
}

struct str location_tool_name(struct str source)
{
    struct lexer lex = lexer_init(source);
    struct str name = STR_NONE;
    enter_declaration(&lex, &name);
    return name;
}

/* The strings of a list that holds nothing else, the lexer being behind its `=`. False: it is computed. */
static bool read_strings(struct lexer *lex, struct str *list, size_t most, size_t *count)
{
    struct token t = lexer_next(lex);
    bool one = t.kind == TOKEN_STRING;
    for (*count = 0; one || !lexer_token_is(t, '}'); t = lexer_next(lex)) {
        if (t.kind == TOKEN_STRING && *count < most)
            list[(*count)++] = t.text;
        else if (!(lexer_token_is(t, '{') || lexer_token_is(t, ',') || lexer_token_is(t, ';')))
            return false;
        if (one)
            break;
    }
    return *count > 0;
}

bool location_guards(struct str source, struct str *list, size_t most, size_t *count)
{
    struct lexer lex = lexer_init(source);
    struct token t = lexer_next(&lex), next = lexer_next(&lex);
    while (next.kind != TOKEN_END && !(str_is(t.text, "policy") && lexer_token_is(next, '{'))) {
        t = next;
        next = lexer_next(&lex);
    }
    if (next.kind == TOKEN_END)
        return false;
    if (!find_field(&lex, STR_LIT("tools")) || !read_strings(&lex, list, most, count)) {
        list[0] = STR_LIT("*");
        *count = 1;
    }
    return true;
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

void location_parameters(struct str source, int line, struct str *first, struct str *second)
{
    struct lexer lex = lexer_init(source);
    struct token t = lexer_next(&lex);
    *first = *second = STR_NONE;
    while (t.kind != TOKEN_END && !(t.line >= line && t.kind == TOKEN_NAME && str_is(t.text, "function")))
        t = lexer_next(&lex);
    while (t.kind != TOKEN_END && !lexer_token_is(t, '('))
        t = lexer_next(&lex);
    struct token one = lexer_next(&lex), comma = lexer_next(&lex), two = lexer_next(&lex);
    if (one.kind == TOKEN_NAME)
        *first = one.text;
    if (one.kind == TOKEN_NAME && lexer_token_is(comma, ',') && two.kind == TOKEN_NAME)
        *second = two.text;
}
