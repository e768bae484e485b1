/* Answers of the gate as a person wants to read them, on stdout. */
#ifndef TOOLGATE_CLI_PRINT_H
#define TOOLGATE_CLI_PRINT_H

#include "json/value.h"

/* The value on one line. */
void print_json_line(const struct json *value);

/* Any object as indented "key: value" lines; counters on one line, those at zero left out. */
void print_tree(const struct json *value, int indent);

/* One member of such an object. */
void print_member(const struct json_member *member, int indent);

/* MCP content blocks: texts as they are, anything else in brackets. */
void print_content(const struct json *content);

/* What toolgate/check answers: the verdict, its stages if `trace`, what was mended, what the model reads. */
void print_check(struct str tool, const struct json *answer, bool trace);

/* CLI_OK where the verdict is pass, else CLI_NO. */
int print_exit_code(const struct json *verdict);

#endif
