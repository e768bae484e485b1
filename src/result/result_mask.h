/*
 * What of a result does not make it a new one: times, dates, UUIDs, hex, and numbers that a member's name
 * calls a time, a duration or a request. Two results that differ in nothing else say the same.
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

#endif
