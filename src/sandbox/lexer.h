/*
 * The tokens of a policy's text: names (numbers too), texts, and single
 * characters. No parser: whoever asks looks for forms that it can be sure
 * of. Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_LEXER_H
#define TOOLGATE_SANDBOX_LEXER_H

#include "base/str.h"

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_STRING, TOKEN_SIGN };

struct token {
    enum token_kind kind;
    struct str text; /* of a text: without its quotes, escapes as they are written */
    int line;
};

struct lexer {
    struct str rest;
    int line;
};

struct lexer lexer_init(struct str source);
struct token lexer_next(struct lexer *lex);

/* For who reads comments: the next n bytes; and a comment, which the lexer is at. */
struct str lexer_take(struct lexer *lex, size_t n);
void lexer_skip_comment(struct lexer *lex);

bool lexer_token_is(struct token t, char sign);

/* 1 for what opens a bracket, -1 for what closes one. */
int lexer_token_depth(struct token t);

#endif
