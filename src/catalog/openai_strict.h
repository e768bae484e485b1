/*
 * OpenAI's strict mode: every object closed, every property required (the
 * optional ones nullable), and only the keywords that it takes. What is
 * dropped on the way only checked values, and the gate checks them itself.
 */
#ifndef TOOLGATE_CATALOG_OPENAI_STRICT_H
#define TOOLGATE_CATALOG_OPENAI_STRICT_H

#include "base/err.h"
#include "json/value.h"

struct arena;

/* ERR_SCHEMA where a schema says something that strict mode cannot, such as a free-form object; `why` names
 * the place. Shares with `schema` whatever it did not touch. */
enum err openai_strict_schema(struct arena *arena, const struct json *schema, struct json *out,
                              struct why *why);

#endif
