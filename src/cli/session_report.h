/* A session for an operator: its calls, when they were made, and why they were refused. */
#ifndef TOOLGATE_CLI_SESSION_REPORT_H
#define TOOLGATE_CLI_SESSION_REPORT_H

#include "json/value.h"

/* Prints the result of toolgate/session to stdout. `id`: as the operator typed it. */
void session_report_print(const struct json *answer, const char *id);

#endif
