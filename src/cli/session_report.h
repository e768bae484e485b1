/* A session as a person who was called out of bed reads it: what it did, when, and why it was refused. */
#ifndef TOOLGATE_CLI_SESSION_REPORT_H
#define TOOLGATE_CLI_SESSION_REPORT_H

#include "json/value.h"

/* `answer`: of toolgate/session. `id`: as the person spelled it, for the command that lets a tool go on. */
void session_report_print(const struct json *answer, const char *id);

#endif
