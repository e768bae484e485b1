/*
 * Redaction: fields of a result that only the tool may see are removed before
 * the model, facts, quotes or the policy read them. A string becomes
 * "[redacted]", any other value null, so that its presence stays visible.
 */
#ifndef TOOLGATE_RESULT_REDACT_H
#define TOOLGATE_RESULT_REDACT_H

#include "result/result.h"

#define REDACTED "[redacted]"

/* `fields`: paths as in gives_ids ("customers[].email"), or the bare name of a field anywhere. Searches JSON
 * only: structured content, and text blocks that hold JSON. False, and `result` is unchanged, if it has none
 * of the fields. */
bool redact_result(struct arena *arena, const struct str *fields, size_t count, struct result *result);

/* A value without these fields, which are left out instead; itself if it has none of them. An item of a list
 * becomes null. `value` may be NULL. */
const struct json *redact_without(struct arena *arena, const struct str *fields, size_t count,
                                  const struct json *value);

#endif
