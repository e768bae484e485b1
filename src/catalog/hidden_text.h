/*
 * Hidden characters in what a server says of its tools: zero-width, bidirectional and tag characters, which a
 * person who reviews the definition does not see and a model reads. Descriptions lose them; a name or an
 * allowed value that has any cannot be repaired without a change of its meaning, and its tool is left out.
 */
#ifndef TOOLGATE_CATALOG_HIDDEN_TEXT_H
#define TOOLGATE_CATALOG_HIDDEN_TEXT_H

#include "json/value.h"

struct arena;

struct hidden_text {
    size_t removed;      /* characters */
    const char *refused; /* what has them: "a parameter's name"; NULL: nothing that cannot be repaired */
};

/* The definition itself if nothing is removed, else a copy. */
const struct json *hidden_text_strip(struct arena *arena, const struct json *definition,
                                     struct hidden_text *found);

#endif
