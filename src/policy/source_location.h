/*
 * Lines in the source of a policy: Lua tables remember none, and every error
 * names one. This is a lexer, no parser; if it is not certain, it returns 0.
 * Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_SOURCE_LOCATION_H
#define TOOLGATE_POLICY_SOURCE_LOCATION_H

#include "base/str.h"
#include "sandbox/lexer.h"

/* The line of `name = …` in the table of tool "…" { … }, or in that of its field `parent` ("loop.poll"; NULL:
 * the tool's own). */
int location_of_field(struct str source, const char *parent, struct str name);

/* Sorts the names of fields into their order in the source: that of the first table from the line on, else of
 * the file, that has exactly these fields. False if there is none. */
bool location_sort_fields(struct str source, int line, struct str *names, size_t count);

/* The line of the n-th item (from 0) of the list in that field. */
int location_of_item(struct str source, const char *field, size_t n);

/* The same for one item after the other; the line of the field where its value is no list. */
struct location_items {
    struct lexer lex;
    int line, depth;
    bool at_item, ended;
};
struct location_items location_items_begin(struct str source, const char *field);
int location_items_next(struct location_items *items);

/* The source has `.name` or `["name"]` outside of comments. */
bool location_has_access(struct str source, const char *name);

/* The name in tool "…" {, or STR_NONE. */
struct str location_tool_name(struct str source);

/* The names and globs in policy { tools = { … } }, or "*" if they are computed; false: it is no such policy.
 * `most` is at least 1. */
bool location_guards(struct str source, struct str *list, size_t most, size_t *count);

/* The names of the first two parameters of the function that begins on that line; empty if it has fewer. */
void location_parameters(struct str source, int line, struct str *first, struct str *second);

/* Comments that begin with ---, each alone on its line. Begin with { source, source, 1 }. */
struct doc_comments {
    struct str source, rest;
    int line;
};

/* The text behind the --- and its line; false after the last. */
bool doc_comments_next(struct doc_comments *comments, struct str *text, int *line);

/* The token is a call of the word: no field, method, local or parameter of that name. */
bool location_is_call(struct token before, struct token t, const char *word);

/* The policy gives the word another meaning, so its calls are not checked. */
bool location_redefines(struct str source, const char *word);

/* The name of a field that begins at this token, `name =` or `["name"] =`, and the lexer behind it; STR_NONE:
 * none begins here. */
struct str location_field_name(struct lexer *lex, struct token t);

#endif
