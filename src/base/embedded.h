/* The Lua files under lua/ and the metaschemas, compiled into the binary so that program and scripts have the
 * same version. */
#ifndef TOOLGATE_BASE_EMBEDDED_H
#define TOOLGATE_BASE_EMBEDDED_H

#include "base/str.h"

/* `name` is the path below lua/, e.g. "ledger/admit.lua", or the path of a data file. Aborts on an unknown
 * name, which is a build error. */
struct str embedded_text(const char *name);

#endif
