/*
 * How many tokens a model will see in a text, roughly: no tokenizer is asked,
 * since every model has its own. Meant to be within a third for English
 * prose, code and JSON, and rather too high than too low.
 */
#ifndef TOOLGATE_RESULT_TOKEN_ESTIMATE_H
#define TOOLGATE_RESULT_TOKEN_ESTIMATE_H

#include "base/str.h"

/* Never more than there are bytes. */
size_t token_estimate(struct str text);

#endif
