/* Formats of ids, by name: "uuid", "integer", "prefix:evt_", … An argument that does not have the format is
 * no id at all. */
#ifndef TOOLGATE_POLICY_ID_FORMAT_H
#define TOOLGATE_POLICY_ID_FORMAT_H

#include "json/value.h"

bool id_format_is_known(struct str name);

/* NULL if the value has the format or the name is empty; else what is expected: "a UUID (e.g. '…')". Valid
 * until the next call. */
const char *id_format_mismatch(struct str name, const struct json *value);

#endif
