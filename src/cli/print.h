/* Prints values of a daemon to stdout, for people. */
#ifndef TOOLGATE_CLI_PRINT_H
#define TOOLGATE_CLI_PRINT_H

#include "json/value.h"

/* JSON text of one line, with JSON's own escapes for what a terminal would obey or hide. */
void print_json_text(struct str json);

/* An integer member; 0 if absent. */
int64_t print_number(const struct json *object, const char *key);

#endif
