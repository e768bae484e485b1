/*
 * OpenAI's strict mode: every object closed, every property required (optional ones nullable), and only the
 * keywords that it accepts. The keywords that are dropped only validate values, which the gate does itself.
 */
#ifndef TOOLGATE_CATALOG_OPENAI_STRICT_H
#define TOOLGATE_CATALOG_OPENAI_STRICT_H

#include "base/err.h"
#include "json/value.h"

struct arena;

#define OPENAI_STRICT_NOTES_MAX 32u

/* What the translation changed, each with its place: "#/properties/note: may be null, as strict mode requires
 * every property". */
struct openai_strict_notes {
    struct str list[OPENAI_STRICT_NOTES_MAX];
    size_t count, more; /* more: those that did not fit */
};

/* ERR_SCHEMA: strict mode cannot express the schema; `why` names the place. The result shares memory with
 * `schema`. `notes` may be NULL. */
enum err openai_strict_schema(struct arena *arena, const struct json *schema, struct json *out,
                              struct openai_strict_notes *notes, struct why *why);

#endif
