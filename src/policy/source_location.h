/*
 * Where in a policy's text something stands: Lua tables remember no lines, and
 * an error without one sends the operator searching. A light lexer, no parser:
 * where it cannot tell it says 0. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_SOURCE_LOCATION_H
#define TOOLGATE_POLICY_SOURCE_LOCATION_H

#include "base/str.h"

/* The line of `name = …` in the table of tool "…" { … }; with a parent, in the table that the parent's field
 * holds. `parent` and `name` as "" and NULL: no parent. */
int location_of_field(struct str source, const char *parent, struct str name);

/* Puts the names of fields into the order in which the text has them: the first table from that line on, else
 * of the file, that has exactly these. False where there is none. */
bool location_sort_fields(struct str source, int line, struct str *names, size_t count);

/* The line where the n-th item (from 0) of the list in that field begins. */
int location_of_item(struct str source, const char *field, size_t n);

/* Is there `.name` or `["name"]` outside of comments. */
bool location_has_access(struct str source, const char *name);

/* The name in tool "…" {, or STR_NONE. */
struct str location_tool_name(struct str source);

/* Comments that begin with ---, each alone on its line, one after the other. */
struct doc_comments {
    struct str source, rest;
    int line;
};
struct doc_comments doc_comments_init(struct str source);

/* The text behind the --- and its line; false where there are no more. */
bool doc_comments_next(struct doc_comments *remarks, struct str *text, int *line);

/* The names of the first two parameters of the function that begins on that line; empty where it has fewer.
 */
void location_parameters(struct str source, int line, struct str *first, struct str *second);

#endif
