/*
 * The tokens of a policy's source: names (including numbers), strings, and
 * single characters. There is no parser: callers search for token sequences
 * that are unambiguous.
 */
#ifndef TOOLGATE_SANDBOX_LEXER_H
#define TOOLGATE_SANDBOX_LEXER_H

#include "base/str.h"

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_STRING, TOKEN_CHARACTER };

struct token {
    enum token_kind kind;
    struct str text; /* of a string: without quotes, escapes not decoded */
    int line;
};

struct lexer {
    struct str rest;
    int line;
};

struct lexer lexer_init(struct str source);
struct token lexer_next(struct lexer *lex);

/* For reading comments: takes the next n bytes; skips the comment at the current position. */
struct str lexer_take(struct lexer *lex, size_t n);
void lexer_skip_comment(struct lexer *lex);

bool lexer_token_is(struct token t, char sign);

/* 1 for an opening bracket, -1 for a closing one, 0 for any other token. */
int lexer_token_depth(struct token t);

#endif
