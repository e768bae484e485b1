/* Skips comments and white space, and counts lines. */
#include "sandbox/lexer.h"

static bool is_name(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(struct lexer *lex)
{
    size_t n = 0;
    for (; n < lex->rest.len && is_space(lex->rest.at[n]); n++)
        lex->line += lex->rest.at[n] == '\n';
    lex->rest = str_from(lex->rest, n);
}

struct str lexer_take(struct lexer *lex, size_t n)
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

void lexer_skip_comment(struct lexer *lex)
{
    struct str s = lex->rest;
    size_t n = long_bracket(str_from(s, 2));
    const char *newline = n ? NULL : memchr(s.at, '\n', s.len);
    if (n)
        n += 2;
    else
        n = newline ? (size_t)(newline - s.at) : s.len;
    lexer_take(lex, n);
}

struct token lexer_next(struct lexer *lex)
{
    for (;;)
        if (lex->rest.len && is_space(lex->rest.at[0]))
            skip_space(lex);
        else if (str_starts(lex->rest, "--"))
            lexer_skip_comment(lex);
        else
            break;
    struct token t = {.line = lex->line};
    struct str s = lex->rest;
    size_t n = long_bracket(s);
    if (!s.len) {
        t.kind = TOKEN_END;
    } else if (n) {
        t.kind = TOKEN_STRING;
        t.text = lexer_take(lex, n);
    } else if (s.at[0] == '"' || s.at[0] == '\'') {
        t.kind = TOKEN_STRING;
        for (n = 1; n < s.len && s.at[n] != s.at[0] && s.at[n] != '\n';)
            n += s.at[n] == '\\' ? 2 : 1;
        t.text = lexer_take(lex, n + 1);
        t.text = t.text.len >= 2 ? (struct str){t.text.at + 1, t.text.len - 2} : STR_NONE;
    } else if (is_name(s.at[0])) {
        t.kind = TOKEN_NAME;
        while (n < s.len && is_name(s.at[n]))
            n++;
        t.text = lexer_take(lex, n);
    } else {
        t.kind = TOKEN_CHARACTER;
        t.text = lexer_take(lex, 1);
    }
    return t;
}

struct lexer lexer_init(struct str source)
{
    return (struct lexer){source, 1};
}

bool lexer_token_is(struct token t, char c)
{
    return t.kind == TOKEN_CHARACTER && t.text.at[0] == c;
}

int lexer_token_depth(struct token t)
{
    return t.kind != TOKEN_CHARACTER     ? 0
           : strchr("{([", t.text.at[0]) ? 1
           : strchr("})]", t.text.at[0]) ? -1
                                         : 0;
}
