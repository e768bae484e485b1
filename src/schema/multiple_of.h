/* Exact multipleOf on decimal literals. Internal to this room. */
#ifndef TOOLGATE_SCHEMA_MULTIPLE_OF_H
#define TOOLGATE_SCHEMA_MULTIPLE_OF_H

#include "json/value.h"

/* Whether v is an integer multiple of `divisor`, a number above 0: 19.99 of 0.01. Exact up to 36 significant
 * digits of the divisor; beyond that, by the nearest doubles. */
bool multiple_of_holds(const struct json *v, const struct json *divisor);

#endif
