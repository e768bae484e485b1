/*
 * OpenAI's strict mode: every object closed, every property required (optional ones nullable), and only the
 * keywords that it accepts. The keywords that are dropped only validate values, which the gate does itself.
 */
#ifndef TOOLGATE_CATALOG_OPENAI_STRICT_H
#define TOOLGATE_CATALOG_OPENAI_STRICT_H

#include "base/err.h"
#include "json/value.h"

struct arena;

/* ERR_SCHEMA: strict mode cannot express the schema; `why` names the place. The result shares memory with
 * `schema`. */
enum err openai_strict_schema(struct arena *arena, const struct json *schema, struct json *out,
                              struct why *why);

#endif
