/* Prints results of the daemon to stdout, for people. */
#ifndef TOOLGATE_CLI_PRINT_H
#define TOOLGATE_CLI_PRINT_H

#include "json/value.h"

/* JSON text of one line, with JSON's own escapes for what a terminal would obey or hide. */
void print_json_text(struct str json);

/* Any value as JSON on one line. */
void print_json_line(const struct json *value);

/* An integer member; 0 if absent. */
int64_t print_number(const struct json *object, const char *key);

/* MCP content blocks: text as it is, anything else in brackets. */
void print_content(const struct json *content);

/* The result of toolgate/check: the verdict, its stages if `trace`, the repairs, what the model reads. */
void print_check(struct str tool, const struct json *answer, bool trace);

/* CLI_OK if the verdict is pass, else CLI_NO. */
int print_exit_code(const struct json *verdict);

#endif
