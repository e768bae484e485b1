/*
 * The last part of toolgate status: one line for each thing that somebody should look at.
 */
#ifndef TOOLGATE_CLI_STATUS_ATTENTION_H
#define TOOLGATE_CLI_STATUS_ATTENTION_H

#include "json/value.h"

/* Prints nothing if there is nothing. */
void status_print_attention(const struct json *answer);

#endif
