/*
 * What is pinned of a tool's definition: the members that clients see, in their canonical form, from the
 * bytes that the server sent, so that a hidden character or a changed order of words is another definition.
 */
#ifndef TOOLGATE_PINS_PIN_DEFINITION_H
#define TOOLGATE_PINS_PIN_DEFINITION_H

#include "json/value.h"

struct arena;

#define PIN_DIGEST_DIGITS                                                                                    \
    32u /* hex: half of SHA-256, so that nobody finds two definitions with one digest                        \
         */

struct pin_digest {
    char hex[PIN_DIGEST_DIGITS + 1];
};

/* The canonical text, in the arena. `definition`: an object. */
struct str pin_definition_text(struct arena *arena, const struct json *definition);

struct pin_digest pin_digest_of(struct str text);

static inline bool pin_digest_equal(const struct pin_digest *a, const struct pin_digest *b)
{
    return memcmp(a->hex, b->hex, PIN_DIGEST_DIGITS) == 0;
}

#endif
