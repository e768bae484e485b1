/*
 * Fields of a result that nobody past the gate may read: the model, facts,
 * what is quoted, the policy's own judgement. A text becomes "[redacted]",
 * anything else null, so that it is seen that something was there.
 */
#ifndef TOOLGATE_RESULT_REDACT_H
#define TOOLGATE_RESULT_REDACT_H

#include "result/result.h"

#define REDACTED "[redacted]"

/* `fields`: paths as in gives_ids ("customers[].email"), or the bare name of a field anywhere. False where
 * the result has none of them: it is as it was then. Sees JSON only: structured content, and text blocks that
 * hold it. */
bool redact_result(struct arena *arena, const struct str *fields, size_t count, struct result *result);

#endif
