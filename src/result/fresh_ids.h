/*
 * What differs in every answer although nothing else does: the id of what was made, and the time. A tool of
 * unknown effects may write, and a write that is repeated with the same arguments makes the same thing again
 * under another id: to loop detection two answers that differ only in ids and times are alike.
 */
#ifndef TOOLGATE_RESULT_FRESH_IDS_H
#define TOOLGATE_RESULT_FRESH_IDS_H

#include "json/value.h"

struct arena;

#define FRESH_DEPTH_MAX 4u /* levels of a value that are searched; what lies deeper is compared as it is */
#define FRESH_TOKEN_DIGITS                                                                                   \
    4u /* an id in a text has letters and at least so many digits: "ORD-20391", a uuid */
#define FRESH_NUMBER_DIGITS  8u    /* or digits alone, at least so many */
#define FRESH_TEXT_MAX_BYTES 2000u /* a longer text is data and compared as it is */

/* The value without members that hold an id or a time, and with those in texts replaced by "#"; the value
 * itself if it has none. */
const struct json *fresh_ids_without(struct arena *arena, const struct json *value);

#endif
