/*
 * Masks secrets for the decision log. A value is secret by its name (the globs of the configuration, a
 * policy's `redact`, a schema's writeOnly or format password) or by its form (API keys, tokens, password= in
 * free text: result/secret_text.h). A masked value is written nowhere in the record: texts that quote it are
 * masked, too.
 *
 * Most values hold no secret: one walk without any allocation tells.
 */
#ifndef TOOLGATE_GATE_DECISION_MASK_H
#define TOOLGATE_GATE_DECISION_MASK_H

#include "json/value.h"

struct arena;
struct decision_mask;
struct tool;

#define REDACTED_TAGGED "[redacted " /* of a value: "[redacted 3f9a1c]" */

/* `names` are borrowed. Names are compared without case, '_' and '-'. `key`, of SIPHASH_KEY_BYTES, of the
 * tags that tell masked values apart; it lives as long as the mask. */
struct decision_mask *decision_mask_new(const struct str *names, size_t count, const uint8_t *key);
void decision_mask_free(struct decision_mask *mask); /* NULL is allowed */

/* Nothing in the arguments is masked. */
bool decision_mask_is_clean(struct decision_mask *mask, const struct tool *tool,
                            const struct json *arguments);

/* What is masked in one record. */
struct decision_masking;

/* `tool` NULL: unknown. Allocates nothing before the first secret. */
struct decision_masking *decision_masking_new(struct decision_mask *mask, struct arena *arena,
                                              const struct tool *tool);

/* The value without its secrets; itself if it has none. The next two functions mask copies of its secrets, so
 * arguments and results go first. `keeps`: their paths are listed. */
const struct json *decision_masking_value(struct decision_masking *masking, const struct json *value,
                                          bool keeps);

/* The text without secrets, and without copies of those that values had. */
struct str decision_masking_text(struct decision_masking *masking, struct str text);

/* A JSON Patch of arguments whose secrets are masked, without them, too. */
const struct json *decision_masking_patch(struct decision_masking *masking, const struct json *patch);

/* A path such as "items[0].password" of a problem lies in a masked value. */
bool decision_masking_hides(const struct decision_masking *masking, struct str path);

/* The JSON Pointers of the masked arguments; 0: none. */
size_t decision_masking_paths(const struct decision_masking *masking, const struct str **paths);

#endif
