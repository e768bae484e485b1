/* Answers of the gate as a person wants to read them, on stdout. */
#ifndef TOOLGATE_CLI_VERDICT_PRINT_H
#define TOOLGATE_CLI_VERDICT_PRINT_H

#include "json/value.h"

/* The value on one line. */
void show_json(const struct json *value);

/* Any object as indented "key: value" lines; counters on one line, those at zero left out. */
void show_tree(const struct json *value, int indent);

/* One member of such an object. */
void show_member(const struct json_member *member, int indent);

/* MCP content blocks: texts as they are, anything else in brackets. */
void show_content(const struct json *content);

/* What toolgate/check answers: the verdict, its stages if `trace`, what was mended, what the model reads. */
void show_check(struct str tool, const struct json *answer, bool trace);

/* CLI_OK where the verdict is pass, else CLI_NO. */
int show_exit_code(const struct json *verdict);

#endif
