/*
 * What of a result does not make it a new one: times, dates, UUIDs, hex, and numbers that a member's name
 * calls a time, a duration or a request. Two results that differ in nothing else say the same.
 *
 * And fresh ids: a tool of unknown effects may write, and a write that is repeated with the same arguments
 * makes the same thing again under another id. To loop detection two of its answers that differ only in ids
 * and times are alike.
 */
#ifndef TOOLGATE_RESULT_RESULT_MASK_H
#define TOOLGATE_RESULT_RESULT_MASK_H

#include "base/hash.h"
#include "json/value.h"

#include <stdbool.h>

struct arena;
struct buf;

#define RESULT_MASK_HEX_CHARS 8u /* hex of fewer characters, or without a letter, is data */

/* Appends the text with "#" for each of these. `digits`: every other number, too, as of failures. Linear. */
void result_mask_text(struct buf *out, struct str text, bool digits);

/* Appends a text that two results share if and only if they say the same. A text that is JSON is read as
 * JSON. `scratch` is for that. */
void result_mask_write(struct buf *out, struct arena *scratch, const struct json *result, bool digits);

/* The hash that two errors share if they say the same: of the result, or without one (NULL) of the text. {0,
 * 0}: there is neither. */
struct hash128 result_mask_error(struct arena *arena, const struct json *result, struct str text);

#define FRESH_DEPTH_MAX 4u /* levels of a value that are searched; what lies deeper is compared as it is */
#define FRESH_TOKEN_DIGITS                                                                                   \
    4u /* an id in a text has letters and at least so many digits: "ORD-20391", a uuid */
#define FRESH_NUMBER_DIGITS  8u    /* or digits alone, at least so many */
#define FRESH_TEXT_MAX_BYTES 2000u /* a longer text is data and compared as it is */

/* The value without members that hold an id or a time, and with those in texts replaced by "#"; the value
 * itself if it has none. */
const struct json *fresh_ids_without(struct arena *arena, const struct json *value);

#endif
