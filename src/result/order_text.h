/*
 * Finds orders to the model in foreign text: "ignore all previous instructions", "do not tell the user", the
 * tags of a chat template. A list of phrases, each with a name; one pass over the text. It knows the usual
 * wordings in English and no others: a marker for people and models, never proof that a text is harmless.
 */
#ifndef TOOLGATE_RESULT_ORDER_TEXT_H
#define TOOLGATE_RESULT_ORDER_TEXT_H

#include "base/str.h"

/* The first order at or after `from`, in text[*at], *len bytes long; `name` is the phrase's, such as
 * "ignore_previous". False: there is none. */
bool order_text_find(struct str text, size_t from, size_t *at, size_t *len, struct str *name);

#endif
