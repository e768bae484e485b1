/* Two definitions of a tool for people to compare: every difference whole, since what is shown is what they
 * accept. */
#ifndef TOOLGATE_CLI_PIN_DIFF_H
#define TOOLGATE_CLI_PIN_DIFF_H

#include "json/value.h"

/* Prints a line for each place that differs, "-" before the old text and "+" before the new one, escaped for
 * a terminal. `was` NULL: all of `now` is new. */
void pin_diff_print(const struct json *was, const struct json *now);

#endif
