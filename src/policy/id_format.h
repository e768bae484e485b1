/* What ids look like, by name: "uuid", "integer", "prefix:evt_", … A shape is hard: what has not got it is no
 * id. */
#ifndef TOOLGATE_POLICY_ID_FORMAT_H
#define TOOLGATE_POLICY_ID_FORMAT_H

#include "base/str.h"

bool shape_is_known(struct str name);
const char *shape_names(void); /* "uuid, integer, …" */

#endif
