/*
 * Roughly how many tokens a text is for a model. Every model has its own
 * tokenizer, so none is used. Within a third for English prose, code and JSON,
 * and rather too high than too low.
 */
#ifndef TOOLGATE_RESULT_TOKEN_ESTIMATE_H
#define TOOLGATE_RESULT_TOKEN_ESTIMATE_H

#include "base/str.h"

/* Never more than there are bytes. */
size_t token_estimate(struct str text);

#endif
