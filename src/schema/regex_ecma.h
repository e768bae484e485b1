/* From ECMA-262's regular expressions to PCRE2's. Internal to this room. */
#ifndef TOOLGATE_SCHEMA_REGEX_ECMA_H
#define TOOLGATE_SCHEMA_REGEX_ECMA_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the expression for PCRE2 (with UTF, without UCP) that matches what `expression` matches in
 * ECMA-262. ERR_SCHEMA with the reason if that is not valid; escaped punctuation is accepted, as it is
 * common. */
enum err regex_ecma_to_pcre(struct str expression, struct buf *out, struct why *why);

#endif
