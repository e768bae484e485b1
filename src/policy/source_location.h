/* Lines in the source of a policy: Lua tables remember none, and every error names one. Sequences of tokens
 * are searched, nothing is parsed; what is not certain has line 0. */
#ifndef TOOLGATE_POLICY_SOURCE_LOCATION_H
#define TOOLGATE_POLICY_SOURCE_LOCATION_H

#include "base/str.h"

struct arena;

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_STRING, TOKEN_CHARACTER };

struct token {
    enum token_kind kind; /* a number is a name */
    struct str text;      /* of a string: without quotes, escapes not decoded */
    int line;
};

bool token_is(struct token t, char sign);
int token_depth(struct token t); /* 1 for an opening bracket, -1 for a closing one, 0 for any other token */

/* All tokens of a source, in the arena. At least one precedes the first, and several TOKEN_END follow the
 * last, so that t[i - 1] and t[i + 4] exist for each. */
const struct token *location_tokens(struct arena *arena, struct str source);

int location_of_tool(const struct token *t); /* the line of tool "…" {; 1 if unknown */

/* The line of `name = …` in the table of tool "…" { … }, or in that of its field `parent` ("loop.poll"; NULL:
 * the tool's own). */
int location_of_field(const struct token *t, const char *parent, struct str name);

/* Sorts the names of fields into their order in the source: that of the first table from the line on, else of
 * the file, that has exactly these fields. False if none exists. */
bool location_sort_fields(const struct token *t, int line, struct str *names, size_t count);

/* The lines of the first `count` items of the list in that field of the tool; the line of the field for each
 * that is not found. */
const int *location_of_items(struct arena *arena, const struct token *t, const char *field, size_t count);

bool location_has_access(const struct token *t, const char *name); /* .name or ["name"] */

struct str location_tool_name(const struct token *t); /* in tool "…" {, or STR_NONE */

bool location_returns_declaration(const struct token *t); /* return tool "…", policy { … } or gateway { … } */

/* The names and globs in policy { tools = { … } }, or "*" if they are computed; false: it is no such policy.
 * `most` is at least 1. */
bool location_guards(const struct token *t, struct str *list, size_t most, size_t *count);

/* The comments that begin with ---, each alone on its line: the text behind the ---. */
struct comments {
    struct token *list;
    size_t count;
};
struct comments location_comments(struct arena *arena, struct str source);

/* t[i] is a call of the word: no field, method, local or parameter of that name. */
bool location_is_call(const struct token *t, size_t i, const char *word);

/* The policy gives the word another meaning, so its calls are not checked. */
bool location_redefines(const struct token *t, const char *word);

/* From an item of a table on: the next one, behind a ',' or ';'. It is none at the table's end. */
size_t location_next_item(const struct token *t, size_t i);
bool location_is_item(const struct token *t, size_t i);

/* The fields that one table of the source has more than once, of which only the last one counts: each later
 * one, in the order of the source. Lua itself keeps silent about them. */
struct repeated_field {
    struct str name;
    int line, first; /* its own line, and that of the first */
};
#define REPEATED_FIELD                                                                                       \
    "'" STR_FMT "' is given twice in one table, first on line %d: only this one would count; remove one of " \
    "the two"
size_t location_repeated_fields(struct arena *arena, const struct token *t, struct repeated_field **out);

/* The name of a field that begins at t[*i], `name =` or `["name"] =`; then *i is the value's first token.
 * STR_NONE: none begins here. */
struct str location_field_name(const struct token *t, size_t *i);

#endif
