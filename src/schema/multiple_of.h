/* Exact arithmetic on numbers as they were written. */
#ifndef TOOLGATE_SCHEMA_MULTIPLE_OF_H
#define TOOLGATE_SCHEMA_MULTIPLE_OF_H

#include "json/value.h"

/* Whether v is a whole multiple of `divisor`, a number above 0: 19.99 is one of 0.01. Exact where the divisor
 * has at most 36 significant digits; beyond that, by the nearest doubles. */
bool multiple_of_holds(const struct json *v, const struct json *divisor);

#endif
